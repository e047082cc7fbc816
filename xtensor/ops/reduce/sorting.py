"""Sorting and searching: `sort`, `topk`, `kthvalue`, `searchsorted`, `isin`.

NaN counts as the largest value, as in PyTorch.
"""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import attach_methods
from ...operators.declare import general, reduction
from ...operators.functions.overloads import overloads
from ...operators.index_bounds import in_bounds, readable
from ...operators.promotion import promote
from ...operators.schema import Array, Operand
from ...operators.write import write_out
from ...tensor import Tensor, array_of
from ...xla.platforms import on_cpu
from ...xla.symbolic import at_most, is_open
from .extrema import selected_grad
from .reductions import check_nonempty, is_complex, is_float, kept

if TYPE_CHECKING:
    from ... import return_types

__all__ = [
    "argsort",
    "bucketize",
    "isin",
    "kthvalue",
    "msort",
    "searchsorted",
    "sort",
    "topk",
]


# ---- keys and order ------------------------------------------------------------------------------------------------


def sort_key(x: Any, descending: bool) -> Any:
    """An array whose ascending order, ties kept, is the wanted order of `x`."""
    if x.dtype == jnp.bool_:
        x = x.astype(jnp.int8)
    if not descending:
        # XLA orders -0 before 0, PyTorch does not.
        return jnp.where(x == 0, jnp.zeros_like(x), x) if is_float(x) else x
    if not is_float(x):
        return ~x
    # NaN comes first: below minus infinity there is only what sorts before it.
    return jnp.where(jnp.isnan(x), -jnp.inf, jnp.where(x == 0, jnp.zeros_like(x), -x)).astype(x.dtype)


