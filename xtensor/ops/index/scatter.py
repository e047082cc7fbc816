"""Gather and scatter: an index tensor that says, element by element, where along one dimension to read or write.

The kernels work on flat arrays: the place of every element is computed from its coordinates and the index, so that
XLA gathers and scatters over one dimension. Indices are checked beforehand (`index_bounds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes, geometry
from ...operators.attach import attach_as, attach_methods
from ...operators.declare import general
from ...operators.derivatives import rules_of
from ...operators.functions.overloads import numpy_names, overloads
from ...operators.index_bounds import check_bounds, in_bounds, refuse_overlap
from ...operators.inplace import run_inplace
from ...operators.operator import REGISTRY
from ...operators.schema import Array, Operand
from ...tensor import Tensor, array_of, sizes_of
from ...xla.number_arrays import size_as
from ...xla.symbolic import at_most
from .masks import check_number

__all__ = [
    "gather",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
]
__all__ += ["take_along_dim"]

SAFE: dict[str, Any] = dict(mode="promise_in_bounds", wrap_negative_indices=False)


# ---- kernels -------------------------------------------------------------------------------------------------------


def places(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Where in the flat array of `shape` each element of `index` points, `index` replacing coordinate `dim`."""
    shape = shape or (1,)
    index = index.reshape(index.shape or (1,))
    dtype = jnp.int32 if at_most(math.prod(shape), 2**31 - 1) else jnp.int64
    strides = geometry.contiguous_strides(shape)
    total = index.astype(dtype) * size_as(strides[dim], dtype)
    for d in range(len(shape)):
        if d != dim:
            total = total + lax.broadcasted_iota(dtype, index.shape, d) * size_as(strides[d], dtype)
    return total


def corner(values: Array, shape: tuple[int, ...]) -> Array:
    """The first elements of every dimension, as many as the index has: what of a larger `src` is used."""
    values = values.reshape(values.shape or (1,))
    return values if values.shape == shape else values[tuple([slice(0, n) for n in shape])]


