"""Other libraries take our tensors by the array API."""

import json
import subprocess
import sys

import numpy as np
import pytest

import xtensor


def test_scikit_learn_and_scipy():
    pytest.importorskip("sklearn")
    pytest.importorskip("scipy")
    command = [sys.executable, "-m", "tests.array_api.libraries"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == {} and found["run"] > 30


def test_array_api_compat(monkeypatch):
    compat = pytest.importorskip("array_api_compat")
    # It takes any module of this name for the package sparse: our tests of sparse tensors too, where they were imported.
    monkeypatch.delitem(sys.modules, "sparse", raising=False)
    x = xtensor.arange(6.0).reshape(2, 3)
    xp = compat.array_namespace(x, xtensor.ones(2))
    assert xp is xtensor.array_api
    assert compat.is_array_api_obj(x) and not compat.is_torch_array(x)
    assert compat.size(x) == 6 and compat.device(x) == x.device
    assert compat.to_device(xp.asarray(x), "cpu:1").device == xtensor.device("cpu:1")


def test_einops_takes_arrays():
    einops = pytest.importorskip("einops")
    x = xtensor.array_api.reshape(xtensor.array_api.arange(6), (2, 3))
    found = einops.rearrange(x, "a b -> (b a)")
    np.testing.assert_array_equal(np.asarray(found), [0, 3, 1, 4, 2, 5])
    by_standard = pytest.importorskip("einops.array_api")
    assert by_standard.reduce(x, "a b -> a", "sum").tolist() == [3, 12]
