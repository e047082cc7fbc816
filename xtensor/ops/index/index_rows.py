"""The index family: slices along one dimension chosen by a vector, and elements chosen by their number.

`index_select`, `index_add`, `index_copy`, `index_fill`, `index_reduce`; `take` and `put`. Indices are checked before
the program starts (`index_bounds.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ... import checks, dtypes
from ...operators.attach import attach_as, attach_methods
from ...operators.declare import general
from ...operators.derivatives import rules_of
from ...operators.functions.overloads import numpy_names, overloads
from ...operators.index_bounds import check_bounds, known_bounds, refuse_overlap
from ...operators.inplace import run_inplace
from ...operators.operator import REGISTRY
from ...operators.options import number_array
from ...operators.ordered import run_like
from ...operators.schema import Array, Number, Operand
from ...tensor import Tensor, array_of, sizes_of
from .masks import check_number, shared_dims, warn_of_expanded
from .scatter import SAFE, check_arguments, check_reducible, fold_at, fold_gradients, places

__all__ = [
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_fill",
    "index_fill_",
    "index_reduce",
]
__all__ += ["index_reduce_", "index_select", "put", "put_", "take"]


# ---- kernels -------------------------------------------------------------------------------------------------------


def rows(array: Array, dim: int, index: Array, wrap: bool = False) -> Any:
    """`array.at[..., index, ...]` with `index` as a vector along `dim` (of an array of at least one dimension)."""
    size = array.shape[dim]
    dtype = jnp.int32 if size < 2**31 else jnp.int64
    index = index.reshape(-1).astype(dtype)
    if wrap:
        index = jnp.where(index < 0, index + jnp.asarray(size, dtype), index)
    return array.at[(*[slice(None)] * dim, index)]


def vector(array: Array) -> Array:
    """A scalar as a vector of one element."""
    return array.reshape(array.shape or (1,))


def like_rows(source: Array, array: Array, dim: int, index: Array) -> Array:
    """A source in the shape of the rows that it goes to; those of scalars and vectors differ by dimensions of one."""
    return source.reshape((*array.shape[:dim], index.size, *array.shape[dim + 1 :]))


def read_rows(array: Array, dim: int, index: Array, shape: tuple[int, ...]) -> Array:
    return rows(vector(array), dim, index).get(**SAFE).reshape(shape)


def add_rows(array: Array, dim: int, index: Array, source: Array) -> Array:
    whole = vector(array)
    source = like_rows(source, whole, dim, index)
    target = rows(whole, dim, index)
    made = target.max(source, **SAFE) if array.dtype == jnp.bool_ else target.add(source, **SAFE)
    return made.reshape(array.shape)


def set_rows(array: Array, dim: int, index: Array, source: Any, wrap: bool = False) -> Array:
    whole = vector(array)
    source = jnp.asarray(source)
    if source.ndim:
        source = like_rows(source, whole, dim, index)
    return rows(whole, dim, index, wrap).set(source.astype(array.dtype), **SAFE).reshape(array.shape)


@general(
    views="loop",
    out="exact disjoint",
    derivatives=dict(
        input=lambda grad, dim, index, input_shape: add_rows(
            jnp.zeros(input_shape, grad.dtype), dim, index, grad
        )
    ),
    name="index_select",
)
def index_select_kernel(input: Array, dim: int, index: Array) -> Array:
    """The slices of `input` along `dim` that `index` names."""
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in (jnp.int32, jnp.int64):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    shape = input.shape if input.ndim == 0 else (*input.shape[:dim], index.size, *input.shape[dim + 1 :])
    return read_rows(input, dim, index, shape)


def scaled(source: Array, alpha: Any) -> Array:
    if isinstance(alpha, int):
        return source
    if source.dtype == jnp.bool_:
        return source & (alpha != 0)
    return source * jnp.asarray(alpha).astype(source.dtype)


@general(
    out="exact",
    derivatives=dict(
        input=lambda grad: grad,
        source=lambda grad, dim, index, alpha, source_shape: scaled(
            read_rows(grad, dim, index, source_shape),
            jnp.conj(jnp.asarray(alpha)) if not isinstance(alpha, int) else 1,
        ),
    ),
    name="index_add",
    inplace=True,
)
def index_add_kernel(input: Array, dim: int, index: Array, source: Array, *, alpha: Number = 1) -> Array:
    """`input` with `alpha * source` added to the slices along `dim` that `index` names."""
    return add_rows(input, dim, index, scaled(source, alpha))


@general(
    autocast=dict(cpu="widest"),
    out="exact",
    derivatives=dict(
        input=lambda grad, dim, index: set_rows(grad, dim, index, 0),
        source=lambda grad, dim, index, source_shape: read_rows(grad, dim, index, source_shape),
    ),
    name="index_copy",
    inplace=True,
)
def index_copy_kernel(input: Array, dim: int, index: Array, source: Array) -> Array:
    """`input` with the slices along `dim` that `index` names replaced by those of `source`."""
    return set_rows(input, dim, index, source)


def fill_value(grad: Array, dim: int, index: Array) -> Array:
    kept = set_rows(jnp.ones(grad.shape, jnp.bool_), dim, index, False, True)
    return jnp.sum(jnp.where(kept, 0, grad))


@general(
    derivatives=dict(input=lambda grad, dim, index: set_rows(grad, dim, index, 0, True), value=fill_value),
    name="index_fill",
    inplace=True,
)
def index_fill_kernel(input: Array, dim: int, index: Array, value: Operand) -> Array:
    """`input` with `value` in the slices along `dim` that `index` names."""
    value = jnp.asarray(value)
    if jnp.issubdtype(value.dtype, jnp.complexfloating) and not jnp.issubdtype(
        input.dtype, jnp.complexfloating
    ):
        value = jnp.real(value)
    return set_rows(input, dim, index, value, True)


def spread_index(input: Array, dim: int, index: Array) -> tuple[Array, tuple[int, ...]]:
    """The flat places of the slices that `index` names, and their shape."""
    shape = (*input.shape[:dim], index.size, *input.shape[dim + 1 :]) if input.ndim else (index.size,)
    broad = index.reshape([-1 if d == dim else 1 for d in range(len(shape))])
    return places(input.shape, dim, jnp.broadcast_to(broad, shape)), shape


def reduce_gradients(
    grad: Array,
    input: Array,
    dim: int,
    index: Array,
    source: Array,
    result: Array,
    reduce: str,
    include_self: bool,
) -> tuple[Array, Array]:
    where, shape = spread_index(input, dim, index)
    to_input, to_source = fold_gradients(
        grad.reshape(-1),
        input.reshape(-1),
        where,
        source.reshape(shape),
        result.reshape(-1),
        reduce,
        include_self,
    )
    return to_input.reshape(input.shape), to_source.reshape(source.shape)


@general(
    out="exact", derivatives=rules_of("input source", reduce_gradients), name="index_reduce", inplace=True
)
def index_reduce_kernel(
    input: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """`input` with `source` folded into the slices along `dim` that `index` names."""
    check_reducible("index_reduce", reduce, input.dtype)
    where, shape = spread_index(input, dim, index)
    return fold_at(input.reshape(-1), where, source.reshape(shape), reduce, include_self).reshape(input.shape)


def number_places(array: Array, index: Array) -> Array:
    """Flat places from element numbers, negative ones counted from the end."""
    dtype = jnp.int32 if array.size < 2**31 else jnp.int64
    index = index.astype(dtype)
    return jnp.where(index < 0, index + jnp.asarray(array.size, dtype), index)


@general(
    views="loop",
    out="exact disjoint",
    derivatives=dict(
        input=lambda grad, index, input_shape: put_elements(
            jnp.zeros(input_shape, grad.dtype), index, grad, True
        )
    ),
    name="take",
)
def take_kernel(input: Array, index: Array) -> Array:
    """The elements of `input`, as if it were flat, that `index` numbers."""
    if index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    return input.reshape(-1).at[number_places(input, index)].get(**SAFE)


def put_elements(array: Array, index: Array, source: Array, accumulate: bool) -> Array:
    if index.size == 0:
        return array
    target = array.reshape(-1).at[number_places(array, index)]
    source = source.reshape(index.shape)
    if not accumulate:
        made = target.set(source, **SAFE)
    else:
        made = target.max(source, **SAFE) if array.dtype == jnp.bool_ else target.add(source, **SAFE)
    return made.reshape(array.shape)


def put_source(grad: Array, index: Array, source_shape: tuple[int, ...]) -> Array:
    if index.size == 0:
        return jnp.zeros(source_shape, grad.dtype)
    return grad.reshape(-1).at[number_places(grad, index)].get(**SAFE).reshape(source_shape)


@general(
    derivatives=dict(
        input=lambda grad, index, accumulate: (
            grad if accumulate else put_elements(grad, index, jnp.zeros(index.shape, grad.dtype), False)
        ),
        source=put_source,
    ),
    name="put",
    inplace=True,
)
def put_kernel(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """`input` with elements of `source` at the element numbers `index`; with `accumulate`, added there."""
    return put_elements(input, index, source, accumulate)


SELECT, ADD, COPY = REGISTRY["index_select"], REGISTRY["index_add"], REGISTRY["index_copy"]
FILL, REDUCE = REGISTRY["index_fill"], REGISTRY["index_reduce"]
TAKE, PUT = REGISTRY["take"], REGISTRY["put"]


# ---- checks --------------------------------------------------------------------------------------------------------


def is_integer(index: Tensor) -> bool:
    return index.dtype is dtypes.int64 or index.dtype is dtypes.int32


def extent(input: Tensor, dim: int) -> int:
    sizes = sizes_of(input)
    return sizes[dim] if sizes else 1


def check_source(name: str, input: Any, dim: Any, index: Any, source: Any) -> int:
    """The checks that `index_add` and `index_reduce` share, but for the values of the index."""
    dim = check_arguments(name.rstrip("_"), input, dim, index)
    if not isinstance(source, Tensor):
        raise checks.argument_error(name.rstrip("_"), "source", 4, "Tensor", source)
    if not is_integer(index):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}"
        )
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): self ({input.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the same "
            "scalar type"
        )
    if index.dim() > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.dim()} with type: "
            f"{index.dtype.scalar_name} and size: {list(sizes_of(index))}"
        )
    sizes, own = list(sizes_of(input)), list(sizes_of(source))
    count = own[dim] if dim < len(own) else 1
    if index.numel() != count:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({count}), for dim: "
            f"{dim}"
        )
    if len(own) != len(sizes) or own[:dim] + own[dim + 1 :] != sizes[:dim] + sizes[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{sizes} source.shape = {own}"
        )
    return dim


def out_of_range(value: int) -> Exception:
    return IndexError("index out of range in self")


def beyond_columns(size: int) -> Callable[[int], Exception]:
    """The error of an index along the second dimension, for which PyTorch has a kernel of its own."""
    return lambda value: RuntimeError(f"INDICES element is out of DATA bounds, id={value} axis_dim={size}")


def no_index(kind: type[Exception], prefix: str, dim: int, size: int) -> Any:
    return lambda value: kind(f"{prefix}index {value} is out of bounds for dimension {dim} with size {size}")


def check_add(name: str, input: Any, dim: Any, index: Any, source: Any, alpha: Any) -> int:
    dim = check_source(name, input, dim, index, source)
    size = extent(input, dim)
    error = no_index(RuntimeError, "", dim, size) if input.dim() > 1 else out_of_range
    check_bounds(array_of(index), size, False, error)
    if isinstance(alpha, complex) and not input.dtype.is_complex:
        number_array(alpha, input.dtype)
    return dim


def check_copy(input: Any, dim: Any, index: Any, source: Any) -> int:
    name = "index_copy_"
    dim = check_arguments("index_copy", input, dim, index)
    if not isinstance(source, Tensor):
        raise checks.argument_error("index_copy", "source", 4, "Tensor", source)
    if index.dim() > 1:
        raise IndexError(f"{name}(): Index should have dimension 1 or 0 (got {index.dim()})")
    sizes, own = list(sizes_of(input)), list(sizes_of(source))
    count = index.numel()
    if not own and count != 1:
        raise IndexError(f"{name}(): When source is scalar, index should have one element (got {count})")
    if own and sizes and len(own) != len(sizes):
        raise IndexError(
            f"{name}(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(own)}), destination dimensionality ({len(sizes)})"
        )
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): self and source expected to have the same dtype, but got (self) {input.dtype.scalar_name} and "
            f"(source) {source.dtype.scalar_name}"
        )
    mine, theirs = sizes[:dim] + sizes[dim + 1 :], own[:dim] + own[dim + 1 :]
    if mine != theirs:
        raise RuntimeError(
            f"{name}(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, mine))} at dimension {dim} and source slice shape: {' '.join(map(str, theirs))} at "
            "dimension 0."
        )
    if own and count != own[dim]:
        raise IndexError(
            f"{name}(): Number of indices ({count}) should be equal to source.size(dim) ({own[dim]})"
        )
    size = extent(input, dim)
    check_bounds(array_of(index), size, False, no_index(IndexError, f"{name}(): ", dim, size))
    return dim


FILL_SIGNATURES = ("int dim, Tensor index, Tensor value", "int dim, Tensor index, Number value")


def check_fill(input: Any, dim: Any, index: Any, value: Any) -> int:
    dim = check_arguments("index_fill", input, dim, index)
    if isinstance(value, Tensor):
        if value.dim() != 0:
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} "
                "dimension(s)."
            )
        is_complex = value.dtype.is_complex
    elif isinstance(value, (int, float, complex)):
        is_complex = isinstance(value, complex)
    else:
        raise checks.combination_error("index_fill", (dim, index, value), {}, FILL_SIGNATURES)
    if index.dtype is not dtypes.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if is_complex and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if index.dim() > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if not isinstance(value, Tensor):
        check_number(value, input.dtype)
    size = extent(input, dim)
    if input.numel():
        check_bounds(array_of(index), size, True, no_index(IndexError, "", dim, size))
    return dim


def check_index_reduce(input: Any, dim: Any, index: Any, source: Any, reduce: Any) -> int:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    checks.warn_once("index_reduce() is in beta and the API may change at any time.")
    dim = check_source("index_reduce_", input, dim, index, source)
    check_bounds(array_of(index), extent(input, dim), False, out_of_range)
    return dim


def no_element(count: int) -> Any:
    return lambda value: IndexError(
        f"out of range: tried to access index {value} on a tensor of {count} elements."
    )


def check_put(input: Any, index: Any, source: Any) -> None:
    for name, position, value in (("input", 1, input), ("index", 2, index), ("source", 3, source)):
        if not isinstance(value, Tensor):
            raise checks.argument_error("put", name, position, "Tensor", value)
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.scalar_name} and source.dtype = {source.dtype.scalar_name}"
        )
    if source.numel() != index.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    if input.numel() == 0 and index.numel() != 0:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    check_bounds(array_of(index), input.numel(), True, no_element(input.numel()))


# ---- the operators -------------------------------------------------------------------------------------------------


@numpy_names
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of `input` along `dim` that the vector `index` names, as a copy.

    Shape: `input` `(*)`, `index` `(n)`; result as `input`, with n at `dim`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.

    >>> x = xtensor.tensor([[1, 2], [3, 4], [5, 6]])
    >>> xtensor.index_select(x, 0, xtensor.tensor([2, 0]))
    tensor([[5, 6],
            [1, 2]])
    """
    if out is None and type(dim) is int and type(index) is Tensor and index._xt_view is None:
        # Only the values have to be looked at before the program starts: it knows the shapes and dtypes itself.
        bounds = known_bounds(index._xt_storage.array)
        if bounds is not None and bounds[1] >= 0 and isinstance(input, Tensor):
            sizes = input._xt_storage.raw.shape if input._xt_view is None else input._xt_view.sizes
            if 0 <= dim < len(sizes) and bounds[2] < sizes[dim]:
                return index_select_kernel(input, dim, index)
    dim = check_arguments("index_select", input, dim, index)
    if not sizes_of(input) and index.numel() != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)"
        )
    size = extent(input, dim)
    if size == 0 and index.numel():
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if index.dim() <= 1 and is_integer(index):
        if out is not None:
            refuse_overlap(out, input, index)
        check_bounds(array_of(index), size, False, beyond_columns(size) if dim == 1 else out_of_range)
    if out is None:
        return SELECT.function(input, dim, index)
    return SELECT.call((input, dim, index), out)


