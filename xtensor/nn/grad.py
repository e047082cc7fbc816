"""Gradients of convolutions with respect to input and weight, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..engine import enable_grad, is_grad_enabled
from ..operators.attach import named
from ..tensor import Tensor
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def pulled_back(
    function: Callable[[Tensor], Tensor], size: Sequence[int], like: Tensor, seed: Tensor
) -> Tensor:
    """The gradient of a linear function of a tensor of this size, at any value."""
    graph = is_grad_enabled() and (like.requires_grad or seed.requires_grad)
    with enable_grad():
        place = like.detach().new_zeros(tuple(size))._ask_grad(True)
        (found,) = grad(function(place), place, seed, create_graph=graph)
    assert found is not None
    return found


def by_input(n: int, convolution: Callable[..., Tensor]):
    """The function `conv<n>d_input`."""

    def made(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        def run(x: Tensor) -> Tensor:
            return convolution(x, weight, None, stride, padding, dilation, groups)

        return pulled_back(run, input_size, weight, grad_output)

    return named(made, f"conv{n}d_input", f"The gradient of `conv{n}d` for an input of this size.")


def by_weight(n: int, convolution: Callable[..., Tensor]):
    """The function `conv<n>d_weight`."""

    def made(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        def run(w: Tensor) -> Tensor:
            return convolution(input, w, None, stride, padding, dilation, groups)

        return pulled_back(run, weight_size, input, grad_output)

    return named(made, f"conv{n}d_weight", f"The gradient of `conv{n}d` for a weight of this size.")


conv1d_input, conv1d_weight = by_input(1, F.conv1d), by_weight(1, F.conv1d)
conv2d_input, conv2d_weight = by_input(2, F.conv2d), by_weight(2, F.conv2d)
conv3d_input, conv3d_weight = by_input(3, F.conv3d), by_weight(3, F.conv3d)
