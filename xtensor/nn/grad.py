"""Gradients of convolutions with respect to input and weight, as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..engine import enable_grad, is_grad_enabled
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


def of_input(
    convolution: Any, input_size: Sequence[int], weight: Tensor, seed: Tensor, options: Any
) -> Tensor:
    return pulled_back(lambda x: convolution(x, weight, None, *options), input_size, weight, seed)


def of_weight(
    convolution: Any, input: Tensor, weight_size: Sequence[int], seed: Tensor, options: Any
) -> Tensor:
    return pulled_back(lambda w: convolution(input, w, None, *options), weight_size, input, seed)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` for an input of this size."""
    return of_input(F.conv1d, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` for a weight of this size."""
    return of_weight(F.conv1d, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` for an input of this size."""
    return of_input(F.conv2d, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` for a weight of this size."""
    return of_weight(F.conv2d, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` for an input of this size."""
    return of_input(F.conv3d, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` for a weight of this size."""
    return of_weight(F.conv3d, input, weight_size, grad_output, (stride, padding, dilation, groups))
