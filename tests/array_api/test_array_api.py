"""What the array API's standard demands where PyTorch does otherwise, on Arrays and on Tensors."""

import numpy as np
import pytest

import xtensor
import xtensor.array_api as xp
from xtensor.array_api.array import Array


def asarray(values, dtype=None):
    return xp.asarray(values, dtype=dtype)


# ---- the array object ----------------------------------------------------------------------------------------------


def test_a_tensor_knows_the_namespace():
    x = xtensor.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="unsupported array API version"):
        x.__array_namespace__(api_version="1999.12")


def test_an_array_is_a_tensor_over_the_same_memory():
    x = xtensor.zeros(2, 3)
    array = xp.asarray(x)
    assert isinstance(array, xtensor.Tensor) and type(array) is Array
    array[0, 1] = 5.0
    assert x[0, 1] == 5
    assert type(x) is xtensor.Tensor
    assert xp.asarray(array) is array
    assert type(xtensor.add(array, 1)) is xtensor.Tensor


def test_size_is_a_number_that_may_be_called():
    x = xp.ones((2, 3))
    assert isinstance(x.size, int) and x.size == 6
    assert x.size() == (2, 3) and x.size(0) == 2


def test_numbers_of_no_dimension_take_part_in_promotion():
    x, y = asarray([1.0, 2.0], xp.float32), asarray(1.0, xp.float64)
    assert (x + y).dtype is xp.float64
    assert (x + 1.0).dtype is xp.float32
    assert (xtensor.tensor([1.0]) + y).dtype is xp.float64  # an Array's reflected operator comes first
    with pytest.raises(TypeError, match="in place"):
        x += y


@pytest.mark.parametrize(
    "key",
    [
        slice(None, None, -1),
        (slice(3, 0, -2), slice(None, None, -1)),
        (..., slice(4, 1, -1)),
        (None, slice(2, 2, -1)),
    ],
)
def test_slices_may_go_backwards(key):
    expected = np.arange(20.0).reshape(4, 5)
    array = asarray(expected)
    np.testing.assert_array_equal(np.asarray(array[key]), expected[key])
    value = np.arange(100.0, 100 + expected[key].size).reshape(expected[key].shape)
    if None in key if isinstance(key, tuple) else False:
        return
    expected[key] = value
    array[key] = asarray(value)
    np.testing.assert_array_equal(np.asarray(array), expected)


def test_an_assigned_row_is_turned_for_each_dimension_that_it_has():
    array, expected = xp.zeros((2, 3)), np.zeros((2, 3), "float32")
    array[::-1, ::-1] = asarray([1.0, 2.0, 3.0])
    expected[::-1, ::-1] = [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(np.asarray(array), expected)


def test_a_mask_without_elements_chooses_nothing():
    assert xp.ones((3, 2, 5))[xp.zeros((0, 2), dtype=xp.bool)].shape == (0, 5)
    with pytest.raises(IndexError):
        xp.ones((3, 2))[xp.zeros((0, 3), dtype=xp.bool)]


def test_transposes_ask_for_their_dimensions():
    assert xp.ones((2, 3)).T.shape == (3, 2)
    with pytest.raises(ValueError, match="2 dimensions"):
        _ = xp.ones(3).T
    with pytest.raises(ValueError, match="at least 2"):
        _ = xp.ones(3).mT


def test_conversions_to_numbers():
    assert complex(asarray(2.0)) == 2
    with pytest.raises(TypeError, match="complex"):
        float(asarray(1j))
    with pytest.raises(TypeError, match="index"):
        [1, 2][asarray(1.0)]


def test_gradients_flow():
    x = xtensor.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = xp.sum(xp.multiply(xp.asarray(x)[::-1], asarray([1.0, 10.0, 100.0])))
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [100, 10, 1]


# ---- dtypes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("int8", "uint8", "int16"),
        ("uint16", "int16", "int32"),
        ("uint32", "int8", "int64"),
        ("uint8", "uint64", "uint64"),
        ("float32", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
    ],
)
def test_promotion(a, b, result):
    a, b, result = (getattr(xp, name) for name in (a, b, result))
    assert xp.result_type(a, b) is result and xp.result_type(b, a) is result
    assert xp.add(xp.ones(2, dtype=a), xp.ones((), dtype=b)).dtype is result


@pytest.mark.parametrize(("a", "b"), [("int64", "uint64"), ("int32", "float32"), ("bool", "int8")])
def test_dtypes_that_do_not_promote(a, b):
    a, b = getattr(xp, a), getattr(xp, b)
    with pytest.raises(TypeError, match="do not promote"):
        xp.result_type(a, b)
    with pytest.raises(TypeError):
        xp.add(xp.ones(2, dtype=a), xp.ones(2, dtype=b))
    assert not xp.can_cast(a, b)


@pytest.mark.parametrize(("dtype", "value"), [("int64", 1.5), ("bool", 1), ("uint8", 1j), ("float32", True)])
def test_python_numbers_that_do_not_go_with_an_array(dtype, value):
    with pytest.raises(TypeError, match="goes with"):
        xp.where(asarray([True]), xp.ones(1, dtype=getattr(xp, dtype)), value)


def test_functions_ask_for_kinds_of_dtypes():
    for call in (
        lambda: xp.sin(asarray([1])),
        lambda: xp.sum(asarray([True])),
        lambda: xp.less(asarray([1j]), asarray([1j])),
        lambda: xp.astype(asarray([1j]), xp.float32),
        lambda: xp.fft.rfft(asarray([1j])),
        lambda: xp.linalg.inv(asarray([[1]])),
    ):
        with pytest.raises(TypeError):
            call()


def test_the_namespace_tells_what_it_can():
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] is xtensor.get_default_dtype()
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    }
    with pytest.raises(ValueError, match="unrecognized"):
        info.dtypes(kind="quaternion")


