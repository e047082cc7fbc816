"""Custom Functions in both styles, judged by PyTorch: what `ctx` can do, and every way to get it wrong."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor
from tests.oracle import Cases, attempt, facts, leaf

case = Cases()


def both_styles(T: Any) -> list[Any]:
    """The same function written with `forward(ctx, ...)` and with `setup_context`."""
    F = T.autograd.Function

    class Old(F):
        @staticmethod
        def forward(ctx, x, w, n):
            ctx.n = n
            y = x * w
            ctx.save_for_backward(x, w, y)
            return y * n

        @staticmethod
        def backward(ctx, g):
            x, w, _y = ctx.saved_tensors
            return g * w * ctx.n, (g * x * ctx.n) if ctx.needs_input_grad[1] else None, None

    class New(F):
        @staticmethod
        def forward(x, w, n):
            return x * w * n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, w, ctx.n = inputs
            ctx.save_for_backward(x, w, None)

        @staticmethod
        def backward(ctx, g):
            x, w, nothing = ctx.saved_tensors
            assert nothing is None
            return g * w * ctx.n, (g * x * ctx.n) if ctx.needs_input_grad[1] else None, None

    return [Old, New]


@case
def styles(T):
    seen = []
    for F in both_styles(T):
        x, w = leaf(T, 3), leaf(T, 3)
        y = F.apply(x, w, 2.0)
        seen += [facts(y), y]
        (y * y).sum().backward()
        seen += [x.grad, w.grad, F.apply(x.detach(), w.detach(), 3).requires_grad]
    return seen


@case
def needs_input_grad(T):
    seen = []

    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, c, flag):
            seen.append(ctx.needs_input_grad)
            return a + b + c

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g, g, None

    F.apply(leaf(T, 2), T.ones(2, dtype=T.float64), leaf(T, 2), True).sum().backward()
    with T.no_grad():
        F.apply(leaf(T, 2), T.ones(2, dtype=T.float64), leaf(T, 2), True)
    return seen


@case
def double_backward(T):
    seen = []
    for F in both_styles(T):
        x, w = leaf(T, 3), leaf(T, 3)
        gx, gw = T.autograd.grad((F.apply(x, w, 2.0) ** 2).sum(), (x, w), create_graph=True)
        seen += [gx, gw]
        (gx * gw).sum().backward()
        seen += [x.grad, w.grad]
    return seen


@case
def double_backward_through_saved_output(T):
    class Exp(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = leaf(T, 3)
    (g,) = T.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    (h,) = T.autograd.grad(g.sum(), x, create_graph=True)
    h.sum().backward()
    return g, h, x.grad, g.grad_fn is not None


@case
def double_backward_saved_intermediate(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            inner = x * 3
            ctx.save_for_backward(inner)
            return inner * inner

        @staticmethod
        def backward(ctx, g):
            (inner,) = ctx.saved_tensors
            return g * inner * 6

    x = leaf(T, 3)
    (g,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return g, g.requires_grad, attempt(lambda: g.sum().backward())


@case
def once_differentiable(T):
    import importlib

    once = importlib.import_module(T.__name__ + ".autograd.function").once_differentiable

    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = leaf(T, 3)
    (g,) = T.autograd.grad(F.apply(x).sum(), x)
    (h,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return g, h, attempt(lambda: h.sum().backward())


# -- several outputs, undefined gradients


def two(T: Any, materialize: bool, seen: list[Any]) -> Any:
    class Two(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return a if b is None else (b if a is None else 2 * a + 3 * b)

    return Two


@case
def tuple_outputs(T):
    seen = []
    x = leaf(T, 3)
    a, b = two(T, True, seen).apply(x)
    (a * b).sum().backward()
    return facts(a), facts(b), seen, x.grad


@case
def undefined_gradients_materialized(T):
    seen = []
    x = leaf(T, 3)
    _a, b = two(T, True, seen).apply(x)
    b.sum().backward()
    return seen, x.grad


@case
def undefined_gradients_left(T):
    seen = []
    x = leaf(T, 3)
    _a, b = two(T, False, seen).apply(x)
    b.sum().backward()
    return seen, x.grad


@case
def list_and_single_tuple_outputs(T):
    class One(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2,)

        @staticmethod
        def backward(ctx, g):
            return (g * 2,)

    class List(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return [x * 2, x * 3]

        @staticmethod
        def backward(ctx, g, h):
            return g * 2

    x = leaf(T, 2)
    (y,) = One.apply(x)
    y.sum().backward()
    return type(One.apply(x)).__name__, x.grad, attempt(lambda: type(List.apply(x)).__name__)


@case
def outputs_that_are_no_tensors(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", 3, None

        @staticmethod
        def backward(ctx, *grads):
            seen.append(grads)
            return grads[0] * 2

    seen = []
    x = leaf(T, 2)
    out = F.apply(x)
    out[0].sum().backward()
    return out, seen, x.grad


@case
def integer_and_marked_outputs(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            n, m = x > 1, x * 2
            ctx.mark_non_differentiable(m)
            return x * 3, m, n, n.to(T.int64)

        @staticmethod
        def backward(ctx, *grads):
            seen.append([None if g is None else g.dtype for g in grads])
            return grads[0] * 3

    seen = []
    x = leaf(T, 2)
    a, m, n, i = F.apply(x)
    a.sum().backward()
    return facts(a), facts(m), facts(n), facts(i), seen, x.grad


@case
def returns_nothing(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return None

        @staticmethod
        def backward(ctx, g):
            return None

    return F.apply(leaf(T, 2))


# -- saving


@case
def saved_after_release(T):
    keep = []

    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            keep.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = F.apply(leaf(T, 3)).sum()
    early = keep[0].saved_tensors
    y.backward()
    return early, attempt(lambda: keep[0].saved_tensors), attempt(lambda: y.backward())


@case
def nothing_saved_runs_twice(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(T, 3)
    y = F.apply(x).sum()
    y.backward()
    return attempt(lambda: y.backward()), x.grad


@case
def saving_what_is_no_tensor(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    return F.apply(leaf(T, 3))


@case
def saved_input_written(T):
    x = leaf(T, 3)
    y = x * 2
    z = both_styles(T)[0].apply(y, T.ones(3, dtype=T.float64), 1)
    y.add_(1)
    return attempt(lambda: z.sum().backward())


@case
def saved_output_written(T):
    class Exp(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Exp.apply(leaf(T, 3))
    y.add_(1)
    return attempt(lambda: y.sum().backward())


@case
def attributes_on_ctx(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, *rest):
            ctx.rest, ctx.anything = rest, {"a": 1}
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append((ctx.rest, ctx.anything))
            return (g * 2, *[None] * len(ctx.rest))

    seen = []
    x = leaf(T, 2)
    y = F.apply(x, 1, "two", [3], None)
    y.sum().backward()
    return seen, x.grad, y.grad_fn.anything


# -- what backward may return


def returning(T: Any, result: Any, inputs: int = 1) -> Any:
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            return sum(x * 2 for x in xs if hasattr(x, "dim"))

        @staticmethod
        def backward(ctx, g):
            return result(g)

    return F


@case
def too_many_gradients(T):
    returning(T, lambda g: (g, g)).apply(leaf(T, 2)).sum().backward()


@case
def too_few_gradients(T):
    returning(T, lambda g: g).apply(leaf(T, 2), leaf(T, 2)).sum().backward()


@case
def surplus_none_is_fine(T):
    x = leaf(T, 2)
    returning(T, lambda g: (g, None, None)).apply(x).sum().backward()
    return x.grad


@case
def none_is_no_gradient(T):
    x, y = leaf(T, 2), leaf(T, 2)
    returning(T, lambda g: (None, g)).apply(x, y).sum().backward()
    return x.grad, y.grad


@case
def gradient_of_no_tensor(T):
    returning(T, lambda g: 3.0).apply(leaf(T, 2)).sum().backward()


@case
def gradient_for_a_number(T):
    returning(T, lambda g: (g, g)).apply(leaf(T, 2), 3.0).sum().backward()


@case
def gradient_of_wrong_shape(T):
    returning(T, lambda g: T.ones(3, dtype=T.float64)).apply(leaf(T, 2)).sum().backward()


@case
def gradient_that_broadcasts(T):
    x = leaf(T, 1, 2)
    returning(T, lambda g: T.ones(3, 2, dtype=T.float64)).apply(x).sum().backward()
    return x.grad


@case
def gradient_of_other_dtype(T):
    x = leaf(T, 2)
    returning(T, lambda g: g.to(T.float32)).apply(x).sum().backward()
    return x.grad


@case
def gradient_for_what_needs_none(T):
    x, y = leaf(T, 2), T.ones(2, dtype=T.float64)
    returning(T, lambda g: (g, g)).apply(x, y).sum().backward()
    return x.grad, y.grad


@case
def raises_in_backward(T):
    def fail(g):
        raise ValueError("from backward")

    returning(T, fail).apply(leaf(T, 2)).sum().backward()


@case
def raises_in_forward(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("from forward")

    F.apply(leaf(T, 2))


@case
def grad_mode_inside(T):
    seen = []

    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((T.is_grad_enabled(), (x * 2).requires_grad, x.requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append((T.is_grad_enabled(), g.requires_grad))
            return g * 2

    x = leaf(T, 2)
    F.apply(x).sum().backward()
    T.autograd.grad(F.apply(x).pow(2).sum(), x, create_graph=True)
    return seen


# -- misuse


@case
def no_forward(T):
    class F(T.autograd.Function):
        pass

    F.apply(leaf(T, 2))


@case
def no_backward(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    F.apply(leaf(T, 2)).sum().backward()


@case
def both_backward_and_vjp(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

        @staticmethod
        def vjp(ctx, g):
            return g

    F.apply(leaf(T, 2)).sum().backward()


@case
def vjp_alone(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 7

    x = leaf(T, 2)
    F.apply(x).sum().backward()
    return x.grad


@case
def vmap_staticmethod_is_left_alone(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def vmap(info, in_dims, x):
            raise AssertionError

    x = leaf(T, 2)
    F.apply(x).sum().backward()
    return x.grad


@case
def names(T):
    class MyOwn(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    y = MyOwn.apply(leaf(T, 2))
    return (
        y.grad_fn.name(),
        type(y.grad_fn).__name__,
        [f.name().rpartition("::")[2] for f, _ in y.grad_fn.next_functions],
    )


@case
def nested_functions(T):
    F = both_styles(T)[0]

    class Outer(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with T.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = F.apply(ctx.x, ctx.x, 2.0)
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            ctx.y.backward(g)
            return ctx.x.grad

    x = leaf(T, 3)
    (Outer.apply(x) * 2).sum().backward()
    return x.grad


@case
def keyword_arguments(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g, None

    return attempt(lambda: F.apply(leaf(T, 2), k=2))[:2]


test_functions = case.test()


KEPT = "edges meta name device num_inputs trusted release dirty sequence_nr input_metadata targets key saved shapes op".split()


@pytest.mark.parametrize("name", KEPT)
def test_a_context_keeps_what_a_program_gives_it_under_any_name(name: str) -> None:
    class Keeping(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            setattr(ctx, name, 7)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            assert getattr(ctx, name) == 7
            return g * 2 + h

    x = xtensor.ones(2, requires_grad=True)
    y, _ = Keeping.apply(x)
    (y * y).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [8.0, 8.0]
    assert getattr(y.grad_fn, name) == 7
    with pytest.warns(UserWarning), xtensor.autograd.detect_anomaly():
        y.sum().backward()
