"""Masks: choosing between two tensors, filling and scattering under a mask, and finding what is not zero."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes, geometry
from ...operators.attach import attach_as, attach_methods
from ...operators.declare import general, pointwise
from ...operators.functions.overloads import of_tensors, overloads
from ...operators.index_bounds import on_cpu
from ...operators.inplace import run_inplace
from ...operators.levels.crossing import refuse_dynamic
from ...operators.operator import REGISTRY
from ...operators.options import number_array, placed
from ...operators.promotion import promote
from ...operators.schema import Array, Operand
from ...operators.write import write_out
from ...storage import MetaArray
from ...tensor import Tensor, array_of, sizes_of, wrap_strided
from ...xla.x64 import call, jit
from .hostindex import nonzero_columns, values_of

__all__ = ["argwhere", "masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_"]
__all__ += ["nonzero", "where"]


# ---- where ---------------------------------------------------------------------------------------------------------


@pointwise(
    derivatives=dict(
        input=lambda grad, condition: jnp.where(condition != 0, grad, 0),
        other=lambda grad, condition: jnp.where(condition != 0, 0, grad),
    ),
    name="where",
    inplace=False,
    method=False,
)
def choose(condition: Array, input: Operand, other: Operand) -> Array:
    """`input` where the condition holds and `other` elsewhere, broadcast, in their common dtype."""
    if condition.dtype != jnp.bool_ and condition.dtype != jnp.uint8:
        name = dtypes.FROM_NUMPY[np.dtype(condition.dtype)].scalar_name
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {name}"
        )
    shape = geometry.broadcast_shapes(
        condition.shape, geometry.broadcast_shapes(jnp.shape(input), jnp.shape(other))
    )
    a, b = promote(input, other)
    return jnp.broadcast_to(jnp.where(condition != 0, a, b), shape)


WHERE = REGISTRY["where"]
WHERE_SIGNATURES = (
    "Tensor condition",
    "Tensor condition, Tensor input, Tensor other, *, Tensor out = None",
    "Tensor condition, Number self, Tensor other",
    "Tensor condition, Tensor input, Number other",
    "Tensor condition, Number self, Number other",
)


PLAIN = frozenset((Tensor, float, int))
"""The types that `where` takes without a look at them."""
BOOL = np.dtype(np.bool_)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where `condition` holds and `other` elsewhere; of a condition alone, `nonzero(as_tuple=True)`.

    Shape: `condition`, `input` and `other` broadcast together; the result has their broadcast shape.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.

    >>> x = xtensor.tensor([-1.0, 2.0])
    >>> xtensor.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if out is None and type(condition) is Tensor and type(input) in PLAIN and type(other) in PLAIN:
        view = condition._xt_view
        if (condition._xt_storage.raw.dtype if view is None else view.dtype.numpy) is BOOL:
            return choose(condition, input, other)
    if input is None and other is None and isinstance(condition, Tensor):
        refuse_dynamic(condition, "where")
        return nonzero(condition, as_tuple=True)
    numbers = (Tensor, int, float, complex, np.generic)
    if not (isinstance(condition, Tensor) and isinstance(input, numbers) and isinstance(other, numbers)):
        given = [v for v in (condition, input, other) if v is not None]
        raise checks.combination_error("where", given, {}, WHERE_SIGNATURES)
    if condition.dtype is dtypes.uint8:
        checks.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning,
        )
    if out is None:
        return WHERE.function(condition, input, other)
    result = WHERE.function(condition, input, other)
    if isinstance(out, Tensor) and out.dtype is not result.dtype:
        raise RuntimeError(
            f"Expected out type to be {result.dtype.scalar_name} but got {out.dtype.scalar_name}"
        )
    return WHERE.function(condition, input, other, out=out)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """`self` where `condition` holds and `other` elsewhere.

    Shape: `condition`, `self` and `other` broadcast together; the result has their broadcast shape.

    Raises: RuntimeError for a condition that is not of bool, and where sizes do not fit; TypeError for arguments of
    other kinds.
    """
    return where(condition, self, other)


# ---- fill and scatter ----------------------------------------------------------------------------------------------


@general(
    views="loop",
    derivatives=dict(
        input=lambda grad, mask: jnp.where(mask, 0, grad), value=lambda grad, mask: jnp.where(mask, grad, 0)
    ),
    name="masked_fill",
    inplace=True,
)
def fill(input: Array, mask: Array, value: Operand) -> Array:
    """`input` with `value` where the mask holds."""
    shape = geometry.broadcast_shapes(mask.shape, input.shape)
    value = jnp.asarray(value)
    if jnp.issubdtype(value.dtype, jnp.complexfloating) and not jnp.issubdtype(
        input.dtype, jnp.complexfloating
    ):
        value = jnp.real(value)
    return jnp.broadcast_to(jnp.where(mask, value.astype(input.dtype), input), shape)


def positions(mask: Array) -> Array:
    """For each true element, in order, its number among the true ones."""
    flat = mask.reshape(-1).astype(jnp.int64)
    return (jnp.cumsum(flat) - 1).reshape(mask.shape)


def scatter_source(grad: Array, mask: Array, source_shape: tuple[int, ...]) -> Array:
    mask = jnp.broadcast_to(mask, grad.shape)
    count = int(np.prod(source_shape))
    places = jnp.where(mask, positions(mask), count).reshape(-1)
    made = jnp.zeros((count,), grad.dtype).at[places].add(grad.reshape(-1), mode="drop")
    return made.reshape(source_shape)


@general(
    derivatives=dict(input=lambda grad, mask: jnp.where(mask, 0, grad), source=scatter_source),
    name="masked_scatter",
    inplace=True,
)
def scatter_under(input: Array, mask: Array, source: Array) -> Array:
    """`input` with the elements of `source`, in order, where the mask holds."""
    shape = geometry.broadcast_shapes(mask.shape, input.shape)
    mask = jnp.broadcast_to(mask, shape)
    if source.size == 0:
        return jnp.broadcast_to(input, shape)
    moved = source.reshape(-1).at[jnp.maximum(positions(mask), 0)].get(mode="clip")
    return jnp.where(mask, moved, jnp.broadcast_to(input, shape))


MASKED_FILL, MASKED_SCATTER = REGISTRY["masked_fill"], REGISTRY["masked_scatter"]
LARGE = 6e4


def check_number(value: Any, dtype: dtypes.dtype) -> None:
    """RuntimeError for a number that the dtype cannot hold."""
    kind = type(value)
    if (
        dtype.is_floating_point
        and (kind is float or kind is int)
        and (dtype.itemsize == 8 or -LARGE < value < LARGE)
    ):
        return
    number_array(value, dtype)


def settable(value: Any, dtype: dtypes.dtype) -> Any:
    """A number as `x[index] = value` takes it: short floats take what a double rounds to, infinity too, where `fill_` refuses it.

    Raises: RuntimeError for a number that another dtype cannot hold, or that is complex where the dtype is not.
    """
    short = dtype.is_floating_point and dtype.itemsize <= 2
    if short and type(value) is complex:
        raise RuntimeError("value cannot be converted to type double without overflow")
    try:
        (number_array if dtype in dtypes.FLOAT8 else check_number)(value, dtype)
    except RuntimeError:
        if not short:
            raise
        return beyond(value, dtype)
    return value


def beyond(value: float, dtype: dtypes.dtype) -> float:
    """What a short float of this dtype makes of a number that is larger than its largest."""
    if dtype in dtypes.FLOAT8:
        if dtype is dtypes.float8_e4m3fn:
            return math.copysign(448.0, value)
        return math.copysign(math.inf, value) if dtype is dtypes.float8_e5m2 else math.nan
    with np.errstate(over="ignore"):
        return float(np.float32(value).astype(dtype.numpy))


def check_fill(input: Any, mask: Any, value: Any, inplace: bool) -> Any:
    """The checks of `masked_fill`; the value as it is passed on."""
    if not isinstance(input, Tensor) or not isinstance(mask, Tensor):
        name, position, got = ("input", 1, input) if not isinstance(input, Tensor) else ("mask", 2, mask)
        raise checks.argument_error("masked_fill", name, position, "Tensor", got)
    if (shapes := (tuple(sizes_of(mask)), tuple(sizes_of(input))))[0] != shapes[1]:
        geometry.broadcast_shapes(*(reversed(shapes) if inplace else shapes))
    if mask.dtype is not dtypes.bool:
        kind = dtypes.c_name(mask.dtype)
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {kind}")
    if isinstance(value, Tensor):
        if value.dim() != 0:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.dim()} dimension(s)."
            )
        if value.dtype.is_complex and not input.dtype.is_complex:
            number_array(value.item(), input.dtype)
    elif isinstance(value, (int, float, complex)):
        check_number(value, input.dtype)
    return value


@overloads(
    "Tensor input, Tensor mask, Tensor value",
    "Tensor input, Tensor mask, Number value",
)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `input`, broadcast with `mask`, that has `value` where the mask holds.

    Shape: `mask` broadcasts with `input` `(*)`; the result has their broadcast shape.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.

    >>> scores = xtensor.zeros(2, 2)
    >>> scores.masked_fill(xtensor.tensor([[False, True], [False, False]]), float("-inf"))
    tensor([[0., -inf],
            [0., 0.]])
    """
    return MASKED_FILL.function(input, mask, check_fill(input, mask, value, False))


