"""Norms of vectors: `linalg.vector_norm`, `norm`, `dist` and `renorm`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import attach_methods
from ...operators.declare import general, reduction
from ...operators.promotion import promote
from ...operators.schema import Array, Number
from ...tensor import Tensor
from ..linalg.decompositions import given, svdvals
from .extreme_folds import extreme_fold
from .reductions import axes_of, computed, is_complex, size_along, spread

__all__ = ["dist", "norm", "renorm", "vector_norm"]

INF = float("inf")


# ---- the p-norm of an array ----------------------------------------------------------------------------------------


def p_norm(x: Any, p: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The p-norm over `axes` in the real type of `x`; NaN propagates."""
    size = x * x if p == 2 and not is_complex(x) else jnp.abs(x)
    if p == 0:
        return jnp.sum((x != 0).astype(size.dtype), axis=axes, keepdims=keepdim)
    if p == 1:
        return jnp.sum(size, axis=axes, keepdims=keepdim)
    if p == 2:
        return jnp.sqrt(jnp.sum(size if not is_complex(x) else size * size, axis=axes, keepdims=keepdim))
    if math.isinf(p):
        if not axes:
            return size
        return extreme_fold(size, axes, keepdim, p > 0)
    power = np.asarray(p, size.dtype)
    return jnp.sum(size**power, axis=axes, keepdims=keepdim) ** np.asarray(1 / p, size.dtype)


def direction(x: Any) -> Any:
    """`x / |x|`, zero where x is."""
    if not is_complex(x):
        return jnp.sign(x)
    size = jnp.abs(x)
    zero = size == 0
    return jnp.where(zero, jnp.zeros_like(x), x / jnp.where(zero, jnp.ones_like(size), size))


