"""`data_ptr`: an address that may be read, as packages read it through ctypes."""

import ctypes

import numpy as np
import pytest

import xtensor


def bytes_at(tensor):
    pointer = ctypes.cast(tensor.data_ptr(), ctypes.POINTER(ctypes.c_ubyte))
    return np.ctypeslib.as_array(pointer, (tensor.nbytes,)).tobytes()


@pytest.mark.parametrize(
    "name", ["float32", "int64", "bool", "bfloat16", "complex64", "uint8", "float8_e5m2"]
)
def test_the_bytes_lie_at_the_address(name):
    x = xtensor.arange(12).reshape(3, 4).to(getattr(xtensor, name))
    assert bytes_at(x) == x.view(xtensor.uint8).flatten().numpy().tobytes()
    assert bytes_at(x[1]) == x[1].clone().view(xtensor.uint8).numpy().tobytes()
    assert x[1].data_ptr() - x.data_ptr() == 4 * x.element_size()


def test_writes_show_at_the_same_address():
    x = xtensor.zeros(5)
    address = x.data_ptr()
    x.add_(2)
    x[1:3] = 7
    assert x.data_ptr() == address == x.untyped_storage().data_ptr()
    assert bytes_at(x) == np.asarray([2, 7, 7, 2, 2], np.float32).tobytes()
    x.numpy()[4] = 9
    assert bytes_at(x)[-4:] == np.float32(9).tobytes()


def test_other_memory_has_another_address():
    x = xtensor.ones(3)
    assert len({x.data_ptr(), x.clone().data_ptr(), x.detach().data_ptr()}) == 2
    assert xtensor.empty(0).data_ptr() == 0
    x.untyped_storage().resize_(400)
    assert bytes_at(x) == np.ones(3, np.float32).tobytes()
