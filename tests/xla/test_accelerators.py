"""What is done otherwise where the CPU is not JAX's default device, told from here: such a device is played by the CPU."""

import ctypes

import jax
import numpy as np
import pytest

import xtensor
from xtensor.operators import dispatch
from xtensor.xla import number_arrays, store


@pytest.fixture
def elsewhere(monkeypatch):
    """Python numbers are not kept by value alone, as where the CPU is not JAX's default; the arguments of programs that run."""

    def missing(self, key):
        raise LookupError

    seen = []
    monkeypatch.setattr(number_arrays, "_at_home", lambda: False)
    monkeypatch.setattr(number_arrays.NumberArrays, "__missing__", missing)
    monkeypatch.setattr(dispatch, "watchers", [lambda op, program, arrays: seen.extend(arrays)])
    kept = dict(number_arrays.NUMBER_ARRAYS)
    number_arrays.NUMBER_ARRAYS.clear()
    yield seen
    number_arrays.NUMBER_ARRAYS.update(kept)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x * 2.5,
        lambda x: x + 3,
        lambda x: 1 - x,
        lambda x: x.clone().add_(1.5),
        lambda x: x.clamp(-1, 0.5),
        lambda x: x[1:3].t() * 0.0,
        lambda x: x.clone().mul_(-0.0),
    ],
)
def test_numbers_are_arrays_beside_the_others(elsewhere, call):
    values = np.arange(1031 * 4, dtype=np.float32).reshape(4, 1031) / 999 - 2
    expected = values.copy()
    got = call(xtensor.tensor(values))
    assert elsewhere and not any(type(a) in (int, float) for a in elsewhere)
    elsewhere.clear()
    with pytest.MonkeyPatch.context() as here:
        here.setattr(number_arrays, "_at_home", lambda: True)
        right = call(xtensor.tensor(expected))
    assert got.dtype == right.dtype
    assert got.numpy().tobytes() == right.numpy().tobytes()


def test_numbers_that_are_saved_are_arrays_too(elsewhere):
    x = xtensor.randn(5, requires_grad=True)
    y = x**3.5
    assert not any(type(entry) in (int, float) for entry in y.grad_fn.saved)
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0] * 5


def test_programs_for_another_platform_are_not_asked_for_their_memory():
    x = jax.numpy.zeros(3)
    assert store.on_host((x, 1.0))
    assert store.on_host((1.0,)) is (jax.default_backend() == "cpu")


def test_an_address_can_be_read_where_a_device_stands_in_for_the_cpu(monkeypatch):
    x = xtensor.arange(5, dtype=xtensor.float32)
    place = xtensor.device("cuda", 0)
    monkeypatch.setattr(xtensor.devices, "of_array", lambda array: place)
    monkeypatch.setattr(xtensor.devices, "redirected", lambda name: place)
    address = x.untyped_storage().data_ptr()
    assert list((ctypes.c_float * 5).from_address(address)) == [0, 1, 2, 3, 4]
