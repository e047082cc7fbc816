"""An entry's samples with more elements: PyTorch's own small ones, enlarged in a way that PyTorch takes.

Loops over vectors, in which generated code can be wrong, begin where PyTorch's samples end. The ways are those of
`tests/flags/enlarge.py`. Values are repeated, so a matrix may become singular: what PyTorch itself computes no better in
its own precision than far from double precision is left away, and another way is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.opinfo.core import SampleInput

from tests.flags.enlarge import ELEMENTS, LIMIT, batched, candidates, elements, form_of
from tests.table.samples import Sample, T

from .convert import copied, leaves, numpy_of, widened

__all__ = ["COUNT", "UNCHECKED", "enlarged"]

COUNT = 2
"""Enlarged samples of an entry and dtype."""
TRIED = 24
"""Samples of PyTorch's that are looked at for them."""
NEAR = {"float16": 0.03, "bfloat16": 0.2}
"""How far PyTorch may be from double precision, of the largest value of a result; 1e-3 in other dtypes."""
SHRUNK = 2.0**-5
UNCHECKED = frozenset(("_native_batch_norm_legit", "native_batch_norm"))
"""Entries whose kernels in PyTorch read beyond statistics of another size: what they take says nothing."""


class Held(T):
    """A tensor of PyTorch's as the ways of enlarging know one: exact values, and the dtype that they had."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(values=numpy_of(tensor))
        self.kind, self.count = tensor.dtype, tensor.numel()
        self.asks = tensor.requires_grad

    def but(self, **changes: Any) -> Held:
        """Other values, of the same dtype."""
        made = Held.__new__(Held)
        vars(made).update(vars(self) | changes)
        made.shape = np.shape(made.values)
        return made

    def tensor(self) -> torch.Tensor:
        """A leaf in memory of its own; floats that were repeated are made a little smaller, each by another part."""
        values = np.array(self.values)
        if values.dtype.kind in "fc" and values.size > self.count:
            rng = np.random.default_rng(values.size)
            values = (values * (1 - SHRUNK * rng.random(values.shape))).astype(values.dtype)
        return torch.from_numpy(values).to(self.kind).requires_grad_(self.asks)


def held(value: Any) -> Any:
    """A value with `Held` for every strided tensor of it."""
    if isinstance(value, torch.Tensor):
        return Held(value)
    if type(value) in (list, tuple):
        return type(value)([held(item) for item in value])
    return value


def restored(value: Any) -> Any:
    """The way back."""
    if isinstance(value, Held):
        return value.tensor()
    if type(value) in (list, tuple):
        return type(value)([restored(item) for item in value])
    return value


def enlarged(samples: list[Any], function: Any, dtype: str, drawn: bool, count: int = COUNT) -> Iterator[Any]:
    """Up to `count` samples of `ELEMENTS` elements and more, made of different ones.

    drawn: the function draws numbers, so nothing can be said of their rounding.
    """
    step = max(1, len(samples) // TRIED)
    found = 0
    for sample in samples[::step]:
        made = enlarge(sample, function, math.inf if drawn else NEAR.get(dtype, 1e-3))
        if made is not None:
            yield made
            found += 1
        if found == count:
            return


def enlarge(sample: Any, function: Any, near: float) -> Any | None:
    """The sample in the first way that PyTorch takes, and computes well."""
    try:
        given = Sample(
            *map(held, (sample.input, *sample.args)), **{k: held(v) for k, v in sample.kwargs.items()}
        )
    except (RuntimeError, TypeError):  # sparse, quantised, on the meta device
        return None
    seen: set[str] = set()
    for way in ways(given):
        if (form := form_of(way)) in seen:
            continue
        seen.add(form)
        first, *args = map(restored, way.args)
        kwargs = {k: restored(v) for k, v in way.kwargs.items()}
        if good(function, (first, tuple(args), kwargs), near):
            made = SampleInput(first, args=tuple(args), kwargs=kwargs)
            made.output_process_fn_grad = sample.output_process_fn_grad
            made.broadcasts_input = sample.broadcasts_input
            return made
    return None


def ways(given: Sample) -> Iterator[Sample]:
    """Batches first: they keep what a matrix is."""
    for every in (True, False):
        made = batched(given, every)
        if made is not None and ELEMENTS <= elements(made) <= LIMIT:
            yield made
    yield from candidates(given)


def good(function: Any, given: tuple[Any, ...], near: float) -> bool:
    """Whether PyTorch takes the call, its results can be compared at leisure, and rounding does not swamp them."""
    try:
        first, args, kwargs = copied(given)
        results = leaves(function(first, *args, **kwargs), torch.Tensor)
        if not results or not ELEMENTS <= max(most(given), *map(torch.numel, results)) <= 8 * LIMIT:
            return False
        if near == math.inf:
            return True
        first, args, kwargs = widened(given)
        precise = leaves(function(first, *args, **kwargs), torch.Tensor)
    except Exception:
        return False
    return len(precise) == len(results) and all(
        close(a, b, near) for a, b in zip(results, precise, strict=True)
    )


def most(given: tuple[Any, ...]) -> int:
    return max((math.prod(t.shape) for t in leaves(given, torch.Tensor)), default=0)


def close(result: torch.Tensor, precise: torch.Tensor, near: float) -> bool:
    """Whether a result is as near to the precise one; what is drawn, or no float, always is."""
    a, b = numpy_of(result), numpy_of(precise)
    if a.dtype.kind not in "fc" or a.shape != b.shape:
        return a.shape == b.shape
    both = np.isfinite(a) & np.isfinite(b)
    if not both.any():
        return True
    apart = np.abs(a[both] - b[both]).max()
    return bool(apart <= near * max(np.abs(b[both]).max(), 1e-30))
