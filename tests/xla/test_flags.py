"""XLA's flags change no result beyond rounding: a sample of `python -m tests.flags`, which runs every operator."""

from __future__ import annotations

import math
import os
import pathlib
import pickle
import platform
import zlib
from typing import Any

import numpy as np
import pytest

from tests.flags.compare import ALLOWED, SMALL, compare
from tests.flags.enlarge import ELEMENTS, EXTRA, LIMIT, candidates, elements
from tests.flags.processes import Wanted, differences, environments
from tests.flags.worker import compared, file_of, write
from tests.table import ROWS
from xtensor.xla import host

X86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="flags are for x86 processors"
)
ALWAYS = ["atan", "conv2d", "softmax", "sum"]
TRIAL = "xla_cpu_prefer_vector_width=512"


def sampled(count: int) -> list[str]:
    """Some rows, others with another XTENSOR_TEST_SEED."""
    seed = os.environ.get("XTENSOR_TEST_SEED", "0")
    names = [row.name for row in ROWS if row.name not in ALWAYS]
    return ALWAYS + sorted(names, key=lambda name: zlib.crc32(f"{name}/{seed}".encode()))[:count]


@X86
def test_flags_change_nothing_but_rounding() -> None:
    together = dict(list(environments().items())[:1])
    names = sampled(6)
    found = list(differences(names, Wanted(["float32"], 1, together)))
    assert {told["row"] for told in found} == set(names)
    assert {told["row"] for told in found if told["flags"] == "all flags" and told["calls"]} >= set(ALWAYS)
    assert [told for told in found if told.get("error", 0.0) > 1] == []


@X86
@pytest.mark.full
def test_flags_change_nothing_in_pytorch_s_own_samples_enlarged() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
    pytest.importorskip("expecttest", reason="PyTorch's OpInfo database needs it")
    names = ["atan", "cumsum", "nn.functional.conv2d"]
    together = dict(list(environments().items())[:1])
    found = list(differences(names, Wanted(["float32"], 2, together, "entries")))
    assert all(told["calls"] > 0 for told in found) and len(found) == 2 * len(names)
    assert [told for told in found if told.get("error", 0.0) > 1] == []


def test_the_environments_are_ours_together_and_each_alone() -> None:
    found = environments()
    assert list(found) == ["all flags", *host.FLAGS]
    assert "xla_cpu_prefer_vector_width" not in host.FLAGS
    assert all(
        settings["XTENSOR_TUNE_HOST"] == "0" for name, settings in found.items() if name != "all flags"
    )
    assert environments(["xla_a=1"])["xla_a=1"]["XLA_FLAGS"].endswith("--xla_a=1")


@pytest.mark.skipif(
    not pathlib.Path("/proc/cpuinfo").exists() or " avx512f" not in pathlib.Path("/proc/cpuinfo").read_text(),
    reason="vectors of 512 bits are AVX-512's",
)
def test_the_flag_that_made_atan_wrong_is_found_where_it_still_does() -> None:
    """Not every processor with AVX-512 is given the faulty code, nor perhaps a later XLA's."""
    wanted = Wanted(["float32", "float64"], 1, environments([TRIAL]))
    found = [told for told in differences(["atan"], wanted) if told["flags"] == TRIAL]
    assert [told["calls"] for told in found] == [2]
    assert found[0]["error"] == 0 or found[0]["error"] > 1000


def test_a_difference_is_found(tmp_path: pathlib.Path) -> None:
    row = next(row for row in ROWS if row.name == "atan")
    assert write(row, ["float32"], 1, tmp_path) == {"calls": 1}
    assert compared(row, tmp_path)["error"] == 0
    file = file_of(tmp_path, row)
    cases: Any = pickle.loads(file.read_bytes())
    array = cases[0][2][0][1]
    assert array.size >= ELEMENTS
    changed = array.copy()
    changed.flat[70] += 1e-5
    cases[0][2][0] = ("float32", changed)
    file.write_bytes(pickle.dumps(cases))
    told = compared(row, tmp_path)
    assert told["error"] > 1
    assert "atan(T(54, 81)) with float32: result 0" in told["what"]


ONES = ("float32", np.ones(5, np.float32))


@pytest.mark.parametrize(
    ("actual", "kind", "passes"),
    [
        (np.float32([1, 1, 1, 1, 1]), "view", True),
        (np.float32([1, 1, 1, 1, 1 + 2**-23]), "view", False),
        (np.float32([1, 1, 1, 1, 1 + 8 * 2**-23]), "pointwise", True),
        (np.float32([1, 1, 1, 1, 1 + 9 * 2**-23]), "pointwise", False),
        (np.float32([1, 1, 1, 1, 1 + 9 * 2**-23]), "reduction", True),
        (np.float32([1, 1, 1, 1, 1 + 65 * 2**-23]), "composite", False),
        (np.float32([1, 1, 1, 1, math.nan]), "general", False),
        (np.float32([1, 1, 1, 1, math.inf]), "general", False),
        (np.float32([1, 1, 1, 1]), "general", False),
        (np.float64([1, 1, 1, 1, 1]), "general", False),
    ],
)
def test_what_is_rounding_and_what_is_not(actual: np.ndarray, kind: str, passes: bool) -> None:
    assert (compare([(str(actual.dtype), actual)], [ONES], kind).error <= 1) == passes


def test_small_elements_count_by_themselves_where_nothing_is_added_up() -> None:
    def error(kind: str, small: float) -> float:
        actual, expected = (np.float64([1.0, small * (1 + d)]) for d in (1e-12, 0.0))
        return compare([("float64", actual)], [("float64", expected)], kind).error

    assert error("pointwise", 2.0**-9) > 1 > error("general", 2.0**-9)
    assert set(ALLOWED) == set(SMALL)


def test_other_results_are_equal_or_wrong() -> None:
    assert compare(["1"], ["2"], "general").error == math.inf
    assert compare([("int64", np.arange(3))], [("int64", np.arange(3) + 1)], "general").error == math.inf
    assert compare([], [ONES], "general").error == math.inf
    complex_ones = np.ones(3, np.complex64)
    assert compare([("complex64", complex_ones * 1j)], [("complex64", complex_ones)], "general").error > 1
    assert compare([("complex64", complex_ones)], [("complex64", complex_ones)], "general").error == 0


def test_enlarged_calls_are_longer_than_a_loop_over_vectors() -> None:
    count = 0
    for row in ROWS[::7]:
        for sample in row.samples:
            for larger in candidates(sample):
                count += 1
                assert not sample.tensors or ELEMENTS <= elements(larger) <= LIMIT
    assert count > 500
    assert set(EXTRA) <= {row.name for row in ROWS}
