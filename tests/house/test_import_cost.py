"""`import xtensor` touches no device, changes nothing of the user's JAX, and pulls in no optional package."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# JAX is imported first, so that only xtensor's own effects show.
BEFORE = """
import json, os, sys, threading
import jax, jax.numpy as jnp
from jax._src import xla_bridge

def settings():
    return {name: repr(getattr(jax.config, name, value)) for name, value in sorted(jax.config.values.items())}

def changed():
    return [name for name, value in settings().items() if config.get(name) != value]

config, environment, threads = settings(), dict(os.environ), threading.active_count()
import xtensor
answer = {}
"""

IMPORT = """
answer["config changed"] = changed()
answer["environment changed"] = dict(os.environ) != environment
answer["threads started"] = threading.active_count() - threads
answer["modules"] = sorted({name.split(".")[0] for name in sys.modules})
answer["backends"] = sorted(xla_bridge._backends)
answer["int dtype"] = str(jnp.arange(3).dtype)
answer["float dtype"] = str(jnp.zeros(3).dtype)
answer["backends after use"] = sorted(xla_bridge._backends)
"""

USE = """
wide = xtensor.zeros(2, dtype=xtensor.float64) + xtensor.zeros(2, dtype=xtensor.int64)
answer["wide dtype"] = str(wide.dtype)
answer["config changed"] = changed()
answer["int dtype"] = str(jnp.arange(3).dtype)
answer["float dtype"] = str(jnp.zeros(3).dtype)
"""


def ask(script: str) -> dict:
    """What a fresh process that runs the script answers; a warning in it is an error."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{BEFORE}{script}print(json.dumps(answer))"],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        pytest.fail(run.stderr[-2000:], pytrace=False)
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def imported() -> dict:
    return ask(IMPORT)


def test_touches_no_device(imported):
    assert imported["backends"] == []
    assert imported["backends after use"] == ["cpu"]  # the question itself can be answered


def test_leaves_the_configuration_alone(imported):
    assert imported["config changed"] == []
    assert not imported["environment changed"]
    assert imported["threads started"] == 0


def test_leaves_default_dtypes_alone(imported):
    assert (imported["int dtype"], imported["float dtype"]) == ("int32", "float32")


def test_pulls_in_no_optional_package(imported):
    optional = {
        "IPython",
        "einops",
        "matplotlib",
        "orbax",
        "pandas",
        "pygraphviz",
        "pytest",
        "safetensors",
        "sklearn",
        "torch",
        "tqdm",
    }
    assert optional.isdisjoint(imported["modules"])


def test_64_bits_in_use_leave_jax_alone():
    used = ask(USE)
    assert used["wide dtype"].endswith("float64")
    assert used["config changed"] == []
    assert (used["int dtype"], used["float dtype"]) == ("int32", "float32")