def order(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """The values of `x` in order along `axis`, and their indices; ties keep their order."""
    pairs = lambda x: order_pairs(x, axis, descending)
    if x.dtype.itemsize <= 4:
        return on_cpu("sort", lambda x: order_packed(x, axis, descending), pairs, x)
    if x.dtype != jnp.int64 or any(map(is_open, x.shape)) or x.size < MANY:
        return pairs(x)

    def short(x: Any) -> tuple[Any, Any]:
        fits = jnp.all(x == x.astype(jnp.int32).astype(x.dtype))
        return lax.cond(fits, lambda x: packed_order(x, x.astype(jnp.int32), axis, descending), pairs, x)

    return on_cpu("sort", short, pairs, x)


MANY = 1 << 12
"""Elements of 64 bits from which it is asked whether they fit into 32: a second sort takes longer to compile than is gained by fewer."""


def order_pairs(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """By a sort of keys that carries values and indices along."""
    index = lax.broadcasted_iota(jnp.int32, x.shape, axis)
    key = sort_key(x, descending)
    keys = (key,)
    if descending and is_float(x):
        # Minus infinity itself must come after all NaNs among the keys.
        keys = (~jnp.isnan(x), key)
    *_, values, found = lax.sort((*keys, x, index), dimension=axis, is_stable=True, num_keys=len(keys))
    return values, found.astype(jnp.int64)


def order_packed(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """By a sort of one integer per element: a key of 32 bits above the index, for dtypes of at most 32 bits."""
    return packed_order(x, integer_key(x), axis, descending)


def packed_order(x: Any, keys: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """`order_packed` of elements with given keys."""
    rows = jnp.moveaxis(x, axis, -1)
    key = jnp.moveaxis(keys, axis, -1).astype(jnp.int64)
    packed = ((~key if descending else key) << 32) | lax.broadcasted_iota(
        jnp.int64, rows.shape, rows.ndim - 1
    )
    return picked(rows, sorted_rows(packed) & 0xFFFFFFFF, axis)


CHAINS = 12
"""Into how many sorts `sorted_rows` divides: XLA's executor on a CPU gives another thread half of them once more than 8 are ready."""


def sorted_rows(packed: Any) -> Any:
    """Rows in order. XLA sorts on one core; sorts that do not wait for each other run on several."""
    *lead, n = packed.shape
    count = math.prod(lead)
    if not at_most(CHAINS, count) or packed.size < 1 << 15:
        return lax.sort(packed)
    parts = jnp.array_split(packed.reshape((count, n)), CHAINS)
    return jnp.concatenate([lax.sort(part) for part in parts]).reshape(packed.shape)


def integer_key(x: Any) -> Any:
    """Integers in the order of `x`: NaNs are equal and last, as are zeros of either sign among themselves."""
    if x.dtype in (jnp.uint32, jnp.uint64):
        top = np.asarray(1 << (8 * x.dtype.itemsize - 1), x.dtype)
        return lax.bitcast_convert_type(x ^ top, jnp.dtype(f"int{8 * x.dtype.itemsize}"))
    if not is_float(x):
        return x.astype(jnp.int8) if x.dtype == jnp.bool_ else x
    wide = x if x.dtype == jnp.float64 else x.astype(jnp.float32)
    return ordered_bits(lax.bitcast_convert_type(plain(wide), jnp.dtype(f"int{8 * wide.dtype.itemsize}")))


def ordered_bits(bits: Any) -> Any:
    """The bits of floats as integers in the order of the floats, and back."""
    return jnp.where(bits < 0, bits ^ np.asarray(jnp.iinfo(bits.dtype).max, bits.dtype), bits)


def at_rank(x: Any, rank: Any, axis: int, ties: bool = True) -> tuple[Any, Any]:
    """The elements of a rank in the order along `axis`, and their indices; rank: how many come before, of each row, its dimension kept.

    ties: of those that are equal the index is as if they had been put in order; else the first.
    """
    if not is_long(x.shape[axis]):
        return tuple([jnp.take_along_axis(a, rank, axis) for a in order(x, axis, False)])  # type: ignore[return-value]
    rows, wanted = jnp.moveaxis(x, axis, -1), jnp.moveaxis(rank, axis, -1)
    keys = integer_key(lax.stop_gradient(rows))
    find = lambda *told: on_cpu("selection", bisected, sorted_at, *told)
    found = find(keys, wanted)
    index = lax.broadcasted_iota(jnp.int32, rows.shape, rows.ndim - 1)
    equal = jnp.where(keys == found, index, rows.shape[-1])
    if ties:
        place = find(equal, wanted - jnp.sum(keys < found, axis=-1, keepdims=True, dtype=jnp.int32))
    else:
        place = jnp.min(equal, axis=-1, keepdims=True)
    return picked(rows, place.astype(jnp.int64), axis)


def is_long(size: Any) -> bool:
    """Whether a row is one of which a rank is found sooner by halving than by putting it in order. A loop takes 0.5 s more to compile."""
    return not is_open(size) and size >= 1 << 14


def sorted_at(keys: Any, rank: Any) -> Any:
    return jnp.take_along_axis(sorted_rows(keys), rank, -1, mode="promise_in_bounds")


def bisected(keys: Any, rank: Any) -> Any:
    """The keys of a rank, by counting how many are at most as large as the middle of what is left."""

    def halve(bounds: Any) -> Any:
        low, high = bounds
        middle = (low & high) + ((low ^ high) >> 1)
        enough = jnp.sum(keys <= middle, axis=-1, keepdims=True, dtype=jnp.int32) > rank
        return jnp.where(enough, low, middle + 1), jnp.where(enough, middle, high)

    ends = jnp.min(keys, axis=-1, keepdims=True), jnp.max(keys, axis=-1, keepdims=True)
    return lax.while_loop(lambda bounds: jnp.any(bounds[0] < bounds[1]), halve, ends)[0]


def plain(x: Any, nan: float = float("nan")) -> Any:
    """Floats with one NaN and one zero."""
    return jnp.where(jnp.isnan(x), jnp.asarray(nan, x.dtype), jnp.where(x == 0, jnp.zeros_like(x), x))


def picked(rows: Any, places: Any, axis: int) -> tuple[Any, Any]:
    """The elements of rows at places along the last dimension, and the places, with that dimension at `axis`."""
    values = jnp.take_along_axis(rows, places, -1, mode="promise_in_bounds")
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis)


BLOCK, BLOCKS = 8, 1 << 18
"""Elements of which `top_partial` first looks at the largest, of how many; of fewer less is gained than it takes longer to compile."""


def top_partial(x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    """The first `k` by XLA's partial sort, which the CPU has for float32: in its order -NaN comes last and NaN first."""
    rows = jnp.moveaxis(x, axis, -1)
    wide = rows.astype(jnp.float32)
    key = plain(wide) if largest else plain(-wide, -float("nan"))
    large = any(map(is_open, rows.shape)) or rows.size >= BLOCKS
    find = top_of_blocks if large and 4 * BLOCK * k <= rows.shape[-1] >= 256 else top_places
    return picked(rows, find(key, k).astype(jnp.int64), axis)


def top_places(key: Any, k: int) -> Any:
    return lax.top_k(key, k)[1]


def top_of_blocks(key: Any, k: int) -> Any:
    """As `top_places`, by way of the `k` blocks whose largest elements come first: nothing else can be among the first `k`."""
    *lead, n = key.shape
    count = -(-n // BLOCK)
    bits = ordered_bits(lax.bitcast_convert_type(key, jnp.int32))
    padding = [(0, 0, 0)] * len(lead) + [(0, count * BLOCK - n, 0)]
    blocks = lax.pad(bits, np.int32(-(2**31)), padding).reshape(*lead, count, BLOCK)
    first = jnp.sort(top_places(as_floats(jnp.max(blocks, axis=-1)), k), axis=-1)
    kept = jnp.take_along_axis(blocks, first[..., None], axis=-2, mode="promise_in_bounds")
    found = top_places(as_floats(kept.reshape(*lead, k * BLOCK)), k)
    block = jnp.take_along_axis(first, found // BLOCK, axis=-1, mode="promise_in_bounds")
    return block * BLOCK + found % BLOCK


def as_floats(bits: Any) -> Any:
    return lax.bitcast_convert_type(ordered_bits(bits), jnp.float32)


def scatter_along(grad: Any, indices: Any, shape: Any, axis: int) -> Any:
    """Gradients put at the indices along `axis` that were picked, each at most once."""
    moved = jnp.moveaxis(grad, axis, -1)
    places = jnp.moveaxis(indices, axis, -1).astype(jnp.int32)
    size = shape[axis]
    lead = moved.shape[:-1]
    count = math.prod(lead)
    rows = jnp.arange(count, dtype=jnp.int32)[:, None]
    zeros = jnp.zeros((count, size), grad.dtype)
    made = zeros.at[rows, places.reshape((count, places.shape[-1]))].set(
        moved.reshape((count, places.shape[-1])), unique_indices=True
    )
    return jnp.moveaxis(made.reshape((*lead, size)), -1, axis)


def _order_grad(grads: Any, result1: Any, input_shape: Any, dim: int) -> Array:
    if not input_shape:
        return grads[0]
    return scatter_along(grads[0], result1, tuple(input_shape), checks.wrap_dim(dim, len(input_shape)))


# ---- sort ----------------------------------------------------------------------------------------------------------


@reduction(
    out="exact",
    name="sort",
    node="Sort",
    method=False,
    returns=("values", "indices"),
    derivatives=dict(input=_order_grad),
)
def sort_along(input: Array, dim: int = -1, descending: bool = False) -> tuple[Array, ...]:
    """The elements in order along `dim`, and their indices."""
    axis = checks.wrap_dim(dim, input.ndim)
    if is_complex(input):
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    return order(input, axis, descending)


@overloads(
    "Tensor input, *, bool stable, int dim = -1, bool descending = False, tuple of Tensors out = None",
    "Tensor input, int dim = -1, bool descending = False, *, tuple of Tensors out = None",
)
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: Any = None,
) -> return_types.sort:
    """The elements in order along `dim` and their indices, as `(values, indices)`; always stable.

    Shape: `input` `(*)`; values and indices `(*)`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; RuntimeError for
    complex tensors.

    >>> xtensor.sort(xtensor.tensor([3, 1, 2]))
    xtensor.return_types.sort(
    values=tensor([1, 2, 3]),
    indices=tensor([1, 2, 0]))
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise checks.argument_error("sort", "dim", 2, "int", dim)
    return sort_along(input, index(dim), descending, out=out)


@overloads(
    "Tensor input, *, bool stable, int dim = -1, bool descending = False, Tensor out = None",
    "Tensor input, int dim = -1, bool descending = False",
)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that put the elements in order along `dim`; always stable.

    Shape: `input` `(*)`, result `(*)`.

    Raises: IndexError where `dim` is out of range; RuntimeError for complex tensors; TypeError for arguments
    of other kinds.

    >>> xtensor.argsort(xtensor.tensor([3, 1, 2]), descending=True)
    tensor([0, 2, 1])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("argsort", "input", 1, "Tensor", input)
    return sort_along(input.detach(), dim, descending)[1]


def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in order along the first dimension.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex tensors.
    """
    values = sort_along(input, 0)[0]
    if out is None:
        return values
    write_out("msort", out, values, [input], "reduction")
    return out


# ---- the largest and the k-th --------------------------------------------------------------------------------------


@reduction(out="exact", returns=("values", "indices"), derivatives=dict(input=_order_grad))
def topk(input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, ...]:
    """The `k` largest (or smallest) elements along `dim` and their indices, in order.

    Shape: `input` `(*)`; values and indices `(*)`, with `k` at `dim`.

    Raises: RuntimeError for complex and bool tensors.

    >>> values, indices = xtensor.tensor([1, 9, 5, 7]).topk(2)
    >>> values, indices
    (tensor([9, 7]), tensor([1, 3]))
    """
    axis = checks.wrap_dim(dim, input.ndim)
    if k < 0 or k > (input.shape[axis] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if is_complex(input):
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if input.dtype == jnp.bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)

    return first_in_order(input, k, axis, largest)


def first_in_order(x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    """The first `k` elements in order along an axis, from the largest or the smallest on, and their indices."""

    def first(x: Any) -> tuple[Any, Any]:
        values, indices = order(x, axis, largest)
        return lax.slice_in_dim(values, 0, k, axis=axis), lax.slice_in_dim(indices, 0, k, axis=axis)

    exact = (is_float(x) and x.dtype.itemsize <= 4) or x.dtype.itemsize <= 2
    if not exact or not 0 < k <= x.shape[axis] // 8:
        return first(x)
    return on_cpu("topk", lambda x: top_partial(x, k, axis, largest), first, x)


@reduction(out="exact", returns=("values", "indices"), derivatives=dict(input=selected_grad))
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, ...]:
    """The `k`-th smallest element along `dim` (from 1) and its index.

    Shape: `input` `(*)`; values and indices without the dimension `dim`, or with size 1 there if `keepdim`.

    Raises: NotImplementedError for complex and bool tensors.

    >>> xtensor.kthvalue(xtensor.tensor([3, 1, 2]), 2).values
    tensor(2)
    """
    axis = checks.wrap_dim(dim, input.ndim)
    if input.ndim:
        check_nonempty("kthvalue", input.shape, dim, (axis,))
    if k <= 0 or k > (input.shape[axis] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if is_complex(input) or input.dtype == jnp.bool_:
        raise checks.not_implemented_for("kthvalue_cpu", dtype_of(input))
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    if is_long(input.shape[axis]):
        rank = jnp.full([1 if d == axis else n for d, n in enumerate(input.shape)], k - 1, jnp.int32)
        values, indices = at_rank(input, rank, axis)
    else:
        first = first_in_order(input, k, axis, False)
        values, indices = [lax.slice_in_dim(a, k - 1, k, axis=axis) for a in first]
    return kept(values, (axis,), keepdim), kept(indices, (axis,), keepdim)


# ---- searching -----------------------------------------------------------------------------------------------------


def _search(boundaries: Any, values: Any, right: bool, sorter: Any) -> Any:
    """The places of values in sorted rows by bisection, with PyTorch's comparisons (a NaN is passed over)."""
    a, v = promote(boundaries, values)
    if sorter is not None:
        a = jnp.take_along_axis(a, sorter, axis=-1)
    n = a.shape[-1]
    if n == 0 or v.size == 0:
        return jnp.zeros(v.shape, jnp.int32)
    rows = a.reshape((-1, n))
    wanted = v.reshape((1, -1)) if a.ndim == 1 else v.reshape((rows.shape[0], -1))

    def halve(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = (low + high) // 2
        found = jnp.take_along_axis(rows, jnp.minimum(middle, n - 1), axis=1)
        beyond = ~(found > wanted) if right else ~(found >= wanted)
        open_ = low < high
        return jnp.where(open_ & beyond, middle + 1, low), jnp.where(open_ & ~beyond, middle, high)

    start = jnp.zeros(wanted.shape, jnp.int32)
    low, _ = lax.fori_loop(0, n.bit_length(), halve, (start, jnp.full(wanted.shape, n, jnp.int32)))
    return low.reshape(v.shape)


@general(name="searchsorted", out="exact", derivatives=None)
def search(
    sorted_sequence: Array,
    input: Operand,
    sorter: Array | None = None,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> Array:
    """Where values would be inserted into sorted rows."""
    values = jnp.asarray(input)
    name = "torch.searchsorted()"
    if sorted_sequence.ndim == 0:
        raise RuntimeError(f"{name}: boundaries tensor should have positive dimension, but got 0 dimension")
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                f"{name}: boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sorted_sequence.shape)}and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype != jnp.int64:
            raise RuntimeError(
                f"{name}: sorter must be a tensor of long dtype but got dtype {dtype_of(sorter).scalar_name}"
            )
    if sorted_sequence.ndim > 1:
        if values.ndim == 0:
            raise RuntimeError(
                f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
                f"tensor dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)"
            )
        if sorted_sequence.shape[:-1] != values.shape[:-1]:
            raise RuntimeError(
                f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
                f"input value tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} and input "
                f"value tensor {list(values.shape)}"
            )
    found = _search(sorted_sequence, input, right, sorter)
    return found.astype(jnp.int32 if out_int32 else jnp.int64)


@overloads(
    "Tensor sorted_sequence, Tensor input, *, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None",
    "Tensor sorted_sequence, Number self, *, bool out_int32 = False, bool right = False, str side = None, Tensor sorter = None, Tensor out = None",
)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    out: Tensor | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where every value of `input` would be inserted into the sorted rows to keep their order.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.searchsorted(xtensor.tensor([1, 3, 5]), xtensor.tensor([3, 4]))
    tensor([1, 2])
    """
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
        if right and side == "left":
            raise RuntimeError(
                "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
            )
        right = side == "right"
    if sorter is not None and sorter.dtype is dtypes.int64 and sorter.numel() and readable(array_of(sorter)):
        if not in_bounds(array_of(sorter), int(sorted_sequence.shape[-1]), False):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return search(sorted_sequence, input, sorter, out_int32=out_int32, right=right, out=out)


@overloads(
    "Tensor input, Tensor boundaries, *, bool out_int32 = False, bool right = False, Tensor out = None",
    "Number self, Tensor boundaries, *, bool out_int32 = False, bool right = False",
)
def bucketize(
    input: Tensor | float,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The number of the bucket between sorted boundaries that every value falls into.

    Raises: TypeError for arguments of other kinds; RuntimeError where `boundaries` has not one dimension.

    >>> xtensor.bucketize(xtensor.tensor([0.5, 2.0, 9.0]), xtensor.tensor([1.0, 2.0, 3.0]))
    tensor([0, 1, 3])
    """
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return search(boundaries, input, None, out_int32=out_int32, right=right, out=out)


BY_COMPARISON = 16  # test values up to which comparing with each is faster than sorting them


@general(out="exact", derivatives=None)
def isin(
    elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False
) -> Array:
    """Whether every element is one of the test elements."""
    given = [x for x in (elements, test_elements) if isinstance(x, jax.Array)]
    for x in given:
        if is_complex(x) or x.dtype == jnp.bool_:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {dtype_of(x).scalar_name}")
    a, b = promote(elements, test_elements)
    tests = b.reshape(-1)
    if tests.size == 0:
        found = jnp.zeros(a.shape, bool)
    elif tests.size <= BY_COMPARISON:
        found = jnp.any(a[..., None] == tests, axis=-1)
    else:
        ordered = jnp.sort(tests)
        at = jnp.minimum(jnp.searchsorted(ordered, a), tests.size - 1)
        found = ordered[at] == a
    return ~found if invert else found


attach_methods(argsort, msort, sort)
