"""The rules of primitives over arrays with padding: see `padded`. Each sees values only, whatever the padding holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from ..symbolic import is_open
from .padded import INNER, Refused, Sizes, evaluate, open_axes, rule, shapes_in, touches

__all__ = ["is_exact"]

POINTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex conj convert_element_type copy
cos cosh digamma div eq eq_to erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igamma_grad_a igammac imag integer_pow
is_finite le le_to lgamma log log1p logistic lt lt_to max min mul ne neg nextafter not optimization_barrier or polygamma
population_count pow real reduce_precision regularized_incomplete_beta rem round rsqrt select_n shift_left
shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xla_metadata_value xor zeta
""".split()


@rule(*POINTWISE)
def pointwise(sizes: Sizes, equation: Any, *args: Any) -> Any:
    """Element by element: the padding's results are padding."""
    return equation.primitive.bind(*args, **equation.params)


@rule("bitcast_convert_type")
def bitcast(sizes: Sizes, equation: Any, array: Any) -> Any:
    """The same bytes of another type."""
    if shapes_in(equation)[0] and is_open(shapes_in(equation)[0][-1]):
        if array.dtype.itemsize != np.dtype(equation.params["new_dtype"]).itemsize:
            raise Refused("bytes along an open dimension")
    return equation.primitive.bind(array, **equation.params)


# -- shapes


@rule("broadcast_in_dim")
def broadcast_in_dim(sizes: Sizes, equation: Any, array: Any, *dims: Any) -> Any:
    """More dimensions, or longer ones."""
    shape = sizes.shape(equation.outvars[0].aval.shape)
    return lax.broadcast_in_dim(array, shape, equation.params["broadcast_dimensions"])


@rule("iota")
def iota(sizes: Sizes, equation: Any, *dims: Any) -> Any:
    """Places along a dimension."""
    shape = sizes.shape(equation.outvars[0].aval.shape)
    return lax.broadcasted_iota(equation.params["dtype"], shape, equation.params["dimension"])


@rule("dim_as_value")
def dim_as_value(sizes: Sizes, equation: Any) -> Any:
    """A size as a number: the true one."""
    return lax.convert_element_type(sizes.true(equation.params["dim"]), equation.outvars[0].aval.dtype)


@rule("transpose", "squeeze", "expand_dims", "stack", "unstack")
def moved(sizes: Sizes, equation: Any, *arrays: Any) -> Any:
    """Dimensions in another order, and more or less of them."""
    return equation.primitive.bind(*arrays, **equation.params)


@rule("tile")
def tile(sizes: Sizes, equation: Any, array: Any) -> Any:
    """Repeated along dimensions that are not open."""
    (shape,), reps = shapes_in(equation), equation.params["reps"]
    if (
        len(reps) != len(shape)
        or any(reps[axis] != 1 for axis in open_axes(shape))
        or any(map(is_open, reps))
    ):
        raise Refused("repeated along an open dimension")
    return equation.primitive.bind(array, **equation.params)


@rule("rev")
def reversed_(sizes: Sizes, equation: Any, array: Any) -> Any:
    """Backwards: the padding comes to lie before the values, and these are moved to the front."""
    axes = equation.params["dimensions"]
    (shape,) = shapes_in(equation)
    found = lax.rev(array, axes)
    starts = [array.shape[a] - sizes.true(d) if a in axes and is_open(d) else 0 for a, d in enumerate(shape)]
    return window(found, starts, array.shape)


