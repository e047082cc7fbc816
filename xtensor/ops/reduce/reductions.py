"""Reductions: operators that fold dimensions of a tensor by a sum, a product, an extremum or a truth value."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import attach_methods, named
from ...operators.declare import reduction
from ...operators.functions.overloads import overloads
from ...operators.nodes import OpNode
from ...operators.schema import Array
from ...tensor import Tensor
from ...xla.number_arrays import size_as

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "logsumexp",
    "mean",
    "nanmean",
    "nansum",
    "prod",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]


# ---- shared by every file that folds dimensions --------------------------------------------------------------------


def axes_of(dim: Any, ndim: int, name: str = "sum") -> tuple[int, ...]:
    """The axes that `dim` names: all for None or an empty tuple, none for a 0-d tensor."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    if ndim > 64:
        raise RuntimeError("only tensors with up to 64 dims are supported")
    if isinstance(dim, int):
        dims = (checks.wrap_dim(dim, ndim),)
    elif isinstance(dim, tuple) and builtins.all(isinstance(d, int) for d in dim):
        dims = checks.wrap_dims(dim, ndim)
    else:
        raise checks.argument_error(name, "dim", 2, "tuple of ints", dim)
    return dims if ndim else ()


def spread(value: Any, shape: Sequence[int], axes: tuple[int, ...], keepdim: bool) -> Any:
    """A reduction's result (or its gradient) broadcast back to the shape that was reduced."""
    if axes and not keepdim:
        value = lax.expand_dims(value, axes)
    return jnp.broadcast_to(value, tuple(shape))


