"""Programs over packages that are written for PyTorch: PyTorch's figures, where package and PyTorch are installed."""

import subprocess
import sys

import pytest

from tests import packages


def test_there_are_fifty():
    assert len(packages.NAMES) >= 50
    listed = (packages.FOLDER.parent / "requirements.txt").read_text("utf-8")
    assert "transformers==" in listed and not any(line.startswith("torch==") for line in listed.splitlines())


@pytest.mark.full
@pytest.mark.parametrize("name", packages.NAMES)
def test_the_figures_are_pytorch_s(torch, name):
    if absent := packages.missing(name):
        pytest.skip(f"not installed: {', '.join(sorted(absent))}")
    theirs, _ = packages.run([sys.executable], name)
    ours, _ = packages.run([sys.executable, "-m", "xtensor"], name)
    assert packages.difference(ours, theirs) <= 1, (ours, theirs)


def test_a_difference_is_found():
    theirs = {"x": [1.0, 2.0], "train losses": [1.0]}
    assert packages.difference(theirs, theirs) == 0
    assert packages.difference({"x": [1.0, 2.001], "train losses": [1.0]}, theirs) == pytest.approx(
        5, rel=1e-2
    )
    assert packages.difference({"x": [1.0, 2.0], "train losses": [1.0005]}, theirs) == pytest.approx(
        0.5, rel=1e-2
    )
    assert packages.difference({"x": [1.0, 2.0]}, theirs) == float("inf")


def test_a_program_that_fails_says_why(tmp_path):
    with pytest.raises(packages.Failed, match="no_such"):
        packages.run([sys.executable, "-c", "raise SystemExit('no_such')"], packages.NAMES[0])


def test_the_command_knows_its_programs():
    done = subprocess.run(
        [sys.executable, "-m", "tests.packages", "none"],
        capture_output=True,
        text=True,
        check=False,
        cwd=packages.ROOT,
    )
    assert done.returncode == 2 and "no program is called none" in done.stderr
