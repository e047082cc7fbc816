"""Corners of custom Functions and in-place histories that PyTorch's own tests look into, judged by PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor
from tests.oracle import Cases, attempt, leaf

case = Cases()


# -- what is saved


@case
def a_saved_input_is_the_tensor_itself(T):
    same = []

    class Keep(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            same.extend(s is t for s, t in zip(ctx.saved_tensors, given, strict=True))
            return g, None

    given = (leaf(T, 2) * 1, T.ones(2))
    out = Keep.apply(*given)
    out.sum().backward(retain_graph=True)
    given[0].detach_()
    out.sum().backward()
    return same


# -- inputs written, or returned as they are


@case
def a_written_view_runs_the_functions_backward(T):
    runs = []

    class Add(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            a.add_(b)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, g):
            runs.append(g)
            return g, g * 3

    a, b = leaf(T, 2), leaf(T, 2)
    out = Add.apply(a.clone().view_as(a), b)
    (out * out).sum().backward()
    return runs, a.grad, b.grad


@case
def the_class_makes_the_view_of_an_input_returned(T):
    class Held(T.Tensor):
        def __init__(self, data):
            super().__init__()
            self.held = data

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            args = tuple(a.held if isinstance(a, cls) else a for a in args)
            out = func(*args, **(kwargs or {}))
            return cls(out) if isinstance(out, T.Tensor) else out

    class Same(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    out = Same.apply(Held(T.ones(2, 3)))
    return isinstance(out, Held), out.held.sum()


# -- second derivatives through views that were written


@case
def second_derivative_through_a_written_view(T):
    found = []
    for write in ("relu_", "exp_", "sigmoid_", "sqrt_"):
        x = leaf(T, 2, 2)
        y = (x * x + 1).view(4)
        getattr(y[1:3], write)()
        (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
        found += [g, *T.autograd.grad((g * g).sum(), x)]
    return found


# -- views made again, settings, older names


@case
def a_view_of_another_base(T):
    x = T.zeros(3, 4, dtype=T.float64)
    other = leaf(T, 3, 4)
    found = []
    assert x.t()._view_func(T.ones(4)) is None
    for view in (x[1:, ::2], x.t(), x.view(-1)[5:], x.select(1, 2)):
        made = view._view_func(other)
        found += [made.tolist(), made._base is other, T.autograd.grad(made.sum(), other)[0].tolist()]
    return found


@case
def view_tracking_is_remembered(T):
    autograd = T.autograd
    seen = [autograd.is_view_replay_enabled()]
    with autograd.grad_mode._force_original_view_tracking(True):
        seen.append(autograd.is_view_replay_enabled())
    return [*seen, autograd.is_view_replay_enabled()]


@case
def results_into_a_tensor_with_a_tangent(T):
    fw = T.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(T.ones(2), T.ones(2))
        return [
            attempt(lambda: T.add(T.ones(2), T.ones(2), out=dual))[1:],
            attempt(lambda: T.add(dual, 1, out=T.ones(2)))[1:],
        ]


@case
def results_into_inference_tensors(T):
    with T.inference_mode():
        kept = T.ones(2)
    return [attempt(lambda: T.mul(T.ones(2), 2, out=kept)), attempt(lambda: T.mul(leaf(T, 2), 2, out=kept))]


@case
def hooks_entered_within_a_pass_end_with_it(T):
    hooks = T.autograd.graph.saved_tensors_hooks
    seen = []

    def unpack(x):
        hooks(lambda y: seen.append(y.tolist()) or y, lambda y: y).__enter__()
        return x

    x = leaf(T, 2)
    with hooks(lambda y: y, unpack):
        x.sin().sum().backward()
    x.cos()
    return seen, x.grad


@case
def functionals_in_strict_mode(T):
    functional = T.autograd.functional
    x = leaf(T, 3).detach()
    return [
        attempt(lambda: functional.jvp(lambda a: a.clone(), leaf(T, 3), x, create_graph=True, strict=True)),
        attempt(lambda: functional.hessian(lambda a: a.detach().sum(), x, strict=True)),
        attempt(lambda: functional.hessian(lambda a: (3 * a).sum(), x, strict=True)),
        functional.hessian(lambda a: (a**3).sum(), x, strict=True),
    ]


@case
def operators_of_selective_checkpoints(T):
    made = T.utils.checkpoint.create_selective_checkpoint_contexts
    aten = T.library.ops.aten if hasattr(T.library, "ops") else T.ops.aten
    return [attempt(lambda: made([2])), attempt(lambda: made([aten.sin])), attempt(lambda: made(3))]


test_as_pytorch = case.test()


def test_every_input_has_a_tangent_while_tangents_are_checked():
    fw = xtensor.autograd.forward_ad

    def function(x, y):
        assert not (fw._current_level >= 0 and (x.requires_grad or fw.unpack_dual(y).tangent is None))
        return x * y, y

    x, y = (xtensor.rand(2, dtype=xtensor.float64).requires_grad_() for _ in range(2))
    assert xtensor.autograd.gradcheck(function, (x, y), check_forward_ad=True)


def test_volatile_is_a_warning():
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        made = xtensor.autograd.Variable(xtensor.ones(2), volatile=True)
    assert not made.requires_grad


def test_private_names_of_the_engine():
    from xtensor.interop.private import NAMES

    shapes = NAMES["autograd._calculate_shape"](xtensor.ones(2, 3), xtensor.ones(4, 2), True)
    assert shapes == (xtensor.Size([2, 3]), xtensor.Size([2]))
    enabled = xtensor.autograd.forward_ad._is_fwd_grad_enabled
    with xtensor.autograd.forward_ad._set_fwd_grad_enabled(False):
        assert not enabled()
    assert enabled()
    with xtensor.autograd.forward_ad.dual_level():
        NAMES["_C._set_fwd_grad_enabled"](False)
        assert not enabled()
        NAMES["_C._set_fwd_grad_enabled"](True)
        assert enabled()


# -- tangents of custom Functions

FORWARDS: dict[str, Any] = {
    "view": lambda ctx, x: x.narrow(0, 0, 2),
    "input": lambda ctx, x: x,
    "written": lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1],
    "inert": lambda ctx, x: (x.clone(), mark(ctx, x.clone())),
    "integers": lambda ctx, x: (x * 2, x.long()),
}
TANGENTS: dict[str, dict[str, Any]] = {
    "view": {
        "a view": lambda g: g.narrow(0, 0, 2),
        "no view": lambda g: g.narrow(0, 0, 2).clone(),
        "another's view": lambda g: g.narrow(0, 0, 2).clone().view(2, 4),
    },
    "input": {"a view": lambda g: g.view_as(g), "itself": lambda g: g, "computed": lambda g: g * 2},
    "written": {
        "in place": lambda g: g.mul_(2),
        "computed": lambda g: g * 2,
        "a view": lambda g: g.view_as(g),
    },
    "inert": {"none": lambda g: (g.clone(), None), "one": lambda g: (g.clone(), g.clone())},
    "integers": {"none": lambda g: (g * 2, None), "one": lambda g: (g * 2, g * 3)},
}


def mark(ctx: Any, x: Any) -> Any:
    ctx.mark_non_differentiable(x)
    return x


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("of_view", [False, True])
@pytest.mark.parametrize("forward,tangent", [(f, t) for f, found in TANGENTS.items() for t in found])
def test_tangents_share_memory_as_results_do(torch, forward, tangent, of_view):
    def found(T: Any) -> Any:
        class F(T.autograd.Function):
            @staticmethod
            def backward(ctx, *grads):
                return grads[0]

        F.forward = staticmethod(FORWARDS[forward])
        F.jvp = staticmethod(lambda ctx, g: TANGENTS[forward][tangent](g))
        fw = T.autograd.forward_ad
        with fw.dual_level():
            x = fw.make_dual(T.ones(4, 4), T.ones(4, 4))
            out = attempt(lambda: F.apply(x.view_as(x) if of_view else x))
            tensors = [o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, T.Tensor)]
            if not tensors:
                return out
            return [None if (t := fw.unpack_dual(o).tangent) is None else t.tolist() for o in tensors]

    assert found(xtensor) == found(torch)