@numpy_names
def index_select_method(self: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices along `dim` that the vector `index` names, as a copy.

    Shape: `(*, n, *)`, `index` `(m)`, result `(*, m, *)`.

    Raises: IndexError where an index or `dim` is out of range.
    """
    return index_select(self, dim, index)


@numpy_names
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """A copy of `input` with `alpha * source` added to the slices along `dim` that `index` names.

    Shape: `input` `(*)`, `index` `(n)`, `source` as `input` with n at `dim`; result as `input`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.

    >>> xtensor.zeros(3).index_add(0, xtensor.tensor([0, 2, 2]), xtensor.ones(3))
    tensor([1., 0., 2.])
    """
    dim = check_add("index_add_", input, dim, index, source, alpha)
    return ADD.call((input, dim, index, source, alpha), out)


@numpy_names
def index_add_method(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """A copy with `alpha * source` added to the slices along `dim` that `index` names.

    Shape: `index` `(n)`, `source` that of the tensor with n along `dim`; result that of the tensor.

    Raises: IndexError where `dim` or an index is out of range; RuntimeError where sizes do not fit.

    >>> xtensor.zeros(3).index_add(0, xtensor.tensor([0, 2]), xtensor.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return index_add(self, dim, index, source, alpha=alpha)


@numpy_names
def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Add `alpha * source` to the slices along `dim` that `index` names, in place.

    Shape: `index` `(n)`, `source` that of the tensor with n along `dim`; that of the tensor itself stays.

    Raises: RuntimeError where an index is out of range; IndexError for one of a vector.

    >>> xtensor.zeros(3).index_add_(0, xtensor.tensor([0, 2]), xtensor.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    dim = check_add("index_add_", self, dim, index, source, alpha)
    refuse_overlap(self, index, source)
    return run_inplace(ADD, (self, dim, index, source, alpha))


@numpy_names
def index_copy(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """A copy of `input` with the slices along `dim` that `index` names replaced by those of `source`.

    Raises: TypeError for arguments of other kinds; IndexError where sizes do not fit; RuntimeError where
    sizes do not fit; IndexError where `dim` is out of range.
    """
    dim = check_copy(input, dim, index, source)
    return COPY.call((input, dim, index, source), out)


@numpy_names
def index_copy_method(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy with the slices along `dim` that `index` names replaced by those of `source`.

    Shape: `index` `(n)`, `source` that of the tensor with n along `dim`; result that of the tensor.

    Raises: IndexError where an index is out of range or sizes do not fit.
    """
    return index_copy(self, dim, index, source)


@numpy_names
def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Replace the slices along `dim` that `index` names by those of `source`, in place.

    Shape: `index` `(n)`, `source` that of the tensor with n along `dim`; that of the tensor itself stays.

    Raises: IndexError where an index is out of range or sizes do not fit.
    """
    dim = check_arguments("index_copy_", self, dim, index)
    if isinstance(source, Tensor) and not index.dim() > 1:
        refuse_overlap(self, index, source)
    dim = check_copy(self, dim, index, source)
    return run_inplace(COPY, (self, dim, index, source))


@overloads(
    "Tensor input, int dim, Tensor index, Tensor value",
    "Tensor input, int dim, Tensor index, Number value",
)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """A copy of `input` with `value` in the slices along `dim` that `index` names.

    Shape: `input` `(*)`, `index` `(n)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    dim = check_fill(input, dim, index, value)
    return run_like(FILL, (input, dim, index, value))


@numpy_names
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write `value` to the slices along `dim` that `index` names, in place.

    Shape: `index` `(n)`; that of the tensor itself stays.

    Raises: IndexError where an index or `dim` is out of range.
    """
    dim = check_fill(self, dim, index, value)
    refuse_overlap(self, index)
    shared = shared_dims(self)
    if not shared:
        return run_inplace(FILL, (self, dim, index, value))
    warn_of_expanded("index_fill_", "tensor[mask] = scalar")
    part, at = self, dim - sum(d < dim for d in shared)
    for d in reversed(shared):
        part = part.select(d, 0)
    if dim not in shared:
        run_inplace(FILL, (part, at, index, value))
    elif index.numel():
        part.fill_(value)
    return self


@numpy_names
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of `input` with `source` folded ("prod", "mean", "amax", "amin") into the slices that `index` names.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; IndexError where
    `dim` is out of range.
    """
    dim = check_index_reduce(input, dim, index, source, reduce)
    return REDUCE.call((input, dim, index, source, reduce, bool(include_self)), out)


@numpy_names
def index_reduce_method(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy with `source` folded into the slices along `dim` that `index` names.

    Shape: `index` `(n)`, `source` that of the tensor with n along `dim`; result that of the tensor.

    Raises: IndexError where `dim` or an index is out of range; RuntimeError where sizes do not fit, and for another
    `reduce`.
    """
    return index_reduce(self, dim, index, source, reduce, include_self=include_self)


@numpy_names
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Fold `source` into the slices along `dim` that `index` names, in place.

    Shape: `index` `(n)`, `source` that of the tensor with n along `dim`; that of the tensor itself stays.

    Raises: IndexError where `dim` or an index is out of range; RuntimeError where sizes do not fit, and for another
    `reduce`.
    """
    dim = check_index_reduce(self, dim, index, source, reduce)
    refuse_overlap(self, index, source)
    return run_inplace(REDUCE, (self, dim, index, source, reduce, bool(include_self)))


def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of `input`, as if it were flat, that `index` numbers, in the shape of `index`.

    Raises: TypeError for arguments of other kinds.
    """
    for name, position, value in (("input", 1, input), ("index", 2, index)):
        if not isinstance(value, Tensor):
            raise checks.argument_error("take", name, position, "Tensor", value)
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if out is not None:
        refuse_overlap(out, input, index)
    if input.numel() == 0 and index.numel() != 0:
        raise IndexError("take(): tried to take from an empty tensor")
    check_bounds(array_of(index), input.numel(), True, no_element(input.numel()))
    if out is None:
        return TAKE.function(input, index)
    return TAKE.call((input, index), out)


def take_method(self: Tensor, index: Tensor) -> Tensor:
    """The elements, as if flat, that `index` numbers, in its shape.

    Shape: `index` `(*)`, result `(*)`.

    Raises: IndexError where an index is out of range.
    """
    return take(self, index)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with the elements of `source` at the element numbers `index`.

    Shape: `input` `(*)`, `index` and `source` of equally many elements, result `(*)`.

    Raises: TypeError for arguments of other kinds; IndexError where sizes do not fit.
    """
    check_put(input, index, source)
    return run_like(PUT, (input, index, source, bool(accumulate)))


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write, or with `accumulate` add, the elements of `source` at the element numbers `index`, in place.

    Shape: `index` and `source` of equally many elements; that of the tensor itself stays.

    Raises: IndexError where an index is out of range.
    """
    check_put(self, index, source)
    refuse_overlap(self, index, source)
    return run_inplace(PUT, (self, index, source, bool(accumulate)))


attach_methods(index_add_, index_copy_, index_fill, index_fill_, index_reduce_, put, put_)
attach_as(
    index_add=index_add_method,
    index_copy=index_copy_method,
    index_reduce=index_reduce_method,
    index_select=index_select_method,
    take=take_method,
)
