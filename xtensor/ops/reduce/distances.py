"""Distances and similarities between vectors, and the losses made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.autocast import cast_for
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL, sum_to
from ...operators.functions.overloads import of_tensors
from ...operators.promotion import common_dtype
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ..linalg.matmul import product
from ..network.losses import check_reduction, clamped, legacy, reduced
from ..pointwise.arithmetic import check_subtraction
from ..shape.joining import joined_shape
from .norms import norm_grad, p_norm

__all__ = [
    "cdist",
    "cosine_embedding_loss",
    "cosine_similarity",
    "pairwise_distance",
    "pdist",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def floats(*arrays: Any) -> list[Any]:
    """The arrays in their common dtype, short floats widened; an error for integers."""
    dtype = common_dtype(*arrays)
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {dtype.scalar_name}"
        )
    return [a.astype(dtypes.compute_type(dtype).numpy) for a in arrays]


def length(x: Any, axis: int) -> Any:
    """The Euclidean norm along `axis`, kept, whose derivative at zero is zero."""
    total = jnp.sum(x * x, axis=axis, keepdims=True)
    zero = total == 0
    return jnp.where(zero, jnp.zeros_like(total), jnp.sqrt(jnp.where(zero, jnp.ones_like(total), total)))


# ---- similarity ----------------------------------------------------------------------------------------------------


@general(autocast=dict(accelerator="float32"), derivatives=FROM_KERNEL)
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """The cosine of the angle between vectors along `dim`; norms count as at least `eps`.

    Shape: `x1` and `x2` broadcast together; result without `dim`.

    Raises: RuntimeError where sizes do not fit; RuntimeError for complex, bool and integer tensors.

    >>> F.cosine_similarity(xtensor.tensor([[1.0, 0.0]]), xtensor.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    joined_shape(x1.shape, x2.shape)
    result = common_dtype(x1, x2)
    a, b = jnp.broadcast_arrays(*floats(x1, x2))
    axis = checks.wrap_dim(dim, a.ndim)
    if a.ndim == 0:
        a, b = a.reshape(1), b.reshape(1)
    floor = np.asarray(eps, a.dtype)

    def unit(x: Any) -> Any:
        size = length(x, axis)
        # PyTorch clamps outside autograd: the gradient passes through.
        return x / (size + lax.stop_gradient(jnp.maximum(size, floor) - size))

    return jnp.sum(unit(a) * unit(b), axis=axis).astype(result.numpy)


def _pairwise_grad(grad: Any, x1: Any, x2: Any, p: float, eps: float, keepdim: bool, sign: int) -> Any:
    difference = x1 - x2 + np.asarray(eps, grad.dtype)
    axes = (difference.ndim - 1,)
    size = p_norm(difference, float(p), axes, True)
    g = grad if keepdim else jnp.expand_dims(grad, -1)
    found = norm_grad(g, difference, size, float(p), axes, True)
    return found if sign > 0 or found is None else -found


@general(
    derivatives=dict(
        x1=lambda grad, x1, x2, p, eps, keepdim: _pairwise_grad(grad, x1, x2, p, eps, keepdim, 1),
        x2=lambda grad, x1, x2, p, eps, keepdim: _pairwise_grad(grad, x1, x2, p, eps, keepdim, -1),
    ),
    copies=True,
)
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """The p-norm along the last dimension of `x1 - x2 + eps`.

    Shape: `x1` and `x2` broadcast to `(*, n)`; result `(*)`, or `(*, 1)` if `keepdim`.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool tensors.

    >>> F.pairwise_distance(xtensor.tensor([[0.0, 0.0]]), xtensor.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    joined_shape(x1.shape, x2.shape)
    result = common_dtype(x1, x2)
    check_subtraction(x1, x2)
    if result.is_floating_point or result.is_complex:
        wide = dtypes.compute_type(result)
        difference = x1.astype(wide.numpy) - x2.astype(wide.numpy)
    else:
        # Integers are subtracted as such, then become floats.
        difference = x1.astype(result.numpy) - x2.astype(result.numpy)
        result = dtypes.get_default_dtype()
        difference = difference.astype(result.numpy)
    difference = difference + np.asarray(eps, difference.dtype)
    return p_norm(difference, float(p), (difference.ndim - 1,), keepdim).astype(result.to_real().numpy)


# ---- all pairs -----------------------------------------------------------------------------------------------------


def _cdist_grad(grad: Any, x1: Any, x2: Any, result: Any, p: float, first: bool) -> Any:
    """The gradient of one side of `cdist`: that of the norm of every difference, summed over the other side's rows."""
    if p == 2:
        zero = result == 0
        share = jnp.where(zero, jnp.zeros_like(grad), grad / jnp.where(zero, jnp.ones_like(result), result))
        near, far = (x1, x2) if first else (x2, x1)
        share = share if first else jnp.swapaxes(share, -1, -2)
        found = near * jnp.sum(share, axis=-1)[..., None] - product(
            share, jnp.broadcast_to(far, (*share.shape[:-2], *far.shape[-2:]))
        )
        return sum_to(found, near.shape)
    if p == 0:
        return jnp.zeros_like(x1 if first else x2)
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    found = norm_grad(grad[..., None], difference, result[..., None], float(p), (difference.ndim - 1,), True)
    side = jnp.sum(found, axis=-2) if first else -jnp.sum(found, axis=-3)
    return sum_to(side, (x1 if first else x2).shape)


@general(
    autocast="float32",
    name="cdist",
    derivatives=dict(
        x1=lambda grad, x1, x2, result, p: _cdist_grad(grad, x1, x2, result, p, True),
        x2=lambda grad, x1, x2, result, p: _cdist_grad(grad, x1, x2, result, p, False),
    ),
)
def distances(x1: Array, x2: Array, p: float = 2.0, by_product: bool = False) -> Array:
    """The p-norm of the difference of every row of `x1` and every row of `x2`."""
    for name, x in (("X1", x1), ("X2", x2)):
        if not dtype_of(x).is_floating_point:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {dtype_of(x).scalar_name}"
            )
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    joined_shape(x1.shape[:-2], x2.shape[:-2])
    a, b = dtype_of(x1), dtype_of(x2)
    if a is not b:
        raise RuntimeError(f"expected scalar type {a.scalar_name} but found {b.scalar_name}")
    wide = dtypes.compute_type(a).numpy
    x, y = x1.astype(wide), x2.astype(wide)
    if by_product:
        squares = jnp.sum(x * x, -1)[..., :, None] + jnp.sum(y * y, -1)[..., None, :]
        inner = product(x, jnp.swapaxes(y, -1, -2))
        return jnp.sqrt(jnp.maximum(squares - 2 * inner, 0)).astype(x1.dtype)
    difference = x[..., :, None, :] - y[..., None, :, :]
    return p_norm(difference, float(p), (difference.ndim - 1,), False).astype(x1.dtype)