def norm_grad(grad: Any, x: Any, result: Any, p: float, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The gradient of the p-norm: zero where the norm is zero, shared among the largest for the infinite norm; none of p = 0."""
    if p == 0:
        return None
    g = spread(grad, x.shape, axes, keepdim)
    total = spread(result, x.shape, axes, keepdim)
    if p == 1:
        return direction(x) * g
    zero = total == 0
    safe = jnp.where(zero, jnp.ones_like(total), total)
    if p == 2:
        return jnp.where(zero, jnp.zeros_like(x), x * (g / safe))
    size = jnp.abs(x)
    if math.isinf(p):
        hit = (size == total) | (jnp.isnan(size) & jnp.isnan(total))
        count = jnp.sum(hit, axis=axes, keepdims=True).astype(size.dtype) if axes else np.ones((), size.dtype)
        return direction(x) * jnp.where(hit, g / count, jnp.zeros_like(g))
    nonzero = jnp.where(size == 0, jnp.ones_like(size), size)
    if p < 1:
        scaled = direction(x) * jnp.where(
            size == 0, jnp.zeros_like(size), nonzero ** np.asarray(p - 1, size.dtype)
        )
        return scaled * g * total ** np.asarray(1 - p, size.dtype)
    share = jnp.where(zero, jnp.zeros_like(g), g / safe ** np.asarray(p - 1, size.dtype))
    if p < 2:
        scaled = direction(x) * jnp.where(
            size == 0, jnp.zeros_like(size), nonzero ** np.asarray(p - 1, size.dtype)
        )
    else:
        scaled = x * jnp.where(size == 0, jnp.zeros_like(size), nonzero ** np.asarray(p - 2, size.dtype))
    return scaled * share


def _vector_norm_grad(
    grad: Array, input: Array, result: Array, ord: float, dim: Any, keepdim: bool, dtype: Any
) -> Array:
    axes = axes_of(dim, input.ndim)
    x = computed(input, dtype or dtype_of(input))
    wide = jnp.real(x).dtype
    total = p_norm(x, ord, axes, keepdim) if result.dtype != wide else result
    return norm_grad(grad.astype(wide), x, total, ord, axes, keepdim)


def refuse_complex_order(name: str, ord: Any) -> None:
    """RuntimeError for the order of a norm that is complex."""
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")


@reduction(
    autocast=dict(accelerator="float32"),
    out="exact",
    name="linalg_vector_norm",
    node="LinalgVectorNorm",
    method=False,
    derivatives=dict(input=_vector_norm_grad),
)
def vector_norm(
    input: Array,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
) -> Array:
    """The `ord`-norm of the elements over `dim` (all by default), as vectors.

    Shape: `input` `(*)`, result without the dimensions `dim`, or with size 1 there if `keepdim`.
    Differs from PyTorch: where the norm is 0, or an element of it for `ord` below 1, the second derivative is 0, not NaN.

    >>> xtensor.linalg.vector_norm(xtensor.tensor([3.0, 4.0]))
    tensor(5.)
    """
    own = dtype_of(input)
    checks.check_floating("linalg.vector_norm", own)
    refuse_complex_order("linalg.vector_norm", ord)
    if isinstance(ord, (str, tuple)):
        raise checks.argument_error("linalg_vector_norm", "ord", 2, "Number", ord)
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be floating point or complex, but got {dtype.scalar_name}"
            )
        if dtype.is_complex != own.is_complex:
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {'complex' if own.is_complex else 'real'} for "
                f"{'complex' if own.is_complex else 'real'} inputs. Got {dtype.scalar_name}"
            )
        if dtypes.promote_types(own, dtype) is not dtype:
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({own.scalar_name}) should be convertible without narrowing "
                f"to the specified dtype ({dtype.scalar_name})"
            )
    target = dtype or own
    axes = axes_of(dim, input.ndim, "linalg_vector_norm")
    x = computed(input, target)
    if size_along(x.shape, axes) == 0 and axes and (ord < 0 or ord == INF):
        what = "inf" if ord == INF else f"{ord:g}"
        if dim is None or dim == ():
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {what} norm on an empty tensor because the operation does not "
                "have an identity"
            )
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {what} norm on the dimension {axes[0]} because this dimension is "
            "empty and the operation does not have an identity"
        )
    return p_norm(x, float(ord), axes, keepdim).astype(target.to_real().numpy)


# ---- norm ----------------------------------------------------------------------------------------------------------


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
) -> Tensor:
    """The p-norm over `dim`, or the Frobenius (`fro`) or nuclear (`nuc`) norm of matrices.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: IndexError where `dim` is out of range; RuntimeError for bool and integer tensors.

    >>> xtensor.tensor([[3.0, 4.0], [6.0, 8.0]]).norm(dim=1)
    tensor([ 5., 10.])
    """
    own = input.dtype
    if not (own.is_floating_point or own.is_complex):
        checks.check_floating("linalg.vector_norm", own)
    if p == "nuc":
        dims = dim
        if dims is not None and (isinstance(dims, int) or len(dims) != 2):
            raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple")
        a, b = (checks.wrap_dim(d, input.dim()) for d in ((-2, -1) if dims is None else dims))
        made = svdvals(input.movedim((a, b), (-2, -1))).sum(-1)
        if keepdim:
            for d in sorted((a, b)):
                made = made.unsqueeze(d)
        return given(made, out)
    if p == "fro" or p is None:
        p = 2.0
    elif isinstance(p, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


def _norm_method(
    self: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: dtypes.dtype | None = None,
) -> Tensor:
    """The p-norm over `dim`; see `norm`.

    Shape: `(*)`, result without the dimensions `dim`, or with size 1 there if `keepdim`; `()` without `dim`.

    Raises: IndexError for fewer dimensions than `dim` names.
    """
    return norm(self, p, dim, keepdim, dtype=dtype)


# ---- distance between tensors, renormalisation ---------------------------------------------------------------------


def _dist_grad(grad: Array, input: Array, other: Array, result: Array, p: float) -> Array:
    a, b = promote(input, other)
    difference = a - b
    return norm_grad(grad, difference, result, float(p), tuple(range(difference.ndim)), False)


def _dist_other_grad(grad: Array, input: Array, other: Array, result: Array, p: float) -> Any:
    found = _dist_grad(grad, input, other, result, p)
    return None if found is None else -found


@general(
    autocast=dict(accelerator="float32"),
    method=True,
    out=True,
    derivatives=dict(
        input=_dist_grad,
        other=_dist_other_grad,
    ),
)
def dist(input: Array, other: Array, p: float = 2) -> Array:
    """The p-norm of the difference of two tensors.

    Shape: `input` and `other` broadcast; result `()`.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    a, b = promote(input, other)
    own = dtype_of(a)
    if not (own.is_floating_point or own.is_complex):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {own.scalar_name} instead."
        )
    x = computed(a - b, own)
    return p_norm(x, float(p), tuple(range(x.ndim)), False).astype(own.to_real().numpy)


def _slice_norms(x: Any, p: float, axis: int) -> Any:
    others = tuple(d for d in range(x.ndim) if d != axis)
    return others, p_norm(x, p, others, True)


def _renorm_grad(grad: Array, input: Array, p: float, dim: int, maxnorm: Any) -> Array:
    axis = checks.wrap_dim(dim, input.ndim)
    x = computed(input, dtype_of(input))
    g = grad.astype(x.dtype)
    axes, size = _slice_norms(x, float(p), axis)
    along = jnp.sum(jnp.real(jnp.conj(x) * g), axis=axes, keepdims=True)
    through = norm_grad(along, x, size, float(p), axes, True)
    safe = size + np.asarray(1e-7, size.dtype)
    limit = jnp.asarray(maxnorm).astype(size.dtype)
    clipped = limit / safe * (g - through / safe)
    return jnp.where(size > limit, clipped, g)


@general(
    autocast=dict(accelerator="float32"),
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(input=_renorm_grad),
)
def renorm(input: Array, p: float, dim: int, maxnorm: Number) -> Array:
    """The tensor with every slice along `dim` whose p-norm exceeds `maxnorm` scaled down to it.

    Shape: `input` `(*)`, result `(*)`.
    """
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if input.ndim <= 1:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    axis = checks.wrap_dim(dim, input.ndim)
    x = computed(input, dtype_of(input))
    _, size = _slice_norms(x, float(p), axis)
    limit = jnp.asarray(maxnorm).astype(size.dtype)
    factor = jnp.where(size > limit, limit / (size + np.asarray(1e-7, size.dtype)), jnp.ones_like(size))
    return (x * factor).astype(input.dtype)


attach_methods(norm=_norm_method)
