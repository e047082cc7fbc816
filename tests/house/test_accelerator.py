"""The suite for accelerators runs on a CPU too, smaller, without PyTorch, and says what does not hold."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import accelerator  # noqa: E402  # pyright: ignore[reportMissingImports]

sys.path.remove(str(ROOT / "benchmarks"))

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from benchmarks import accelerator; sys.exit(accelerator.main(sys.argv[1:]))"
QUICK = ["transfers", "mixed", "tf32", "attention", "memory", "waits"]


@pytest.mark.parametrize(
    "parts", [QUICK, pytest.param([p for p in accelerator.PARTS if p not in QUICK], marks=pytest.mark.full)]
)
def test_it_runs_without_pytorch(parts: list[str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "found.json"
    command = [sys.executable, "-c", WITHOUT_TORCH, "--device", "cpu", "--json", str(path), "--only", *parts]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(path.read_text("utf-8"))
    assert found["broken"] == []
    assert found.keys() == {"about", "broken", *parts}


def test_what_does_not_hold_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(run: accelerator.Run) -> None:
        run.must(run.device.type == "tpu", "this is no TPU")

    def raising(run: accelerator.Run) -> None:
        raise ValueError("because")

    monkeypatch.setattr(accelerator, "PARTS", {"memory": wrong, "waits": raising})
    assert accelerator.main(["--device", "cpu", "--only", "memory", "waits"]) == 1
    said = capsys.readouterr().out
    assert "memory: this is no TPU" in said
    assert "ValueError: because" in said
