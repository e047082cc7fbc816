"""`gradcheck`, `gradgradcheck` and `autograd.functional`, judged by PyTorch: values, forms, strictness, refusals."""

from __future__ import annotations

from typing import Any

from tests.oracle import Cases, attempt

case = Cases()


def values(T: Any, *shape: int) -> Any:
    count = 1
    for s in shape:
        count *= s
    return T.arange(count, dtype=T.float64).reshape(shape) * 0.25 + 0.5


def leaf(T: Any, *shape: int) -> Any:
    return values(T, *shape).requires_grad_()


# -- functional


@case
def jacobians(T):
    F = T.autograd.functional
    x, y = values(T, 2), values(T, 3)
    return (
        F.jacobian(lambda a: a * a, x),
        F.jacobian(lambda a, b: a.sum() * b, (x, y)),
        F.jacobian(lambda a, b: (a * 2, b.exp()), (x, y)),
        F.jacobian(lambda a: a.sum(), x),
        F.jacobian(lambda a: a.reshape(2, 1) * y, x),
        F.jacobian(lambda a: a * a, x, vectorize=True),
        F.jacobian(lambda a: a * a, (x,)),
    )


@case
def jacobian_create_graph(T):
    x = leaf(T, 2)
    j = T.autograd.functional.jacobian(lambda a: a**3, x, create_graph=True)
    j.sum().backward()
    return j, j.requires_grad, x.grad


@case
def jacobian_of_independent(T):
    F = T.autograd.functional
    x, y = values(T, 2), values(T, 2)
    return (
        F.jacobian(lambda a, b: a * 2, (x, y)),
        attempt(lambda: F.jacobian(lambda a, b: a * 2, (x, y), strict=True)),
        attempt(lambda: F.jacobian(lambda a: T.ones(2, dtype=T.float64), x, strict=True)),
        F.jacobian(lambda a: T.ones(2, dtype=T.float64), x),
    )


@case
def hessians(T):
    F = T.autograd.functional
    x, y = values(T, 2), values(T, 2)
    return (
        F.hessian(lambda a: (a**3).sum(), x),
        F.hessian(lambda a, b: (a * a * b).sum(), (x, y)),
        F.hessian(lambda a: (a * 2).sum(), x),
        F.hessian(lambda a: (a**3).sum(), x, vectorize=True),
    )


@case
def hessian_refusals(T):
    F = T.autograd.functional
    x = values(T, 2)
    return (
        attempt(lambda: F.hessian(lambda a: a, x)),
        attempt(lambda: F.hessian(lambda a: (a.sum(), a.sum()), x)),
        attempt(lambda: F.hessian(lambda a: (a * 2).sum(), x, strict=True)),
        attempt(lambda: F.hessian(lambda a: 3.0, x))[1],
    )


@case
def hessian_create_graph(T):
    x = leaf(T, 2)
    h = T.autograd.functional.hessian(lambda a: (a**3).sum(), x, create_graph=True)
    h.sum().backward()
    return h, x.grad


@case
def vjps(T):
    F = T.autograd.functional
    x, v = values(T, 2, 2), values(T, 2)
    return (
        F.vjp(lambda a: a.sum(1), x, v),
        F.vjp(lambda a: a.sum(), x),
        F.vjp(lambda a, b: a * b, (v, v), v),
        F.vjp(lambda a: (a, a * 2), v, (v, v)),
        attempt(lambda: F.vjp(lambda a: a.sum(1), x)),
        attempt(lambda: F.vjp(lambda a: a.sum(1), x, values(T, 3))),
        attempt(lambda: F.vjp(lambda a: a.sum(1), x, (v, v))),
        attempt(lambda: F.vjp(lambda a: T.ones(2, dtype=T.float64), x, v, strict=True)),
    )


@case
def jvps(T):
    F = T.autograd.functional
    x, v = values(T, 2, 2), values(T, 2)
    return (
        F.jvp(lambda a: a.sum(1) ** 2, x, values(T, 2, 2)),
        F.jvp(lambda a: a * 2, T.ones((), dtype=T.float64)),
        F.jvp(lambda a, b: a * b, (v, v), (v, v)),
        attempt(lambda: F.jvp(lambda a: a.sum(1), x)),
        attempt(lambda: F.jvp(lambda a: a.sum(1), x, values(T, 3))),
    )


@case
def hvps(T):
    F = T.autograd.functional
    x, v = values(T, 3), values(T, 3)
    return (
        F.hvp(lambda a: (a**3).sum(), x, v),
        F.vhp(lambda a: (a**3).sum(), x, v),
        F.hvp(lambda a, b: (a * b * b).sum(), (x, x), (v, v)),
        F.vhp(lambda a, b: (a * b * b).sum(), (x, x), (v, v)),
        attempt(lambda: F.vhp(lambda a: (a**3).sum(), x)),
        attempt(lambda: F.hvp(lambda a: a, x, v)),
    )


