"""The programs under examples/: the accuracy they promise, and checkpoints that continue exactly."""

import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

for needed in ("matplotlib", "sklearn", "tqdm"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: pip install '.[examples]'")


ENVIRONMENT = os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def run(name, *flags, code=0):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *flags],
        env=ENVIRONMENT,
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


@pytest.mark.full
def test_quantised_digits_keep_their_accuracy():
    out = run("quantised_digits.py", "--seeds=1", "--epochs=8", "--tuning_epochs=1")
    means = [float(part.split("%")[0].split()[-1]) for part in out.split("means: ")[1].split(", ")]
    assert len(means) == 4
    assert min(means[1:]) >= means[0] - 0.5


# What stands before digits.py in a process that is to die: `die` at a point of its life, as by `kill -9`.
DEATH = """
import io, os, runpy, signal, sys
import numpy as np
import matplotlib.figure
import xtensor

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def after(count, function):
    calls = iter(range(count))
    return lambda *args, **kwargs: function(*args, **kwargs) if next(calls, None) is not None else die()

def half(file, **arrays):
    whole = io.BytesIO()
    savez(whole, **arrays)
    file.write(whole.getvalue()[: len(whole.getvalue()) // 2])
    file.flush()
    die()

savez, replace, save_figure = np.savez, os.replace, matplotlib.figure.Figure.savefig
{point}
sys.argv = ["digits.py", *sys.argv[1:]]
sys.path.insert(0, "examples")
runpy.run_path("examples/digits.py", run_name="__main__")
"""
AFTER_STEPS = "xtensor.optim.AdamW.step = after({steps}, xtensor.optim.AdamW.step)"  # an epoch has 23 steps
# Where a run dies, and after which epoch the next one says that it continues (None: it starts anew).
DEATHS = {
    "in the first epoch": (AFTER_STEPS.format(steps=5), None),
    "in the middle of the first checkpoint": ("np.savez = half", None),
    "in the second epoch": (AFTER_STEPS.format(steps=30), 1),
    "in the middle of the second checkpoint": ("np.savez = half", 1),
    "before the second checkpoint has its name": ("os.replace = die", 1),
    "between epochs": ("os.replace = lambda *names: (replace(*names), die())", 2),
    "in a plot": ("matplotlib.figure.Figure.savefig = die", 3),
}


# "cpu:1": draws on two devices
@pytest.mark.parametrize(("model", "device"), [("mlp", "cpu:1"), ("mlp", "cpu"), ("cnn", "cpu")])
@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_was_not(tmp_path, model, device):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    flags = [f"--model={model}", f"--device={device}", "--epochs=3"]
    run("digits.py", *flags, "--noplot", f"--out={whole}")
    expected = None
    for what, (point, after) in DEATHS.items():
        done = subprocess.run(
            [sys.executable, "-c", DEATH.replace("{point}", point), *flags, "--resume", f"--out={killed}"],
            cwd=ROOT,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, (what, done.stderr[-2000:])
        assert continued(done.stdout) == expected, what
        expected = after
    assert continued(run("digits.py", *flags, "--resume", "--noplot", f"--out={killed}")) == expected
    assert list(killed.iterdir()) == [killed / f"{model}.npz"]
    assert_same_checkpoint(whole / f"{model}.npz", killed / f"{model}.npz")


@pytest.mark.full
def test_a_run_that_is_killed_at_any_moment_ends_as_one_that_was_not(tmp_path, rng):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run("digits.py", "--epochs=6", "--noplot", f"--out={whole}")
    died = 0
    for wait in rng.uniform(2, 8, 10):
        command = [sys.executable, "examples/digits.py", "--epochs=6", "--resume", f"--out={killed}"]
        process = subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        process.kill()
        died += process.wait() == -signal.SIGKILL
    assert died
    run("digits.py", "--epochs=6", "--resume", "--noplot", f"--out={killed}")
    assert_same_checkpoint(whole / "mlp.npz", killed / "mlp.npz")


def continued(printed: str) -> int | None:
    """After which epoch a run says that it continues; None where it starts anew."""
    assert ("starting anew" in printed) != ("continuing from" in printed), printed
    return int(printed.split("after epoch ")[1].split(maxsplit=1)[0]) if "continuing" in printed else None


def assert_same_checkpoint(one: pathlib.Path, other: pathlib.Path) -> None:
    with np.load(one) as ours, np.load(other) as theirs:
        assert ours.files == theirs.files
        assert all(ours[name].tobytes() == theirs[name].tobytes() for name in ours.files)


def test_devices_agree():
    lines = run("devices.py", "--width=32", "--batch_size=16", "--steps=3").splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["cpu", "cpu:1"]
    assert all(float(line.split()[-1]) < 1e-5 for line in lines[1:3])


@pytest.fixture(scope="module")
def notebooks():
    """The tool that runs notebooks, and keeps what they gave for the site."""
    for needed in ("nbformat", "nbclient"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: pip install '.[examples]'")
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What a notebook says when it has run to its end.
SAID = {
    "tour": ("agrees with finite differences: True", "modified by an inplace operation"),
    "digits": ("test accuracy: 9",),
    "gpt": ("step 199",),
    "hugging_face": ("accuracy: ",),
    "devices": ("at least two devices, cpu and cpu:1", "X501: "),
    "operator": ("agrees with finite differences: True",),
    "conv2d": ("stablehlo.convolution",),
    "layout": ("Circulant",),
}


@pytest.mark.parametrize("name", SAID)
def test_a_notebook_runs_from_top_to_bottom(notebooks, name):
    (path,) = (path for path in notebooks.NOTEBOOKS if path.stem == name)
    if needed := notebooks.NEEDS.get(name):
        pytest.importorskip(needed)
    assert not any(cell.get("outputs") for cell in json.loads(path.read_text("utf-8"))["cells"])
    shown = [o for cell in notebooks.executed(path).cells if cell.cell_type == "code" for o in cell.outputs]
    assert not [o for o in shown if o.output_type == "error"]
    text = "".join(str(o.get("text", "")) for o in shown)
    for words in SAID[name]:
        assert words in text
    # Red lines; transformers has one of its own.
    assert name == "hugging_face" or not [o for o in shown if "TqdmWarning" in str(o)]


def test_every_notebook_is_run(notebooks):
    assert {path.stem for path in notebooks.NOTEBOOKS} == set(SAID)


def test_the_tours_hook_sees_a_gradient(notebooks):
    """Where `tanh` saturated, all that the chapter on hooks showed were zeros."""
    shown = [o for cell in notebooks.executed(notebooks.NOTEBOOKS[0]).cells for o in cell.get("outputs", ())]
    printed = "".join([o.get("text", "") for o in shown])  # a line may come in parts
    line = printed.partition("largest gradient at the hidden layer")[2]
    assert float(line.split("[")[1].split("]")[0]) > 0.01
