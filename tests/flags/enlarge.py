"""The table's samples with more elements: the ways to enlarge a call, of which an operator takes some."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.table.samples import Sample, T

__all__ = ["ALONE", "ELEMENTS", "EXTRA", "LIMIT", "candidates", "elements", "form_of"]

ELEMENTS = 4096
"""How many elements the largest tensor of a call has at least."""
LIMIT = 1 << 15
"""And at most."""


def elements(sample: Sample) -> int:
    """Of the largest tensor."""
    return max((math.prod(t.shape) for t in sample.tensors), default=0)


def resized(t: T, shape: tuple[int, ...]) -> T:
    """The same kind of values in another shape; exact values are repeated."""
    if t.values is None:
        return t.but(shape=shape)
    return t.but(values=np.resize(np.asarray(t.values), shape))


def odd(least: float) -> int:
    """The smallest odd number that is not below: no multiple of a vector."""
    n = max(1, math.ceil(least))
    return n if n % 2 else n + 1


def form_of(sample: Sample) -> str:
    """The shapes and other arguments of a call: what tells two enlarged ones apart."""
    return repr(sample.map(lambda t: (t.shape, t.dtype, t.low, t.high, t.values is None)))


def scaled(sample: Sample, numbers: bool) -> Sample | None:
    """Every dimension times one number, so that sizes which were equal or multiples stay so.

    numbers: integers inside sequences (sizes that the caller gives) are multiplied too, where a tensor has that size.
    """
    largest = max(sample.tensors, key=lambda t: math.prod(t.shape), default=None)
    if largest is None or math.prod(largest.shape) == 0:
        return None
    free = sum(n > 1 for n in largest.shape)
    if free == 0:
        return None
    by = odd((ELEMENTS / math.prod(largest.shape)) ** (1 / free))
    sizes = {n for t in sample.tensors for n in t.shape if n > 1}

    def number(value: Any, inside: bool) -> Any:
        if type(value) in (list, tuple):
            return type(value)([number(item, True) for item in value])
        grows = type(value) is int and inside and value in sizes
        return value * by if grows else value

    made = sample.map(lambda t: resized(t, tuple(n * by if n > 1 else n for n in t.shape)))
    if not numbers:
        return made
    changed = Sample(
        *[number(a, False) for a in made.args], **{k: number(v, False) for k, v in made.kwargs.items()}
    )
    return changed if repr(changed) != repr(made) else None


def along(sample: Sample, axis: int, every: bool) -> Sample | None:
    """One dimension made longer: of the first tensor alone, or of every tensor that has the same size there."""
    first = next((t for t in sample.tensors if t.shape), None)
    if first is None or math.prod(first.shape) == 0 or not -len(first.shape) <= axis < len(first.shape):
        return None
    size = first.shape[axis]
    by = odd(ELEMENTS / math.prod(first.shape))

    def change(t: T) -> T:
        if t is not first and not (every and -len(t.shape) <= axis < len(t.shape) and t.shape[axis] == size):
            return t
        place = axis % len(t.shape)
        return resized(t, (*t.shape[:place], t.shape[place] * by, *t.shape[place + 1 :]))

    return sample.map(change)


def batched(sample: Sample, every: bool) -> Sample | None:
    """One more dimension in front: of the first tensor, or of all."""
    first = next(iter(sample.tensors), None)
    if first is None or math.prod(first.shape) == 0:
        return None
    by = odd(ELEMENTS / math.prod(first.shape))
    return sample.map(lambda t: resized(t, (by, *t.shape)) if every or t is first else t)


def spread(sample: Sample) -> Sample | None:
    """The last two dimensions of the first tensor made longer alike: images and matrices."""
    first = next(iter(sample.tensors), None)
    if first is None or len(first.shape) < 3 or math.prod(first.shape) == 0:
        return None
    by = odd(math.sqrt(ELEMENTS / math.prod(first.shape)))
    *outer, height, width = first.shape
    return sample.map(lambda t: resized(t, (*outer, height * by, width * by)) if t is first else t)


def counted(sample: Sample) -> Sample | None:
    """Without tensors: what is asked for is made larger, by its sizes or by its number of steps."""
    if sample.tensors:
        return None
    by = ELEMENTS + 3

    def change(value: Any) -> Any:
        if type(value) in (list, tuple) and value and all(type(v) is int for v in value):
            return type(value)((value[0] * by, *value[1:]))
        return value

    args = [change(a) for a in sample.args]
    if repr(args) == repr(list(sample.args)):
        place = next((i for i, a in reversed(list(enumerate(args))) if type(a) is int and a > 0), None)
        if place is None:
            return None
        args[place] *= by
    return Sample(*args, **sample.kwargs)


WAYS: dict[str, Callable[[Sample], Sample | None]] = {
    "spread": spread,
    "all dimensions": lambda s: scaled(s, False),
    "all dimensions and sizes": lambda s: scaled(s, True),
    "first dimension of all": lambda s: along(s, 0, True),
    "last dimension of all": lambda s: along(s, -1, True),
    "first dimension": lambda s: along(s, 0, False),
    "last dimension": lambda s: along(s, -1, False),
    "second last dimension": lambda s: along(s, -2, False),
    "batch of all": lambda s: batched(s, True),
    "batch": lambda s: batched(s, False),
    "counts": counted,
}
"""By name, the likelier to be taken and the more telling first."""


EXTRA: dict[str, list[Sample]] = {
    # Layers of real sizes, where XLA takes other ways than for small ones.
    "conv1d": [Sample(T(8, 32, 501), T(64, 32, 5), padding=2)],
    "conv2d": [
        Sample(T(8, 32, 28, 28), T(32, 32, 3, 3), padding=1),
        Sample(T(8, 32, 28, 28), T(32, 1, 3, 3), padding=1, groups=32),
        Sample(T(4, 3, 65, 65), T(32, 3, 7, 7), stride=2, padding=3),
        Sample(T(8, 32, 28, 28), T(64, 32, 1, 1)),
    ],
    "conv3d": [Sample(T(1, 8, 12, 14, 14), T(16, 8, 3, 3, 3), padding=1)],
    "conv_transpose2d": [Sample(T(4, 32, 14, 14), T(32, 16, 3, 3), stride=2)],
    "matmul": [Sample(T(251, 257), T(257, 263))],
    # Calls that none of the ways finds.
    "adaptive_max_pool3d": [Sample(T(2, 2, 11, 11, 11), 3)],
    "diagflat": [Sample(T(67))],
    "linalg.tensorinv": [Sample(T(8, 8, 64))],
    "linalg.tensorsolve": [Sample(T(8, 8, 64), T(8, 8))],
    "tril_indices": [Sample(67, 67)],
    "view_copy": [Sample(T(54, 81), (81, 54))],
}
"""Calls by the row's name, besides those that are found."""

ALONE = {"adaptive_max_pool3d"}
"""Rows whose enlarged calls take minutes: only those of `EXTRA` are made."""


def candidates(sample: Sample) -> Iterator[Sample]:
    """The enlarged calls that may be tried, the likeliest first."""
    seen = set()
    for name, way in WAYS.items():
        made = way(sample)
        if made is None or (name != "counts" and not ELEMENTS <= elements(made) <= LIMIT):
            continue
        if (form := form_of(made)) not in seen:
            seen.add(form)
            yield made
