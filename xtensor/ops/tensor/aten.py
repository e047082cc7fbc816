"""PyTorch's kernels under the names that its dispatcher gives them, for programs written against `torch.ops.aten`.

Each is a few words over an operator of another family. `xtensor.ops.tensor.aten.name.default` is the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ... import dtypes
from ...operators.declare import composite, general
from ...operators.functions.overloads import of_tensors
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ..create.creation import empty_like
from ..index import embedding as rows
from ..index.bags import bags, check_lookups
from ..linalg.grouped_products import scaled_product
from ..network import normalization
from ..network.adaptive_pooling import adaptive_avg_pool2d, adaptive_avg_pool3d, maxima1d
from ..network.interpolation import SMOOTH
from ..network.normalization import native_batch_norm
from ..network.pooling import scatter_flat
from ..pointwise.activation_functions import log_softmax, softmax

__all__ = [
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "_batch_norm_with_update",
    "_log_softmax",
    "_log_softmax_backward_data",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "_safe_softmax",
    "_scaled_mm",
    "_scaled_mm_v2",
    "_softmax",
    "_softmax_backward_data",
    "_upsample_bilinear2d_aa",
    "adaptive_max_pool1d",
    "batch_norm",
    "embedding",
    "embedding_bag",
    "instance_norm",
    "max_pool2d_with_indices_backward",
    "native_dropout",
    "native_dropout_backward",
]


# ---- softmax -------------------------------------------------------------------------------------------------------


def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax`, of 16-bit floats in float32 if `half_to_float`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range;
    NotImplementedError for complex, bool and integer tensors.
    """
    return softmax(input, dim, dtype=dtypes.float32 if half_to_float else None)


def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`log_softmax`, of 16-bit floats in float32 if `half_to_float`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range;
    NotImplementedError for complex, bool and integer tensors.
    """
    return log_softmax(input, dim, dtype=dtypes.float32 if half_to_float else None)


@of_tensors()
def _safe_softmax(input: Tensor, dim: int, dtype: dtypes.dtype | None = None) -> Tensor:
    """`softmax`, zeros where every element along `dim` is minus infinity.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; NotImplementedError for
    complex, bool and integer tensors.
    """
    dead = (input == -float("inf")).all(dim, keepdim=True)
    return softmax(input.masked_fill(dead, 0), dim, dtype=dtype).masked_fill(dead, 0)


def of_type(grad: Tensor, input_dtype: dtypes.dtype) -> Tensor:
    """A gradient in the dtype of an input of 16 bits; wider ones never differ from their result's."""
    return grad.contiguous().to(input_dtype) if input_dtype.itemsize == 2 else grad.contiguous()


@composite(out=True)
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtypes.dtype
) -> Tensor:
    """The gradient of `softmax` from its result.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range; RuntimeError for bool tensors.
    """
    weighed = grad_output * output
    return of_type(weighed - output * weighed.sum(dim, keepdim=True), input_dtype)


@composite(out=True)
def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: dtypes.dtype
) -> Tensor:
    """The gradient of `log_softmax` from its result.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where `dim` is out
    of range; RuntimeError for bool tensors.
    """
    return of_type(grad_output - output.exp() * grad_output.sum(dim, keepdim=True), input_dtype)


# ---- dropout -------------------------------------------------------------------------------------------------------


@of_tensors()
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout` and the mask of what it kept.

    Raises: TypeError for arguments of other kinds.
    """
    if input.numel() == 0 or train is False or p == 0:
        return input.clone(), input.detach().new_ones(tuple(sizes_of(input)), dtype=dtypes.bool)
    kept = empty_like(input.detach(), dtype=dtypes.bool).bernoulli_(1 - p)
    return input * kept * (0.0 if p == 1 else 1.0 / (1.0 - p)), kept


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of `native_dropout`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    return grad_output * mask * scale


# ---- normalisation -------------------------------------------------------------------------------------------------


@composite(out=True)
def _native_batch_norm_legit(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    *options: Any,
    training: bool | None = None,
    momentum: float | None = None,
    eps: float | None = None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`; without running statistics `(training, momentum, eps)` follow the bias.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.
    """
    rest = list(options)
    if rest and isinstance(rest[0], Tensor):
        running_mean, running_var = rest.pop(0), rest.pop(0)
    named = {"training": training, "momentum": momentum, "eps": eps}
    named.update(zip(("training", "momentum", "eps"), rest, strict=False))
    if any(value is None for value in named.values()):
        raise TypeError("_native_batch_norm_legit() missing a required argument: training, momentum or eps")
    training = bool(named["training"]) or running_mean is None
    return native_batch_norm(
        input, weight, bias, running_mean, running_var, training, named["momentum"], named["eps"]
    )


@composite(out=True)
def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm` by the running statistics.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@composite(out=True)
def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`native_batch_norm` in training; the last result is what a device would keep for the backward pass: nothing.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    found = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*found, input.detach().new_empty((0,), dtype=dtypes.uint8))


@of_tensors()
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.batch_norm` with the arguments in the order of `torch.batch_norm`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@of_tensors()
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.instance_norm` with the arguments in the order of `torch.instance_norm`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    return normalization.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


# ---- lookups, pooling and images --------------------------------------------------------------------------------------------


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int | None = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """`nn.functional.embedding` with the table first, as `torch.embedding` has it; no padding where it is negative or None.

    Raises: TypeError for arguments of other kinds.
    """
    padding = None if padding_idx is None or padding_idx < 0 else padding_idx
    return rows.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


@of_tensors()
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, ...]:
    """`nn.functional.embedding_bag` with the table first and the mode (sum, mean, max) by number.

    The bag of every lookup, the sizes of the bags and the rows of maxima come with it.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex, bool and integer tensors.
    """
    check_lookups(indices, offsets, sizes_of(weight)[0], mode)
    return bags(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int]) -> tuple[Tensor, Tensor]:
    """The maxima of windows over the last dimension, and where they lie.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    return maxima1d(input, output_size)