@rule("reshape")
def reshape(sizes: Sizes, equation: Any, array: Any, *dims: Any) -> Any:
    """Another shape: where rows stay rows as they lie, else each element from its place."""
    if equation.params.get("dimensions") is not None:
        raise Refused("reshape in another order")
    (old, *_), new = shapes_in(equation), equation.outvars[0].aval.shape
    padded = sizes.shape(new)
    if in_place(old, new) and math.prod(padded) == array.size:
        return array.reshape(padded)
    place = jnp.zeros(padded, np.int32)
    for axis, step in enumerate(steps_of(list(map(sizes.true, new)))):
        place = place + lax.broadcasted_iota(np.int32, padded, axis) * step
    flat = jnp.zeros(padded, np.int32)
    lengths, steps = list(map(sizes.true, old)), steps_of(array.shape)
    for axis in reversed(range(len(old))):
        digit = (
            place if axis == 0 else lax.rem(place, jnp.broadcast_to(lengths[axis], padded).astype(np.int32))
        )
        if axis:
            place = lax.div(place, jnp.broadcast_to(lengths[axis], padded).astype(np.int32))
        flat = flat + digit * steps[axis]
    return array.reshape(-1).at[flat].get(mode="clip", wrap_negative_indices=False)


def steps_of(lengths: Sequence[Any]) -> list[Any]:
    """Row-major strides."""
    return list(accumulate(reversed(lengths[1:]), lambda a, b: a * b, initial=1))[::-1] if lengths else []


