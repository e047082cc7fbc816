"""The cases that need more devices or processes than a test session has, each file in a process of its own and with a time limit."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
SECONDS = 600


@pytest.mark.parametrize("name", ["mesh_cases"])
def test_on_eight_devices(name):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(HERE / f"{name}.py")],
        cwd=HERE.parents[1],
        env=os.environ | {"JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:]
