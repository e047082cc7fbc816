"""Transforms and memory, random numbers, hooks and functions' own rules, against PyTorch's."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def rows(lib: Any, *shape: int) -> Any:
    return lib.tensor(np.random.default_rng(5).normal(size=shape or (3, 4)).astype("f"))


def laid(
    lib: Any, function: Callable[[Any], Any], shape: tuple[int, ...], dims: Any = 0, out: int = 0
) -> Any:
    """Where a result of vmap lies, and that a write to it shows."""
    x = rows(lib, *shape)
    found = lib.func.vmap(function, dims, out)(x)
    place = found.storage_offset(), tuple(found.stride()), tuple(found.shape)
    shared = found is x, found._base is x, found.data_ptr() == x.data_ptr()
    found.zero_() if 0 not in found.stride() else None
    return place, shared, x


VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda L: laid(L, lambda x: x, (2, 3)),
    "itself elsewhere": lambda L: laid(L, lambda x: x, (2, 3), 0, 1),
    "a slice": lambda L: laid(L, lambda x: x[1:], (2, 3)),
    "every other": lambda L: laid(L, lambda x: x[::2, 1], (2, 5, 4)),
    "transposed": lambda L: laid(L, lambda x: x.t(), (3, 2, 4), 1),
    "a diagonal": lambda L: laid(L, lambda x: x.diagonal(1), (2, 3, 4)),
    "flat": lambda L: laid(L, lambda x: x.view(-1)[2:], (2, 3, 4)),
    "unflattened": lambda L: laid(L, lambda x: x.view(2, 2).t(), (3, 4)),
    "expanded": lambda L: laid(L, lambda x: x.expand(5, 2), (3, 2)),
    "windows": lambda L: laid(L, lambda x: x.unfold(0, 2, 1)[::2], (3, 6)),
    "detached": lambda L: laid(L, lambda x: x.detach(), (2, 3)),
    "an element": lambda L: laid(L, lambda x: x[1, 2], (2, 3, 4), 2),
    "nested": lambda L: laid(L, L.func.vmap(lambda x: x[1:]), (2, 3, 4)),
    "empty": lambda L: laid(L, lambda x: x[:, :0], (2, 3, 4)),
    "written": lambda L: laid(L, lambda x: x.mul_(2)[1:], (2, 3)),
    "computed": lambda L: laid(L, lambda x: x * 2, (2, 3), 0, 1),
}


def rule(lib: Any, vmap: Callable[..., Any]) -> Any:
    """A function with a rule for batches."""

    class Rule(lib.autograd.Function):
        @staticmethod
        def forward(*args: Any) -> Any:
            return args[0].clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            return None

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            return vmap(in_dims, *args)

    return Rule.apply


def shapes(found: Any) -> Any:
    if isinstance(found, dict):
        return {k: shapes(v) for k, v in found.items()}
    if isinstance(found, (list, tuple)):
        return type(found)(map(shapes, found))
    return tuple(found.shape)


def ruled(lib: Any, made: Callable[..., Any]) -> Any:
    return shapes(lib.func.vmap(rule(lib, lambda dims, x: made(x)))(rows(lib)))


def places(lib: Any, where: Any, *shape: int) -> Any:
    """The dimensions and sizes that a rule is told."""
    told: list[Any] = []

    def noted(dims: Any, x: Any, y: Any) -> Any:
        told.append((tuple(dims), tuple(x.shape)))
        return x, dims[0]

    lib.func.vmap(rule(lib, noted), in_dims=where)(rows(lib, *shape), rows(lib, 2))
    return told


def by_name(lib: Any) -> Any:
    class Named(lib.autograd.Function):
        @staticmethod
        def forward(x: Any, *, y: Any) -> Any:
            return x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            return None

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, *, y: Any) -> Any:
            return x + y, 0

    return lib.func.vmap(Named.apply)(lib.ones(3), y=lib.ones(3))


RULES: dict[str, Callable[[Any], Any]] = {
    "one too many": lambda L: ruled(L, lambda x: (x, (None,))),
    "a list and a tuple": lambda L: ruled(L, lambda x: ([x], (0,))),
    "too few": lambda L: ruled(L, lambda x: ((x, x), (0,))),
    "one for all": lambda L: ruled(L, lambda x: ((x + 1, x), 0)),
    "the argument": lambda L: ruled(L, lambda x: (x, None)),
    "the same for all": lambda L: ruled(L, lambda x: (x.sum(0), None)),
    "one return": lambda L: ruled(L, lambda x: x),
    "a dict": lambda L: ruled(L, lambda x: ({"a": x + 1}, {"a": 1})),
    "a list": lambda L: ruled(L, lambda x: ([x + 1, x], [1, 1])),
    "dimensions": lambda L: places(L, (1, None), 3, 4),
    "the last dimension": lambda L: places(L, (-1, None), 3, 4, 2),
    "tensors by name": by_name,
}


def hooked(lib: Any) -> Any:
    """What hooks of saved values see within vmap, and the gradient that comes of it."""
    seen = []
    x = rows(lib).requires_grad_()

    def pack(t: Any) -> Any:
        seen.append(tuple(t.shape))
        return t.detach().numpy()

    with lib.autograd.graph.saved_tensors_hooks(pack, lib.from_numpy):
        found = lib.func.vmap(lambda t: (t * t).sum())(x)
    found.sum().backward()
    return seen, x.grad


def checkpointed(lib: Any) -> Any:
    x = rows(lib).requires_grad_()
    again = lib.utils.checkpoint.checkpoint
    again(lambda t: (lib.func.vmap(lambda r: r.sin() * r)(t)).sum(), x, use_reentrant=False).backward()
    return x.grad


def anomalous(lib: Any) -> Any:
    with lib.autograd.set_detect_anomaly(True):
        return lib.func.vmap(lib.func.grad(lambda t: t.sqrt().sum()))(lib.tensor([[-1.0, 2.0]]))


def data_kept(lib: Any, inner: Callable[[Any, Any], Any]) -> Any:
    """A second derivative through `.data`, which the inner one takes for a constant."""
    return lib.func.grad(lambda y: lib.func.grad(lambda x: inner(x, y).sum())(y * 2).sum())(
        lib.tensor([1.0, 2.0])
    )


def disabled(lib: Any) -> Any:
    def f(x: Any) -> Any:
        with lib.autograd.forward_ad._set_fwd_grad_enabled(False):
            shift = x**2
        return x**2 - shift

    x = lib.tensor([3.0])
    once = lambda x: lib.func.jvp(f, (x,), (x * 0 + 1,))[1]
    return once(x), lib.func.jvp(once, (x,), (x * 0 + 1,))[1]


def written_along(lib: Any) -> Any:
    x, y = rows(lib), rows(lib, 4)

    def f(x: Any, y: Any) -> Any:
        view = x[::2]
        view.copy_(y[:2])
        return view, x

    found = lib.func.vmap(lambda a: lib.func.jvp(f, (a, y.clone()), (a * 0 + 1, y * 0 + 2)))(x)
    return found, x


def of_written(lib: Any, transform: str) -> Any:
    y = lib.zeros(2)
    found = getattr(lib.func, transform)(lambda x, y: y.copy_(x))(lib.tensor([1.0, 2.0]), y)
    return found, y


OTHERS: dict[str, Callable[[Any], Any]] = {
    "hooks": hooked,
    "a checkpoint": checkpointed,
    "anomalies": anomalous,
    "data": lambda L: data_kept(L, lambda x, y: x.data * x * y),
    "data of a product": lambda L: data_kept(L, lambda x, y: (y * x).data * x * y),
    "data of outside": lambda L: data_kept(L, lambda x, y: y.data * x * y),
    "data of a batch": lambda L: L.func.vmap(lambda x: x.data)(rows(L)),
    "no tangents for a while": disabled,
    "a write along": written_along,
    "jacfwd writes": lambda L: of_written(L, "jacfwd"),
    "jacrev writes": lambda L: of_written(L, "jacrev"),
    "jacfwd of a scalar": lambda L: L.func.jacfwd(lambda x: x.sin())(L.tensor(2.0)),
    "hessian of a scalar": lambda L: L.func.hessian(lambda x: x.sin())(L.tensor(2.0)),
    "rows one by one": lambda L: L.func.jacrev(lambda x: x.cumsum(0) ** 2, chunk_size=1)(rows(L, 3)),
    "nothing of vjp": lambda L: L.func.vjp(lambda x: (), rows(L)),
    "None of vjp": lambda L: L.func.vjp(lambda x: None, rows(L)),
    "nothing of jvp": lambda L: L.func.jvp(lambda x: (), (rows(L),), (rows(L),)),
    "nothing of jacrev": lambda L: L.func.jacrev(lambda x: ())(rows(L)),
    "numbers for tangents": lambda L: L.func.jvp(lambda x, y: x, (rows(L), 3.0), (rows(L), 1.0)),
    "the same argument twice": lambda L: L.func.grad(lambda x, y: x * y, argnums=(0, -2))(
        L.ones(()), L.ones(())
    ),
    "a tuple for a list": lambda L: L.func.vmap(lambda z: z[0], in_dims=((0, 0),))([rows(L), rows(L)]),
    "a tuple for two results": lambda L: L.func.vmap(lambda z: [z, z], out_dims=(0, 0))(rows(L)),
    "dropout of what is the same": lambda L: (
        L.func.vmap(lambda x: x + L.nn.functional.dropout(L.ones(1, 4)).mean(), randomness="different")(
            rows(L)
        ).shape
    ),
}


def told(run: Callable[[], Any]) -> Any:
    """A result as values, or an error as its class and words, with the library's name and line breaks taken out."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = run()
    except Exception as error:
        words = re.sub(
            r"0x[0-9a-f]+", "0x", str(error).replace("xtensor.tensor.", "torch.").replace("xtensor", "torch")
        )
        return type(error), re.sub(r",\s+", ", ", words)
    return plain(found)


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return np.round(value.detach().numpy(), 4).tolist() if hasattr(value, "detach") else value


