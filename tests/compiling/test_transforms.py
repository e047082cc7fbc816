"""Function transforms compiled: one program for all of them, with the eager call's values, and what is refused refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import xtensor
import xtensor.autograd.forward_ad as fwAD
from tests.func import test_functions, test_nested, test_vmap
from xtensor.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from xtensor.xla import compiles

functional = xtensor.nn.functional


def rows(*shape: int) -> Any:
    return test_vmap.rows(xtensor, *shape)


def ones() -> Any:
    return test_vmap.ones(xtensor)


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, xtensor.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    return [] if tree is None else [leaf for each in tree for leaf in leaves(each)]


def compiled_as_eager(function: Any, *arguments: Any, calls: int = 4) -> Any:
    """Compare calls, each with tensors of its own: from the second on they are one program's."""

    def all_calls(called: Any) -> list[list[Any]]:
        xtensor.manual_seed(4)
        found = []
        for _ in range(calls):
            own = [a.clone() if isinstance(a, xtensor.Tensor) else a for a in arguments]
            found.append(leaves(called(*own)) + [a for a in own if isinstance(a, xtensor.Tensor)])
        return found

    expected = all_calls(function)
    compiled = xtensor.compile(function)
    found = all_calls(compiled)
    for one, other in zip(expected, found, strict=True):
        for a, b in zip(one, other, strict=True):
            assert a.requires_grad == b.requires_grad
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=2e-5, atol=1e-6)
    inner = compiled._xt_compiled
    assert not inner.reasons and len(inner.entries) == 1 and inner.entries[0].program.calls == calls - 1
    return inner


def per_sample() -> tuple[Any, ...]:
    net = test_vmap.network(xtensor)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return functional.cross_entropy(functional_call(net, p, (x.unsqueeze(0),)), y.unsqueeze(0))

    classes = xtensor.tensor([0, 2, 1, 1, 0])
    return vmap(grad(loss), in_dims=(None, 0, 0)), parameters, rows(), classes


def ensemble() -> tuple[Any, ...]:
    nets = [test_vmap.network(xtensor) for _ in range(3)]
    parameters, buffers = stack_module_state(nets)
    call = vmap(lambda p, b, x: functional_call(nets[0], (p, b), (x,)), in_dims=(0, 0, None))
    return lambda x: call(parameters, buffers, x).detach(), rows()


def step() -> tuple[Any, ...]:
    """A training step that is a function."""
    take, parameters, x, y = per_sample()

    def run(x: Any, y: Any) -> Any:
        grads = take(parameters, x, y)
        return {name: p - 0.1 * grads[name].mean(0) for name, p in parameters.items()}

    return run, x, y


def forwards(x: Any) -> Any:
    with fwAD.dual_level():
        found = fwAD.make_dual(x, x * 2)
        return fwAD.unpack_dual(found.sin() * found)


def captured() -> tuple[Any, ...]:
    """Under `vmap`, what the function has from outside and requires grad."""
    w = ones().requires_grad_()
    return vmap(lambda x: (x * w).sin()), rows()


def argument_written(x: Any) -> Any:
    vmap(lambda row: row.add_(1))(x)
    return x * 1


Cube = test_functions.functions(xtensor)[0]


CASES: dict[str, Any] = {
    "gradients of samples": per_sample,
    "networks": ensemble,
    "a step": step,
    "jacrev": lambda: (jacrev(lambda x: x.sin() * x.sum()), ones()),
    "jacfwd": lambda: (jacfwd(lambda x: x.sin() * x.sum()), ones()),
    "hessian": lambda: (hessian(lambda x: (x.sin() * x.roll(1)).sum() ** 2), ones()),
    "hessians": lambda: (vmap(hessian(lambda x: (x.sin() * x).sum())), rows()),
    "jvp": lambda: (lambda x: jvp(xtensor.exp, (x,), (x,)), ones()),
    "vjp": lambda: (lambda x: vjp(xtensor.exp, x)[1](x), ones()),
    "value and gradient": lambda: (grad_and_value(lambda x: x.exp().sum()), ones()),
    "linearized": lambda: (lambda x: linearize(lambda y: y.sin() * y, x)[1](x), ones()),
    "dual numbers": lambda: (forwards, ones()),
    "in place": lambda: (vmap(lambda x: test_vmap.in_place(xtensor, x)), rows()),
    "an argument that is written": lambda: (argument_written, rows()),
    "from outside": captured,
    "chunks": lambda: (vmap(lambda x: (x.sum(), x * 2), chunk_size=2, out_dims=(0, 1)), rows()),
    "the same random numbers": lambda: (vmap(lambda x: x * xtensor.randn(4), randomness="same"), rows()),
    "the same in chunks": lambda: (
        vmap(lambda x: x * xtensor.randn(4), randomness="same", chunk_size=2),
        rows(),
    ),
    "different random numbers": lambda: (
        vmap(vmap(lambda x: x * xtensor.randn(2), randomness="different"), randomness="different"),
        rows(3, 2, 2),
    ),
    "dropout": lambda: (vmap(functional.dropout, randomness="different"), rows()),
    "indices": lambda: (
        vmap(lambda x, i: x[i]),
        rows(),
        xtensor.tensor([[0], [3], [1], [2], [0]]),
    ),
    "embedding": lambda: (
        lambda i, w: jvp(lambda v: vmap(functional.embedding, in_dims=(0, None))(i, v), (w,), (w,)),
        xtensor.tensor([[0, 2], [1, 1]]),
        rows(3, 2),
    ),
    "a Function": lambda: (vmap(grad(lambda x: Cube.apply(x).sum())), rows()),
    "rows of gradients": lambda: (lambda x: test_vmap.batched_rows(xtensor) * x, ones()),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(2)
def test_one_program(name: str) -> None:
    compiled_as_eager(*CASES[name]())


@pytest.mark.parametrize("nest", test_nested.TWO[::4], ids=test_nested.name)
@pytest.mark.one_in(2)
def test_one_program_for_transforms_in_transforms(nest: Any) -> None:
    function = lambda x: test_nested.base(xtensor, x)
    for transform in reversed(nest):
        function = transform(xtensor, function)
    compiled_as_eager(function, xtensor.tensor([0.4, -0.7], dtype=xtensor.float64))


def test_one_program_is_asked_for_and_none_but_it_runs() -> None:
    take, *given = per_sample()
    compiled = xtensor.compile(take)
    compiled(*given)
    names: list[str] = []
    compiles.watch(watcher := lambda name: names.append(name) or (lambda cached: None))
    try:
        compiled(*given)
        (entry,) = compiled._xt_compiled.entries
        (jitted,) = entry.program._programs.values()
        launched = []
        entry.program._programs = {
            key: lambda *a: launched.append(1) or jitted(*a) for key in entry.program._programs
        }
        again = compiled(*given)
    finally:
        compiles.unwatch(watcher)
    assert names == ["loss"] and launched == [1]
    assert again["0.weight"].shape == (5, 6, 4)


def test_what_is_refused_stays_refused() -> None:
    noisy = xtensor.compile(vmap(lambda x: x + xtensor.randn(4)))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            noisy(rows())
    chosen = xtensor.compile(vmap(lambda x: x if x.sum() > 0 else -x))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="data-dependent"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen(rows())