def shared_dims(tensor: Tensor) -> list[int]:
    """The dimensions along which a tensor was expanded: a write to them is one to the same memory."""
    view = tensor._xt_view
    return [] if view is None else [d for d, s in enumerate(view.strides) if s == 0 and view.sizes[d] > 1]


def warn_of_expanded(name: str, also: str) -> None:
    checks.warn(
        f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
        f"operation. This also applies to advanced indexing e.g. {also}",
        UserWarning,
    )


def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Put `value` where the mask holds, in place.

    Shape: `mask` broadcast to that of the tensor itself, which stays.
    Where elements of an expanded tensor share memory it is written if the mask holds for any; this is deprecated.

    Raises: RuntimeError where the mask is not of bools, or does not broadcast.

    >>> xtensor.ones(2).masked_fill_(xtensor.tensor([True, False]), 0)
    tensor([0., 1.])
    """
    value = check_fill(self, mask, value, True)
    shared = shared_dims(self)
    if not shared:
        return run_inplace(MASKED_FILL, (self, mask, value))
    warn_of_expanded("masked_fill_", "tensor[mask] = scalar")
    part, spread = self, mask.expand(tuple(sizes_of(self)))
    for d in reversed(shared):
        part, spread = part.select(d, 0), spread.any(d)
    run_inplace(MASKED_FILL, (part, spread, value))
    return self


def check_scatter(input: Any, mask: Any, source: Any) -> None:
    if not isinstance(mask, Tensor) or not isinstance(source, Tensor):
        name, position, got = ("mask", 1, mask) if not isinstance(mask, Tensor) else ("source", 2, source)
        raise checks.argument_error("masked_scatter", name, position, "Tensor", got)
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{input.dtype.scalar_name} and {source.dtype.scalar_name}"
        )
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}"
        )
    shape = geometry.broadcast_shapes(tuple(sizes_of(mask)), tuple(sizes_of(input)))
    # Only where the mask might hold more often than there are elements must its values be looked at.
    if source.numel() < geometry.numel(shape) and type(array_of(mask)) is not MetaArray:
        times = geometry.numel(shape) // max(mask.numel(), 1)
        if source.numel() < true_count(mask) * times:
            raise RuntimeError("Number of elements of source < number of ones in mask")


@jit
def count_true(mask: Any) -> Any:
    return jnp.sum(mask)


def true_count(mask: Tensor) -> int:
    array = array_of(mask)
    return int(np.count_nonzero(np.asarray(array))) if on_cpu(array) else int(call(count_true, array))


@of_tensors()
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy of `input`, broadcast with `mask`, with elements of `source` in order where the mask holds.

    Shape: `input` and `mask` broadcast to `(*)`, `source` of enough elements; result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    check_scatter(input, mask, source)
    return MASKED_SCATTER.function(input, mask, source)


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Put the elements of `source`, in order, where the mask holds, in place.

    Shape: `mask` broadcast to that of the tensor itself, which stays; `source` of enough elements.

    Raises: RuntimeError where the mask is not of bools, or the source has too few elements.
    """
    check_scatter(self, mask, source)
    if tuple(sizes_of(mask)) != tuple(sizes_of(self)):
        geometry.expand((tuple(sizes_of(mask)), (1,) * mask.dim(), 0), tuple(sizes_of(self)))
    return run_inplace(MASKED_SCATTER, (self, mask, source))


