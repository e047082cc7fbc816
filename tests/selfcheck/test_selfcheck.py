"""`python -m xtensor.selfcheck`: every operator on a device against float64 on the host."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib

import numpy as np
import pytest

import xtensor
from xtensor import selfcheck
from xtensor.operators.operator import REGISTRY
from xtensor.selfcheck import CASES, Finding, checking
from xtensor.selfcheck.__main__ import main
from xtensor.selfcheck.cases import case, drawn


def test_every_operator_is_tried():
    assert [name for name in REGISTRY if name not in checking.all_cases()] == []


def test_an_operator_without_cases_is_tried_on_a_guess(monkeypatch):
    monkeypatch.setattr(checking, "CASES", {n: c for n, c in CASES.items() if n != "tanh"})
    (found,) = selfcheck.check("cpu", ["tanh"], ["float32"]).findings
    assert found.verdict == "right" and found.reference == "kernel" and found.ulps < 8


def test_pointwise_operators_reductions_and_scans_are_held_against_numpy():
    own = [
        n
        for n, op in REGISTRY.items()
        if op.kind != "general" and any(c.numpy is None for c in CASES.get(n, ()))
    ]
    assert own == []


# Of few numbers they make many.
LONG_RESULTS = ("outer", "kron", "combinations", "affine_grid_generator")


def test_every_operator_is_tried_above_a_vector_loop():
    short = []
    for name, cases in CASES.items():
        sizes: list[int] = []
        for c in cases:
            arguments, named = checking.made(c, c.dtypes[0], name)
            checking.mapped([*arguments, *named.values()], lambda a, sizes=sizes: sizes.append(a.size))
        if max(sizes) < 1031:
            short.append(name)
    assert sorted(short) == sorted(LONG_RESULTS)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(2)
def test_an_operator_is_right_on_the_host(name: str, full: bool):
    """In a sampled run a quarter of them, in float32."""
    if not full and zlib.crc32(name.encode()) % 4:
        return
    dtypes = None if full or not any("float32" in c.dtypes for c in CASES[name]) else {"float32"}
    found = list(checking.findings(name, CASES[name], xtensor.device("cpu"), dtypes))
    assert found
    assert [f for f in found if f.verdict != "right"] == []


def test_a_second_device():
    report = selfcheck.check("cpu:1", ["tanh", "conv2d"], ["float32"])
    assert str(report.device) == "cpu:1"
    assert [f.verdict for f in report.findings] == ["right", "right"]
    assert report.findings[0].reference == "NumPy"
    assert "on cpu:1" in str(report)


@pytest.fixture
def broken(monkeypatch):
    """`tanh` is wrong in its vector loop, as `atan` was with 512 bits; `sinh` is refused, `cosh` unsupported, `exp` fails."""
    real = checking.on_device

    def on_device(name, case, args, kwargs, place):
        if name == "sinh":
            raise NotImplementedError("\"sinh_cpu\" not implemented for 'BFloat16'")
        if name == "cosh":
            raise RuntimeError("UNIMPLEMENTED: no F64 here")
        if name == "exp":
            raise KeyError("a bug")
        results = real(name, case, args, kwargs, place)
        if name == "tanh":
            results = [np.where(np.arange(r.size) % 64 == 63, r + r.dtype.type(0.1), r) for r in results]
        return results

    monkeypatch.setattr(checking, "on_device", on_device)


def test_what_is_wrong_is_told_first_and_is_the_exit_status(broken, capsys, tmp_path):
    path = tmp_path / "found.json"
    assert main(["tan*", "sinh", "cosh", "exp", "--dtype", "float32", "--json", str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:8]] == ["tanh", "exp", "cosh", "sinh", "tan"]
    assert (
        "WRONG" in lines[3] and "failed" in lines[4] and "unsupported" in lines[5] and "refused" in lines[6]
    )
    assert "exp in float32: KeyError: 'a bug'" in lines
    assert lines[-1] == "1 right, 1 refused, 1 unsupported, 1 failed, 1 wrong"
    written = json.loads(path.read_text())
    assert written["device"] == "cpu" and written["jax"]
    found = {f["operator"]: f for f in written["findings"]}
    assert found["tanh"]["verdict"] == "wrong" and found["tanh"]["ulps"] > 1000
    assert found["tan"]["verdict"] == "right" and found["tan"]["ulps"] < 4


def test_what_is_refused_or_unsupported_is_not_wrong(broken, capsys):
    assert main(["sinh", "cosh", "tan", "--dtype", "float32"]) == 0
    assert "unsupported" in capsys.readouterr().out


def test_a_notebook_shows_a_table(broken):
    shown = selfcheck.check("cpu", ["tanh", "tan"], ["float32"])._repr_html_()
    assert shown.count("<tr>") == 3 and "<b>WRONG" in shown


def test_the_largest_error_of_all_cases_counts():
    cases = [case(drawn(2000), numpy=np.tanh), case(drawn(2000), numpy=lambda a: np.tanh(a) * (1 + 1e-3))]
    (found,) = checking.findings("tanh", cases, xtensor.device("cpu"), {"float32"})
    assert found.verdict == "wrong" and found.ulps > 1000


def test_a_wrong_shape_is_wrong():
    (found,) = checking.findings(
        "tanh", [case(drawn(2000), numpy=lambda a: np.tanh(a)[:1])], xtensor.device("cpu"), {"float32"}
    )
    assert found.verdict == "wrong" and found.cell == "WRONG other"


def test_json_alone_on_standard_output(capsys):
    assert main(["tanh", "--json", "-", "--dtype", "float32"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert Finding(**found).verdict == "right"


@pytest.mark.parametrize("arguments", [["no_such_operator"], ["--device", "nowhere"], ["--device", "cpu:99"]])
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "xtensor.selfcheck:" in capsys.readouterr().err


def test_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "xtensor.selfcheck", "sqrt", "--dtype", "float32"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1 operators on cpu" in done.stdout and done.stderr == ""


def test_importing_xtensor_does_not_import_the_check():
    text = "import sys, xtensor; print('xtensor.selfcheck' in sys.modules); xtensor.selfcheck.check"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
