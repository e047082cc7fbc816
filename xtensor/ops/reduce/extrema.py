"""Extrema over dimensions: `max`, `min`, `amax`, `amin`, `aminmax`, `argmax`, `argmin`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import checks
from ...dtypes import dtype_of
from ...operators.attach import attach_methods, named
from ...operators.declare import reduction
from ...operators.functions.overloads import overloads
from ...operators.operator import REGISTRY, structure
from ...operators.schema import Array
from ...tensor import Tensor
from .extreme_folds import extreme_fold
from .reductions import axes_of, check_nonempty, is_complex, is_float, kept, spread

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


def extremum(x: Any, axes: tuple[int, ...], keepdim: bool, largest: bool) -> Any:
    """The largest or smallest elements over `axes`; NaN where there is one."""
    if not axes:
        return x
    if x.dtype == jnp.bool_:
        fold = jnp.any if largest else jnp.all
        return fold(x, axis=axes, keepdims=keepdim)
    return extreme_fold(x, axes, keepdim, largest)


def position(x: Any, value: Any, axis: int) -> Any:
    """The first index along `axis` at which `x` is the extremum `value` (kept dimensions), or NaN; as int64.

    Two plain reductions, which XLA vectorizes; its pairwise one (`lax.argmax`) it does not.
    """
    hit = x == value
    if is_float(x):
        hit = hit | jnp.isnan(x)
    count = x.shape[axis]
    index = lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.min(jnp.where(hit, index, count), axis=axis, keepdims=True).astype(jnp.int64)


def check_real(name: str, input: Any) -> None:
    if is_complex(input):
        raise checks.not_implemented_for(name, dtype_of(input))


# ---- amax, amin, aminmax -------------------------------------------------------------------------------------------


def shared(grad: Any, input: Any, result: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The gradient of an extremum, spread evenly over the elements that attain it."""
    full = spread(result, input.shape, axes, keepdim)
    mask = (input == full).astype(grad.dtype)
    count = jnp.sum(mask, axis=axes, keepdims=True)
    return spread(grad, input.shape, axes, keepdim) * mask / count


def _amax_grad(grad: Array, input: Array, result: Array, dim: Any, keepdim: bool) -> Array:
    return shared(grad, input, result, axes_of(dim, input.ndim), keepdim)