def _adaptive_avg_pool2d(input: Tensor, output_size: Sequence[int]) -> Tensor:
    """`nn.functional.adaptive_avg_pool2d`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    return adaptive_avg_pool2d(input, output_size)


def _adaptive_avg_pool3d(input: Tensor, output_size: Sequence[int]) -> Tensor:
    """`nn.functional.adaptive_avg_pool3d`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    return adaptive_avg_pool3d(input, output_size)


def _pooled_grad(grad: Array, indices: Array) -> Array:
    places = indices.reshape((*indices.shape[:-2], -1))
    flat = grad.reshape((*grad.shape[:-2], -1))
    return jnp.take_along_axis(flat, places, axis=-1).reshape(indices.shape)


@general(name="max_pool2d_scatter", derivatives=dict(grad_output=_pooled_grad))
def max_pool2d_scatter(grad_output: Array, indices: Array, sizes: Sequence[int]) -> Array:
    """Gradients added at the flat indices of maxima in images of `sizes`."""
    return scatter_flat(grad_output, indices, sizes, 2)


def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of `max_pool2d` from the indices of its maxima.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool tensors.
    """
    return max_pool2d_scatter(grad_output, indices, tuple(sizes_of(input)))


def _upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Sequence[int] | None,
    align_corners: bool,
    scales_h: float | Sequence[float] | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """Bilinear, antialiased `interpolate` to a size; a scale, where given, is what the sampling steps by.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    if output_size is None:
        return SMOOTH["bilinear"](input, None, align_corners, scales_h)
    return SMOOTH["bilinear"](input, output_size, align_corners, (scales_h, scales_w))


# ---- scaled products -----------------------------------------------------------------------------------------------


@of_tensors()
def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: dtypes.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of matrices of 8-bit floats with one scale each, or one for every row.

    Raises: TypeError for arguments of other kinds; ValueError for complex, bool and integer tensors; ValueError where
    sizes do not fit.
    """
    recipes = [0 if scale.numel() == 1 else 1 for scale in (scale_a, scale_b)]
    return scaled_product(
        input, mat2, [scale_a], [scale_b], bias, recipes[:1], recipes[1:], out_dtype or input.dtype
    )


def _scaled_mm_v2(
    input: Tensor,
    mat2: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: Tensor | None,
    out_dtype: dtypes.dtype | None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """`nn.functional.scaled_mm` with its recipes by number."""
    if any((*swizzle_a, *swizzle_b)):
        raise NotImplementedError("scaled_mm: swizzled scales are not supported")
    return scaled_product(
        input, mat2, list(scale_a), list(scale_b), bias, recipe_a, recipe_b, out_dtype or dtypes.bfloat16
    )


def named_default(*functions: Any) -> None:
    """Give each function its overload's name."""
    for function in functions:
        function.default = function


named_default(
    _adaptive_avg_pool2d,
    _adaptive_avg_pool3d,
    _batch_norm_with_update,
    _log_softmax,
    _log_softmax_backward_data,
    _native_batch_norm_legit,
    _native_batch_norm_legit_no_training,
    _safe_softmax,
    _scaled_mm,
    _scaled_mm_v2,
    _softmax,
    _softmax_backward_data,
    _upsample_bilinear2d_aa,
    max_pool2d_with_indices_backward,
    native_dropout,
    native_dropout_backward,
)
