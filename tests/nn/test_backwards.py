"""The derivatives that `torch.ops.aten` has as operators, against PyTorch's, and differentiated themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor

Make = Callable[..., Any]
MASK = [True, True, True]


def statistics(x: Any) -> Any:
    return (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()


KERNELS: dict[str, Callable[[Any, Make], Any]] = {
    "threshold": lambda t, m: t.threshold_backward(m(3, 5), m(3, 5), 0.1),
    "sigmoid": lambda t, m: t.sigmoid_backward(m(3, 5), m(3, 5)),
    "tanh": lambda t, m: t.tanh_backward(m(3, 5), m(3, 5)),
    "elu": lambda t, m: t.elu_backward(m(3, 5), 1.5, 2.0, 0.5, False, m(3, 5)),
    "elu of results": lambda t, m: t.elu_backward(m(3, 5), 1.5, 2.0, 0.5, True, m(3, 5)),
    "leaky_relu": lambda t, m: t.leaky_relu_backward(m(3, 5), m(3, 5), 0.2, False),
    "gelu": lambda t, m: t.gelu_backward(m(3, 5), m(3, 5)),
    "gelu by tanh": lambda t, m: t.gelu_backward(m(3, 5), m(3, 5), approximate="tanh"),
    "hardtanh": lambda t, m: t.hardtanh_backward(m(3, 5), m(3, 5), -0.5, 0.5),
    "softplus": lambda t, m: t.softplus_backward(m(3, 5), m(3, 5), 2.0, 1.0),
    "log_sigmoid": lambda t, m: t.log_sigmoid_backward(m(3, 5), x := m(3, 5), (-x.abs()).exp()),
    "glu": lambda t, m: t.glu_backward(m(3, 2), m(3, 4), 1),
    "silu": lambda t, m: t.silu_backward(m(3, 5), m(3, 5)),
    "mish": lambda t, m: t.mish_backward(m(3, 5), m(3, 5)),
    "hardswish": lambda t, m: t.hardswish_backward(m(3, 5), m(3, 5)),
    "hardsigmoid": lambda t, m: t.hardsigmoid_backward(m(3, 5), m(3, 5)),
    "mse_loss": lambda t, m: t.mse_loss_backward(m(), m(3, 5), m(3, 5), 1),
    "smooth_l1_loss": lambda t, m: t.smooth_l1_loss_backward(m(), m(3, 5), m(3, 5), 2, 0.5),
    "nll_loss": lambda t, m: t.nll_loss_backward(
        m(), x := m(3, 5), i := m(3, n=5), w := m(5).abs(), 1, 1, t.nll_loss_forward(x, i, w, 1, 1)[1]
    ),
    "nll_loss forward": lambda t, m: t.nll_loss_forward(m(3, 5), m(3, n=5), m(5).abs(), 1, 1),
    "nll_loss unweighed": lambda t, m: t.nll_loss_forward(m(3, 5), m(3, n=5), None, 2, 1),
    "layer_norm": lambda t, m: t.native_layer_norm_backward(
        m(3, 5), x := m(3, 5), [5], x.mean(-1, keepdim=True), statistics(x), m(5), m(5), MASK
    ),
    "group_norm": lambda t, m: t.native_group_norm(m(2, 4, 3), m(4), m(4), 2, 4, 3, 2, 1e-5),
    "embedding": lambda t, m: t.embedding_dense_backward(m(4, 3), m(4, n=6), 6, 2, True),
    "select": lambda t, m: t.select_backward(m(3, 5), [3, 4, 5], 1, 2),
    "slice": lambda t, m: t.slice_backward(m(3, 2), [3, 5], 1, 1, 5, 2),
    "avg_pool2d": lambda t, m: t.avg_pool2d_backward(
        m(1, 2, 2, 2), m(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], False, True, None
    ),
    "upsample": lambda t, m: t.upsample_nearest2d_backward(m(1, 2, 4, 4), [4, 4], [1, 2, 2, 2]),
    "conv2d": lambda t, m: t.convolution_backward(
        m(2, 4, 3, 3), m(2, 3, 5, 5), m(4, 3, 3, 3), [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, MASK
    ),
    "conv1d in groups": lambda t, m: t.convolution_backward(
        m(2, 4, 5), m(2, 4, 5), m(4, 1, 3), [4], [1], [1], [1], False, [0], 4, [True, False, True]
    ),
    "conv_transpose2d": lambda t, m: t.convolution_backward(
        m(1, 3, 6, 6),
        m(1, 4, 3, 3),
        m(4, 3, 3, 3),
        None,
        [2, 2],
        [1, 1],
        [1, 1],
        True,
        [1, 1],
        1,
        [False, True, False],
    ),
}


def maker(t: Any, grad: bool) -> Make:
    rng = np.random.default_rng(7)

    def make(*shape: int, n: int = 0) -> Any:
        if n:
            return t.tensor(rng.integers(0, n, shape))
        made = t.tensor(rng.standard_normal(shape))
        return made.requires_grad_() if grad else made

    return make


def told(made: Any) -> list[Any]:
    found = made if isinstance(made, tuple) else (made,)
    return [None if f is None else (tuple(f.shape), f.detach().numpy()) for f in found]


@pytest.mark.parametrize("name", KERNELS)
def test_as_in_pytorch(torch: Any, name: str) -> None:
    ours = told(KERNELS[name](xtensor.ops.aten, maker(xtensor, False)))
    theirs = told(KERNELS[name](torch.ops.aten, maker(torch, False)))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert a[0] == b[0]
            np.testing.assert_allclose(a[1], b[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "sigmoid", "conv2d", "layer_norm", "mse_loss"])
def test_they_are_differentiated_themselves(name: str) -> None:
    made = KERNELS[name](xtensor.ops.aten, maker(xtensor, True))
    found = made if isinstance(made, tuple) else (made,)
    assert all(f.requires_grad for f in found)
    assert not any(f.requires_grad for f in told_without(name))


def told_without(name: str) -> tuple[Any, ...]:
    with xtensor.no_grad():
        made = KERNELS[name](xtensor.ops.aten, maker(xtensor, True))
    return made if isinstance(made, tuple) else (made,)


def test_a_function_of_ones_own_calls_them() -> None:
    class Convolved(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return xtensor.nn.functional.conv2d(x, w)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            x, w = ctx.saved_tensors
            one, zero = [1, 1], [0, 0]
            found = xtensor.ops.aten.convolution_backward(
                grads[0], x, w, None, one, zero, one, False, zero, 1, [True, True, False]
            )
            return found[0], found[1]

    make = maker(xtensor, True)
    assert xtensor.autograd.gradcheck(Convolved.apply, (make(1, 2, 4, 4), make(3, 2, 3, 3)))
