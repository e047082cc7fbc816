"""Cumulative operators and differences along a dimension: running sums, products and extrema, `diff`, `trapezoid`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import attach_methods
from ...operators.declare import reduction
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import Unfit, numpy_names, of_tensors, overloads
from ...operators.promotion import promote
from ...operators.schema import Array
from ...operators.write import write_out
from ...tensor import Tensor, sizes_of
from ...xla.platforms import on_cpu
from ...xla.symbolic import is_open
from ..shape.joining import cat
from .reductions import computed, is_complex, is_float, total_dtype

__all__ = [
    "cross",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_trapezoid",
    "diff",
    "logcumsumexp",
    "trapezoid",
    "trapz",
]


def along(name: str, dim: Any, ndim: int) -> int:
    if dim is None:
        raise checks.missing_error(name, ["dim"])
    if not isinstance(dim, int):
        raise checks.argument_error(name, "dim", 2, "int", dim)
    return checks.wrap_dim(dim, ndim)


# ---- scans ---------------------------------------------------------------------------------------------------------


def scanned(op: Any, start: tuple[Any, ...], arrays: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """What `op` makes of all elements up to each along `axis`, of several arrays at once. op: associative, of two tuples of arrays; start:
    what leaves it as it is.
    """
    plain = lambda *arrays: lax.associative_scan(op, arrays, axis=axis)
    if any(map(is_open, arrays[0].shape)):
        return plain(*arrays)
    return on_cpu("scan", lambda *arrays: in_blocks(op, start, arrays, axis), plain, *arrays)


def in_blocks(op: Any, start: tuple[Any, ...], arrays: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    """`scanned`, one element after the other: blocks beside each other, and then their totals."""
    shape = arrays[0].shape
    n = shape[axis]
    length = 1 << max(2, round(math.log2(n) / 2))
    count = -(-n // length)
    lead, tail = shape[:axis], shape[axis + 1 :]

    def columns(array: Any, fill: Any) -> Any:
        missing = [(0, count * length - n if d == axis else 0, 0) for d in range(len(shape))]
        blocks = lax.pad(array, np.asarray(fill, array.dtype), missing).reshape(*lead, count, length, *tail)
        return jnp.moveaxis(blocks, axis + 1, 0)

    def inclusive(before: Any, here: Any) -> Any:
        made = op(before, here)
        return made, made

    def exclusive(before: Any, here: Any) -> Any:
        return op(before, here), before

    first = [jnp.full((*lead, count, *tail), fill, a.dtype) for a, fill in zip(arrays, start, strict=True)]
    totals, made = lax.scan(inclusive, tuple(first), tuple(map(columns, arrays, start)))
    if count > 1:
        ends = tuple([lax.index_in_dim(f, 0, axis, keepdims=False) for f in first])
        _, before = lax.scan(exclusive, ends, tuple([jnp.moveaxis(t, axis, 0) for t in totals]))
        made = op(tuple([jnp.moveaxis(b, 0, axis)[None] for b in before]), made)
    whole = [jnp.moveaxis(m, 0, axis + 1).reshape(*lead, count * length, *tail) for m in made]
    return tuple([lax.slice_in_dim(w, 0, n, axis=axis) for w in whole])


# ---- sums and products ---------------------------------------------------------------------------------------------


BLOCK = 16
"""Elements that one product adds up."""


def running_sum(x: Any, axis: int, reverse: bool = False) -> Any:
    """The sums of the elements up to each along `axis`, or from each on."""
    plain = lambda x: lax.cumsum(x, axis, reverse)
    if x.dtype not in (np.float32, np.float64) or not is_long(x.shape, axis):
        return plain(x)
    return on_cpu("cumsum", lambda x: _checked(x, axis, reverse), plain, x)


def is_long(shape: Sequence[Any], axis: int) -> bool:
    """Whether products are faster; of open sizes, where only the last dimension is."""
    if any(map(is_open, shape)):
        return axis == len(shape) - 1 and not (shape[-1] < 64 or math.prod(shape) < 2**14)
    return shape[axis] >= BLOCK and math.prod(shape) >= 2**12


def _checked(x: Any, axis: int, reverse: bool) -> Any:
    """`_by_products` where it holds: what is not finite, anywhere, leaves no total finite."""
    made = jnp.moveaxis(_by_products(jnp.moveaxis(x, axis, -1), reverse), -1, axis)
    totals = lax.index_in_dim(made, 0 if reverse else -1, axis, keepdims=False)
    finite = jnp.isfinite(jnp.sum(totals * np.zeros((), x.dtype)))
    return lax.cond(finite, lambda x, made: made, lambda x, made: lax.cumsum(x, axis, reverse), x, made)


def _by_products(x: Any, reverse: bool) -> Any:
    """Running sums along the last dimension as products of blocks with a triangle of ones, and of their totals likewise."""
    *lead, n = x.shape
    if not is_open(n) and n <= 4 * BLOCK:
        return _times_ones(x, reverse)
    count = -(-n // BLOCK)
    padded = lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * len(lead) + [(0, count * BLOCK - n, 0)])
    within = _times_ones(padded.reshape(-1, BLOCK), reverse).reshape(*lead, count, BLOCK)
    totals = within[..., 0 if reverse else -1]
    if count <= 4 * BLOCK:
        before = _times_ones(totals, reverse, strict=True)
    else:
        sums = _by_products(totals, reverse)
        zero = jnp.zeros((*lead, 1), x.dtype)
        before = jnp.concatenate([sums[..., 1:], zero] if reverse else [zero, sums[..., :-1]], axis=-1)
    return (within + before[..., None]).reshape(*lead, count * BLOCK)[..., :n]


def _times_ones(x: Any, reverse: bool, strict: bool = False) -> Any:
    n = x.shape[-1]
    upper = np.triu(np.ones((n, n), x.dtype), 1 if strict else 0)
    return jnp.matmul(x, upper.T if reverse else upper, precision=lax.Precision.HIGHEST)


def _cumsum_grad(grad: Array, dim: int) -> Array:
    return running_sum(grad, along("cumsum", dim, grad.ndim), reverse=True) if grad.ndim else grad


@reduction(
    autocast=dict(accelerator="float32"), inplace=True, out="adopt", derivatives=dict(input=_cumsum_grad)
)
def cumsum(input: Array, dim: int, *, dtype: dtypes.dtype | None = None) -> Array:
    """The running sum along `dim`; integers sum to int64.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.tensor([1, 2, 3]).cumsum(dim=0)
    tensor([1, 3, 6])
    """
    axis = along("cumsum", dim, input.ndim)
    target = total_dtype(input, dtype)
    if target is dtypes.bool:
        raise checks.not_implemented_for("cumsum_out_cpu", target)
    x = computed(input, target)
    return (running_sum(x, axis) if x.ndim else x).astype(target.numpy)


@reduction(autocast=dict(accelerator="float32"), inplace=True, out="adopt", derivatives=FROM_KERNEL)
def cumprod(input: Array, dim: int, *, dtype: dtypes.dtype | None = None) -> Array:
    """The running product along `dim`; integers multiply in int64.

    Shape: `input` `(*)`, result `(*)`.

    >>> xtensor.tensor([1, 2, 3]).cumprod(dim=0)
    tensor([1, 2, 6])
    """
    axis = along("cumprod", dim, input.ndim)
    target = total_dtype(input, dtype)
    if target is dtypes.bool:
        raise checks.not_implemented_for("cumprod_out_cpu", target)
    x = computed(input, target)
    return (lax.cumprod(x, axis) if x.ndim else x).astype(target.numpy)


def _log_add(a: Any, b: Any) -> Any:
    """`log(exp(a) + exp(b))`, with equal infinities as they are."""
    if is_complex(a):
        return _complex_log_add(a, b)
    return jnp.logaddexp(a, b)


def _complex_log_add(a: Any, b: Any) -> Any:
    first = jnp.real(a) >= jnp.real(b)
    high, low = jnp.where(first, a, b), jnp.where(first, b, a)
    real, other = jnp.real(high), jnp.real(low)
    endless = jnp.isposinf(real)
    plain = high + jnp.log1p(jnp.exp(jnp.where(endless, 0, low) - jnp.where(endless, 0, high)))
    found = jnp.where(jnp.isneginf(other) | endless, high, plain)
    # Of two that are infinite the angle between their exponentials counts.
    turned = jnp.angle(lax.complex(*[_endless(f, high) + _endless(f, low) for f in (jnp.cos, jnp.sin)]))
    found = jnp.where(jnp.isposinf(other), lax.complex(real, turned), found)
    unknown = jnp.isnan(a) | jnp.isnan(b)
    return jnp.where(unknown, jnp.asarray(complex(jnp.nan, jnp.nan), a.dtype), found)


def _endless(side: Any, exponent: Any) -> Any:
    """A side of the exponential of a number whose real part is infinite."""
    part = side(jnp.imag(exponent))
    return jnp.where(part == 0, part, jnp.sign(part) * jnp.inf)


@reduction(out="exact", derivatives=FROM_KERNEL)
def logcumsumexp(input: Array, dim: int) -> Array:
    """The logarithm of the running sum of exponentials along `dim`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for bool and integer tensors.
    """
    axis = along("logcumsumexp", dim, input.ndim)
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex):
        raise checks.not_implemented_for("logcumsumexp_out_cpu", own)
    x = input.astype(dtypes.compute_type(own).numpy)
    if x.ndim == 0 or x.size == 0:
        return input
    (made,) = scanned(lambda a, b: (_log_add(a[0], b[0]),), (-np.inf,), (x,), axis)
    return made.astype(input.dtype)


# ---- running extrema -----------------------------------------------------------------------------------------------


def _running(x: Any, axis: int, largest: bool) -> tuple[Any, Any]:
    """The running extremum and the index where it last stood; NaN stays once it has come."""
    index = lax.broadcasted_iota(jnp.int32, x.shape, axis)

    def later(a: Any, b: Any) -> Any:
        (u, i), (v, j) = a, b
        take = v >= u if largest else v <= u
        if is_float(v):
            take = (take & ~jnp.isnan(u)) | jnp.isnan(v)
        return jnp.where(take, v, u), jnp.where(take, j, i)

    values, found = scanned(later, (least(x.dtype, largest), 0), (x, index), axis)
    return values, found.astype(jnp.int64)


def least(dtype: Any, largest: bool) -> Any:
    """What is no extremum beside any other value."""
    if jnp.issubdtype(dtype, jnp.inexact):
        return -np.inf if largest else np.inf
    if dtype == jnp.bool_:
        return not largest
    limits = jnp.iinfo(dtype)
    return limits.min if largest else limits.max


def _extremum_grad(grads: Any, result1: Any, input_shape: Any, dim: int) -> Array:
    """Gradients added up at the indices where the extrema stood."""
    grad, indices = grads[0], result1
    if not input_shape:
        return grad
    axis = checks.wrap_dim(dim, len(input_shape))
    moved = jnp.moveaxis(grad, axis, -1)
    places = jnp.moveaxis(indices, axis, -1).astype(jnp.int32)
    rows = moved.reshape((-1, moved.shape[-1])) if moved.size else moved
    if not moved.size:
        return jnp.zeros(tuple(input_shape), grad.dtype)
    lines = jnp.arange(rows.shape[0], dtype=jnp.int32)[:, None]
    total = jnp.zeros_like(rows).at[lines, places.reshape(rows.shape)].add(rows)
    return jnp.moveaxis(total.reshape(moved.shape), -1, axis)


def _extremum(name: str, input: Any, dim: Any, largest: bool) -> tuple[Any, Any]:
    axis = along(name, dim, input.ndim)
    if is_complex(input):
        raise checks.not_implemented_for(f"{name}_cpu", dtype_of(input))
    if input.ndim == 0 or input.size == 0:
        return input, jnp.zeros(input.shape, jnp.int64)
    return _running(input, axis, largest)


@reduction(out="exact", returns=("values", "indices"), derivatives=dict(input=_extremum_grad))
def cummax(input: Array, dim: int) -> tuple[Array, ...]:
    """The running maximum along `dim` and the index of its last place.

    Shape: `input` `(*)`; values `(*)` and indices `(*)`.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.cummax(xtensor.tensor([1, 3, 2]), 0).values
    tensor([1, 3, 3])
    """
    return _extremum("cummax", input, dim, True)


@reduction(out="exact", returns=("values", "indices"), derivatives=dict(input=_extremum_grad))
def cummin(input: Array, dim: int) -> tuple[Array, ...]:
    """The running minimum along `dim` and the index of its last place.

    Shape: `input` `(*)`; values `(*)` and indices `(*)`.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.cummin(xtensor.tensor([3, 1, 2]), 0).values
    tensor([3, 1, 1])
    """
    return _extremum("cummin", input, dim, False)


# ---- differences and integrals -------------------------------------------------------------------------------------


@numpy_names
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The n-th differences along `dim`; of bools, whether neighbours differ.

    Shape: `input` `(*)`, result `(*)` with n fewer along `dim`.

    Raises: RuntimeError where sizes do not fit; IndexError where `dim` is out of range; TypeError for `n` and `dim` that are no ints.

    >>> xtensor.diff(xtensor.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("diff", "input", 1, "Tensor", input)
    for i, (name, value) in enumerate((("n", n), ("dim", dim))):
        if not checks.is_whole(value):
            raise checks.argument_error("diff", name, i + 2, "int", value)
    if input.dim() < 1:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = checks.wrap_dim(dim, input.dim())
    for other in (prepend, append):
        if other is not None and other.dim() != input.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for other in (prepend, append):
        for d, (size, own) in enumerate(
            zip(sizes_of(other), sizes_of(input), strict=True) if other is not None else ()
        ):
            if d != axis and size != own:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({d}) = {own}, but got tensor.size({d}) = {size}"
                )
    if n == 0:
        if out is None:
            return input.clone()
        write_out("diff", out, input, [input])
        return out
    x = (
        input
        if prepend is None and append is None
        else cat([t for t in (prepend, input, append) if t is not None], axis)
    )
    size = sizes_of(x)[axis]
    n = min(n, size)
    for i in range(n):
        left, right = x.narrow(axis, 0, size - 1 - i), x.narrow(axis, 1, size - 1 - i)
        last = out if i == n - 1 else None
        x = right.logical_xor(left, out=last) if x.dtype is dtypes.bool else right.sub(left, out=last)
    return x


@overloads("Tensor y, Tensor x, *, int dim = -1", "Tensor y, *, Number dx = 1, int dim = -1")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along `dim` by the trapezoidal rule, for sample points `x` or a spacing `dx`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where `dim` is out
    of range; RuntimeError for bool tensors.
    """
    pieces = _trapezoids("trapezoid", y, x, dx, dim)
    return pieces.sum(dim) if isinstance(pieces, Tensor) else y.new_zeros(pieces)


