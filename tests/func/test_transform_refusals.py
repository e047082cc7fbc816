"""What functions may not do inside of transforms, and what they may, against PyTorch's: word for word, by transform."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import xtensor

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


def x3(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0, 3.0])


TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda L, F, f: F.grad(lambda x: f(x).sum())(x3(L)),
    "vjp": lambda L, F, f: F.vjp(f, x3(L))[0],
    "jvp": lambda L, F, f: F.jvp(f, (x3(L),), (x3(L),)),
    "vmap": lambda L, F, f: F.vmap(f)(x3(L).expand(2, 3).clone()),
    "jacrev": lambda L, F, f: F.jacrev(f)(x3(L)),
    "jacfwd": lambda L, F, f: F.jacfwd(f)(x3(L)),
    "hessian": lambda L, F, f: F.hessian(lambda x: f(x).sum())(x3(L)),
    "vmap of grad": lambda L, F, f: F.vmap(F.grad(lambda x: f(x).sum()))(x3(L).expand(2, 3).clone()),
}


def then(_: Any, result: Any) -> Any:
    return result


def captured(write: Callable[[Any, Any], Any], **options: Any) -> Callable[[Any], Any]:
    """A function that writes to a tensor from outside."""

    def make(lib: Any) -> Any:
        z = lib.zeros(3, **{k: getattr(lib, v) for k, v in options.items()})
        return lambda x: then(write(z, x), x * 1)

    return make


def unused(x: Any) -> Any:
    """A tensor that is only read here, and kept in the level in which it is made."""
    return x * 2


def leaf_of_its_own(lib: Any, x: Any) -> Any:
    return lib.ones(3, requires_grad=True) * x


def retained(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    return y * y


def own_argument(lib: Any) -> Any:
    """An argument that is not differentiated may be written."""

    def f(x, y):
        y.mul_(2)
        return (x * y).sum()

    y = x3(lib)
    return lib.func.grad(f)(x3(lib), y), y


def in_other_arguments(lib: Any) -> Any:
    def f(x, y):
        y.mul_(2)
        return (x * y).sum()

    return lib.func.vmap(lib.func.grad(f), in_dims=(0, None))(x3(lib).expand(2, 3).clone(), x3(lib))


def batch_norm(lib: Any, given: bool) -> Any:
    """Running statistics are written: those of the module, or those that are an argument."""
    norm = lib.nn.BatchNorm1d(2)
    parameters = {n: p.detach() for n, p in norm.named_parameters()}
    buffers = {n: b.clone() for n, b in norm.named_buffers()}
    x = lib.arange(6.0).reshape(3, 2)

    def loss(p, b):
        return lib.func.functional_call(norm, (p, b) if given else p, (x,)).pow(2).sum()

    found = lib.func.grad(loss)(parameters, buffers)
    return found["weight"], buffers["running_mean"], norm.running_mean


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "requires_grad_": lambda L: lambda x: (x * 2).requires_grad_() * x,
    "requires_grad_ off": lambda L: lambda x: (x * 2).requires_grad_(False) * x,
    "requires_grad_ of what is new": lambda L: lambda x: L.ones(3).requires_grad_() * x,
    "retain_grad": lambda L: retained,
    "add_": captured(lambda z, x: z.add_(x)),
    "a number added": captured(lambda z, x: z.add_(1)),
    "an item": captured(lambda z, x: z.__setitem__(0, x[0])),
    "copy_": captured(lambda z, x: z.copy_(x)),
    "fill_": captured(lambda z, x: z.fill_(3)),
    "zero_": captured(lambda z, x: z.zero_()),
    "a view": captured(lambda z, x: z[:2].mul_(2)),
    "detached": captured(lambda z, x: z.detach().add_(1)),
    "integers": captured(lambda z, x: z.add_(1), dtype="int64"),
    "relu_": captured(lambda z, x: z.relu_()),
    "what is made within": lambda L: lambda x: L.zeros(3).add_(x).mul_(2) * x,
    "a choice by value": lambda L: lambda x: x if (x * 1).sum().detach() > 0 else -x,
    "functional": lambda L: lambda x: L.autograd.functional.vjp(lambda y: y * y, x, x)[1],
}
# PyTorch has no such refusal in these, or one by another name.
LEFT_OUT = {("copy_", "vmap"), ("relu_", "vmap"), ("functional", "vmap"), ("fill_", "vmap")}

CALLS: dict[str, Callable[[Any], Any]] = {
    "an argument that is written": own_argument,
    "an argument of a batch that is written": in_other_arguments,
    "statistics of the module": lambda L: batch_norm(L, False),
    "statistics that are given": lambda L: batch_norm(L, True),
    "a leaf made within": lambda L: L.func.grad(lambda x: leaf_of_its_own(L, x).sum())(x3(L)),
    "a leaf made within vjp": lambda L: L.func.vjp(lambda x: leaf_of_its_own(L, x), x3(L))[0],
    "a complex result": lambda L: L.func.grad(lambda x: (x * (1 + 1j)).sum())(x3(L)),
    "detach_": lambda L: L.func.jvp(lambda x: (x * 1).detach_() * x, (x3(L),), (x3(L),)),
    "resize_": lambda L: L.func.jvp(lambda x: (x * 1).resize_(2), (x3(L),), (x3(L),)),
    "dual_level in jvp": lambda L: L.func.jvp(
        lambda x: L.autograd.forward_ad.dual_level().__enter__(), (x3(L),), (x3(L),)
    ),
}


def told(call: Callable[[], Any]) -> Any:
    def flat(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [flat(v) for v in value]
        if not hasattr(value, "tolist"):
            return value
        return [value.detach().numpy().round(5).tolist(), value.requires_grad]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return flat(call())
        except (RuntimeError, NotImplementedError) as error:
            return type(error), str(error).replace("xtensor.", "torch.")


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_transforms(torch, name, transform):
    if (name, transform) in LEFT_OUT:
        pytest.skip("not PyTorch's")

    def run(lib: Any) -> Any:
        return told(lambda: TRANSFORMS[transform](lib, lib.func, FUNCTIONS[name](lib)))

    assert run(xtensor) == run(torch)


@pytest.mark.parametrize("name", CALLS)
def test_calls(torch, name):
    def run(lib: Any) -> Any:
        return told(lambda: CALLS[name](lib))

    assert run(xtensor) == run(torch)


def functionalized(lib: Any, name: str, remove: str) -> Any:
    def over(f: Callable[..., Any]) -> Any:
        return lib.func.functionalize(f, remove=remove)

    x = x3(lib)
    if name == "a view":
        found = over(lambda x: x.view(3, 1))(x)
        x.add_(1)
        return found, x
    if name == "a written argument":
        found = over(lambda x: x.add_(1))(x)
        return found * 1, x, found is x, x._version
    if name == "a written view":
        return over(lambda x: then(x[1:].mul_(2), x.sum()))(x), x
    if name == "trees":
        return over(lambda d, *, k: {"a": d["a"].clone().add_(k), "b": [d["a"][0]]})({"a": x}, k=x)["b"]
    if name == "grad":
        return lib.func.grad(over(lambda x: x.clone().mul_(x).sum()))(x)
    if name == "of grad":
        return over(lib.func.grad(lambda x: x.clone().mul_(x).sum()))(x)
    if name == "of vmap":
        return over(lib.func.vmap(lambda x: x.clone().mul_(x)))(x)
    if name == "vmap":
        return lib.func.vmap(over(lambda x: x.clone().mul_(x)))(x)
    if name == "backward":
        return over(lambda x: x.sum().backward())(x.requires_grad_())
    if name == "requires_grad_":
        return over(lambda x: x.requires_grad_())(x)
    if name == "no such":
        return lib.func.functionalize(lambda x: x, remove="views")(x)
    return over(lambda x: (x, 3, None))(x)


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize(
    "name",
    "a view,a written argument,a written view,trees,grad,of grad,of vmap,vmap,backward,requires_grad_,no such,others".split(
        ","
    ),
)
def test_functionalize(torch, name, remove):
    assert told(lambda: functionalized(xtensor, name, remove)) == told(
        lambda: functionalized(torch, name, remove)
    )
