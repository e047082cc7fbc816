"""Levels of function transforms, and the arrays that carry them: batches of arrays, and arrays with tangents.

A storage may hold such an array in the place of JAX's. It has the shape that the function being transformed sees. A program of
xtensor's that is called with one runs as its batched or differentiated form (`transformed`), so nothing above has to know.
Arrays nest in the order of their levels' numbers, the highest outermost. A cotangent that comes from outside a level is `outer`:
where it leaves for something that is not at the level, it is summed over the batch, or cut to the part that belongs to the value.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from .cache import BoundedCache

__all__ = [
    "AS_THEY_ARE",
    "BATCHED_GRADS",
    "OLDER_VMAP",
    "Batched",
    "Dual",
    "Level",
    "LevelAval",
    "Leveled",
    "batches_of",
    "ground",
    "host_values",
    "levels_of",
    "tracing",
]


class _Tracing(threading.local):
    """What this thread traces. batches: whether the form of a program for batches. Rules for batches are written down in no other
    form: a program on disk is found by its text, which would name such a rule by its address. recorder: who runs what programs come
    to beneath all levels, and is shown the tensors that enter them; None where nobody records that.
    """

    batches = False
    recorder: Any = None


tracing = _Tracing()

_alive: weakref.WeakValueDictionary[int, Level] = weakref.WeakValueDictionary()
_lock = threading.Lock()


class Level:
    """One run of a transform.

    number: its place in the order, which comes back into use when nothing of the level is left. size: how many samples a batch
    has, None where the level is one of tangents. name: the transform, for messages. open: whether it is still running. born: of
    the derivative of a function, when it began; 0 for others. before: the transforms around it.
    leaves: the edges of leaves that were made within. given: the storages of arguments that are not differentiated.
    origins: of each batch that an argument became, by the identity of its storage: that, the argument, the dimension of the
    samples in it, and the batch.
    """

    __slots__ = (
        "__weakref__",
        "before",
        "born",
        "given",
        "leaves",
        "name",
        "number",
        "open",
        "origins",
        "randomness",
        "size",
    )

    def __init__(self, name: str, above: int = 0, size: int | None = None, randomness: str = "error") -> None:
        self.name = name
        self.size = size
        self.randomness = randomness
        self.open = True
        self.born = 0
        self.leaves: list[Any] = []
        self.given: tuple[Any, ...] = ()
        self.origins: dict[int, tuple[Any, Any, int, Any]] = {}
        with _lock:
            number = above + 1
            while number in _alive:
                number += 1
            self.number = number
            _alive[number] = self

    def was_given(self, storage: Any) -> bool:
        """Whether a storage is that of an argument; values with their tangents have storages of their own."""
        return any(s is storage for s in self.given)

    def own(self, edge: Any) -> bool:
        """A leaf that is made within asks for gradients as long as the level is open; who ends it cuts results off."""
        self.leaves.append(edge)
        return True

    def __repr__(self) -> str:
        return f"<level {self.number} of {self.name}>"


OLDER_VMAP = "torch._vmap_internals._vmap"
BATCHED_GRADS = "grad(is_grads_batched=True)"
AS_THEY_ARE = frozenset((OLDER_VMAP, BATCHED_GRADS))
"""The transforms of batches in which custom functions run as they are, on all samples at once, without a rule."""


class LevelAval:
    """Shape and dtype of an array at levels, with their numbers; one object for each such form."""

    __slots__ = ("__weakref__", "dtype", "levels", "shape")
    weak_type: ClassVar[bool] = False

    def __init__(self, shape: tuple[int, ...], dtype: Any, levels: tuple[int, ...]) -> None:
        self.shape = shape
        self.dtype = dtype
        self.levels = levels

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(np.prod(self.shape))

    def __repr__(self) -> str:
        return f"LevelAval({self.shape}, {self.dtype}, levels={self.levels})"


_avals: BoundedCache[Any, LevelAval] = BoundedCache(8192)


def aval_at(shape: tuple[int, ...], dtype: Any, levels: tuple[int, ...]) -> LevelAval:
    """The one `LevelAval` of this form."""
    key = (shape, dtype, levels)
    found = _avals.get(key)
    if found is None:
        found = _avals[key] = LevelAval(*key)
    return found


class Leveled:
    """An array at a level. inner: the array beneath it, of one level less. outer: whether it is a cotangent from outside."""

    __slots__ = ("__weakref__", "_aval", "inner", "level", "outer")
    weak_type: ClassVar[bool] = False
    inner: Any
    level: Level
    outer: bool
    _aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> Any:
        return self.inner.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements the function sees."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def nbytes(self) -> int:
        """How many bytes the function sees."""
        return self.size * self.dtype.itemsize

    @property
    def aval(self) -> LevelAval:
        """Shape, dtype and levels."""
        found = self._aval
        if found is None:
            levels = (self.level.number, *self.beneath())
            found = self._aval = aval_at(self.shape, self.dtype, levels)
        return found

    def beneath(self) -> tuple[int, ...]:
        """The numbers of the levels of what lies beneath, the outermost first."""
        return levels_of(self.inner)

    @property
    def sharding(self) -> Any:
        return self.inner.sharding

    @property
    def committed(self) -> bool:
        return self.inner.committed

    def devices(self) -> Any:
        """Where the array beneath lies."""
        return self.inner.devices()

    def is_deleted(self) -> bool:
        """Never: its programs give nothing up."""
        return False

    def block_until_ready(self) -> Any:
        """Wait for the array beneath."""
        self.inner.block_until_ready()
        return self

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(host_values(self), *args, **kwargs)


class Batched(Leveled):
    """The arrays of all samples; mapped: whether each has its own (the first dimension beneath), or all have the same."""

    __slots__ = ("mapped",)

    def __init__(self, level: Level, inner: Any, mapped: bool = True, outer: bool = False) -> None:
        self.level = level
        self.inner = inner
        self.mapped = mapped
        self.outer = outer
        self._aval = None

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self.inner.shape
        return shape[1:] if self.mapped else shape

    def __repr__(self) -> str:
        return f"Batched({self.level.number}, {self.inner!r}, mapped={self.mapped})"


class Dual(Leveled):
    """An array and its tangent, None where that is zero."""

    __slots__ = ("tangent",)

    def __init__(self, level: Level, inner: Any, tangent: Any, outer: bool = False) -> None:
        self.level = level
        self.inner = inner
        self.tangent = tangent
        self.outer = outer
        self._aval = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner.shape

    def beneath(self) -> tuple[int, ...]:
        """The numbers of the levels of what lies beneath, the outermost first."""
        own, along = levels_of(self.inner), levels_of(self.tangent)
        return own if own == along or not along else tuple(sorted({*own, *along}, reverse=True))

    def __repr__(self) -> str:
        return f"Dual({self.level.number}, {self.inner!r}, {self.tangent!r})"


KINDS = frozenset((Batched, Dual))


def ground(array: Any) -> Any:
    """The array of JAX's beneath all levels, with the values of all samples."""
    while isinstance(array, Leveled):
        array = array.inner
    return array


def layers(array: Any) -> Iterator[Leveled]:
    """The array and those beneath it, as far as they are at levels."""
    while isinstance(array, Leveled):
        yield array
        array = array.inner


def levels_of(array: Any) -> tuple[int, ...]:
    """The numbers of an array's levels, the outermost first."""
    return array.aval.levels if type(array) in KINDS else ()


def batches_of(array: Any) -> list[Any]:
    """The levels at which an array has a batch."""
    found: list[Any] = []
    while isinstance(array, Leveled):
        if type(array) is Batched and array.mapped:
            found.append(array.level)
        array = array.inner
    return found


def host_values(array: Any) -> Any:
    """The array of JAX's beneath levels of tangents; RuntimeError where samples have values of their own."""
    while isinstance(array, Leveled):
        if type(array) is Batched and array.mapped:
            raise RuntimeError(ACCESS)
        array = array.inner
    return array


ACCESS = (
    "vmap: the values of a Tensor that is being vmapped over cannot leave the function: there is one for each sample. "
    "Please rewrite what reads them (.numpy(), .tolist(), indexing by a mask, ...) with operations on Tensors, or do it outside "
    "of vmap."
)
