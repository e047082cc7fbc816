"""`examples/export.py`: trained, exported three ways, served without xtensor."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

for package in ("flatbuffers", "onnx", "onnxruntime", "safetensors", "sklearn"):
    pytest.importorskip(package)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_example_serves_without_xtensor():
    run = subprocess.run(
        [sys.executable, "examples/export.py"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    report = json.loads(run.stdout.splitlines()[-1])
    assert report.pop("accuracy") > 0.9
    assert len(report) == 3 and max(report.values()) < 1e-4
