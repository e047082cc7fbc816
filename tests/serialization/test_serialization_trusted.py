"""`load(weights_only=False)`: objects of importable classes, after the user's word; nothing is called that could run code."""

import argparse
import io
import pathlib
import pickle
import subprocess

import numpy as np
import pytest

import xtensor as xt

OBJECTS = {
    "number": np.float64(2.5),
    "whole": np.int64(3),
    "array": np.arange(6.0).reshape(2, 3),
    "texts": np.asarray(["a", "b"], dtype=object),
    "dtype": np.dtype("float32"),
    "path": pathlib.PurePosixPath("a/b"),
    "options": argparse.Namespace(rate=0.1),
    "kind": dict,
}


def written(library, value):
    stream = io.BytesIO()
    library.save(value, stream)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("writer", ["xtensor", "torch"])
def test_values_of_numpy_and_of_programs(torch, writer):
    library = xt if writer == "xtensor" else torch
    with pytest.raises(pickle.UnpicklingError, match="`weights_only=False` if you trust the whole file"):
        xt.load(written(library, OBJECTS))
    found = xt.load(written(library, OBJECTS), weights_only=False)
    assert found.keys() == OBJECTS.keys()
    for name, value in OBJECTS.items():
        assert type(found[name]) is type(value) and np.all(found[name] == value), name


def test_a_module_of_pytorch_s(torch, rng):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3),
        torch.nn.BatchNorm2d(3),
        torch.nn.GELU(),
        torch.nn.Flatten(),
        torch.nn.Linear(12, 2),
    ).eval()
    found = xt.load(written(torch, model), weights_only=False)
    x = rng.standard_normal((2, 2, 4, 4)).astype(np.float32)
    ours, theirs = found(xt.from_numpy(x)), model(torch.from_numpy(x))
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert type(found[0]) is xt.nn.Conv2d and not found.training


class Calls:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "call",
    [(subprocess.Popen, ["true"]), (pickle.loads, b""), (np.load, "x"), (pathlib.Path.exists, "x")],
    ids=str,
)
def test_what_is_refused_all_the_same(call):
    stream = io.BytesIO()
    xt.save({"x": Calls(*call)}, stream)
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        xt.load(stream, weights_only=False)


def test_a_class_that_is_nowhere():
    stream = io.BytesIO()
    xt.save(argparse.Namespace(a=1), stream)
    raw = stream.getvalue().replace(b"cargparse\nNamespace", b"cargparsf\nNamespace")
    assert b"argparsf" in raw
    xt.serialization.set_crc32_options(True)
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        xt.load(io.BytesIO(raw), weights_only=False)
