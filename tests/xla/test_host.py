"""What is set once per process for the CPU: XLA reads the flags, the environment and the user's own settings stay."""

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor.xla import host


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("count", [63, 64, 1031, 4097])
def test_atan_of_many_elements(name: str, count: int) -> None:
    """A flag that was set made it wrong from some 64 elements on, where loops over vectors begin."""
    x = np.linspace(-50, 50, count).astype(name)
    ours, exact = xtensor.tensor(x).atan().numpy(), np.arctan(x.astype(np.float64))
    assert (abs(ours - exact) <= 4 * np.finfo(name).eps * abs(exact)).all()


LOOK = """
import os, xtensor
from jaxlib import _jax
print(os.environ.get("XLA_FLAGS"), b"xla_cpu_disable_tiled_emitter" in _jax.CompileOptions().SerializeAsString())
"""


@pytest.mark.parametrize("wanted", ["1", "0"])
def test_xla_reads_the_flags_and_the_environment_stays(wanted: str) -> None:
    if host.platform.machine().lower() not in ("x86_64", "amd64") or host.read_flags is None:
        pytest.skip("flags are for x86 processors")
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"XTENSOR_TUNE_HOST": wanted}
    done = subprocess.run(
        [sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["None", str(wanted == "1")]


def test_flags_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(host, "read_flags", lambda: seen.append(os.environ["XLA_FLAGS"]))
    monkeypatch.setenv("XLA_FLAGS", "--xla_one=2 --xla_dump_to=here")
    host.set_flags({"xla_one": "1", "xla_two": "3"})
    assert seen == ["--xla_one=2 --xla_dump_to=here --xla_two=3"]
    assert os.environ["XLA_FLAGS"] == "--xla_one=2 --xla_dump_to=here"


@pytest.mark.parametrize("library", ["glibc", "another"])
def test_thresholds_are_told_to_glibc_alone(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    told: dict[int, int] = {}
    loaded: Any = SimpleNamespace(mallopt=told.__setitem__) if library == "glibc" else SimpleNamespace()
    monkeypatch.setattr(host.ctypes, "CDLL", lambda name: loaded)
    host.set_thresholds({-1: 5})
    assert told == ({-1: 5} if library == "glibc" else {})


def test_malloc_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(host, "set_thresholds", told.append)
    monkeypatch.setattr(host, "set_flags", told.append)
    monkeypatch.setenv("MALLOC_ARENA_MAX", "4")
    host.prepare()
    assert host.THRESHOLDS not in told


@pytest.mark.parametrize(
    ("own", "then"),
    [((700, 10, 10), (7_000, 10, 10)), ((2_000, 10, 0), (20_000, 10, 0)), ((500, 5, 5), (500, 5, 5))],
)
def test_the_collector_looks_less_often_where_python_set_it(
    monkeypatch: pytest.MonkeyPatch, own: tuple[int, ...], then: tuple[int, ...]
) -> None:
    thresholds = [own]
    stand_in = SimpleNamespace(
        get_threshold=lambda: thresholds[-1], set_threshold=lambda *t: thresholds.append(t)
    )
    monkeypatch.setattr(host, "gc", stand_in)
    host.collect_less(10)
    assert thresholds[-1] == then