@case
def functional_of_no_tensor(T):
    F = T.autograd.functional
    return (
        attempt(lambda: F.jacobian(lambda a: a, 3.0)),
        attempt(lambda: F.jacobian(lambda a, b: a, (values(T, 2), 3.0))),
        attempt(lambda: F.jacobian(lambda a: 3.0, values(T, 2))),
    )


@case
def functional_leaves_inputs_alone(T):
    x = leaf(T, 2)
    T.autograd.functional.jacobian(lambda a: a * a, x)
    return x.grad, x.requires_grad


@case
def functional_under_no_grad(T):
    x = values(T, 2)
    with T.no_grad():
        return T.autograd.functional.jacobian(lambda a: a * a, x)


# -- gradcheck


def wrong(T: Any) -> Any:
    """A Function whose gradient is wrong."""

    class Wrong(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    return Wrong.apply


def once(T: Any) -> Any:
    """A Function whose first gradient is right and whose second is not."""

    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * (x * x).detach()

    return Cube.apply


@case
def gradcheck_passes(T):
    check = T.autograd.gradcheck
    return (
        check(lambda a: a.exp(), leaf(T, 3)),
        check(lambda a, b: (a * b, a.sum()), (leaf(T, 3), leaf(T, 3))),
        check(lambda a, n: a * n, (leaf(T, 3), 2)),
        check(lambda a, b: a * b, (leaf(T, 3), values(T, 3))),
        check(lambda a: a.t() @ a, leaf(T, 2, 3)),
        check(lambda a: a.exp(), leaf(T, 3), fast_mode=True),
    )


@case
def gradcheck_complex(T):
    z = (values(T, 2) + 1j * values(T, 2)).requires_grad_()
    check = T.autograd.gradcheck
    return (
        check(lambda a: a * a, z),
        check(lambda a: a.abs(), z),
        check(lambda a: a.conj() * a, z),
        check(lambda a: a.real * 2, z),
    )


@case
def gradcheck_fails(T):
    error = attempt(lambda: T.autograd.gradcheck(wrong(T), leaf(T, 2)))
    return error[1], error[2][:60], T.autograd.gradcheck(wrong(T), leaf(T, 2), raise_exception=False)


@case
def gradcheck_without_inputs(T):
    return attempt(lambda: T.autograd.gradcheck(lambda a: a, values(T, 2)))


@case
def gradcheck_of_nondeterministic(T):
    calls = []

    class Odd(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * 2 + (1e-3 if len(calls) % 3 == 0 else 0) * g

    return attempt(lambda: T.autograd.gradcheck(Odd.apply, leaf(T, 2), atol=1e-1))[1]


@case
def gradcheck_of_failing_undefined(T):
    class Two(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    return attempt(lambda: T.autograd.gradcheck(Two.apply, leaf(T, 2)))[1]


@case
def gradgradcheck_passes(T):
    check = T.autograd.gradgradcheck
    return (
        check(lambda a: a.exp(), leaf(T, 3)),
        check(lambda a, b: a * b * b, (leaf(T, 3), leaf(T, 3))),
        check(lambda a: (a**3, a.sum()), leaf(T, 2)),
        check(lambda a: a**3, leaf(T, 2), leaf(T, 2)),
        check(lambda a: a**3, (leaf(T, 2),), gen_non_contig_grad_outputs=True),
    )


@case
def gradgradcheck_fails(T):
    return attempt(lambda: T.autograd.gradgradcheck(once(T), leaf(T, 2)))[1], T.autograd.gradgradcheck(
        once(T), leaf(T, 2), raise_exception=False
    )


@case
def strict_mode_refuses_what_does_not_depend_on_the_input(T):
    F, x = T.autograd.functional, leaf(T, 3)

    def cut(t):
        return t.detach().sum()

    return (
        attempt(lambda: F.vjp(lambda t: t.clone(), x, x, create_graph=True, strict=True)),
        attempt(lambda: F.jacobian(lambda t: t.clone(), x, create_graph=True, strict=True)),
        attempt(lambda: F.hessian(lambda t: t.sum(), x, strict=True)),
        attempt(lambda: F.hvp(lambda t: t.sum(), x, x, strict=True)),
        attempt(lambda: F.vhp(cut, x, x, strict=True)),
        attempt(lambda: F.hvp(cut, x, x, strict=True)),
        attempt(lambda: F.hessian(lambda t: t.exp().sum(), x, strict=True, vectorize=True)),
    )


@case
def gradcheck_of_views_and_writes(T):
    def f(a, b):
        y = a * 2
        y[0].mul_(b)
        y.t()[1:].add_(1)
        return y * y

    return T.autograd.gradcheck(f, (leaf(T, 2, 3), leaf(T, 3))), T.autograd.gradgradcheck(
        f, (leaf(T, 2, 3), leaf(T, 3))
    )


test_functional = case.test()