trapz = trapezoid


@overloads(
    "Tensor y, Tensor x, *, int dim = -1",
    "Tensor y, *, Number dx = 1, int dim = -1",
)
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1
) -> Tensor:
    """The running integral along `dim` by the trapezoidal rule.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where `dim` is out
    of range; RuntimeError for bool tensors.
    """
    pieces = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return pieces.cumsum(dim) if isinstance(pieces, Tensor) else y.new_zeros(pieces)


def _trapezoids(name: str, y: Tensor, x: Tensor | None, dx: float | None, dim: int) -> Any:
    """The areas between neighbours, or the shape of the result where there are none."""
    if x is not None and dx is not None:
        raise Unfit
    if y.dtype is dtypes.bool:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    axis = checks.wrap_dim(dim, y.dim())
    size = sizes_of(y)[axis] if y.dim() else 1
    if size == 0:
        sizes = list(sizes_of(y))
        return tuple(sizes[:axis] + sizes[axis + 1 :]) if name == "trapezoid" else tuple(sizes)
    right, left = y.narrow(axis, 1, size - 1), y.narrow(axis, 0, size - 1)
    if x is None:
        return (left + right) * ((1 if dx is None else dx) / 2.0)
    if x.dtype is dtypes.bool:
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    if x.dim() == 1:
        if sizes_of(x)[0] != size:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([-1 if d == axis else 1 for d in range(y.dim())])
        steps = x.narrow(axis, 1, size - 1) - x.narrow(axis, 0, size - 1)
    else:
        own = checks.wrap_dim(dim, x.dim())
        if sizes_of(x)[own] != size:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        steps = x.narrow(own, 1, size - 1) - x.narrow(own, 0, size - 1)
    return (left + right) * steps / 2.0


