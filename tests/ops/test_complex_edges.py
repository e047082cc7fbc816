"""Functions of complex numbers at signed zeros, on branch cuts, at infinities and NaN, as NumPy has them (C99, annex G)."""

import itertools
import math

import numpy as np
import pytest

import xtensor

PARTS = (0.0, -0.0, 1.0, -2.5, 1e30, math.inf, -math.inf, math.nan)
NUMPY = {n: n.replace("a", "arc", 1) for n in ("asin", "acos", "atan", "asinh", "acosh", "atanh")}


def same(a, b):
    """Equal to rounding, NaN at the same places, and of the same sign where they are no NaN."""
    near = np.isclose(a, b, rtol=1e-5, atol=1e-30, equal_nan=True)
    return near & (np.isnan(a) | (np.signbit(a) == np.signbit(b)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*NUMPY, *"sqrt exp log log2 log10 sin cos tan sinh cosh tanh".split()])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_edges(name, dtype):
    values = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)], dtype)
    expected = getattr(np, NUMPY.get(name, name))(values)
    found = getattr(xtensor, name)(xtensor.from_numpy(values)).numpy()
    # C99 leaves the sign of an infinity or a zero open where the other part is NaN, and of a zero where both are infinite.
    open_ = np.isnan(expected.real) | np.isnan(expected.imag) | np.isnan(values.real) | np.isnan(values.imag)
    open_ |= np.isinf(values.real) & np.isinf(values.imag)
    for a, b in ((expected.real, found.real), (expected.imag, found.imag)):
        wrong = ~np.where(open_, same(np.abs(a), np.abs(b)), same(a, b))
        assert not wrong.any(), [(v, p, q) for v, p, q in zip(values[wrong], expected[wrong], found[wrong])]


@pytest.mark.parametrize("name", [*NUMPY, *"sqrt log log1p exp expm1 sin cos tan sinh cosh tanh".split()])
def test_gradients_across_quadrants(name):
    z = xtensor.tensor(
        [1.3 + 0.7j, -1.3 + 0.7j, -1.3 - 0.7j, 1.3 - 0.7j], dtype=xtensor.complex128, requires_grad=True
    )
    assert xtensor.autograd.gradcheck(getattr(xtensor, name), (z,))