@of_tensors()
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norm distance between every pair of rows of two batches of matrices.

    Euclidean distances of more than 25 rows are computed through a matrix product, as the mode asks.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for complex,
    bool and integer tensors.

    >>> xtensor.cdist(xtensor.tensor([[0.0, 0.0]]), xtensor.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    many = x1.dim() > 1 and x2.dim() > 1 and (sizes_of(x1)[-2] > 25 or sizes_of(x2)[-2] > 25)
    by_product = p == 2 and (compute_mode == modes[1] or (compute_mode == modes[0] and many))
    return distances(x1, x2, float(p), by_product)


def _pairs(n: int) -> tuple[Any, Any]:
    rows, columns = np.triu_indices(n, 1)
    return rows.astype(np.int32), columns.astype(np.int32)


def _pdist_grad(grad: Array, input: Array, result: Array, p: float) -> Array:
    if p == 0:
        return jnp.zeros_like(input)
    i, j = _pairs(input.shape[0])
    difference = input[i] - input[j]
    found = norm_grad(grad[:, None], difference, result[:, None], float(p), (1,), True)
    return jnp.zeros_like(input).at[i].add(found).at[j].add(-found)


@general(autocast=dict(accelerator="float32"), derivatives=dict(input=_pdist_grad))
def pdist(input: Array, p: float = 2) -> Array:
    """The p-norm distance between every two rows of a matrix, in the order (0, 1), (0, 2), ...

    Shape: `input` `(n, m)`, result `(n * (n - 1) // 2)`.

    Raises: RuntimeError for complex, bool and integer tensors.
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not dtype_of(input).is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    i, j = _pairs(input.shape[0])
    return p_norm(input[i] - input[j], float(p), (1,), False)


# ---- losses --------------------------------------------------------------------------------------------------------


@general(autocast="float32", name="cosine_embedding_loss", derivatives=FROM_KERNEL)
def cosine_error(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, reduction: str = "mean"
) -> Array:
    """One minus the cosine for targets of 1, the cosine beyond the margin for targets of -1, reduced."""
    check_reduction(reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.ndim == 1 and not (input1.ndim == input2.ndim == 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    if target.ndim == 0 and not (input1.ndim == input2.ndim == 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    joined_shape(input1.shape, input2.shape)
    result = common_dtype(input1, input2)
    if result.is_floating_point or result.is_complex:
        a, b = floats(input1, input2)
        inner, first, second = (jnp.sum(x, axis=-1) for x in (a * b, a * a, b * b))
    else:
        # As in PyTorch: products wrap in their own type, sums are int64, and only the quotient is a float.
        result = dtypes.get_default_dtype()
        products = (input1 * input2, input1 * input1, input2 * input2)
        inner, first, second = (jnp.sum(x, axis=-1, dtype=np.int64).astype(result.numpy) for x in products)
    small = np.asarray(1e-12, inner.dtype)
    cosine = inner / jnp.sqrt((first + small) * (second + small))
    zero = jnp.zeros((), inner.dtype)
    values = jnp.where(target == 1, 1 - cosine, zero) + jnp.where(
        target == -1, clamped(cosine - margin), zero
    )
    return reduced(values.astype(result.numpy), reduction)


@of_tensors()
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Vectors turned towards each other for targets of 1 and apart, up to a margin of their cosine, for -1.

    Shape: `input1` and `input2` `(N, D)` or `(D)`, `target` `(N)` or `()`; result `()`, or that of `target`
    if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for complex
    tensors.
    """
    # The target only chooses: PyTorch gives it no gradient.
    return cosine_error(
        input1, input2, target.detach(), float(margin), legacy(size_average, reduce, reduction)
    )


@of_tensors()
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the anchor fails to be nearer, by a margin, to the positive than to the negative.

    Shape: all three `(N, D)` or `(D)`; result `()`, or `(N)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool
    tensors.

    Source: Balntas et al. 2016, British Machine Vision Conference.
    """
    anchor, positive, negative = cast_for(anchor, positive, negative, cpu="float32", accelerator="float32")
    reduction = legacy(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {ranks[0]}D, positive {ranks[1]}D, and negative {ranks[2]}D inputs"
        )
    return _triplet(
        anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap, reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own.

    Shape: all three `(N, D)` or `(D)`; result `()`, or `(N)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool
    tensors.

    Source: Balntas et al. 2016, British Machine Vision Conference.
    """
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplet(
        anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction
    )


def _triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    check_reduction(reduction)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    loss = (near - far + margin).clamp_min(0)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss
