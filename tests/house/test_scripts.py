"""Complete programs: the numbers that PyTorch gives and those that the same text gives on xtensor."""

import json
import subprocess
import sys

import pytest

from tests import scripts

# Of the sampled run; the others are behind --full. Together they take a good minute on one core.
SAMPLE = {
    "actor_critic",
    "checkpointing",
    "custom_function",
    "data_loader",
    "forward_mode",
    "func_ensembles",
    "func_jacobians",
    "gan",
    "gcn",
    "gpt",
    "gru_lm",
    "llama",
    "mixed_precision",
    "resnet",
    "resume",
    "schedulers",
}
TOLERANCE = 1e-4


def test_there_are_thirty():
    assert len(scripts.NAMES) >= 30
    assert set(scripts.NAMES) >= SAMPLE


@pytest.mark.filterwarnings("default")  # what PyTorch warns of is the program's affair
@pytest.mark.parametrize(
    "name", [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.full) for n in scripts.NAMES]
)
def test_the_same_losses(torch, name):
    theirs = scripts.run_on_torch(name)
    ours = scripts.run_on_xtensor(name)
    assert scripts.difference(ours, theirs) <= TOLERANCE, (ours, theirs)


def test_by_the_command(torch):
    command = [sys.executable, "-m", "xtensor", str(scripts.FOLDER / "mlp.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=scripts.FOLDER.parent.parent
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ours = json.loads(done.stdout.splitlines()[-1])
    assert scripts.difference(ours, scripts.run_on_torch("mlp")) <= TOLERANCE


def test_a_difference_is_found():
    assert scripts.difference([1.0, 2.0], [1.0, 2.001]) == pytest.approx(5e-4, rel=1e-2)
    assert scripts.difference([1.0], [1.0, 2.0]) == float("inf")
    assert scripts.difference([float("nan")], [1.0]) == float("inf")
