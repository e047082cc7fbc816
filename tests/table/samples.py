"""Sample inputs of the operator table: descriptions of tensors, made into real ones by seed, for either library.

Shapes come from a small pool, since every new shape is a compile.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "SHAPES",
    "Dtype",
    "Memory",
    "Sample",
    "T",
    "binary",
    "matrices",
    "memory_of",
    "reducing",
    "unary",
    "walk",
]

SHAPES = ((2, 3), (), (0,), (3,), (2, 1, 3))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class T:
    """A tensor to be made: sizes, range of values, dtype (the row's where None), and how it lies in memory.

    values: exact values instead of random ones. grad: whether a gradient is asked for. smooth: False where the
    operator has a kink at these values, so that finite differences say nothing. unique: no two values are the same.
    layout: contiguous, transposed, sliced or expanded.
    """

    def __init__(
        self,
        *shape: int,
        dtype: str | None = None,
        low: float = -2.0,
        high: float = 2.0,
        values: Any = None,
        grad: bool = True,
        smooth: bool = True,
        unique: bool = False,
        layout: str = "contiguous",
    ) -> None:
        self.shape = np.shape(values) if values is not None else shape
        self.dtype = dtype
        self.low, self.high = low, high
        self.values = values
        self.grad = grad
        self.smooth = smooth
        self.unique = unique
        self.layout = layout

    def but(self, **changes: Any) -> T:
        """The same description, with some fields changed."""
        options = {k: v for k, v in vars(self).items() if k != "shape"} | changes
        shape = changes.get("shape", self.shape)
        options.pop("shape", None)
        return T(*shape, **options)

    def __repr__(self) -> str:
        parts = [str(n) for n in self.shape] if self.values is None else [f"values={self.values!r}"]
        defaults = dict(dtype=None, low=-2.0, high=2.0, layout="contiguous")
        parts += [f"{k}={getattr(self, k)!r}" for k, d in defaults.items() if getattr(self, k) != d]
        return f"T({', '.join(parts)})"


class Dtype:
    """A dtype argument, by name: each library gets its own object."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Sample:
    """The arguments of one call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs

    @property
    def tensors(self) -> list[T]:
        return [t for value in (*self.args, *self.kwargs.values()) for t in walk(value)]

    @property
    def smooth(self) -> bool:
        return all(t.smooth for t in self.tensors)

    def map(self, change: Callable[[T], Any]) -> Sample:
        """The sample with every tensor's description replaced."""
        return Sample(
            *[replace(a, change) for a in self.args],
            **{k: replace(v, change) for k, v in self.kwargs.items()},
        )

    def __repr__(self) -> str:
        return f"({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def walk(value: Any) -> Iterator[T]:
    """The tensors described inside an argument."""
    if isinstance(value, T):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from walk(item)


def replace(value: Any, change: Callable[[T], Any]) -> Any:
    if isinstance(value, T):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)([replace(item, change) for item in value])
    return value


# -- values


