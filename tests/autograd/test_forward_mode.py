"""Tangents through views, writes and backward passes as PyTorch's; and what `gradcheck` and Jacobians do with forward mode."""

import warnings

import numpy as np
import pytest

import xtensor
from xtensor.autograd import gradcheck, gradgradcheck
from xtensor.autograd.functional import hessian, jacobian

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, on its way there


def x3(lib):
    return lib.tensor([1.0, -2.0, 3.0])


def parts(lib, call):
    """Value and tangent of what `call` makes of a dual tensor, inside of a level."""
    fw = lib.autograd.forward_ad
    with fw.dual_level():
        found = call(fw.make_dual(x3(lib), lib.tensor([1.0, 2.0, 3.0])))
        return [None if t is None else t.detach().tolist() for t in fw.unpack_dual(found)]


def written(lib, d):
    y = d.clone()
    y.mul_(3)
    y[1:].mul_(y[0])
    return y


def filled(lib, d):
    z = lib.zeros(3)
    z[0] = d[2]
    z[1:].copy_(d[:2] ** 2)
    return z


def gradient(lib, d):
    """Forward over reverse, of a parameter that has no tangent."""
    w = lib.tensor([2.0, 0.5, 1.0], requires_grad=True)
    return lib.autograd.grad(((w * d) ** 3).sum(), w, create_graph=True)[0]


def without_grad(lib, d):
    with lib.no_grad():
        return d * 2


def switched_off(lib, d):
    with lib.autograd.forward_ad._set_fwd_grad_enabled(False):
        return d * 2


CALLS = {
    "a view": lambda L, d: d[1:].view(2, 1).t(),
    "a kink": lambda L, d: (d * 0).abs() + d.clamp(min=1.0) + L.relu(d - d),
    "writes": written,
    "written to what has none": filled,
    "zeroed": lambda L, d: d.clone().zero_() + d,
    "detached": lambda L, d: d.detach(),
    "data": lambda L, d: d.data,
    "integers": lambda L, d: d.long(),
    "no grad mode": without_grad,
    "switched off": switched_off,
    "a gradient": gradient,
    "several results": lambda L, d: L.linalg.svd(L.diag(d))[1],
    "sorted": lambda L, d: L.sort(d)[0].cumsum(0),
    "as text": lambda L, d: d,
}


@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(torch, name):
    ours, theirs = (parts(lib, lambda d, lib=lib: CALLS[name](lib, d)) for lib in (xtensor, torch))
    assert (ours[1] is None) == (theirs[1] is None)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    if theirs[1] is not None:
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)


def test_reverse_over_forward(torch):
    def found(lib):
        fw = lib.autograd.forward_ad
        w = x3(lib).requires_grad_()
        with fw.dual_level():
            _, along = fw.unpack_dual((fw.make_dual(w, lib.ones(3)) ** 3).sum())
        (first,) = lib.autograd.grad(along, w, create_graph=True)
        return first.tolist(), lib.autograd.grad(first.sum(), w)[0].tolist()

    assert found(xtensor) == found(torch)


def test_what_forward_mode_says(torch):
    def messages(lib):
        fw = lib.autograd.forward_ad
        told = []
        with fw.dual_level():
            d = fw.make_dual(x3(lib), lib.ones(3))
            told.append(repr(d))
            for call in (
                lambda: fw.make_dual(d, lib.ones(3)),
                lambda: fw.make_dual(lib.ones(3), d),
                lambda: fw.make_dual(lib.ones(3), lib.ones(2)),
                lambda: lib.add(d, d, out=lib.zeros(3)),
                lambda: fw.enter_dual_level(),
                lambda: fw.exit_dual_level(level=3),
            ):
                with pytest.raises((RuntimeError, NotImplementedError)) as caught:
                    call()
                told.append(str(caught.value))
        told.append(repr(d * 2))
        return told

    assert messages(xtensor) == messages(torch)


class Wrong(xtensor.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

    @staticmethod
    def jvp(ctx, along):
        return along * 3


def test_gradcheck_forwards_and_in_batches():
    x = xtensor.tensor([0.5, -1.0], dtype=xtensor.float64, requires_grad=True)
    w = xtensor.tensor([[1.0, 2.0], [4.0, 5.0]], dtype=xtensor.float64, requires_grad=True)
    every = dict(check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradcheck(lambda x, w: (w @ x.sin()).exp() * x.sum(), (x, w), **every)
    assert gradgradcheck(lambda x: x.sin() * x, (x,), check_fwd_over_rev=True, check_batched_grad=True)
    z = xtensor.tensor([0.5 + 1j], dtype=xtensor.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z.conj() + z.exp(), (z,), check_forward_ad=True)
    assert gradcheck(Wrong.apply, (x,))
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0"):
        gradcheck(Wrong.apply, (x,), check_forward_ad=True)


@pytest.mark.parametrize(
    "options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}], ids=str
)
def test_jacobians_by_rows_and_by_columns(torch, options):
    def found(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f = lambda a, b: ((a**3).sum() * b, a * 2)
            table = jacobian_of(lib)(f, (x3(lib), lib.ones(2)), **options)
            again = {k.replace("strategy", "outer_jacobian_strategy"): v for k, v in options.items()}
            second = lib.autograd.functional.hessian(lambda a: (a**3).sum() * a[0], x3(lib), **again)
        return [t.tolist() for row in table for t in row], second.tolist()

    assert found(xtensor) == found(torch)


def jacobian_of(lib):
    return lib.autograd.functional.jacobian


def test_what_jacobians_refuse(torch):
    for f, options in (
        (jacobian, dict(strategy="forward-mode")),
        (jacobian, dict(strategy="forward-mode", create_graph=True)),
        (jacobian, dict(strategy="forward-mode", strict=True)),
        (jacobian, dict(vectorize=True, strict=True)),
        (hessian, dict(outer_jacobian_strategy="forward-mode")),
    ):
        told = []
        for lib, call in (
            (xtensor, f),
            (torch, getattr(torch.autograd.functional, f.__name__)),
        ):
            with pytest.raises((RuntimeError, NotImplementedError)) as caught:
                call(lambda a: (a**2).sum(), lib.ones(2), **options)
            told.append((caught.type, str(caught.value).replace("isonly", "is only")))
        assert told[0] == told[1]
