"""torch.func's transforms inside each other, to depth four: every value is PyTorch's, as is what keeps its graph."""

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
# Of depth four few, which compile long.
FOUR = random.Random(11).sample(
    [c for c in itertools.product(TRANSFORMS, repeat=4) if by_hessian not in c], 8
)
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
@pytest.mark.one_in(4)
def test_three_levels(torch, nest):
    check(torch, nest)


def test_four_levels(torch):
    check(torch, (by_jacfwd, by_jvp, by_vmap, by_jacrev))


@pytest.mark.full
@pytest.mark.parametrize("nest", FOUR, ids=name)
def test_more_of_four_levels(torch, nest):
    check(torch, nest)


@pytest.mark.full
@pytest.mark.parametrize("nest", THREE, ids=name)
def test_all_of_three_levels(torch, nest):
    check(torch, nest)


def flat(lib, tree):
    """The numbers of a tree, with its shapes: dicts by key, None for what is no tensor."""
    if isinstance(tree, dict):
        return {key: flat(lib, value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [type(tree).__name__, *[flat(lib, value) for value in tree]]
    return (tuple(tree.shape), tree.requires_grad, [round(v, 3) for v in tree.flatten().tolist()])


def x3(lib):
    return lib.tensor([0.5, -1.0, 2.0])


def y3(lib):
    return lib.tensor([1.5, 0.3, -0.2])


def asking(lib):
    return x3(lib).requires_grad_()


def without_grad(lib, call):
    with lib.no_grad():
        return call()


def silent(lib, call):
    """A function that calls an inner transform inside `no_grad`."""

    def f(a):
        with lib.no_grad():
            inner = call(a)
        return (inner * a).sum()

    return f


def captured(lib, transforms, weight):
    return transforms.grad(lambda a: (a * weight**2).sum() ** 2)(y3(lib))


def with_aux(lib, transforms):
    value, pull, aux = transforms.vjp(lambda a: (a**2, a * 5), y3(lib), has_aux=True)
    return value, pull(x3(lib)), aux


TREES = {
    "hessian of several outputs": lambda L, F: F.hessian(
        lambda a, b: (a * a * b, [(b * b).sum()]), argnums=(0, 1)
    )(x3(L), y3(L)),
    "hessian of a dict": lambda L, F: F.hessian(lambda d: {"o": (d["x"] * d["y"] ** 2).sum()})(
        {"x": x3(L), "y": y3(L)}
    ),
    "hessian of a tuple": lambda L, F: F.hessian(lambda t: (t[0] * t[1]).sum() ** 2)((x3(L), y3(L))),
    "jacrev of a dict": lambda L, F: F.jacrev(lambda d: {"y": d["a"] * d["b"]})({"a": x3(L), "b": y3(L)}),
    "jacfwd of trees": lambda L, F: F.jacfwd(lambda a, b: (a.sum(), [a * b], {"k": b[:1]}), argnums=(0, 1))(
        x3(L), y3(L)
    ),
    "jacrev of one in a tuple": lambda L, F: F.jacrev(lambda a, b: a * b, argnums=(1,))(x3(L), y3(L)),
    "jacrev and aux": lambda L, F: F.jacrev(lambda a: (a**2, {"n": a + 1}), has_aux=True)(x3(L)),
    "jacfwd and aux": lambda L, F: F.jacfwd(lambda a: (a**2, [a]), has_aux=True)(x3(L)),
    "jacfwd of all": lambda L, F: F.jacfwd(lambda a, b: a * b, argnums=None)(x3(L), y3(L)),
    "jacrev of what depends on nothing": lambda L, F: F.jacrev(lambda a: (a, L.ones(2)))(x3(L)),
    "jacrev of nothing": lambda L, F: F.jacrev(lambda a: a * 2)(x3(L)[:0]),
    "grad of what depends on nothing": lambda L, F: F.grad(lambda a: L.tensor(1.0))(x3(L)),
    "grad of the last": lambda L, F: F.grad(lambda a, b: (a * b**2).sum(), argnums=-1)(x3(L), y3(L)),
    "grad of a captured": lambda L, F: captured(L, F, asking(L)),
    "grad for backward": lambda L, F: F.grad(lambda a: (a**3).sum())(asking(L)),
    "linear grad for backward": lambda L, F: F.grad(lambda a: (a * 2).sum())(asking(L)),
    "value and aux for backward": lambda L, F: F.grad_and_value(
        lambda a: ((a**2).sum(), a * 2), has_aux=True
    )(asking(L)),
    "under no_grad": lambda L, F: without_grad(
        L, lambda: (F.grad(lambda a: (a**2).sum())(asking(L)), F.vjp(lambda a: a**2, asking(L))[0])
    ),
    "grad in no_grad in grad": lambda L, F: F.grad(silent(L, F.grad(lambda y: (y**3).sum())))(x3(L)),
    "vjp in no_grad in grad": lambda L, F: F.grad(silent(L, lambda a: F.vjp(lambda y: y**3, a)[1](a)[0]))(
        x3(L)
    ),
    "vjp of a dict": lambda L, F: F.vjp(lambda a: {"a": a**2, "b": a * 3}, x3(L))[1](
        {"a": x3(L), "b": y3(L)}
    ),
    "vjp of a list": lambda L, F: F.vjp(lambda a: a[0] * a[1]["k"], [x3(L), {"k": y3(L)}])[1](x3(L)),
    "vjp by its cotangent": lambda L, F: F.grad(lambda v: (F.vjp(lambda a: a**2, x3(L))[1](v)[0] ** 2).sum())(
        y3(L)
    ),
    "value of vjp in grad": lambda L, F: F.grad(lambda a: F.vjp(lambda b: b**3, a)[0].sum())(x3(L)),
    "vjp and aux": with_aux,
    "jvp of a dict": lambda L, F: F.jvp(lambda a: {"r": a["k"] ** 2}, ({"k": x3(L)},), ({"k": y3(L)},)),
    "jvp and aux": lambda L, F: F.jvp(lambda a: (a**2, a * 3), (x3(L),), (y3(L),), has_aux=True),
    "jvp of what depends on nothing": lambda L, F: F.jvp(lambda a: L.ones(2), (x3(L),), (y3(L),)),
    "jvp by its tangent": lambda L, F: F.grad(
        lambda v: (F.jvp(lambda a: a**3, (x3(L),), (v,))[1] ** 2).sum()
    )(y3(L)),
    "vmap of a pull": lambda L, F: F.vmap(F.vjp(lambda a: a.sin() * a, x3(L))[1])(L.eye(3)),
    "vmap with keywords": lambda L, F: F.vmap(lambda a, *, k: a * k)(x3(L), k=y3(L)),
    "vmap of dicts": lambda L, F: F.vmap(
        lambda d: {"s": d["a"] + d["b"]}, in_dims=({"a": 0, "b": None},), out_dims={"s": 1}
    )({"a": L.ones(4, 3), "b": x3(L)}),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_and_what_keeps_its_graph(torch, name):
    assert flat(xtensor, TREES[name](xtensor, xtensor.func)) == flat(torch, TREES[name](torch, torch.func))


REFUSED = {
    "place": lambda L, F: F.grad(lambda a: a.sum(), argnums=3)(x3(L)),
    "places": lambda L, F: F.grad(lambda a: a.sum(), argnums=(0, 0))(x3(L)),
    "no places": lambda L, F: F.grad(lambda a: a.sum(), argnums=())(x3(L)),
    "number": lambda L, F: F.grad(lambda a: a**2)(2.0),
    "vector": lambda L, F: F.grad(lambda a: a)(x3(L)),
    "no tensor": lambda L, F: F.grad(lambda a: 3.0)(x3(L)),
    "no aux": lambda L, F: F.grad(lambda a: a.sum(), has_aux=True)(x3(L)),
    "integers": lambda L, F: F.jacrev(lambda a: a * 2.0)(L.tensor([1, 2])),
    "integers forward": lambda L, F: F.jacfwd(lambda a: a * 2.0)(L.tensor([1, 2])),
    "integer results": lambda L, F: F.jacrev(lambda a: a > 0)(x3(L)),
    "complex numbers": lambda L, F: F.jacrev(lambda a: a * 2)(L.tensor([1 + 1j])),
    "complex results": lambda L, F: F.jacfwd(lambda a: a * 1j)(x3(L)),
    "chunks": lambda L, F: F.jacrev(lambda a: a, chunk_size=0)(x3(L)),
    "shape of a cotangent": lambda L, F: F.vjp(lambda a: a, x3(L))[1](x3(L)[:2]),
    "a list of primals": lambda L, F: F.jvp(lambda a: a, [x3(L)], [x3(L)]),
    "shape of a tangent": lambda L, F: F.jvp(lambda a: a, (x3(L),), (x3(L)[:2],)),
    "strict": lambda L, F: F.jvp(lambda a: L.ones(2), (x3(L),), (x3(L),), strict=True),
    "randomness": lambda L, F: F.vmap(lambda a: a, randomness="x")(x3(L)),
    "chunks of vmap": lambda L, F: F.vmap(lambda a: a, chunk_size=0)(x3(L)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(torch, name):
    def message(lib):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            REFUSED[name](lib, lib.func)
        return caught.type, str(caught.value).replace("xtensor.", "torch.")

    assert message(xtensor) == message(torch)


def test_an_argument_of_an_inner_level_is_not_written():
    def inner(y):
        return y.mul_(2).sum()

    for outer in (lambda x: xtensor.func.grad(inner)(x * 1).sum(), xtensor.func.grad(inner)):
        with pytest.raises(RuntimeError, match=r"in-?place"):
            xtensor.func.grad(outer)(x3(xtensor))


def test_the_same_random_numbers():
    def noisy(a):
        return a + xtensor.randn(3)

    same = xtensor.vmap(noisy, randomness="same")(xtensor.zeros(4, 3))
    assert (same == same[0]).all()
    different = xtensor.vmap(noisy, randomness="different")(xtensor.zeros(4, 3))
    assert not (different == different[0]).all()