# ---- values --------------------------------------------------------------------------------------------------------


def test_what_is_copied():
    x = xp.ones(3)
    assert xp.asarray(x, copy=False) is x
    copy = xp.asarray(x, copy=True)
    copy[0] = 5.0
    assert x[0] == 1
    for call in (
        lambda: xp.asarray([1.0], copy=False),
        lambda: xp.asarray(x, dtype=xp.float64, copy=False),
        lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(OverflowError, match="out of bounds"):
        xp.asarray([[1, 300]], dtype=xp.uint8)


def test_infinite_quotients():
    x, y = asarray([np.inf, -np.inf, 1.0, -1.0, 7.0]), asarray([2.0, 2.0, -np.inf, np.inf, -2.0])
    quotient = np.asarray(x // y)
    np.testing.assert_array_equal(quotient, [np.inf, -np.inf, -0.0, -0.0, -4.0])
    assert np.signbit(quotient[2]) and np.signbit(quotient[3])
    assert xp.signbit(asarray(0.0) % asarray(-1.0))
    assert xp.isnan(xp.sign(asarray(np.nan)))


def test_complex_numbers_with_infinite_parts():
    z = asarray([complex(-np.inf, np.inf), complex(np.inf, np.nan), complex(1.0, 2.0)], xp.complex128)
    found = np.asarray(xp.exp(z))
    assert found[0] == 0 and found[1].real == np.inf and np.isnan(found[1].imag)
    np.testing.assert_allclose(found[2], np.exp(1 + 2j))
    assert np.asarray(xp.tanh(asarray(complex(np.inf, 1.0)))) == 1


@pytest.mark.parametrize("size", [1.0, 1e200])
def test_a_nan_beside_a_finite_part_is_nan_in_both(size):
    """Of large parts too, of which XLA's formulas leave infinities and logarithms."""
    for name in ("acos", "asin", "atan", "acosh", "asinh", "atanh", "log"):
        for z in (complex(size, np.nan), complex(np.nan, -size)):
            found = complex(getattr(xp, name)(asarray(z, xp.complex128)))
            assert np.isnan([found.real, found.imag]).all(), (name, z, found)


@pytest.mark.parametrize(
    ("of_circle", "of_hyperbola"), [("asin", "asinh"), ("atan", "atanh"), ("sin", "sinh"), ("tan", "tanh")]
)
def test_functions_of_the_circle_are_those_of_the_hyperbola_turned(of_circle, of_hyperbola):
    parts = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in parts for b in parts if not (of_circle == "asin" and np.isinf(a))])
    turned = np.array(
        [complex(-w.imag, w.real) for w in z]
    )  # a product with 1j has NaN where a part is infinite
    found = np.asarray(getattr(xp, of_circle)(asarray(z, xp.complex128)))
    right = np.asarray(getattr(xp, of_hyperbola)(asarray(turned, xp.complex128)))
    np.testing.assert_allclose(found.real, right.imag, rtol=1e-12)
    np.testing.assert_allclose(found.imag, -right.real, rtol=1e-12)


def test_complex_numbers_are_rounded_part_by_part():
    assert xp.round(asarray([1.5 - 2.5j, 0.4 + 3.6j])).tolist() == [2 - 2j, 4j]


def test_what_is_different_among_complex_numbers():
    values, indices, inverse, counts = xp.unique_all(asarray([[2j, 1.0], [2j, 3.0]]))
    assert set(values.tolist()) == {2j, 1, 3} and sorted(counts.tolist()) == [1, 1, 2]
    assert xp.all(xp.take(values, xp.reshape(inverse, (-1,))) == asarray([2j, 1.0, 2j, 3.0]))
    assert xp.all(xp.take(asarray([2j, 1.0, 2j, 3.0]), indices) == values)


def test_right_hand_sides_are_matrices_unless_they_have_one_dimension():
    a = xp.broadcast_to(xp.eye(2) * asarray(2.0), (2, 2, 2))
    assert xp.linalg.solve(a, xp.ones((2, 2))).shape == (2, 2, 2)
    assert xp.linalg.solve(a, xp.ones(2)).shape == (2, 2)


# ---- DLPack --------------------------------------------------------------------------------------------------------


def test_dlpack_takes_versions_devices_and_copies():
    x = xtensor.arange(4.0)
    for options in (
        {},
        {"max_version": (0, 0)},
        {"max_version": (1, 0), "copy": True},
        {"dl_device": (1, 0), "copy": False},
    ):
        assert x.__dlpack__(**options) is not None
    with pytest.raises(BufferError, match="DLPack device"):
        x.__dlpack__(dl_device=(2, 0))
    np.testing.assert_array_equal(np.from_dlpack(x), [0, 1, 2, 3])
    back = xp.from_dlpack(np.arange(3), device="cpu", copy=True)
    assert type(back) is Array and back.tolist() == [0, 1, 2]


def test_dlpack_across_devices():
    x = xtensor.arange(3.0, device="cpu:1")
    assert xp.from_dlpack(x, device="cpu:0").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="copy=False"):
        xtensor.interop.from_dlpack(x, device="cpu:0", copy=False)
    capsule = x.__dlpack__(dl_device=(1, 0))
    assert capsule is not None


# ---- transforms ----------------------------------------------------------------------------------------------------


def test_functions_work_inside_of_transforms():
    def f(x):
        return xp.sum(xp.exp(xp.asarray(x)) * asarray(2.0))

    x = xtensor.tensor([0.0, 1.0])
    found = xtensor.func.grad(f)(x)
    np.testing.assert_allclose(np.asarray(found), 2 * np.exp([0.0, 1.0]), rtol=1e-6)
