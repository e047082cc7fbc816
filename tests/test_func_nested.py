"""torch.func's transforms inside each other, to depth three: every value is PyTorch's, as is what keeps its graph."""

import itertools
import random

import pytest

import xtensor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, on its way there

SIZE = 2


def base(lib, x):
    return (x.flip(0) * x).sin() * x


def weights(lib, x):
    return lib.arange(1.0, SIZE + 1, dtype=lib.float64) / 3


# A transform of a function of SIZE numbers into another: `(library, function) -> function`. The inner function also
# takes what the transform is given, `outer`, so that a level that mistakes another's argument for its own shows.
def by_grad(lib, f):
    return lambda x: lib.func.grad(lambda y: (f(y) * weights(lib, y) * x).sum())(x)


def by_grad_and_value(lib, f):
    def transformed(x):
        found, value = lib.func.grad_and_value(lambda y: (f(y) * x).sum())(x * 2)
        return found * value

    return transformed


def by_vjp(lib, f):
    def transformed(x):
        value, pull = lib.func.vjp(lambda y: f(y) * x, x)
        return value + pull(weights(lib, x) * x)[0]

    return transformed


def by_jvp(lib, f):
    def transformed(x):
        value, tangent = lib.func.jvp(lambda y: f(y) + x * y, (x,), (weights(lib, x) + x,))
        return value * tangent

    return transformed


def by_vmap(lib, f):
    return lambda x: lib.func.vmap(lambda s: (f(x * s) * s).sum())(weights(lib, x))


def by_vmap_of_itself(lib, f):
    return lambda x: lib.func.vmap(lambda s: (f(s * x) + f(x)).sum())(x)


def by_jacrev(lib, f):
    return lambda x: weights(lib, x) @ lib.func.jacrev(lambda y: f(y) * x)(x)


def by_jacfwd(lib, f):
    return lambda x: lib.func.jacfwd(lambda y: f(y) * x)(x) @ weights(lib, x)


def by_hessian(lib, f):
    return lambda x: lib.func.hessian(lambda y: (f(y) * x).sum())(x) @ x


TRANSFORMS = (
    by_grad,
    by_grad_and_value,
    by_vjp,
    by_jvp,
    by_vmap,
    by_vmap_of_itself,
    by_jacrev,
    by_jacfwd,
    by_hessian,
)
TWO = list(itertools.product(TRANSFORMS, repeat=2))
# A third hessian around two others is a sixth derivative: right, and minutes of rows.
THREE = [c for c in itertools.product(TRANSFORMS, repeat=3) if c.count(by_hessian) < 2]
SOME = random.Random(5).sample(THREE, 24)


def value(lib, nest):
    f = lambda x: base(lib, x)
    for transform in reversed(nest):
        f = transform(lib, f)
    return f(lib.tensor([0.4, -0.7], dtype=lib.float64))


def name(nest):
    return " of ".join(t.__name__[3:] for t in nest)


def check(torch, nest):
    ours, theirs = value(xtensor, nest), value(torch, nest)
    assert not ours.requires_grad
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("nest", TWO, ids=name)
def test_two_levels(torch, nest):
    check(torch, nest)


@pytest.mark.parametrize("nest", SOME, ids=name)
def test_three_levels(torch, nest):
    check(torch, nest)


@pytest.mark.full
@pytest.mark.parametrize("nest", THREE, ids=name)
def test_all_of_three_levels(torch, nest):
    check(torch, nest)