@reduction(views="fold", out="exact", derivatives=dict(input=_amax_grad))
def amax(input: Array, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Array:
    """The largest element over `dim`; its gradient is shared by the elements that attain it.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.tensor([[1, 5], [3, 4]]).amax(dim=(0, 1))
    tensor(5)
    """
    check_real("max_values_cpu", input)
    axes = axes_of(dim, input.ndim, "amax")
    check_nonempty("amax", input.shape, dim, axes)
    return extremum(input, axes, keepdim, True)


@reduction(views="fold", out="exact", derivatives=dict(input=_amax_grad))
def amin(input: Array, dim: int | Sequence[int] | None = (), keepdim: bool = False) -> Array:
    """The smallest element over `dim`; its gradient is shared by the elements that attain it.

    Shape: `input` `(*)`, result `(*)` without the dimensions `dim`, or with size 1 there if `keepdim`.

    Raises: NotImplementedError for complex tensors.

    >>> xtensor.amin(xtensor.tensor([[1, 5], [3, 2]]), 1)
    tensor([1, 2])
    """
    check_real("min_values_cpu", input)
    axes = axes_of(dim, input.ndim, "amin")
    check_nonempty("amin", input.shape, dim, axes)
    return extremum(input, axes, keepdim, False)


def _aminmax_grad(grads: Any, input: Array, results: Any, dim: Any, keepdim: bool) -> Array:
    axes = axes_of(dim, input.ndim)
    low, high = (shared(g, input, r, axes, keepdim) for g, r in zip(grads, results, strict=True))
    return low + high


@reduction(views="fold", out="exact", returns=("min", "max"), derivatives=dict(input=_aminmax_grad))
def aminmax(input: Array, *, dim: int | None = None, keepdim: bool = False) -> tuple[Array, ...]:
    """The smallest and the largest element over `dim`, as a named tuple `(min, max)`.

    Shape: `input` `(*)`; both without the dimension `dim`, or with size 1 there if `keepdim`; `()` without
    `dim`.

    Raises: NotImplementedError for complex tensors.
    """
    check_real("aminmax", input)
    axes = axes_of(dim, input.ndim, "aminmax")
    check_nonempty("aminmax", input.shape, dim, axes)
    if dim is None and keepdim:
        return tuple(extremum(input, axes, True, largest) for largest in (False, True))
    return extremum(input, axes, keepdim, False), extremum(input, axes, keepdim, True)


# ---- argmax, argmin ------------------------------------------------------------------------------------------------


def _arg(name: str, input: Any, dim: Any, keepdim: bool, largest: bool) -> Any:
    if is_complex(input) or input.dtype == jnp.bool_:
        kind = "complex" if is_complex(input) else "bool"
        raise RuntimeError(f"{name}(): does not support {kind} input")
    if dim is None:
        if input.size == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        shape, axis = input.shape, 0
        x = input.reshape(-1)
    else:
        shape = None
        if not isinstance(dim, int):
            raise checks.argument_error(name, "dim", 2, "int", dim)
        axis = checks.wrap_dim(dim, input.ndim)
        x = input
        check_nonempty(name, input.shape, dim, (axis,) if input.ndim else ())
    if x.ndim == 0:
        return jnp.zeros((), jnp.int64)
    index = position(x, extremum(x, (axis,), True, largest), axis)
    if shape is not None:
        return index.reshape((1,) * len(shape) if keepdim else ())
    return kept(index, (axis,), keepdim)


@reduction(out="exact", derivatives=None)
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The index of the largest element along `dim`, or in the flattened tensor; the first one of several.

    Shape: `input` `(*)`; the result lacks the dimension `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: RuntimeError for complex and bool tensors.

    >>> xtensor.tensor([[1, 5], [9, 4]]).argmax(dim=1)
    tensor([1, 0])
    """
    return _arg("argmax", input, dim, keepdim, True)


@reduction(out="exact", derivatives=None)
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The index of the smallest element along `dim`, or in the flattened tensor; the first one of several.

    Shape: `input` `(*)`; the result lacks the dimension `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: RuntimeError for complex and bool tensors.

    >>> xtensor.tensor([[1, 5], [9, 4]]).argmin(dim=1)
    tensor([0, 1])
    """
    return _arg("argmin", input, dim, keepdim, False)


# ---- max, min ------------------------------------------------------------------------------------------------------


def shared_grad(grad: Array, input: Array, result: Array) -> Array:
    """The gradient of what picks a value out of all elements, shared among those that equal it."""
    mask = jnp.where(jnp.isnan(result), jnp.isnan(input), input == result).astype(grad.dtype)
    return grad * mask / jnp.sum(mask)


def _full(name: str, input: Any, largest: bool) -> Any:
    check_real(f"{name}_all", input)
    if input.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    return extremum(input, tuple(range(input.ndim)), False, largest)


@reduction(
    views="fold", name="max_all", node="MaxBackward1", method=False, derivatives=dict(input=shared_grad)
)
def max_all(input: Array) -> Array:
    """The largest element of a tensor."""
    return _full("max", input, True)


@reduction(
    views="fold", name="min_all", node="MinBackward1", method=False, derivatives=dict(input=shared_grad)
)
def min_all(input: Array) -> Array:
    """The smallest element of a tensor."""
    return _full("min", input, False)


def at_index(grad: Any, indices: Any, shape: Sequence[int], axis: int, keepdim: bool) -> Any:
    """A gradient put at the one index along `axis` that was selected, zeros elsewhere."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = lax.expand_dims(grad, (axis,)), lax.expand_dims(indices, (axis,))
    here = lax.broadcasted_iota(jnp.int32, tuple(shape), axis) == indices.astype(jnp.int32)
    return jnp.where(here, grad, jnp.zeros((), grad.dtype))


def selected_grad(grads: Any, result1: Any, input_shape: Any, dim: int, keepdim: bool) -> Array:
    """The gradient of what picks a value and its index along `dim`: it goes to that index alone."""
    return at_index(grads[0], result1, input_shape, checks.wrap_dim(dim, len(input_shape)), keepdim)


def _along(name: str, input: Any, dim: Any, keepdim: bool, largest: bool) -> tuple[Any, Any]:
    if not isinstance(dim, int):
        raise checks.argument_error(name, "dim", 2, "int", dim)
    axis = checks.wrap_dim(dim, input.ndim)
    if input.ndim:
        check_nonempty(name, input.shape, dim, (axis,))
    if is_complex(input):
        raise RuntimeError(f"{name}(): does not support complex input")
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    value = extremum(input, (axis,), True, largest)
    return kept(value, (axis,), keepdim), kept(position(input, value, axis), (axis,), keepdim)


@reduction(
    out="exact",
    name="max_dim",
    node="Max",
    method=False,
    returns=("values", "indices"),
    derivatives=dict(input=selected_grad),
)
def max_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, ...]:
    """The largest element along `dim` and its index."""
    return _along("max", input, dim, keepdim, True)


