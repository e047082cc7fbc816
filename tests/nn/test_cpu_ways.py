"""Ways of the CPU that small samples do not reach: long rows of softmax, and first layers with a stride."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import xtensor
from xtensor.ops.network.convolution_cpu import by_phases, has_phases
from xtensor.ops.pointwise.activations import LONG_ROW

F = xtensor.nn.functional


@pytest.mark.parametrize(
    ("sizes", "kernel", "padding"),
    [
        ((13, 16), (7, 7), ((3, 3), (3, 3))),
        ((12, 9), (7, 7), ((3, 3), (2, 2))),
        ((16, 16), (4, 4), ((1, 1), (1, 1))),
        ((8, 8), (8, 6), ((0, 0), (0, 0))),
        ((9, 10), (7, 8), ((5, 5), (5, 5))),
        ((8, 8), (4, 4), ((0, 1), (2, 0))),
        ((7, 7), (7, 7), ((0, 0), (0, 0))),
    ],
)
def test_a_strided_convolution_by_phases_is_the_plain_one(sizes: Any, kernel: Any, padding: Any) -> None:
    random = np.random.default_rng(0)
    # Whole numbers: exact, in whatever order they are added up.
    x = jnp.asarray(random.integers(-8, 8, (2, 3, *sizes)).astype(np.float32))
    weight = jnp.asarray(random.integers(-8, 8, (5, 3, *kernel)).astype(np.float32))
    plain = lax.conv_general_dilated(x, weight, (2, 2), padding)
    np.testing.assert_array_equal(by_phases(x, weight, (2, 2), padding), plain)


def test_which_convolutions_go_by_phases() -> None:
    def takes(
        channels: int = 3, kernel: Any = (7, 7), stride: Any = (2, 2), dilation: Any = (1, 1), groups: int = 1
    ) -> bool:
        return has_phases((64, 64), (8, channels, *kernel), stride, dilation, groups)

    assert takes()
    assert takes(channels=1, kernel=(4, 4))
    assert not takes(channels=8)
    assert not takes(kernel=(5, 5))  # 36 places for 25
    assert not takes(stride=(1, 1))
    assert not takes(stride=(4, 4), kernel=(8, 8))
    assert not takes(dilation=(2, 2))
    assert not takes(groups=3)


def test_a_first_layers_derivatives() -> None:
    random = np.random.default_rng(1)
    x = xtensor.tensor(random.normal(size=(1, 2, 6, 7)), requires_grad=True)
    weight = xtensor.tensor(random.normal(size=(2, 2, 4, 4)), requires_grad=True)

    def layer(x: Any, weight: Any) -> Any:
        return F.conv2d(x, weight, stride=2, padding=1)

    assert xtensor.autograd.gradcheck(layer, (x, weight), check_forward_ad=True)
    assert xtensor.autograd.gradgradcheck(layer, (x, weight))


@pytest.mark.parametrize("length", [LONG_ROW - 1, LONG_ROW, 3 * LONG_ROW])
def test_derivatives_of_softmax_of_long_rows(length: int) -> None:
    random = np.random.default_rng(2)
    x, grad, other = (random.normal(size=(2, length)) for _ in range(3))
    tensor = xtensor.tensor(x, requires_grad=True)
    y = tensor.softmax(1)
    given = xtensor.tensor(grad, requires_grad=True)
    (first,) = xtensor.autograd.grad(y, tensor, given, create_graph=True)
    soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(
        first.detach().numpy(), soft * (grad - (soft * grad).sum(1, keepdims=True)), atol=1e-12
    )
    (second,) = xtensor.autograd.grad(first, given, xtensor.tensor(other))
    np.testing.assert_allclose(
        second.numpy(), soft * (other - (soft * other).sum(1, keepdims=True)), atol=1e-12
    )


def test_softmax_of_long_rows_keeps_what_is_not_finite_in_its_row() -> None:
    x = xtensor.zeros(3, LONG_ROW, requires_grad=True)
    grad = xtensor.ones(3, LONG_ROW)
    grad[1, 5] = float("nan")
    x.softmax(1).backward(grad)
    assert x.grad is not None
    assert x.grad.isnan().all(1).tolist() == [False, True, False]
    assert x.grad[0].tolist() == [0.0] * LONG_ROW