def uncorner(grad: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of `corner`."""
    full = shape or (1,)
    if grad.shape != full:
        grad = lax.pad(
            grad, jnp.zeros((), grad.dtype), [(0, n - m, 0) for n, m in zip(full, grad.shape, strict=True)]
        )
    return grad.reshape(shape)


def taken(array: Array, dim: int, index: Array) -> Array:
    """`gather` as a kernel; of no indices, whatever their number of dimensions, nothing."""
    if index.size == 0:
        return jnp.zeros(index.shape, array.dtype)
    found = array.reshape(-1).at[places(array.shape, dim, index)].get(**SAFE)
    return found.reshape(index.shape)


def put_along(array: Array, dim: int, index: Array, values: Array | float) -> Array:
    if index.size == 0:
        return array
    where = places(array.shape, dim, index)
    values = jnp.asarray(values)
    if values.ndim:
        values = corner(values, where.shape)
    return array.reshape(-1).at[where].set(values.astype(array.dtype), **SAFE).reshape(array.shape)


def add_along(array: Array, dim: int, index: Array, values: Array) -> Array:
    if index.size == 0:
        return array
    where = places(array.shape, dim, index)
    target = array.reshape(-1).at[where]
    values = corner(values, where.shape)
    made = target.max(values, **SAFE) if array.dtype == jnp.bool_ else target.add(values, **SAFE)
    return made.reshape(array.shape)


def src_gradient(grad: Array, dim: int, index: Array, src_shape: tuple[int, ...]) -> Array:
    """The gradient of what was written or added: it lies where the index says."""
    if index.size == 0:
        return jnp.zeros(src_shape, grad.dtype)
    where = places(grad.shape, dim, index)
    return uncorner(grad.reshape(-1).at[where].get(**SAFE), src_shape)


@general(
    views="loop",
    out="exact disjoint",
    derivatives=dict(
        input=lambda grad, dim, index, input_shape: add_along(
            jnp.zeros(input_shape, grad.dtype), dim, index, grad
        )
    ),
    name="gather",
)
def gather_kernel(input: Array, dim: int, index: Array) -> Array:
    """The elements of `input` at `index` along `dim`."""
    return taken(input, dim, index)


@general(
    out="exact",
    derivatives=dict(
        input=lambda grad, dim, index: put_along(grad, dim, index, 0),
        src=src_gradient,
    ),
    name="scatter",
    inplace=True,
)
def scatter_kernel(input: Array, dim: int, index: Array, src: Operand) -> Array:
    """`input` with `src`, a tensor or a number, written at `index` along `dim`."""
    return put_along(input, dim, index, src)


@general(
    autocast=dict(accelerator="widest"),
    out="exact",
    derivatives=dict(
        input=lambda grad: grad,
        src=src_gradient,
    ),
    name="scatter_add",
    inplace=True,
)
def scatter_add_kernel(input: Array, dim: int, index: Array, src: Array) -> Array:
    """`input` with `src` added at `index` along `dim`."""
    return add_along(input, dim, index, src)


# ---- reductions ----------------------------------------------------------------------------------------------------


@jax.custom_vjp
def multiply_at(base: Array, where: Array, values: Array) -> Array:
    """`base` multiplied at flat places, any number of times each; differentiable any number of times."""
    return base.at[where].multiply(values, **SAFE)


def multiply_forward(base: Array, where: Array, values: Array) -> Any:
    return multiply_at(base, where, values), (base, where, values)


def multiply_backward(saved: Any, grad: Array) -> Any:
    base, where, values = saved
    to_base, to_values = product_gradients(jnp.conj(grad), base, where, values)
    return jnp.conj(to_base), None, jnp.conj(to_values)


multiply_at.defvjp(multiply_forward, multiply_backward)


def product_gradients(grad: Array, base: Array, where: Array, values: Array) -> tuple[Array, Array]:
    """The gradients of `multiply_at`: of a factor, the product of the others, zeros among them included."""
    to_base = grad * jnp.conj(multiply_at(jnp.ones_like(base), where, values))
    zero = values == 0
    zeros = jnp.zeros(base.shape, jnp.int32).at[where].add(zero.astype(jnp.int32), **SAFE)
    zeros = zeros.at[where].get(**SAFE)
    safe = jnp.where(zero, 1, values)
    rest = multiply_at(base, where, safe).at[where].get(**SAFE)
    # What is zero now still varies: the second derivative is that of the product with its zero factor written out.
    null = jnp.zeros_like(base).at[where].add(jnp.where(zero, values, 0), **SAFE).at[where].get(**SAFE)
    quotient = rest / safe
    once = jnp.where(jnp.isfinite(quotient), quotient, 0)
    of_zero = jnp.where(zeros == 1, rest, jnp.where(zeros == 2, (null - values) * once, 0))
    others = jnp.where(zero, of_zero, jnp.where(zeros == 0, quotient, jnp.where(zeros == 1, null * once, 0)))
    return to_base, grad.at[where].get(**SAFE) * jnp.conj(others)


def lowest(dtype: Any) -> Any:
    return jnp.asarray(-jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min, dtype)


def highest(dtype: Any) -> Any:
    return jnp.asarray(jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max, dtype)


START: dict[str, Callable[[Any], Any]] = {
    "sum": lambda dtype: jnp.zeros((), dtype),
    "mean": lambda dtype: jnp.zeros((), dtype),
    "prod": lambda dtype: jnp.ones((), dtype),
    "amax": lambda dtype: jnp.zeros((), dtype) if dtype == jnp.bool_ else lowest(dtype),
    "amin": lambda dtype: jnp.ones((), dtype) if dtype == jnp.bool_ else highest(dtype),
}


def fold_at(base: Array, where: Array, values: Array, reduce: str, include_self: bool) -> Array:
    """A flat `base` with `values` folded into it at `where`; without `include_self`, in place of what was there."""
    if not include_self:
        base = base.at[where].set(START[reduce](base.dtype), **SAFE)
    target = base.at[where]
    if reduce == "amax" or (base.dtype == jnp.bool_ and reduce == "sum"):
        return target.max(values, **SAFE)
    if reduce == "amin" or (base.dtype == jnp.bool_ and reduce == "prod"):
        return target.min(values, **SAFE)
    if reduce == "prod":
        return multiply_at(base, where, values)
    total = target.add(values, **SAFE)
    if reduce == "sum":
        return total
    count = counts(base.shape, where, include_self)
    if jnp.issubdtype(base.dtype, jnp.integer):
        return jnp.floor_divide(total, count.astype(base.dtype))
    return (total / count).astype(base.dtype)


def counts(shape: tuple[int, ...], where: Array, include_self: bool) -> Array:
    """How many values a mean is over at each place; 1 where there is none, since nothing changes there."""
    made = jnp.full(shape, 1 if include_self else 0, jnp.int32).at[where].add(1, **SAFE)
    return jnp.maximum(made, 1)


def fold_gradients(
    grad: Array, base: Array, where: Array, values: Array, result: Array, reduce: str, include_self: bool
) -> tuple[Array, Array]:
    """The gradients of `fold_at` for a base and for values."""
    if reduce == "sum":
        to_base, to_values = grad, grad.at[where].get(**SAFE)
    elif reduce == "mean":
        shared = grad / counts(base.shape, where, include_self)
        to_base, to_values = shared, shared.at[where].get(**SAFE)
    elif reduce == "prod":
        start = base if include_self else base.at[where].set(jnp.ones((), base.dtype), **SAFE)
        to_base, to_values = product_gradients(grad, start, where, values)
    else:
        # Those that attain the extremum share its gradient.
        mine = (base == result).astype(grad.dtype)
        theirs = (values == result.at[where].get(**SAFE)).astype(grad.dtype)
        if not include_self:
            mine = mine.at[where].set(jnp.zeros((), grad.dtype), **SAFE)
        number = mine.at[where].add(theirs, **SAFE)
        shared = grad / jnp.where(number == 0, 1, number)
        to_base, to_values = shared * mine, shared.at[where].get(**SAFE) * theirs
        untouched = jnp.ones(base.shape, jnp.bool_).at[where].set(False, **SAFE)
        to_base = jnp.where(untouched, grad, to_base)
    if not include_self:
        to_base = to_base.at[where].set(jnp.zeros((), to_base.dtype), **SAFE)
    return to_base, to_values


def check_reducible(name: str, reduce: str, dtype: Any) -> None:
    """NotImplementedError for a reduction that has no meaning for a dtype."""
    found = dtypes.FROM_NUMPY[np.dtype(dtype)]
    if (reduce == "mean" and found is dtypes.bool) or (reduce in ("amax", "amin") and found.is_complex):
        raise checks.not_implemented_for(f"{name}_cpu_reduce_{reduce}", found)


def reduce_gradients(
    grad: Array,
    input: Array,
    dim: int,
    index: Array,
    src: Array,
    result: Array,
    reduce: str,
    include_self: bool,
) -> tuple[Array, Array]:
    if index.size == 0:
        return grad, jnp.zeros(src.shape, grad.dtype)
    where = places(input.shape, dim, index)
    to_base, to_values = fold_gradients(
        grad.reshape(-1),
        input.reshape(-1),
        where,
        corner(src, where.shape),
        result.reshape(-1),
        reduce,
        include_self,
    )
    return to_base.reshape(input.shape), uncorner(to_values, src.shape)


@general(
    out="exact", derivatives=rules_of("input src", reduce_gradients), name="scatter_reduce", inplace=True
)
def scatter_reduce_kernel(
    input: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """`input` with `src` folded in at `index` along `dim`."""
    if index.size == 0:
        return input
    check_reducible("scatter_gather_tensor", reduce, input.dtype)
    where = places(input.shape, dim, index)
    flat = fold_at(input.reshape(-1), where, corner(src, where.shape), reduce, include_self)
    return flat.reshape(input.shape)


GATHER, SCATTER = REGISTRY["gather"], REGISTRY["scatter"]
SCATTER_ADD, SCATTER_REDUCE = REGISTRY["scatter_add"], REGISTRY["scatter_reduce"]


# ---- checks --------------------------------------------------------------------------------------------------------


def check_arguments(name: str, input: Any, dim: Any, index: Any) -> int:
    """The dimension, counted from the front, after the checks that the types need."""
    if not isinstance(input, Tensor):
        raise checks.argument_error(name, "input", 1, "Tensor", input)
    if not isinstance(dim, int) or isinstance(dim, bool):
        if not hasattr(dim, "__index__") or isinstance(dim, bool):
            raise checks.argument_error(name, "dim", 2, "int", dim)
        dim = dim.__index__()
    if not isinstance(index, Tensor):
        raise checks.argument_error(name, "index", 3, "Tensor", index)
    return checks.wrap_dim(dim, input.dim())


def check_along(name: str, target: str, input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    """The dtype, the sizes and the values of an index tensor for `gather` and `scatter`."""
    shape = sizes_of(index)
    # An index without elements may be of any dtype.
    if index.dtype is not dtypes.int64 and index.dtype is not dtypes.int32 and 0 not in shape:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if isinstance(src, Tensor) and src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if 0 in shape:
        return
    sizes = sizes_of(input)
    mine, own = sizes or (1,), shape or (1,)
    if len(own) != len(mine):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {target} tensor")
    given = None
    if isinstance(src, Tensor):
        given = sizes_of(src) or (1,)
        if len(given) != len(own):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d, size in enumerate(own):
        if d != dim and size > mine[d]:
            if name == "gather":
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(own)} to be no larger than self "
                    f"{list(sizes)} apart from dimension {dim}"
                )
            tail = "" if given is None else f" and to be no larger size than src {list(given)}"
            raise RuntimeError(
                f"Expected index {list(own)} to be no larger than self {list(sizes)} apart from dimension {dim}{tail}"
            )
        if given is not None and size > given[d]:
            raise RuntimeError(
                f"Expected index {list(own)} to be no larger than self {list(sizes)} apart from dimension {dim} and to "
                f"be no larger size than src {list(given)}"
            )
    size = mine[dim]

    def outside(value: int) -> Exception:
        return RuntimeError(f"index {value} is out of bounds for dimension {dim} with size {size}")

    check_bounds(array_of(index), size, False, outside)


REDUCE_NAMES = {"add": "sum", "multiply": "prod"}
SCATTER_SIGNATURES = (
    "int dim, Tensor index, Tensor src",
    "int dim, Tensor index, Tensor src, *, str reduce",
    "int dim, Tensor index, Number value",
    "int dim, Tensor index, Number value, *, str reduce",
)


DEPRECATED_REDUCE = (
    "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. "
    "Use torch.scatter_reduce instead for more reduction options."
)


def scatter_values(
    input: Any, dim: Any, index: Any, src: Any, value: Any, reduce: Any
) -> tuple[Any, Any, Any]:
    """Dimension, source and reduction of `scatter`, checked."""
    if src is None:
        src = value
    dim = check_arguments("scatter", input, dim, index)
    if not isinstance(src, (Tensor, int, float, complex, np.generic)):
        raise checks.combination_error("scatter", (dim, index, src), {}, SCATTER_SIGNATURES)
    if reduce is not None:
        if isinstance(src, Tensor):
            checks.warn_once(DEPRECATED_REDUCE)
        if reduce not in REDUCE_NAMES:
            raise RuntimeError("reduce argument must be either add or multiply.")
        reduce = REDUCE_NAMES[reduce]
    if isinstance(src, np.generic):
        src = src.item()
    if not isinstance(src, Tensor):
        check_number(src, input.dtype)
    check_along("scatter", "self", input, dim, index, src)
    if reduce is not None and not isinstance(src, Tensor):
        src = input.new_full(tuple(sizes_of(index)), src)
    return dim, src, reduce


# ---- the operators -------------------------------------------------------------------------------------------------


@numpy_names
def gather(
    input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None
) -> Tensor:
    """The elements of `input` at `index` along `dim`: `input[i][index[i][j]]` for dim 1 of a matrix.

    Differs from PyTorch: with `sparse_grad` the gradient is dense as well.

    Shape: `index` `(*)` has as many dimensions as `input`, and is nowhere larger but along `dim`; the result has
    the index's shape.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.

    >>> x = xtensor.tensor([[1, 2], [3, 4]])
    >>> xtensor.gather(x, 1, xtensor.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    dim = check_arguments("gather", input, dim, index)
    if out is not None:
        refuse_overlap(out, input)
    check_along("gather", "input", input, dim, index)
    if out is None:
        return GATHER.function(input, dim, index)
    return GATHER.call((input, dim, index), out)


@numpy_names
def gather_method(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """The elements at `index` along `dim`.

    Shape: `index` as many dimensions as the tensor; result that of `index`.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.tensor([[1, 2], [3, 4]]).gather(1, xtensor.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    return gather(self, dim, index, sparse_grad=sparse_grad)


@overloads(
    "Tensor input, int dim, Tensor index, Tensor src, *, Tensor out = None",
    "Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor out = None",
    "Tensor input, int dim, Tensor index, Number value, *, Tensor out = None",
    "Tensor input, int dim, Tensor index, Number value, *, str reduce, Tensor out = None",
)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of `input` with `src`, a tensor or a number, at `index` along `dim`; `reduce`: "add" or "multiply".

    Shape: `index` and `src` have as many dimensions as `input`; the index is nowhere larger than `src`, nor, but
    along `dim`, than `input`; result as `input`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.

    >>> xtensor.zeros(3).scatter(0, xtensor.tensor([0, 2]), xtensor.tensor([5.0, 7.0]))
    tensor([5., 0., 7.])
    """
    dim, src, reduce = scatter_values(input, dim, index, src, value, reduce)
    if reduce is not None:
        return SCATTER_REDUCE.call((input, dim, index, src, reduce, True), out)
    if out is None:
        return SCATTER.function(input, dim, index, src)
    return SCATTER.call((input, dim, index, src), out)


@numpy_names
def scatter_method(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """A copy with `src`, a tensor or a number, at `index` along `dim`; `reduce`: "add" or "multiply".

    Shape: `index` as many dimensions as the tensor; `src` at least as large; result that of the tensor.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.zeros(3).scatter(0, xtensor.tensor([2]), 5.0)
    tensor([0., 0., 5.])
    """
    return scatter(self, dim, index, src, value=value, reduce=reduce)


@numpy_names
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """Write `src`, a tensor or a number, at `index` along `dim`, in place; `reduce`: "add" or "multiply".

    Shape: `index` as many dimensions as the tensor; `src` at least as large; that of the tensor itself stays.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.zeros(3).scatter_(0, xtensor.tensor([2]), 5.0)
    tensor([0., 0., 5.])
    """
    dim, src, reduce = scatter_values(self, dim, index, src, value, reduce)
    refuse_overlap(self, index, src)
    if reduce is not None:
        return run_inplace(SCATTER_REDUCE, (self, dim, index, src, reduce, True))
    return run_inplace(SCATTER, (self, dim, index, src))


def check_src(name: str, input: Any, dim: Any, index: Any, src: Any) -> int:
    dim = check_arguments(name, input, dim, index)
    if not isinstance(src, Tensor):
        raise checks.argument_error(name, "src", 4, "Tensor", src)
    check_along("scatter", "self", input, dim, index, src)
    return dim


@numpy_names
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of `input` with `src` added at `index` along `dim`, repeated indices included.

    Shape: `index` and `src` have as many dimensions as `input`; the index is nowhere larger than `src`, nor, but
    along `dim`, than `input`; result as `input`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.

    >>> xtensor.zeros(3).scatter_add(0, xtensor.tensor([0, 2, 2]), xtensor.ones(3))
    tensor([1., 0., 2.])
    """
    dim = check_src("scatter_add", input, dim, index, src)
    if out is None:
        return SCATTER_ADD.function(input, dim, index, src)
    return SCATTER_ADD.call((input, dim, index, src), out)


@numpy_names
def scatter_add_method(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy with `src` added at `index` along `dim`, repeated indices included.

    Shape: `index` as many dimensions as the tensor; `src` at least as large; result that of the tensor.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.zeros(2).scatter_add(0, xtensor.tensor([1, 1]), xtensor.ones(2))
    tensor([0., 2.])
    """
    return scatter_add(self, dim, index, src)


@numpy_names
def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Add `src` at `index` along `dim`, repeated indices included, in place.

    Shape: `index` as many dimensions as the tensor; `src` at least as large; that of the tensor itself stays.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.zeros(2).scatter_add_(0, xtensor.tensor([1, 1]), xtensor.ones(2))
    tensor([0., 2.])
    """
    dim = check_src("scatter_add_", self, dim, index, src)
    refuse_overlap(self, index, src)
    return run_inplace(SCATTER_ADD, (self, dim, index, src))


def check_reduce(reduce: Any) -> None:
    if reduce not in START:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")


@numpy_names
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of `input` with `src` folded in at `index` along `dim`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; without `include_self`, what was there does not count.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.
    """
    dim = check_arguments("scatter_reduce", input, dim, index)
    check_reduce(reduce)
    check_src("scatter_reduce", input, dim, index, src)
    return SCATTER_REDUCE.call((input, dim, index, src, reduce, bool(include_self)), out)


@numpy_names
def scatter_reduce_method(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy with `src` folded in at `index` along `dim`.

    Shape: `index` as many dimensions as the tensor; `src` at least as large; result that of the tensor.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.zeros(2).scatter_reduce(0, xtensor.tensor([1, 1]), xtensor.tensor([3.0, 4.0]), "amax")
    tensor([0., 4.])
    """
    return scatter_reduce(self, dim, index, src, reduce, include_self=include_self)


@numpy_names
def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Fold `src` in at `index` along `dim`, in place.

    Shape: `index` as many dimensions as the tensor; `src` at least as large; that of the tensor itself stays.

    Raises: RuntimeError where an index is out of range or sizes do not fit.

    >>> xtensor.zeros(2).scatter_reduce_(0, xtensor.tensor([1, 1]), xtensor.tensor([3.0, 4.0]), "amax")
    tensor([0., 4.])
    """
    dim = check_arguments("scatter_reduce_", self, dim, index)
    check_reduce(reduce)
    check_src("scatter_reduce_", self, dim, index, src)
    refuse_overlap(self, index, src)
    return run_inplace(SCATTER_REDUCE, (self, dim, index, src, reduce, bool(include_self)))


@numpy_names
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The elements of `input` at `indices` along `dim`, both broadcast apart from it; without `dim`, of both flat.

    With `dim`, an index outside the dimension is taken modulo its size.

    Shape: `input` and `indices` broadcast but for `dim`, where the result has the indices' size.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.

    >>> x = xtensor.tensor([[30, 10, 20]])
    >>> x.take_along_dim(x.argsort(dim=1), dim=1)
    tensor([[10, 20, 30]])
    """
    if not isinstance(input, Tensor) or not isinstance(indices, Tensor):
        name, position, got = (
            ("input", 1, input) if not isinstance(input, Tensor) else ("indices", 2, indices)
        )
        raise checks.argument_error("take_along_dim", name, position, "Tensor", got)
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return gather(input.view(-1), 0, indices.view(-1), out=out)
    if input.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    dim = checks.wrap_dim(dim, input.dim(), wrap_scalar=False)
    sizes, own = list(sizes_of(input)), list(sizes_of(indices))
    mine, theirs = [*sizes[:dim], 1, *sizes[dim + 1 :]], [*own[:dim], 1, *own[dim + 1 :]]
    shape = geometry.broadcast_shapes(tuple(mine), tuple(theirs))
    whole = input.expand((*shape[:dim], sizes[dim], *shape[dim + 1 :]))
    picked = indices.expand((*shape[:dim], own[dim], *shape[dim + 1 :]))
    return gather(whole, dim, wrapped(picked, sizes[dim]), out=out)


def wrapped(indices: Tensor, size: int) -> Tensor:
    """Indices modulo the size, as PyTorch takes them; most often they are in range, and nothing is done."""
    if size == 0 or in_bounds(array_of(indices), size, False):
        return indices
    return indices.remainder(size)


attach_methods(scatter_, scatter_add_, scatter_reduce_, take_along_dim)
attach_as(
    gather=gather_method,
    scatter=scatter_method,
    scatter_add=scatter_add_method,
    scatter_reduce=scatter_reduce_method,
)