def in_place(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether groups of dimensions correspond so that in each at most the first is open, and values lie before all padding."""
    a, b = [d for d in old if not same(d, 1)], [d for d in new if not same(d, 1)]
    while a and b:
        left, right, i, j = a[0], b[0], 1, 1
        while not same(left, right):
            if larger(left, right) and j < len(b):
                right, j = right * b[j], j + 1
            elif not larger(left, right) and i < len(a):
                left, i = left * a[i], i + 1
            else:
                return False
        if (i > 1 or j > 1) and (open_axes(a[1:i]) or open_axes(b[1:j])):
            return False
        a, b = a[i:], b[j:]
    return not a and not b


def same(a: Any, b: Any) -> bool:
    """Whether two sizes are one for every value of the variables."""
    return is_open(a) == is_open(b) and bool(a == b)


def larger(a: Any, b: Any) -> bool:
    """Whether a size is the larger one at some place: which of two groups of dimensions is to take one more."""
    point = dict.fromkeys([f"n{i}" for i in range(8)], 1009)
    return evaluate(a, point) > evaluate(b, point)


@rule("concatenate")
def concatenate(sizes: Sizes, equation: Any, *arrays: Any) -> Any:
    """One after the other, each over the padding of the one before."""
    axis = equation.params["dimension"]
    shapes = shapes_in(equation)
    if not any(is_open(s[axis]) for s in shapes):
        return equation.primitive.bind(*arrays, **equation.params)
    found = jnp.zeros(sizes.shape(equation.outvars[0].aval.shape), arrays[0].dtype)
    at: Any = 0
    for array, shape in zip(arrays, shapes, strict=True):
        if array.size:
            found = lax.dynamic_update_slice_in_dim(found, array, at, axis)
        at = at + sizes.true(shape[axis])
    return found


@rule("pad")
def pad(sizes: Sizes, equation: Any, array: Any, fill: Any) -> Any:
    """More at the ends and between elements: what is padding here takes the value that is put there."""
    (shape, _), config = shapes_in(equation), equation.params["padding_config"]
    if any(is_open(between) for _, _, between in config):
        raise Refused("an open distance between elements")
    valid = sizes.valid(shape)
    if valid is not None:
        array = lax.select(valid, array, jnp.broadcast_to(fill, array.shape))
    low = [int(sizes.shape([at])[0]) for at, _, _ in config]
    late = [most - sizes.true(at) if is_open(at) else 0 for most, (at, _, _) in zip(low, config, strict=True)]
    extra = [most if is_open(at) else 0 for most, (at, _, _) in zip(low, config, strict=True)]
    high = [int(sizes.shape([at])[0]) for _, at, _ in config]
    between = [int(b) for _, _, b in config]
    ends = [(a, b + e, c) for a, b, c, e in zip(low, high, between, extra, strict=True)]
    return window(lax.pad(array, fill, ends), late, sizes.shape(equation.outvars[0].aval.shape))


def window(
    array: Any, starts: Sequence[Any], shape: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """The array from `starts` on, in the given shape; zeros follow it where it ends before."""
    strides = [1] * len(shape) if strides is None else strides
    spans = [(n - 1) * s + 1 if n else 0 for n, s in zip(shape, strides, strict=True)]
    more = []
    for start, span, length in zip(starts, spans, array.shape, strict=True):
        more.append(max(0, start + span - length) if isinstance(start, int) else span)
    if any(more):
        array = lax.pad(array, jnp.zeros((), array.dtype), [(0, m, 0) for m in more])
    if any(not isinstance(s, int) for s in starts):
        array = lax.dynamic_slice(array, [jnp.asarray(s, np.int32) for s in starts], spans)
        starts = [0] * len(spans)
    stops = [a + n for a, n in zip(starts, spans, strict=True)]
    if array.shape == tuple(spans) and all(s == 1 for s in strides):
        return array
    return lax.slice(array, starts, stops, strides)


@rule("slice")
def slice_(sizes: Sizes, equation: Any, array: Any) -> Any:
    """Every so manieth element from one on."""
    params = equation.params
    strides = params["strides"] or (1,) * array.ndim
    if any(is_open(s) for s in strides):
        raise Refused("an open step")
    return window(
        array,
        list(map(sizes.true, params["start_indices"])),
        sizes.shape(equation.outvars[0].aval.shape),
        list(map(int, strides)),
    )


@rule("dynamic_slice")
def dynamic_slice(sizes: Sizes, equation: Any, array: Any, *starts: Any) -> Any:
    """A part from a place on that is moved back where the part would not end within the array."""
    shape, lengths = shapes_in(equation)[0], equation.params["slice_sizes"]
    starts = starts[: len(shape)]
    places = [moved_back(sizes, s, d, n) for s, d, n in zip(starts, shape, lengths, strict=True)]
    return window(array, places, sizes.shape(lengths))


def moved_back(sizes: Sizes, start: Any, dim: Any, length: Any) -> Any:
    """Where a part of some length begins, such that it ends within the true size."""
    if same(dim, length):
        return 0
    last = jnp.asarray(sizes.true(dim) - sizes.true(length), np.int32)
    start = (
        lax.clamp(jnp.asarray(-1, start.dtype), start, jnp.asarray(np.iinfo(np.int32).max - 1, start.dtype))
        if start.dtype.itemsize > 4
        else start
    )
    return lax.clamp(jnp.zeros((), np.int32), lax.convert_element_type(start, np.int32), last)


@rule("dynamic_update_slice")
def dynamic_update_slice(sizes: Sizes, equation: Any, array: Any, new: Any, *starts: Any) -> Any:
    """Another part from a place on, which leaves what lies behind the part's true end."""
    shape, lengths, *_ = shapes_in(equation)
    places = [
        jnp.asarray(moved_back(sizes, s, d, n), np.int32)
        for s, d, n in zip(starts[: len(shape)], shape, lengths, strict=True)
    ]
    room = [(0, n, 0) for n in new.shape]
    longer = lax.pad(array, jnp.zeros((), array.dtype), room)
    valid = sizes.valid(lengths)
    if valid is not None:
        new = lax.select(valid, new, lax.dynamic_slice(longer, places, new.shape))
    return lax.slice(lax.dynamic_update_slice(longer, new, places), [0] * array.ndim, array.shape)


@rule("split")
def split(sizes: Sizes, equation: Any, array: Any) -> Any:
    """Parts of fixed sizes."""
    (shape,) = shapes_in(equation)
    if is_open(shape[equation.params["axis"]]):
        raise Refused("a split along an open dimension")
    return equation.primitive.bind(array, **equation.params)


# -- folds


def least(dtype: Any) -> Any:
    """What no element is less than."""
    if dtype == np.bool_:
        return False
    return -np.inf if jnp.issubdtype(dtype, np.inexact) else jnp.iinfo(dtype).min


def greatest(dtype: Any) -> Any:
    """What no element is greater than."""
    if dtype == np.bool_:
        return True
    return np.inf if jnp.issubdtype(dtype, np.inexact) else jnp.iinfo(dtype).max


def nothing(dtype: Any) -> Any:
    return False if dtype == np.bool_ else 0


IDENTITY: dict[str, Any] = {
    "reduce_sum": nothing,
    "reduce_prod": lambda dtype: 1,
    "reduce_max": least,
    "reduce_min": greatest,
    "reduce_or": nothing,
    "reduce_and": lambda dtype: (
        True if dtype == np.bool_ else -1 if jnp.issubdtype(dtype, np.signedinteger) else jnp.iinfo(dtype).max
    ),
    "reduce_xor": nothing,
    "argmax": least,
    "argmin": greatest,
    "cumsum": nothing,
    "cumprod": lambda dtype: 1,
    "cummax": least,
    "cummin": greatest,
    "cumlogsumexp": least,
}


@rule(
    "reduce_sum",
    "reduce_prod",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_and",
    "reduce_xor",
    "argmax",
    "argmin",
)
def fold(sizes: Sizes, equation: Any, array: Any) -> Any:
    """A fold, whose padding changes nothing."""
    fill = IDENTITY[equation.primitive.name](array.dtype)
    array = sizes.masked(array, shapes_in(equation)[0], equation.params["axes"], fill)
    return equation.primitive.bind(array, **equation.params)


@rule("reduce")
def reduce(sizes: Sizes, equation: Any, *args: Any) -> Any:
    """A fold by any function, whose initial values change nothing."""
    count = len(args) // 2
    shapes, axes = shapes_in(equation), equation.params["dimensions"]
    arrays = []
    for array, first, shape in zip(args[:count], args[count:], shapes, strict=False):
        valid = sizes.valid(shape, axes)
        arrays.append(
            array if valid is None else lax.select(valid, array, jnp.broadcast_to(first, array.shape))
        )
    return equation.primitive.bind(*arrays, *args[count:], **equation.params)


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def running(sizes: Sizes, equation: Any, array: Any) -> Any:
    """A running fold: padding comes last, or where it comes first changes nothing."""
    if equation.params["reverse"]:
        fill = IDENTITY[equation.primitive.name](array.dtype)
        array = sizes.masked(array, shapes_in(equation)[0], [equation.params["axis"]], fill)
    return equation.primitive.bind(array, **equation.params)


@rule("dot_general")
def dot_general(sizes: Sizes, equation: Any, left: Any, right: Any) -> Any:
    """Sums of products: over an open dimension both factors of the padding are 0."""
    (a, b), _ = equation.params["dimension_numbers"]
    shapes = shapes_in(equation)
    left = sizes.masked(left, shapes[0], a, nothing(left.dtype))
    right = sizes.masked(right, shapes[1], b, nothing(right.dtype))
    return equation.primitive.bind(left, right, **equation.params)


@rule("conv_general_dilated")
def convolution(sizes: Sizes, equation: Any, left: Any, right: Any) -> Any:
    """A convolution of an open number of samples, or of their sum."""
    params, (a, b) = equation.params, shapes_in(equation)
    numbers = params["dimension_numbers"]
    batch, features, *_ = numbers.lhs_spec
    _, inputs, *_ = numbers.rhs_spec
    if any(axis not in (batch, features) for axis in open_axes(a)) or any(
        axis != inputs for axis in open_axes(b)
    ):
        raise Refused("open windows")
    if open_axes(a) and (
        params["batch_group_count"] > 1 or (is_open(a[features]) and params["feature_group_count"] > 1)
    ):
        raise Refused("groups of open size")
    left = sizes.masked(left, a, [features], nothing(left.dtype))
    right = sizes.masked(right, b, [inputs], nothing(right.dtype))
    return equation.primitive.bind(left, right, **params)


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def reduce_window(sizes: Sizes, equation: Any, array: Any) -> Any:
    """Folds of windows that lie within one place of the open dimensions."""
    params, (shape,) = equation.params, shapes_in(equation)
    for axis in open_axes(shape):
        one = (
            params["window_dimensions"][axis]
            == params["window_strides"][axis]
            == params["base_dilation"][axis]
            == 1
        )
        if not one or tuple(params["padding"][axis]) != (0, 0):
            raise Refused("windows along an open dimension")
    return equation.primitive.bind(array, **params)


@rule("sort")
def sort(sizes: Sizes, equation: Any, *arrays: Any) -> Any:
    """Sorted: padding is told by a key before all others, and comes last."""
    params = equation.params
    axis, shape = params["dimension"], shapes_in(equation)[0]
    if not is_open(shape[axis]):
        return equation.primitive.bind(*arrays, **params)
    last = lax.broadcasted_iota(np.int32, arrays[0].shape, axis) >= sizes.true(shape[axis])
    found = lax.sort(
        [last.astype(np.int8), *arrays],
        dimension=axis,
        is_stable=params["is_stable"],
        num_keys=params["num_keys"] + 1,
    )
    return list(found[1:])


@rule("top_k")
def top_k(sizes: Sizes, equation: Any, array: Any) -> Any:
    """The largest elements of a dimension that is not open."""
    shape = shapes_in(equation)[0]
    if is_open(shape[equation.params.get("axis", -1)]) or is_open(equation.params["k"]):
        raise Refused("the largest of an open dimension")
    return equation.primitive.bind(array, **equation.params)


# -- elements by their places


def column(sizes: Sizes, dims: Sequence[Any], dtype: Any) -> Any:
    """Sizes in a vector of the indices' type."""
    return jnp.stack([jnp.asarray(sizes.true(d), np.int32).astype(dtype) for d in dims])


def clipped(sizes: Sizes, index: Any, last: Any) -> Any:
    """Indices within their bounds."""
    return jnp.minimum(jnp.maximum(index, jnp.zeros((), index.dtype)), last)


@rule("gather")
def gather(sizes: Sizes, equation: Any, array: Any, index: Any) -> Any:
    """Elements, or parts, from places within the true size."""
    params, (shape, _) = equation.params, shapes_in(equation)
    numbers, mode = params["dimension_numbers"], params["mode"]
    lengths = params["slice_sizes"]
    places = numbers.start_index_map
    params = {**params, "slice_sizes": sizes.shape(lengths)}
    if not any(is_open(shape[d]) or is_open(lengths[d]) for d in places):
        return equation.primitive.bind(array, index, **params)
    if min(array.shape[d] for d in places) == 0:
        raise Refused("places in nothing")
    last = column(sizes, [shape[d] - lengths[d] for d in places], index.dtype)
    if mode == lax.GatherScatterMode.PROMISE_IN_BOUNDS:
        return equation.primitive.bind(array, index, **params)
    inside = clipped(sizes, index, last)
    found = equation.primitive.bind(
        array, inside, **{**params, "mode": lax.GatherScatterMode.CLIP, "fill_value": None}
    )
    if mode == lax.GatherScatterMode.CLIP:
        return found
    valid = jnp.all(index == inside, axis=-1)
    rest = [axis for axis in range(found.ndim) if axis not in numbers.offset_dims]
    fill = params["fill_value"]
    if fill is None:
        fill = filling(found.dtype)
    return lax.select(
        lax.broadcast_in_dim(valid, found.shape, rest), found, jnp.full(found.shape, fill, found.dtype)
    )


def filling(dtype: Any) -> Any:
    """What JAX gives for places outside."""
    if jnp.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == np.bool_:
        return True
    return jnp.iinfo(dtype).min if jnp.issubdtype(dtype, np.signedinteger) else jnp.iinfo(dtype).max


NEUTRAL = {
    "scatter-add": "reduce_sum",
    "scatter-mul": "reduce_prod",
    "scatter-min": "reduce_min",
    "scatter-max": "reduce_max",
}
"""What the padding of a part of open size is: it falls on what lies behind the part."""


@rule("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub")
def scatter(sizes: Sizes, equation: Any, array: Any, index: Any, new: Any) -> Any:
    """Elements, or parts, put or added at places: the padding's are put nowhere."""
    params, (shape, at, parts) = equation.params, shapes_in(equation)
    numbers, mode = params["dimension_numbers"], params["mode"]
    places = numbers.scatter_dims_to_operand_dims
    apart = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    within = [d for d in range(len(shape)) if d not in apart]
    lengths: list[Any] = [1] * len(shape)
    for d, axis in zip(within, numbers.update_window_dims, strict=True):
        lengths[d] = parts[axis]
        if is_open(parts[axis]) and (d in places or not same(parts[axis], shape[d])):
            if equation.primitive.name not in NEUTRAL:
                raise Refused("parts of open size")
            new = sizes.masked(new, parts, [axis], IDENTITY[NEUTRAL[equation.primitive.name]](new.dtype))
    inside = sizes.valid(at[:-1])
    if not places:
        if inside is not None:
            raise Refused("places that are not told")
        return equation.primitive.bind(array, index, new, **params)
    last = column(sizes, [shape[d] - lengths[d] for d in places], index.dtype)
    if mode == lax.GatherScatterMode.CLIP:
        index = clipped(sizes, index, last)
    elif mode == lax.GatherScatterMode.FILL_OR_DROP:
        here = jnp.all(index == clipped(sizes, index, last), axis=-1)
        inside = here if inside is None else inside & here
    outside = jnp.asarray(max(array.shape), np.int32).astype(index.dtype)
    if inside is not None:
        index = jnp.where(inside[..., None], index, outside)
    return equation.primitive.bind(
        array,
        index,
        new,
        **{
            **params,
            "mode": lax.GatherScatterMode.FILL_OR_DROP,
            "unique_indices": False,
            "indices_are_sorted": False,
        },
    )


# -- which bits

MOVING = {
    "broadcast_in_dim",
    "concatenate",
    "copy",
    "expand_dims",
    "iota",
    "pad",
    "rev",
    "slice",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "unstack",
}
"""Primitives that move elements."""
FOLDING = {"argmax", "argmin", "reduce_and", "reduce_or", "reduce_xor"}
"""Folds that give the same bits in any order."""
BY_SIZE = {"atan", "atan2", "cbrt", "erf", "erf_inv", "erfc", "tan"}
"""Functions of which code for a vector of elements is other code than that for one."""


def is_exact(jaxpr: Any) -> bool:
    """Whether a jaxpr over symbolic sizes gives the bits of one of true sizes: where sizes are open, elements are computed one by one,
    or moved.

    A sum has another order: along an open dimension, and along others too, for which XLA asks a library that looks at all sizes. So has
    a product. A size that is a number is no constant any more, with which XLA would have multiplied other constants.
    """
    return all(map(keeps_bits, jaxpr.eqns))


def keeps_bits(equation: Any) -> bool:
    """Whether an equation does."""
    name, params = equation.primitive.name, equation.params
    if name in INNER:
        inside = [
            getattr(v, "jaxpr", v) for v in params.values() if hasattr(v, "eqns") or hasattr(v, "jaxpr")
        ]
        return name not in ("while", "scan", "cond") and bool(inside) and all(map(is_exact, inside))
    if not touches(equation):
        return True
    if name in POINTWISE or name in MOVING:
        return name not in BY_SIZE
    (shape, *_) = shapes_in(equation) or ((),)
    if name == "reshape":
        return params.get("dimensions") is None and in_place(shape, equation.outvars[0].aval.shape)
    if name in FOLDING:
        return not any(is_open(shape[axis]) for axis in params["axes"])
    return name in ("reduce_window_max", "reduce_window_min")