CASES = {
    f"{kind}: {name}": case
    for kind, cases in (("view", VIEWS), ("rule", RULES), ("", OTHERS))
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_pytorch(torch: Any, name: str) -> None:
    import torch.utils.checkpoint

    assert told(lambda: CASES[name](xtensor)) == told(lambda: CASES[name](torch))


DRAWS: dict[str, Callable[[Any], Any]] = {
    "randn": lambda x: xtensor.randn(5, 7),
    "randint": lambda x: xtensor.randint(0, 2**40, (5,)),
    "a few": lambda x: xtensor.randint(3, (5,)),
    "double": lambda x: xtensor.rand(3, dtype=xtensor.float64),
    "complex": lambda x: xtensor.randn(3, dtype=xtensor.complex64),
    "like": lambda x: xtensor.rand_like(x),
    "in place": lambda x: x.clone().uniform_(2, 3),
    "bernoulli": lambda x: xtensor.bernoulli(x.sigmoid()),
    "normal": lambda x: xtensor.normal(x, 2.0),
    "poisson": lambda x: xtensor.poisson(x.exp()),
    "binomial": lambda x: xtensor.binomial(x * 0 + 9, x.sigmoid()),
    "multinomial": lambda x: xtensor.multinomial(x.exp(), 2),
    "gamma": lambda x: xtensor.distributions.Gamma(x.exp(), 1.0, validate_args=False).sample(),
    "exponential": lambda x: x.clone().exponential_(),
    "dropout": lambda x: xtensor.nn.functional.dropout(x),
}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "randn": lambda x: xtensor.randn(3, 5, 7),
    "randint": lambda x: xtensor.randint(0, 2**40, (3, 5)),
    "a few": lambda x: xtensor.randint(3, (3, 5)),
    "double": lambda x: xtensor.rand(3, 3, dtype=xtensor.float64),
    "complex": lambda x: xtensor.randn(3, 3, dtype=xtensor.complex64),
}


