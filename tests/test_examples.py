"""The programs under examples/: the accuracy they promise, and checkpoints that continue exactly."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

for needed in ("matplotlib", "sklearn", "tqdm"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: pip install '.[examples]'")


def run(name, *flags, code=0):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *flags],
        env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_digits_reach_97_percent(tmp_path, model):
    out = run("digits.py", f"--model={model}", f"--out={tmp_path}")
    accuracy = float(out.split("test accuracy: ")[1].split("%")[0])
    assert accuracy >= 97
    assert {p.name for p in tmp_path.iterdir()} == {
        f"{model}.npz",
        f"{model}-curves.png",
        f"{model}-mistakes.png",
    }


def test_resuming_is_exact(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run("digits.py", "--epochs=3", "--noplot", f"--out={whole}")
    kill = "import sys, os; sys.argv = ['digits.py', '--epochs=3', '--noplot', '--out=' + sys.argv[1]]\n"
    kill += "calls = []\n"
    # The second save is killed between the write and the rename.
    kill += "def replace(a, b, f=os.replace):\n    calls.append(1)\n"
    kill += "    os._exit(9) if len(calls) > 1 else f(a, b)\nos.replace = replace\n"
    kill += "import runpy; runpy.run_path('digits.py', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", kill, str(parts)],
        cwd=ROOT / "examples",
        env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 9, done.stderr[-2000:]
    assert "after epoch 1" in run("digits.py", "--epochs=3", "--resume", "--noplot", f"--out={parts}")
    with np.load(whole / "mlp.npz") as one, np.load(parts / "mlp.npz") as other:
        assert one.files == other.files
        assert all(one[name].tobytes() == other[name].tobytes() for name in one.files)


def test_devices_agree():
    lines = run("devices.py", "--width=32", "--batch_size=16", "--steps=3").splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["cpu", "cpu:1"]
    assert all(float(line.split()[-1]) < 1e-5 for line in lines[1:3])


def test_the_tour_runs_from_top_to_bottom():
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install '.[examples]'")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install '.[examples]'")
    notebook = nbformat.read(ROOT / "examples" / "tour.ipynb", 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    shown = [o for cell in notebook.cells if cell.cell_type == "code" for o in cell.outputs]
    assert not [o for o in shown if o.output_type == "error"]
    text = "".join(str(o.get("text", "")) for o in shown)
    assert "agrees with finite differences: True" in text
    assert "modified by an inplace operation" in text