def kept(value: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """A result that kept its dimensions, without them unless `keepdim`."""
    return value if keepdim or not axes else lax.squeeze(value, axes)


class Shown(NamedTuple):
    """What `checks` ask of an argument, for an array inside a kernel."""

    shape: tuple[int, ...]
    dtype: dtypes.dtype
    device: str = "cpu"


def argument(array: Any, name: str, position: int) -> checks.Argument:
    """An array inside a kernel with the name and position that errors mention."""
    return checks.Argument(Shown(array.shape, dtype_of(array)), name, position)


def size_along(shape: Sequence[int], axes: tuple[int, ...]) -> int:
    return math.prod([shape[a] for a in axes])


def is_complex(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jnp.complexfloating)


def is_float(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jnp.inexact)


def total_dtype(array: Any, dtype: dtypes.dtype | None) -> dtypes.dtype:
    """The dtype of a sum or product: the one asked for, else int64 for integers and bools."""
    if dtype is not None:
        return dtype
    own = dtype_of(array)
    return own if own.is_floating_point or own.is_complex else dtypes.int64


def computed(array: Any, dtype: dtypes.dtype) -> Any:
    """`array` in the type in which sums of `dtype` accumulate."""
    target = dtypes.compute_type(dtype).numpy
    if is_complex(array) and target.kind != "c":
        array = array != 0 if target.kind == "b" else jnp.real(array)
    return array.astype(target)


def added(x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The sum over `axes`; of complex numbers each part by itself, since their loops add one number after the other."""
    if not is_complex(x):
        return jnp.sum(x, axis=axes, keepdims=keepdim)
    return lax.complex(*(jnp.sum(part, axis=axes, keepdims=keepdim) for part in (jnp.real(x), jnp.imag(x))))


def check_nonempty(name: str, shape: Sequence[int], dim: Any, axes: tuple[int, ...]) -> None:
    """IndexError where an extremum is asked of no elements."""
    if math.prod(shape) != 0:
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for axis in axes:
        if shape[axis] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def by_dims(title: str) -> Callable[[OpNode], str]:
    """The names of nodes where the overload with `dim` has a number of its own."""
    return lambda node: f"{title}Backward{0 if node.argument('dim') is None else 1}"


# ---- sums ----------------------------------------------------------------------------------------------------------


def _sum_grad(grad: Array, input_shape: Any, dim: Any, keepdim: bool) -> Array:
    return spread(grad, input_shape, axes_of(dim, len(input_shape)), keepdim)


@reduction(
    autocast=dict(accelerator="float32"),
    views="fold",
    out="adopt",
    node=by_dims("Sum"),
    derivatives=dict(input=_sum_grad),
    several=True,
)
def sum(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
) -> Array:
    """The sum over the dimensions `dim` (all by default); integers sum to int64, short floats in float32.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    >>> x = xtensor.tensor([[1, 2], [3, 4]])
    >>> x.sum(), x.sum(0), x.sum(1, keepdim=True).shape
    (tensor(10), tensor([4, 6]), xtensor.Size([2, 1]))
    """
    axes = axes_of(dim, input.ndim)
    target = total_dtype(input, dtype)
    x = computed(input, target)
    if target is dtypes.bool:
        return jnp.any(x, axis=axes, keepdims=keepdim)
    return added(x, axes, keepdim).astype(target.numpy)


def _nansum_grad(grad: Array, input: Array, dim: Any, keepdim: bool) -> Array:
    full = spread(grad, input.shape, axes_of(dim, input.ndim), keepdim)
    return jnp.where(jnp.isnan(input), jnp.zeros_like(full), full)


@reduction(out="adopt", derivatives=dict(input=_nansum_grad))
def nansum(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
) -> Array:
    """The sum over `dim` with NaNs counted as zero.

    Shape: `input` `(*)`, result without the dimensions `dim`, or with size 1 there if `keepdim`.

    Raises: RuntimeError for complex tensors.
    """
    if is_complex(input):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    axes = axes_of(dim, input.ndim, "nansum")
    target = total_dtype(input, dtype)
    x = computed(input, target)
    if is_float(x):
        x = jnp.where(jnp.isnan(x), jnp.zeros_like(x), x)
    return added(x, axes, keepdim).astype(target.numpy)


def mean_dtype(name: str, array: Any, dtype: dtypes.dtype | None) -> dtypes.dtype:
    """The dtype of a mean; RuntimeError for integers and bools."""
    own = dtype if dtype is not None else dtype_of(array)
    if not (own.is_floating_point or own.is_complex):
        what = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"{name}(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. "
            f"Got: {own.scalar_name}"
        )
    return own


def _mean_grad(grad: Array, input_shape: Any, dim: Any, keepdim: bool) -> Array:
    axes = axes_of(dim, len(input_shape))
    count = size_along(input_shape, axes)
    return spread(grad / size_as(count, grad.dtype), input_shape, axes, keepdim)


@reduction(views="fold", node=by_dims("Mean"), derivatives=dict(input=_mean_grad), several=True)
def mean(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
) -> Array:
    """The mean over the dimensions `dim` (all by default) of a floating point or complex tensor.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: RuntimeError for bool and integer tensors.

    >>> x = xtensor.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.mean(), x.mean(dim=0)
    (tensor(2.5000), tensor([2., 3.]))
    """
    target = mean_dtype("mean", input, dtype)
    axes = axes_of(dim, input.ndim, "mean")
    x = computed(input, target)
    total = added(x, axes, keepdim)
    return (total / size_as(size_along(input.shape, axes), x.dtype)).astype(target.numpy)


def _nanmean_grad(grad: Array, input: Array, dim: Any, keepdim: bool) -> Array:
    axes = axes_of(dim, input.ndim)
    counted = ~jnp.isnan(input)
    count = jnp.sum(counted, axis=axes, keepdims=keepdim).astype(grad.dtype)
    full = spread(grad / count, input.shape, axes, keepdim)
    return jnp.where(counted, full, jnp.zeros_like(full))


@reduction(derivatives=dict(input=_nanmean_grad))
def nanmean(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtypes.dtype | None = None,
) -> Array:
    """The mean over `dim` of the elements that are not NaN.

    Shape: `input` `(*)`, result without the dimensions `dim`, or with size 1 there if `keepdim`.

    Raises: RuntimeError for complex, bool and integer tensors.
    """
    own = dtype_of(input)
    if own.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if not own.is_floating_point:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {own.scalar_name}"
        )
    target = mean_dtype("nanmean", input, dtype)
    axes = axes_of(dim, input.ndim, "nanmean")
    missing = jnp.isnan(input)
    x = computed(input, target)
    total = jnp.sum(jnp.where(missing, jnp.zeros_like(x), x), axis=axes, keepdims=keepdim)
    count = jnp.sum(~missing, axis=axes, keepdims=keepdim).astype(x.dtype)
    return (total / count).astype(target.numpy)


# ---- products ------------------------------------------------------------------------------------------------------


def _prod_grad(grad: Array, input: Array, result: Array, dim: Any, keepdim: bool) -> Array:
    """The gradient times the product of all other elements, which is exact where some are zero.

    `result` is not computed with: it is saved as in PyTorch, which refuses a later write to it.
    """
    axes = axes_of(dim, input.ndim)
    shape = input.shape
    full = spread(grad, shape, axes, keepdim)
    if size_along(shape, axes) == 0 or not axes:
        return full if not axes else jnp.zeros(shape, full.dtype)
    x = input.astype(grad.dtype)
    flat = x.reshape(-1) if len(axes) > 1 or x.ndim == 1 else x
    axis = 0 if flat.ndim == 1 else next(iter(axes))
    one = jnp.ones_like(lax.slice_in_dim(flat, 0, 1, axis=axis))
    n = flat.shape[axis]
    before = lax.cumprod(lax.concatenate([one, lax.slice_in_dim(flat, 0, n - 1, axis=axis)], axis), axis)
    after = lax.cumprod(
        lax.concatenate([lax.slice_in_dim(flat, 1, n, axis=axis), one], axis), axis, reverse=True
    )
    return full * jnp.conj(before * after).reshape(shape)


@reduction(
    autocast="float32",
    views="fold",
    out="adopt",
    node=by_dims("Prod"),
    derivatives=dict(input=_prod_grad),
    several=True,
)
def prod(
    input: Array, dim: int | None = None, keepdim: bool = False, *, dtype: dtypes.dtype | None = None
) -> Array:
    """The product over the dimension `dim`, or of all elements; integers multiply in int64.

    Shape: `input` `(*)`; the result lacks the dimension `dim`, or has 1 there with `keepdim`; `()` of all.

    >>> xtensor.tensor([[1, 2], [3, 4]]).prod(dim=1)
    tensor([ 2, 12])
    """
    if dim is not None and not isinstance(dim, int):
        raise checks.argument_error("prod", "dim", 2, "int", dim)
    axes = axes_of(dim, input.ndim, "prod")
    target = total_dtype(input, dtype)
    x = computed(input, target)
    if target is dtypes.bool:
        return jnp.all(x, axis=axes, keepdims=keepdim)
    return jnp.prod(x, axis=axes, keepdims=keepdim).astype(target.numpy)


# ---- variances -----------------------------------------------------------------------------------------------------


def _moments(input: Any, dim: Any, correction: float, keepdim: bool, name: str) -> tuple[Any, Any, Any]:
    """The variance and mean over `dim`, in the accumulation type, and the dtype of the input's elements."""
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = axes_of(dim, input.ndim, name)
    x = computed(input, own)
    count = size_along(input.shape, axes)
    average = added(x, axes, True) / size_as(count, x.dtype)
    centred = x - average
    squares = jnp.real(centred) ** 2 + jnp.imag(centred) ** 2 if is_complex(x) else centred * centred
    degrees = builtins.max(count - correction, 0)
    if degrees <= 0:
        checks.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
        )
    variance = jnp.sum(squares, axis=axes, keepdims=keepdim) / size_as(degrees, squares.dtype)
    return variance, kept(average, axes, keepdim), own


def _var_grad(grad: Array, input: Array, dim: Any, correction: float, keepdim: bool) -> Array:
    axes = axes_of(dim, input.ndim)
    count = size_along(input.shape, axes)
    x = computed(input, dtype_of(input))
    centred = x - jnp.sum(x, axis=axes, keepdims=True) / size_as(count, x.dtype)
    degrees = size_as(count - correction, jnp.real(x).dtype)
    if count - correction <= 0:
        undefined = jnp.where(centred == 0, jnp.nan, jnp.inf).astype(degrees.dtype)
        return spread(grad.astype(degrees.dtype), input.shape, axes, keepdim) * undefined
    return spread(grad.astype(degrees.dtype), input.shape, axes, keepdim) * centred * (2 / degrees)


def _std_grad(grad: Array, result: Array, input: Array, dim: Any, correction: float, keepdim: bool) -> Array:
    safe = jnp.where(result == 0, jnp.ones_like(result), result)
    scaled = jnp.where(result == 0, jnp.zeros_like(grad), grad / (safe * 2))
    return _var_grad(scaled, input, dim, correction, keepdim)


@reduction(name="var_dims", node="Var", method=False, derivatives=dict(input=_var_grad))
def var_dims(input: Array, dim: Any = None, keepdim: bool = False, *, correction: Any = 1) -> Array:
    """The variance over `dim`: `var` with its overloads resolved."""
    variance, _, own = _moments(input, dim, correction, keepdim, "var")
    return variance.astype(own.to_real().numpy)


@reduction(name="std_dims", node="Std", method=False, derivatives=dict(input=_std_grad))
def std_dims(input: Array, dim: Any = None, keepdim: bool = False, *, correction: Any = 1) -> Array:
    """The standard deviation over `dim`: `std` with its overloads resolved."""
    variance, _, own = _moments(input, dim, correction, keepdim, "std")
    return jnp.sqrt(variance).astype(own.to_real().numpy)


def _var_mean_grad(grads: Any, input: Array, dim: Any, correction: float, keepdim: bool) -> Array:
    return _var_grad(grads[0], input, dim, correction, keepdim) + _mean_grad(
        grads[1], input.shape, dim, keepdim
    )


def _std_mean_grad(
    grads: Any, result0: Any, input: Array, dim: Any, correction: float, keepdim: bool
) -> Array:
    spread_part = _std_grad(grads[0], result0, input, dim, correction, keepdim)
    return spread_part + _mean_grad(grads[1], input.shape, dim, keepdim)


@reduction(name="var_mean_dims", node="VarMean", method=False, derivatives=dict(input=_var_mean_grad))
def var_mean_dims(
    input: Array, dim: Any = None, keepdim: bool = False, *, correction: Any = 1
) -> tuple[Array, ...]:
    """The variance and the mean over `dim`."""
    variance, average, own = _moments(input, dim, correction, keepdim, "var_mean")
    return variance.astype(own.to_real().numpy), average.astype(own.numpy)


@reduction(name="std_mean_dims", node="StdMean", method=False, derivatives=dict(input=_std_mean_grad))
def std_mean_dims(
    input: Array, dim: Any = None, keepdim: bool = False, *, correction: Any = 1
) -> tuple[Array, ...]:
    """The standard deviation and the mean over `dim`."""
    variance, average, own = _moments(input, dim, correction, keepdim, "std_mean")
    return jnp.sqrt(variance).astype(own.to_real().numpy), average.astype(own.numpy)


UNSET: Any = ...


def _correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """The dims and the correction that the overloads of `var` mean: `(unbiased)`, `(dim, unbiased)`, `correction=`."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not UNSET and unbiased is not None:
        if unbiased is not True and unbiased is not False:
            raise checks.argument_error("var", "unbiased", None, "bool", unbiased)
        if correction is not UNSET:
            raise TypeError(
                "var() received an invalid combination of arguments: both unbiased and correction were given"
            )
        return dim, int(unbiased)
    return dim, 1 if correction is UNSET or correction is None else correction


@overloads(
    "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None",
    "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None",
    "Tensor input, bool unbiased = True",
)
def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool = UNSET,
    keepdim: bool = False,
    *,
    correction: float = UNSET,
    axis: int | Sequence[int] | None = None,
    keepdims: bool | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The variance over `dim`, its sum of squares divided by the number of elements less `correction`.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; RuntimeError for
    bool and integer tensors.

    >>> xtensor.tensor([1.0, 2.0, 3.0, 4.0]).var(), xtensor.tensor([1.0, 3.0]).var(correction=0)
    (tensor(1.6667), tensor(1.))
    """
    dims, by = _correction(dim if axis is None else axis, unbiased, correction)
    return var_dims(input, dims, keepdim if keepdims is None else keepdims, correction=by, out=out)


@overloads(
    "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, Tensor out = None",
    "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False, Tensor out = None",
    "Tensor input, bool unbiased = True",
)
def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool = UNSET,
    keepdim: bool = False,
    *,
    correction: float = UNSET,
    axis: int | Sequence[int] | None = None,
    keepdims: bool | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation over `dim`: the root of `var`.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; RuntimeError for
    bool and integer tensors.

    >>> xtensor.tensor([1.0, 2.0, 3.0, 4.0]).std()
    tensor(1.2910)
    """
    dims, by = _correction(dim if axis is None else axis, unbiased, correction)
    return std_dims(input, dims, keepdim if keepdims is None else keepdims, correction=by, out=out)


def _with_mean(name: str, over_dims: Any, doc: str) -> Any:
    """The function of a variance or deviation that gives the mean, too."""

    def both(
        input: Tensor,
        dim: int | Sequence[int] | bool | None = None,
        unbiased: bool = UNSET,
        keepdim: bool = False,
        *,
        correction: float = UNSET,
        axis: int | Sequence[int] | None = None,
        keepdims: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        dims, by = _correction(dim if axis is None else axis, unbiased, correction)
        return over_dims(input, dims, keepdim if keepdims is None else keepdims, correction=by)

    return overloads(
        "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False",
        "Tensor input, tuple of ints dim = None, *, Number correction = None, bool keepdim = False",
        "Tensor input, bool unbiased = True",
    )(
        named(
            both,
            name,
            f"{doc}\n\nShape: `input` `(*)`; both results lack the dimensions `dim`, or have 1 there with `keepdim`.\n\n"
            "Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; "
            "RuntimeError for bool and integer tensors.",
        )
    )


var_mean = _with_mean("var_mean", var_mean_dims, "The variance and the mean over `dim`.")
std_mean = _with_mean("std_mean", std_mean_dims, "The standard deviation and the mean over `dim`.")


# ---- truth and counting --------------------------------------------------------------------------------------------


def _truth(input: Any, result: Any) -> Any:
    return result.astype(jnp.uint8) if input.dtype == jnp.uint8 else result


@reduction(out="exact", derivatives=None, several=True)
def any(input: Array, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Array:
    """Whether any element over `dim` is not zero; uint8 for uint8, else bool.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    >>> (xtensor.tensor([[1, 2], [3, 4]]) > 3).any(dim=1)
    tensor([False,  True])
    """
    axes = () if dim == () else axes_of(dim, input.ndim, "any")
    return _truth(input, jnp.any(input != 0, axis=axes, keepdims=keepdim))


@reduction(out="exact", derivatives=None, several=True)
def all(input: Array, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Array:
    """Whether all elements over `dim` are not zero; uint8 for uint8, else bool.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    >>> (xtensor.tensor([[1, 2], [3, 4]]) > 0).all()
    tensor(True)
    """
    axes = () if dim == () else axes_of(dim, input.ndim, "all")
    return _truth(input, jnp.all(input != 0, axis=axes, keepdims=keepdim))


@reduction(derivatives=None, out=False, several=True)
def count_nonzero(input: Array, dim: int | Sequence[int] | None = None) -> Array:
    """The number of elements over `dim` that are not zero, as int64.

    Shape: `input` `(*)`, result without the dimensions `dim`.
    """
    axes = axes_of(dim, input.ndim, "count_nonzero")
    return jnp.sum(input != 0, axis=axes, dtype=jnp.int64)


# ---- logarithm of a sum of exponentials ----------------------------------------------------------------------------


def _logsumexp_grad(grad: Array, input: Array, result: Array, dim: Any, keepdim: bool) -> Array:
    axes = axes_of(dim, input.ndim)
    weights = jnp.exp(input.astype(result.dtype) - spread(result, input.shape, axes, keepdim))
    return spread(grad, input.shape, axes, keepdim) * jnp.conj(weights)


@reduction(autocast=dict(accelerator="float32"), derivatives=dict(input=_logsumexp_grad))
def logsumexp(input: Array, dim: int | Sequence[int], keepdim: bool = False) -> Array:
    """The logarithm of the sum of exponentials over `dim`, computed without overflow.

    Shape: `input` `(*)`; the result lacks the dimensions `dim`, or has 1 there with `keepdim`; `()` of all.

    Source: Blanchard, Higham and Higham 2021, IMA Journal of Numerical Analysis 41.

    >>> xtensor.logsumexp(xtensor.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex):
        own = dtypes.get_default_dtype()
    axes = axes_of(dim, input.ndim, "logsumexp")
    x = input.astype(dtypes.compute_type(own).numpy)
    if size_along(x.shape, axes) == 0:
        return jnp.log(jnp.sum(jnp.exp(x), axis=axes, keepdims=keepdim)).astype(own.numpy)
    top = jnp.max(jnp.real(x), axis=axes, keepdims=True)
    top = jnp.where(jnp.isinf(top), jnp.zeros_like(top), top)
    total = jnp.sum(jnp.exp(x - top), axis=axes, keepdims=keepdim)
    return (jnp.log(total) + kept(top, axes, keepdim)).astype(own.numpy)


attach_methods(std, var)
