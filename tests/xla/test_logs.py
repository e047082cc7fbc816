"""`XTENSOR_LOG=compiles`: each program with the user's line, and once what to do where signatures do not end."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import xtensor
from xtensor.xla import compiles, logs, segments

HERE = pathlib.Path(__file__)


@pytest.fixture
def logged() -> Iterator[None]:
    logs.log(["compiles"])
    yield
    logs.log([])
    logs._counts.clear()


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.usefixtures("logged")
def test_each_program_is_told_with_the_line_that_asked_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    x = xtensor.ones(3, 41, requires_grad=True)
    capsys.readouterr()
    y, forward = x.asinh(), here()
    y.sum().backward()
    backward = here() - 1
    segments.workers.wait()  # a program is there before the thread that compiled it has told
    told = lines(capsys)
    assert len(told) > 2
    for line in told:
        assert re.fullmatch(r"xtensor: (compiled|loaded) \w+ in [\d.]+ ms \(.*test_logs\.py:\d+\)", line)
    assert [line for line in told if " asinh in " in line and line.endswith(f":{forward})")]
    assert [line for line in told if " asinh_backward in " in line and line.endswith(f":{backward})")]
    # A signature that has come before is none of these.
    x.asinh()
    assert lines(capsys) == []


def test_nothing_is_told_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    assert not any(watcher is logs._begin for watcher in compiles._watchers)
    xtensor.ones(3, 43).asinh()
    assert lines(capsys) == []


@pytest.mark.usefixtures("logged")
def test_a_line_that_meets_many_signatures_is_told_once_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for _ in range(logs.MANY - 1):
        logs._begin("softmax")(True)
    logs._begin("softmax")(None)  # was there already: no signature
    for _ in range(logs.MANY - 1):
        logs._begin("softmax")(False)  # another line
    assert not [line for line in lines(capsys) if "signatures" in line]
    for _ in range(2):
        for loaded in [False] * (2 * logs.MANY):
            logs._begin("softmax")(loaded)
    told = [line for line in lines(capsys) if "signatures" in line]
    assert len(told) == 1
    assert f"softmax has met {logs.MANY} signatures at " in told[0]
    assert f"{HERE.name}:{here() - 4}" in told[0]
    assert "pad" in told[0]
    assert "python -m xtensor.warm" in told[0]


@pytest.mark.usefixtures("logged")
def test_a_thread_without_a_users_line_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {"__name__": "xtensor.made", "begin": logs._begin}
    exec("def work():\n    begin('plan')(False)", namespace)
    thread = threading.Thread(target=namespace["work"], name="of plans")
    thread.start()
    thread.join()
    [line] = lines(capsys)
    assert "compiled plan in " in line
    assert line.endswith("(thread 'of plans')")


def test_a_name_that_is_none_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"nothing is called 'compile'; what can be logged: compiles"):
        logs.log(["compile"])


def test_by_the_environment(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\nx = torch.tensor([1.0, 2.0])\nx.tanh().tolist()\n")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}

    def told() -> str:
        done = subprocess.run(
            [sys.executable, "-m", "xtensor", str(program)],
            env={**kept, "XTENSOR_LOG": "compiles", "XTENSOR_COMPILE_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
        return re.sub(r"[\d.]+ ms", "1 ms", done.stderr)

    assert told() == f"xtensor: compiled tanh in 1 ms ({program}:3)\n"
    assert told() == f"xtensor: loaded tanh in 1 ms ({program}:3)\n"
