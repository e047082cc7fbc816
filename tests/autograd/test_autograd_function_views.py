"""Custom Functions that return their inputs, views of them, or write to them, judged by PyTorch."""

from __future__ import annotations

from typing import Any

from tests.oracle import Cases, attempt, facts, leaf

case = Cases()


@case
def input_returned_as_is(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(T, 2)
    y = F.apply(x)
    z = x * 2
    w = F.apply(z)
    before = (y is x, facts(y), facts(w), w._base is z)
    (y.sum() + w.sum()).backward()
    return before, x.grad, attempt(lambda: w.mul_(2)), attempt(lambda: y.mul_(2))


@case
def input_returned_twice(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h

    z = leaf(T, 2) * 1
    a, b = F.apply(z)
    return facts(a), facts(b), attempt(lambda: a.mul_(2)), attempt(lambda: b.mul_(2))


@case
def view_returned(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.view(2, 2) * 3

    x = leaf(T, 2, 2)
    y = x * 1
    v = F.apply(y)
    before = facts(v), v._base is y
    v.sum().backward()
    return before, x.grad, attempt(lambda: v.mul_(2)), attempt(lambda: v[0].mul_(2))


@case
def view_returned_without_gradient(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, g):
            return g

    y = T.ones(2, 2)
    v = F.apply(y)
    v.mul_(2)
    return facts(v), y


@case
def view_of_intermediate_returned(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2).view(-1)

        @staticmethod
        def backward(ctx, g):
            return g.view(2, 2) * 2

    x = leaf(T, 2, 2)
    v = F.apply(x)
    v.mul_(3)
    v.sum().backward()
    return facts(v), x.grad


def scaler(T: Any, dirty: bool = True) -> Any:
    class Scale(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            x.mul_(k)
            if dirty:
                ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    return Scale


@case
def dirty_input(T):
    x = leaf(T, 3)
    y = x * 2
    z = scaler(T).apply(y, 3.0)
    (z * z).sum().backward()
    return z is y, facts(y), x.grad


@case
def dirty_leaf(T):
    return scaler(T).apply(leaf(T, 3), 3.0)


@case
def dirty_leaf_under_no_grad(T):
    x = leaf(T, 3)
    with T.no_grad():
        y = scaler(T).apply(x, 3.0)
    return y is x, facts(x)


@case
def dirty_view(T):
    x = leaf(T, 2, 2)
    y = x * 2
    v = y[0]
    scaler(T).apply(v, 3.0)
    (y * y).sum().backward()
    return facts(v), facts(y), x.grad


@case
def dirty_view_of_leaf(T):
    x = leaf(T, 2, 2)
    return scaler(T).apply(x[0], 3.0)


@case
def dirty_input_saved_before(T):
    x = leaf(T, 3)
    y = x * 2
    z = y * y
    scaler(T).apply(y, 3.0)
    return attempt(lambda: z.sum().backward())[:2]


@case
def dirty_not_marked(T):
    x = leaf(T, 3)
    y = x * 2
    z = scaler(T, dirty=False).apply(y, 3.0)
    z.sum().backward()
    return z is y, facts(y), x.grad


@case
def dirty_not_returned(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    return F.apply(leaf(T, 3) * 1)


@case
def dirty_not_an_input(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g

    return F.apply(leaf(T, 3))


@case
def dirty_view_among_several_outputs(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * 1

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    return F.apply((leaf(T, 3) * 1)[1:])


@case
def dirty_saved_output(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = leaf(T, 3)
    y = x * 1
    F.apply(y)
    (y * 2).sum().backward()
    return x.grad, y


test_function_views = case.test()