# ---- what is not zero ----------------------------------------------------------------------------------------------


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero, a row each; with `as_tuple`, a tensor per dimension.

    The number of rows depends on the values, which are read on the host.

    Shape: `input` `(*)`; result `(n, input.dim())`, or with `as_tuple` a tensor `(n)` for each dimension.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.nonzero(xtensor.tensor([[0, 7], [8, 0]]))
    tensor([[0, 1],
            [1, 0]])
    >>> xtensor.tensor([0, 7, 8]).nonzero(as_tuple=True)
    (tensor([1, 2]),)
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("nonzero", "input", 1, "Tensor", input)
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    refuse_dynamic(input, "nonzero")
    values = values_of(input)
    columns = nonzero_columns(values)
    place = input.device
    if as_tuple:
        return tuple([placed(c, place) for c in columns])
    count = len(columns[0])
    if values.ndim == 0:
        columns = ()
    stored = np.stack(columns) if columns else np.zeros((0, count), np.int64)
    array = placed(np.ascontiguousarray(stored, dtype=np.int64), place)._xt_storage.array
    result = wrap_strided(array, (count, values.ndim), (1, count))
    if out is None:
        return result
    if isinstance(out, Tensor) and out.dtype is not dtypes.int64:
        raise RuntimeError(
            f"nonzero: Expected out tensor to have scalar type Long but got scalar type{out.dtype.scalar_name}"
        )
    write_out("nonzero", out, result, [input])
    return out


def nonzero_method(self: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero, a row each; with `as_tuple`, a tensor per dimension.

    Shape: `(*)` of d dimensions, result `(n, d)`; with `as_tuple` d of `(n)`.

    Raises: NotImplementedError for sparse tensors, and on the meta device.
    """
    return nonzero(self, as_tuple=as_tuple)


def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row each.

    Shape: `input` `(*)` of d dimensions, result `(n, d)`.

    Raises: TypeError for arguments of other kinds.
    """
    return nonzero(input)


attach_methods(argwhere, masked_fill, masked_fill_, masked_scatter, masked_scatter_)
attach_as(nonzero=nonzero_method, where=where_method)