@reduction(
    out="exact",
    name="min_dim",
    node="Min",
    method=False,
    returns=("values", "indices"),
    derivatives=dict(input=selected_grad),
)
def min_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, ...]:
    """The smallest element along `dim` and its index."""
    return _along("min", input, dim, keepdim, False)


max_dim.operator.returns = structure("max", ("values", "indices"))
min_dim.operator.returns = structure("min", ("values", "indices"))


def _extremum(name: str, whole: Any, along: Any, pairwise: str, doc: str) -> Any:
    def extremum_of(
        input: Tensor,
        dim: int | Tensor | None = None,
        keepdim: bool = False,
        *,
        other: Tensor | None = None,
        out: Any = None,
        axis: int | None = None,
        keepdims: bool | None = None,
    ) -> Any:
        if isinstance(dim, Tensor):
            other = dim
        if other is not None:
            return REGISTRY[pairwise].function(input, other, out=out)
        if axis is not None:
            dim = axis
        if dim is None:
            return whole(input, out=out)
        return along(input, dim, keepdim if keepdims is None else keepdims, out=out)

    extremum_of.__module__ = "xtensor"
    return overloads(
        "Tensor input, *, Tensor out = None",
        "Tensor input, Tensor other, *, Tensor out = None",
        "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
    )(named(extremum_of, name, doc))


max = _extremum(
    "max",
    max_all,
    max_dim,
    "maximum",
    """The largest element; along `dim` with its index, as `(values, indices)`; or of two tensors each.

Shape: `input` `(*)`; result `()`, or values and indices without `dim`, or with 1 there with `keepdim`.

Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; RuntimeError for complex tensors.

>>> x = xtensor.tensor([[1, 5], [9, 4]])
>>> x.max(), x.max(dim=1).values, x.max(dim=1).indices
(tensor(9), tensor([5, 9]), tensor([1, 0]))
""",
)
min = _extremum(
    "min",
    min_all,
    min_dim,
    "minimum",
    """The smallest element; along `dim` with its index, as `(values, indices)`; or of two tensors each.

Shape: `input` `(*)`; result `()`, or values and indices without `dim`, or with 1 there with `keepdim`.

Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; RuntimeError for complex tensors.

>>> x = xtensor.tensor([[1, 5], [9, 4]])
>>> x.min(), x.min(dim=1).values, x.min(dim=1).indices
(tensor(1), tensor([1, 4]), tensor([0, 1]))
""",
)

attach_methods(max, min)
