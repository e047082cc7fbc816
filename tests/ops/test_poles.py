"""Derivatives at poles and removable singularities, where a formula guarded by `where` would be silently wrong."""

import math

import pytest

import xtensor


def derivatives(library, function, at: float) -> tuple[float, float]:
    x = library.tensor(at, dtype=library.float64, requires_grad=True)
    (first,) = library.autograd.grad(function(library, x), x, create_graph=True)
    (second,) = library.autograd.grad(first, x)
    return first.item(), second.item()


@pytest.mark.parametrize("at", [0.0, -1.0, -2.0, 1.0, -0.5])
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_the_gamma_functions_at_their_poles(torch, name, at):
    ours = derivatives(xtensor, lambda lib, x: getattr(lib, name)(x), at)
    theirs = derivatives(torch, lambda lib, x: getattr(lib, name)(x), at)
    for a, b in zip(ours, theirs, strict=True):
        # sin(pi) is not quite 0 in floating point: a pole may come out as a huge number.
        assert a == pytest.approx(b, rel=1e-9, nan_ok=True) or (
            min(abs(a), abs(b)) > 1e15 and (a > 0) == (b > 0)
        )


def test_mvlgamma_between_its_poles():
    assert derivatives(xtensor, lambda lib, x: lib.mvlgamma(x, 2), 0.5)[1] == math.inf


@pytest.mark.parametrize("at", [0.0, -0.0])
def test_sinc_at_zero(at):
    """PyTorch's second derivative is NaN there; the function's is -pi ** 2 / 3."""
    assert derivatives(xtensor, lambda lib, x: lib.sinc(x), at) == (0.0, pytest.approx(-(math.pi**2) / 3))