class Memory:
    """Values as they lie in memory: a flat buffer with sizes, strides (in elements) and an offset."""

    def __init__(
        self, flat: np.ndarray, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> None:
        self.flat, self.sizes, self.strides, self.offset = flat, sizes, strides, offset

    @property
    def contiguous(self) -> bool:
        return self.strides == row_major(self.sizes) and self.flat.size == math.prod(self.sizes)

    def array(self) -> np.ndarray:
        """The logical values."""
        size = self.flat.itemsize
        view = np.lib.stride_tricks.as_strided(
            self.flat[self.offset :], self.sizes, tuple(s * size for s in self.strides)
        )
        return view.copy()


def row_major(sizes: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def memory_of(t: T, dtype: str, key: str) -> Memory:
    """The tensor's memory, from a seed of its own: the same in every run and for either library."""
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    values = values_of(t, np.dtype(BFLOAT16 if dtype == "bfloat16" else dtype), rng)
    sizes = tuple(values.shape)
    if t.layout == "transposed" and len(sizes) > 1:
        flipped = np.ascontiguousarray(values.T)
        return Memory(flipped.reshape(-1), sizes, row_major(flipped.shape)[::-1], 0)
    if t.layout == "sliced" and sizes:
        room = np.zeros((*sizes[:-1], 2 * sizes[-1] + 1), values.dtype)
        room[..., 1::2] = values
        *outer, last = row_major(room.shape)
        return Memory(room.reshape(-1), sizes, (*outer, 2 * last), 1)
    if t.layout == "expanded" and sizes and sizes[0] > 1:
        return Memory(np.ascontiguousarray(values[0]).reshape(-1), sizes, (0, *row_major(sizes[1:])), 0)
    return Memory(np.ascontiguousarray(values).reshape(-1), sizes, row_major(sizes), 0)


def values_of(t: T, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    if t.values is not None:
        with np.errstate(all="ignore"):
            return np.asarray(t.values).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, t.shape).astype(bool)
    if dtype.kind in "iu":
        low = math.ceil(t.low if t.low > 0 else t.low * 2)
        high = max(math.floor(t.high if t.low > 0 else t.high * 2), low + 1)
        low, high = (max(low, 0), max(high, 1)) if dtype.kind == "u" else (low, high)
        if t.unique:
            return (low + rng.permutation(math.prod(t.shape))).reshape(t.shape).astype(dtype)
        return rng.integers(low, high + 1, t.shape).astype(dtype)
    if t.unique:
        count = math.prod(t.shape)
        steps = (rng.permutation(count) + 0.5) / max(count, 1)
        return np.asarray(t.low + (t.high - t.low) * steps.reshape(t.shape)).astype(dtype)
    made = rng.uniform(t.low, t.high, t.shape)
    if dtype.kind == "c":
        made = made + 1j * rng.uniform(t.low, t.high, t.shape)
    return np.asarray(made).astype(dtype)


# -- the usual samples

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, math.inf, -math.inf, math.nan]


def unary(*, low: float = -2.0, high: float = 2.0, special: bool = True, **kwargs: Any) -> list[Sample]:
    """One tensor in each of the pool's shapes, and the values at which functions are special."""
    found = [Sample(T(*shape, low=low, high=high), **kwargs) for shape in SHAPES]
    if special:
        found.append(Sample(T(values=SPECIAL, smooth=False), **kwargs))
    return found


def binary(
    *, low: float = -2.0, high: float = 2.0, number: Any = 1.5, special: bool = True, **kwargs: Any
) -> list[Sample]:
    """Two tensors, broadcast in each way, and a Python number (not where `number` is None) for the second."""

    def t(*shape: int) -> T:
        return T(*shape, low=low, high=high)

    found = [
        Sample(t(2, 3), t(2, 3), **kwargs),
        Sample(t(2, 1, 3), t(2, 3), **kwargs),
        Sample(t(), t(), **kwargs),
        Sample(t(2, 3), t(), **kwargs),
        Sample(t(0), t(0), **kwargs),
    ]
    if number is not None:
        found.append(Sample(t(2, 3), number, **kwargs))
    if special:
        pairs = np.array([(a, b) for a in SPECIAL for b in (-0.0, 1.0, -1.5, math.inf, math.nan)])
        found.append(
            Sample(T(values=pairs[:, 0], smooth=False), T(values=pairs[:, 1], smooth=False), **kwargs)
        )
    return found


def reducing(*, unique: bool = False, dims: bool = True, many: bool = True, **kwargs: Any) -> list[Sample]:
    """One tensor reduced whole, over one dimension with and without keepdim, and over several."""

    def t(*shape: int) -> T:
        return T(*shape, unique=unique)

    found = [Sample(t(2, 3), **kwargs), Sample(t(), **kwargs)]
    if dims:
        found += [
            Sample(t(2, 3), 1, **kwargs),
            Sample(t(2, 1, 3), -1, keepdim=True, **kwargs),
            Sample(t(2, 0, 3), 0, **kwargs),
            Sample(t(), 0, **kwargs),
        ]
    if many:
        found.append(Sample(t(2, 1, 3), (0, 2), **kwargs))
    return found


def matrices(*shapes: Sequence[int], **kwargs: Any) -> Sample:
    """Tensors of these shapes."""
    return Sample(*[T(*shape) for shape in shapes], **kwargs)
