"""examples/gpt.py with tiny settings: the loss falls, text comes out, and a killed run resumes exactly."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import xtensor

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = (
    "--width=16 --heads=2 --layers=1 --context=16 --batch_size=4 --characters=4000 --save_every=6 --steps=12 "
    "--learning_rate=0.02"
).split()

pytest.importorskip("tqdm", reason="tqdm is not installed: pip install '.[examples]'")


def run(folder, *flags, before="", code=0):
    """The program with tiny settings; `before` is run first in its process."""
    arguments = ["gpt.py", *TINY, f"--out={folder}", *flags]
    start = f"import sys, runpy; sys.argv = {arguments!r}\n{before}\nrunpy.run_path('gpt.py', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", start],
        cwd=ROOT / "examples",
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done.stdout


def test_the_loss_falls_and_a_killed_run_resumes_exactly(tmp_path):
    out = run(tmp_path / "whole", "--sample=20")
    first, last, other = (float(n) for n in re.findall(r"[0-9]+\.[0-9]{3}", out)[-3:])
    assert last < first - 0.3 and other < first
    written = out[: out.rindex("\nloss:")]
    assert len(written) == 20

    # Killed inside the second save, between writing the file and giving it its name.
    kill = "import os\ncalls = []\n"
    kill += "def replace(a, b, f=os.replace):\n    calls.append(1)\n"
    kill += "    os._exit(9) if len(calls) > 1 else f(a, b)\nos.replace = replace\n"
    run(tmp_path / "parts", "--sample=0", before=kill, code=9)
    assert len(xtensor.load(tmp_path / "parts" / "gpt.pt")["losses"]) == 6
    assert "after step 6" in run(tmp_path / "parts", "--sample=20", "--resume")
    whole, parts = (xtensor.load(tmp_path / name / "gpt.pt") for name in ("whole", "parts"))
    assert whole["losses"] == parts["losses"]
    assert all(xtensor.equal(whole["model"][name], parts["model"][name]) for name in whole["model"])