@pytest.mark.parametrize("name", DRAWS)
def test_samples_that_differ_draw_what_one_call_draws_for_all(name: str) -> None:
    x = rows(xtensor)
    xtensor.manual_seed(1)
    found = xtensor.vmap(DRAWS[name], randomness="different")(x)
    after = xtensor.randn(3)
    xtensor.manual_seed(1)
    expected = WHOLE.get(name, DRAWS[name])(x)
    assert xtensor.equal(found, expected)
    assert xtensor.equal(after, xtensor.randn(3))


def test_permutations_and_nested_samples() -> None:
    xtensor.manual_seed(2)
    found = xtensor.vmap(lambda x: xtensor.randperm(9), randomness="different")(xtensor.ones(3))
    xtensor.manual_seed(2)
    assert found.tolist() == [xtensor.randperm(9).tolist() for _ in range(3)]
    xtensor.manual_seed(2)
    twice = xtensor.vmap(
        xtensor.vmap(lambda x: xtensor.randn(5), randomness="different"), randomness="different"
    )(xtensor.ones(2, 3))
    xtensor.manual_seed(2)
    assert xtensor.equal(twice, xtensor.randn(2, 3, 5))


def test_a_complex_tangent_of_a_real_tensor_is_refused() -> None:
    with pytest.raises(RuntimeError, match="dtype"):
        xtensor.func.jvp(xtensor.sin, (xtensor.ones(2),), (xtensor.ones(2, dtype=xtensor.complex64),))
