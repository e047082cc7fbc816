"""Which way reaches the elements of a view: from a geometry to a `Recipe`, in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
from jax.core import ShapedArray

from ..xla.cache import bounded
from ..xla.symbolic import Inconclusive

Ints = tuple[int, ...]
Program = Callable[..., Any]

# A stepped slice is cut out of its dimension up to this step; beyond it, the dimension is split instead.
_SMALL_STEP = 8
# Views of more overlapping elements than this on one place are gathered, not stacked.
_MAX_STACK = 32


class Digits(NamedTuple):
    """A rectangle: along digit i of radix `radices[i]`, `counts[i]` values, `steps[i]` apart."""

    radices: Ints
    counts: Ints
    steps: Ints


Core = tuple[tuple[int, int], ...]


class Access(NamedTuple):
    """A way to reach elements: `core` lists the dimensions with a size above 1 and a stride, as (size, stride)."""

    kind: Literal["empty", "reshape", "digits", "window", "gather"]
    core: Core
    digits: Digits | None = None


class Recipe:
    """How to read and write one kind of view; equal recipes are one object, so they hash by identity.

    identity: the view is the array itself. static: the offset is not needed (and ignored). aval: the view's shape and dtype.
    direct: no more elements are touched than the view has, so that any program may read it by itself.
    dims: which of the view's dimensions the core's are, and after them those over which it is stacked.
    shifts: for each index of the `stacked` sizes, how far from the offset the core lies.
    """

    __slots__ = (
        "_donating_writer",
        "_later_reader",
        "_reader",
        "_writer",
        "access",
        "aval",
        "base_dtype",
        "base_shape",
        "conj",
        "dims",
        "direct",
        "dtype",
        "identity",
        "neg",
        "shifts",
        "sizes",
        "stacked",
        "static",
    )
    _xt_identity = (
        "base_shape",
        "base_dtype",
        "sizes",
        "dtype",
        "conj",
        "neg",
        "dims",
        "access",
        "stacked",
        "shifts",
    )

    def __init__(
        self,
        base_shape: Ints,
        base_dtype: np.dtype[Any],
        sizes: Ints,
        dtype: np.dtype[Any],
        conj: bool,
        neg: bool,
        dims: Ints,
        access: Access,
        stacked: Ints = (),
        shifts: Ints = (0,),
    ) -> None:
        self.base_shape = base_shape
        self.base_dtype = base_dtype
        self.sizes = sizes
        self.dtype = dtype
        self.conj = conj and dtype.kind == "c"
        self.neg = neg
        self.dims = dims
        self.access = access
        self.stacked = stacked
        self.shifts = shifts
        self.static = access.kind in ("empty", "reshape")
        self.identity = (
            self.static
            and sizes == base_shape
            and dtype == base_dtype
            and dims == tuple(sorted(dims))
            and not (self.conj or neg)
        )
        self.direct = not self.identity and not stacked and access.kind in ("reshape", "digits")
        self.aval = ShapedArray(sizes, dtype)
        self._reader: Program | None = None
        self._later_reader: Program | None = None
        self._writer: Program | None = None
        self._donating_writer: Program | None = None

    @property
    def kind(self) -> str:
        """How the elements are reached, "stack" where in several steps."""
        return "stack" if self.stacked else self.access.kind

    def __repr__(self) -> str:
        what = "identity" if self.identity else self.kind
        return f"Recipe({what}: {self.base_dtype}{list(self.base_shape)} -> {self.dtype}{list(self.sizes)})"


# --- choosing ------------------------------------------------------------------------------------------------------


@bounded(4096)
def _recipe(*fields: Any) -> Recipe:
    return Recipe(*fields)


def recipe_for(
    base_shape: Ints,
    sizes: Ints,
    strides: Ints,
    offset: int = 0,
    base_dtype: Any = None,
    dtype: Any = None,
    conj: bool = False,
    neg: bool = False,
) -> Recipe:
    """The recipe for a view of these sizes, strides and offset (in elements of `dtype`) over an array.

    The offset decides between recipes, where a digit would carry, but is not part of one. The geometry must lie inside
    the array. The dtypes are NumPy's; without them the recipe is for a float32 array.
    """
    try:
        for checks, recipe in _candidates(base_shape, sizes, strides, base_dtype, dtype, conj, neg):
            if not checks or _passes(checks, recipe.shifts, offset):
                return recipe
    except Inconclusive:  # of open sizes: one by one, in whatever order they lie
        base_dtype = np.dtype(np.float32 if base_dtype is None else base_dtype)
        dims = tuple([d for d in range(len(sizes)) if sizes[d] != 1 and strides[d] != 0])
        access = Access("gather", tuple([(sizes[d], strides[d]) for d in dims]))
        dtype = base_dtype if dtype is None else np.dtype(dtype)
        return _recipe(tuple(base_shape), base_dtype, tuple(sizes), dtype, conj, neg, dims, access)
    raise AssertionError("the last candidate has no checks")


Checks = tuple[tuple[int, int, int], ...]


def _passes(checks: Checks, shifts: Ints, offset: int) -> bool:
    for shift in shifts:
        for place, radix, limit in checks:
            if (offset + shift) // place % radix > limit:
                return False
    return True


@bounded(8192)
def _candidates(
    base_shape: Ints, sizes: Ints, strides: Ints, base_dtype: Any, dtype: Any, conj: bool, neg: bool
) -> tuple[tuple[Checks, Recipe], ...]:
    """Recipes, best first, each with what the offset must satisfy: `offset // place % radix <= limit`."""
    base_dtype = np.dtype(np.float32 if base_dtype is None else base_dtype)
    dtype = base_dtype if dtype is None else np.dtype(dtype)
    if dtype.type is np.void:
        raise NotImplementedError(
            "tensors of dtypes that only store (complex32, bits8, int4, ...) have no values here: convert complex32 to complex64, or view "
            "the bytes as another dtype"
        )
    ordered = sorted((-strides[d], d) for d in range(len(sizes)) if sizes[d] > 1 and strides[d] > 0)
    dims = tuple([d for _, d in ordered])
    core = tuple([(sizes[d], strides[d]) for d in dims])
    common = (tuple(base_shape), base_dtype, tuple(sizes), dtype, conj, neg)
    if 0 in sizes:
        return (((), _recipe(*common, dims, Access("empty", core))),)
    shape = typed_shape(common[0], base_dtype, dtype)
    if _covers(shape, core):
        return (((), _recipe(*common, dims, Access("reshape", core))),)
    stacked: tuple[Any, ...] = ()
    if not _is_nested(core):
        over = _overlapping(core)
        if over is None:
            return (((), _recipe(*common, dims, Access("gather", core))),)
        kept = [i for i in range(len(core)) if i not in over]
        dims = tuple([dims[i] for i in (*kept, *over)])
        steps = [range(0, core[i][0] * core[i][1], core[i][1]) for i in over]
        stacked = (tuple([core[i][0] for i in over]), tuple([sum(shift) for shift in product(*steps)]))
        core = tuple([core[i] for i in kept])
    found: list[tuple[Checks, Recipe]] = []
    own = tuple([n for n in shape if n != 1])
    for radices in (own, _radices_of_strides(prod(shape), core)):
        rectangle = None if radices is None else _rectangle(radices, core)
        if rectangle is not None:
            found.append(
                (rectangle[1], _recipe(*common, dims, Access("digits", core, rectangle[0]), *stacked))
            )
    found.append(((), _recipe(*common, dims, Access("window", core), *stacked)))
    return tuple(found)


def _overlapping(core: Core) -> Ints | None:
    """The dimensions of least total size without which the rest does not overlap, or None where that is too many."""
    best, least = None, _MAX_STACK + 1
    for count in range(1, len(core)):
        for over in combinations(range(len(core)), count):
            total = prod([core[i][0] for i in over])
            if total < least and _is_nested(tuple([d for i, d in enumerate(core) if i not in over])):
                best, least = over, total
    return best


def _covers(shape: Ints, core: Core) -> bool:
    """Whether the view has every element of the array once."""
    expected = 1
    for size, stride in reversed(core):
        if stride != expected:
            return False
        expected *= size
    return expected == prod(shape)


def _is_nested(core: Core) -> bool:
    """Whether each stride steps over all that the smaller strides reach, so that no two elements share a place."""
    extent = 1
    for size, stride in reversed(core):
        if stride < extent:
            return False
        extent += (size - 1) * stride
    return True


def _radices_of_strides(count: int, core: Core) -> Ints | None:
    """The number system whose places are the view's strides, where each divides the next and the largest the count."""
    radices = []
    above = count
    for _, stride in core:
        if above % stride or above == stride:
            return None
        radices.append(above // stride)
        above = stride
    if above > 1:
        radices.append(above)
    return tuple(radices)


def place_values(radices: Ints) -> list[int]:
    """The value of each digit's unit, most significant digit first."""
    places = [1] * len(radices)
    for i in range(len(radices) - 1, 0, -1):
        places[i - 1] = places[i] * radices[i]
    return places


def _rectangle(radices: Ints, core: Core) -> tuple[Digits, Checks] | None:
    """The view as a rectangle of digits, splitting digits that several of its dimensions share, or None."""
    radices = _split_shared(radices, core)
    places = place_values(radices)
    counts, steps = [1] * len(radices), [1] * len(radices)
    checks = []
    for size, stride in core:
        i = next((i for i, place in enumerate(places) if place <= stride), None)
        if i is None or stride % places[i]:
            return None
        step = stride // places[i]
        while True:
            if i < 0 or counts[i] != 1:
                return None
            radix = radices[i]
            if (size - 1) * step < radix:
                here, size = size, 1
            elif radix % step == 0 and size % (radix // step) == 0:
                # The dimension runs through the whole digit and on into the next.
                here = radix // step
                size //= here
            else:
                return None
            counts[i], steps[i] = here, step
            checks.append((places[i], radix, radix - 1 - (here - 1) * step))
            if size == 1:
                break
            i, step = i - 1, 1
    return Digits(radices, tuple(counts), tuple(steps)), tuple(checks)


def _split_shared(radices: Ints, core: Core) -> Ints:
    """Digits split where a stride falls inside them and another dimension, or a long step, needs the room."""
    result: list[int] = []
    for radix, place in zip(radices, place_values(radices)):
        inside = [
            stride // place for _, stride in core if place <= stride < place * radix and stride % place == 0
        ]
        if len(inside) == 1 and inside[0] < _SMALL_STEP:
            inside = []
        above = radix
        for step in inside:
            if 1 < step < above and above % step == 0:
                result.append(above // step)
                above = step
        result.append(above)
    return tuple(result)


# --- elements of another dtype -------------------------------------------------------------------------------------


def component(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the real and imaginary parts, and bytes for bool: what the bits are made of."""
    if dtype.kind == "c":
        return np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype


def typed_shape(shape: Ints, old: np.dtype[Any], new: np.dtype[Any]) -> Ints:
    """The shape of the array once `_reinterpret` has made its elements `new`."""
    if old == new:
        return shape
    a, b = component(old), component(new)
    if old.kind == "c":
        shape = (*shape, 2)
    if a.itemsize > b.itemsize:
        shape = (*shape, a.itemsize // b.itemsize)
    elif a.itemsize < b.itemsize:
        shape = grouped(shape, b.itemsize // a.itemsize)
    return grouped(shape, 2) if new.kind == "c" else shape


def grouped(shape: Ints, size: int) -> Ints:
    """`shape` in groups of `size` elements; flat, without a remainder, where rows do not divide."""
    if shape and shape[-1] % size == 0:
        return (*shape[:-1], shape[-1] // size)
    return (prod(shape) // size,)