# ---- cross products ------------------------------------------------------------------------------------------------


@reduction(
    autocast=dict(accelerator="widest"),
    out="exact",
    name="linalg_cross",
    node="LinalgCross",
    method=False,
    derivatives=FROM_KERNEL,
)
def cross_along(input: Array, other: Array, *, dim: int = -1) -> Array:
    """The cross product of vectors of three elements along `dim`.

    Shape: `input` and `other` broadcast to `(*)` with 3 along `dim`; result `(*)`.
    """
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = checks.wrap_dim(dim, input.ndim)
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[axis]} and {other.shape[axis]}"
        )
    for d, (m, n) in enumerate(zip(input.shape, other.shape, strict=True)):
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {d}"
            )
    a, b = promote(input, other)
    ahead, behind = [jnp.roll(v, -1, axis) for v in (a, b)], [jnp.roll(v, -2, axis) for v in (a, b)]
    return ahead[0] * behind[1] - behind[0] * ahead[1]


@of_tensors()
@numpy_names
def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of three elements along `dim`, by default the first dimension of that size.

    Shape: `input` and `other` broadcast to `(*)` with 3 along `dim`; result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where `dim` is out
    of range; RuntimeError for bool tensors.

    >>> xtensor.cross(xtensor.tensor([1, 0, 0]), xtensor.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if dim is None:
        sizes = sizes_of(input)
        dim = next((d for d, size in enumerate(sizes) if size == 3), None)
        if input.dim() == other.dim() and dim is None:
            raise RuntimeError("no dimension of size 3 in input")
        dim = -1 if dim is None else dim
    return cross_along(input, other, dim=dim, out=out)


attach_methods(cross, diff)
