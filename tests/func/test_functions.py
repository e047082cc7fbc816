"""Custom Functions inside of transforms against PyTorch's: their own `vmap` and `jvp`, generated rules, both styles, refusals."""

import warnings

import numpy as np
import pytest

import xtensor


def functions(lib):
    class Cube(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

        @staticmethod
        def jvp(ctx, along):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * along

    class Outside(lib.autograd.Function):
        """A product by NumPy, which no batch goes through."""

        @staticmethod
        def forward(x, y):
            return lib.tensor(x.detach().numpy() * y.detach().numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return Outside.apply(grad, y), Outside.apply(grad, x)

        @staticmethod
        def jvp(ctx, a, b):
            x, y = ctx.saved_tensors
            return a * y + b * x

        @staticmethod
        def vmap(info, in_dims, *given):
            size = info.batch_size
            whole = [
                g.expand(size, *g.shape) if d is None else g.movedim(d, 0)
                for g, d in zip(given, in_dims, strict=True)
            ]
            return Outside.apply(*whole), 0

    class Bare(lib.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Older(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

        @staticmethod
        def jvp(ctx, along):
            return along * 2 + ctx.saved_tensors[0] * 0

    class Written(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

        @staticmethod
        def jvp(ctx, along):
            return along.mul_(2)

    class Two(lib.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y, x > 0

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, grad, _):
            x, y = ctx.saved_tensors
            return (None, None) if grad is None else (grad * y, grad * x)

    return Cube, Outside, Bare, Older, Written, Two


def forwards(lib, function, *values):
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        found = function(*[fw.make_dual(v, v * 0 + 2) for v in values])
        outputs = found if isinstance(found, tuple) else (found,)
        return [part for o in outputs for part in fw.unpack_dual(o) if part is not None]


def around(lib, function):
    """The gradient of what a function under `vmap` takes from outside."""
    w = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    lib.vmap(lambda a: function(a, w))(grid(lib)).sum().backward()
    return w.grad


def x3(lib):
    return lib.tensor([1.0, 2.0, 3.0])


def grid(lib):
    return lib.tensor([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])


CALLS = {
    "vmap": lambda L, F, f: F.vmap(f[0].apply)(grid(L)),
    "vmap of grad": lambda L, F, f: F.vmap(F.grad(lambda x: f[0].apply(x).sum()))(grid(L)),
    "grad of vmap": lambda L, F, f: F.grad(lambda x: F.vmap(f[0].apply)(x).sum())(grid(L)),
    "jvp": lambda L, F, f: F.jvp(f[0].apply, (x3(L),), (x3(L),)),
    "jvp of grad": lambda L, F, f: F.jvp(F.grad(lambda x: f[0].apply(x).sum()), (x3(L),), (x3(L),)),
    "grad of jvp": lambda L, F, f: F.grad(lambda x: F.jvp(f[0].apply, (x,), (x,))[1].sum())(x3(L)),
    "hessian": lambda L, F, f: F.hessian(lambda x: f[0].apply(x).sum())(x3(L)),
    "own vmap": lambda L, F, f: F.vmap(f[1].apply, in_dims=(0, None))(grid(L), x3(L)),
    "own vmap twice": lambda L, F, f: F.vmap(F.vmap(f[1].apply, in_dims=(0, None)), in_dims=(None, 0))(
        grid(L), grid(L)
    ),
    "grad of own vmap": lambda L, F, f: F.grad(
        lambda a: F.vmap(f[1].apply, in_dims=(0, None))(grid(L), a).sum()
    )(x3(L)),
    "own vmap of grad": lambda L, F, f: F.vmap(
        F.grad(lambda a, b: f[1].apply(a, b).sum(), argnums=(0, 1)), in_dims=(0, None)
    )(grid(L), x3(L)),
    "jacrev": lambda L, F, f: F.jacrev(lambda a: f[1].apply(a, a))(x3(L)),
    "neither": lambda L, F, f: F.vmap(f[2].apply)(grid(L)),
    "no jvp": lambda L, F, f: F.jvp(f[2].apply, (x3(L),), (x3(L),)),
    "the older style": lambda L, F, f: F.vmap(f[3].apply)(grid(L)),
    "the older style forwards": lambda L, F, f: forwards(L, f[3].apply, x3(L)),
    "a written input": lambda L, F, f: forwards(L, lambda v: f[4].apply(v.clone()), x3(L)),
    "two results": lambda L, F, f: F.vmap(f[5].apply)(grid(L), grid(L)),
    "one of two results": lambda L, F, f: F.vmap(F.grad(lambda a, b: f[5].apply(a, b)[0].sum()))(
        grid(L), grid(L)
    ),
    "from outside": lambda L, F, f: around(L, lambda a, w: f[0].apply(a * w)),
    "from outside of its own vmap": lambda L, F, f: around(L, f[1].apply),
}


def applied(lib, forward, jvp=None, value=None, **more):
    """A Function of the older style in forward mode: its tangent."""
    own = {"forward": staticmethod(forward)} | ({"jvp": staticmethod(jvp)} if jvp else {})
    function = type("Own", (lib.autograd.Function,), own | more)
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        return fw.unpack_dual(
            function.apply(fw.make_dual(x3(lib), x3(lib)), *([] if value is None else [value]))
        )[1]


def with_rule(lib, rule, **more):
    """A Function under `vmap`, with a rule of its own."""
    own = dict(forward=staticmethod(lambda x: x * 2), setup_context=staticmethod(lambda ctx, i, o: None))
    function = type("Own", (lib.autograd.Function,), own | {"vmap": staticmethod(rule)} | more)
    return lib.vmap(function.apply, in_dims=1)(grid(lib))


def written_view(lib, several):
    """A view that a Function writes: what the graph of its base says."""

    def forward(ctx, x):
        ctx.mark_dirty(x.mul_(2))
        return (x, x.sum()) if several else x

    own = dict(forward=staticmethod(forward), backward=staticmethod(lambda ctx, grad, *_: grad * 3))
    function = type("Own", (lib.autograd.Function,), own)
    leaf = x3(lib).requires_grad_()
    whole = leaf * 1
    part = whole[1:]
    function.apply(part)
    whole.sum().backward()
    return whole, leaf.grad


CALLS |= {
    "a number among the arguments": lambda L, F, f: applied(
        L, lambda ctx, x, k: x * k, lambda ctx, a, _: a * 3, 3.0
    ),
    "too many tangents": lambda L, F, f: applied(L, lambda ctx, x: x * 2, lambda ctx, a: (a, a)),
    "a tangent of another size": lambda L, F, f: applied(L, lambda ctx, x: x * 2, lambda ctx, a: a[:1]),
    "a view": lambda L, F, f: applied(L, lambda ctx, x: x.view(3, 1), lambda ctx, a: a.view(3, 1)),
    "results elsewhere": lambda L, F, f: with_rule(L, lambda info, dims, x: ((x * 2).movedim(dims[0], 1), 1)),
    "two rules": lambda L, F, f: with_rule(L, lambda info, dims, x: (x, 0), generate_vmap_rule=True),
    "a written view": lambda L, F, f: written_view(L, False),
    "a written view among several": lambda L, F, f: written_view(L, True),
}


def told(lib, name):
    def flat(value):
        if isinstance(value, (tuple, list)):
            return [leaf for v in value for leaf in flat(v)]
        return [np.round(value.detach().numpy().astype(float), 3).tolist()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return flat(CALLS[name](lib, lib.func, functions(lib)))
        except (RuntimeError, NotImplementedError) as error:
            return type(error), str(error)


@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(torch, name):
    assert told(xtensor, name) == told(torch, name)


def test_an_operator_of_a_library_has_its_rule_for_batches():
    seen = []

    @xtensor.library.custom_op("tests_func::product", mutates_args=())
    def product(x: xtensor.Tensor, y: xtensor.Tensor, times: float) -> xtensor.Tensor:
        return xtensor.tensor(x.detach().numpy() * y.detach().numpy() * times)

    def set_up(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y * 2, grad * x * 2, None

    product.register_autograd(backward, setup_context=set_up)

    @product.register_vmap
    def _(info, in_dims, x, y, times):
        seen.append((info.batch_size, in_dims))
        return product(x, y, times), 0

    w = x3(xtensor).requires_grad_()
    found = xtensor.vmap(lambda a: product(a, w, 2.0))(grid(xtensor))
    assert found.tolist() == [[2.0, 8.0, 18.0], [8.0, -20.0, 36.0]]
    assert seen == [(2, (0, None, None))]
    found.sum().backward()
    assert w.grad.tolist() == [10.0, -6.0, 18.0]


def test_draws_have_no_tangent() -> None:
    """As they have no gradient: `torch.normal` is no `rsample`."""
    forward = xtensor.autograd.forward_ad
    with forward.dual_level():
        x = forward.make_dual(xtensor.ones(3), xtensor.ones(3))
        for made in (xtensor.normal(x, x), xtensor.normal(x, 1.0), xtensor.normal(0.0, x)):
            tangent = forward.unpack_dual(made).tangent
            assert tangent is None or not tangent.any()
