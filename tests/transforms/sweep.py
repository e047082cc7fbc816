"""The checks of one row: what differs, as texts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xtensor
from tests.table import Row
from tests.table.bridge import OURS, flat, operator_named
from tests.table.facets import double, key_of
from tests.table.samples import Sample, T, memory_of
from xtensor import Tensor

__all__ = ["differences"]

FLOATS = (xtensor.float64, xtensor.float32, xtensor.complex128)


def differences(row: Row, samples: int = 1, sizes: tuple[int, ...] = (2, 1, 0)) -> list[tuple[str, str]]:
    """What differs for a row: which check, and how."""
    if row.empty:
        return []
    found: list[tuple[str, str]] = []
    function = operator_named(row.name)
    for sample in list(row.samples)[:samples]:
        call = Call(row, function, sample)
        for name, check in call.random_checks() if row.random else call.checks(sizes):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    text = check()
                except Exception as error:  # whatever an operator may raise is what is to be told
                    text = f"{type(error).__name__}: {error}"
            if text:
                found.append((name, text[:300]))
    return found


class Call:
    """One call of an operator, with as many versions of its tensors as are asked for."""

    def __init__(self, row: Row, function: Callable[..., Any], sample: Sample) -> None:
        self.function = function
        self.sample = sample
        self.dtype = double(row.dtype)
        self.key = key_of(row, sample)
        self.described = sample.tensors

    def tensors(self, version: int) -> list[Tensor]:
        """The tensors of the call; a version has values of its own, but for those that the sample fixes."""
        made = []
        for i, t in enumerate(self.described):
            name = t.dtype or self.dtype
            key = f"{self.key}/{i}/{name}/{version}"
            made.append(OURS.make(memory_of(t.but(layout="contiguous"), name, key), name))
        return made

    def __call__(self, tensors: Any) -> list[Tensor]:
        """The results that are tensors, for these in the place of the sample's."""
        rest = iter(tensors)

        def converted(value: Any) -> Any:
            if isinstance(value, T):
                return next(rest)
            if type(value) in (list, tuple):
                return type(value)([converted(v) for v in value])
            return OURS.dtype(value.name) if type(value).__name__ == "Dtype" else value

        args = [converted(a) for a in self.sample.args]
        kwargs = {k: converted(v) for k, v in self.sample.kwargs.items()}
        return [r for r in flat(self.function(*args, **kwargs)) if isinstance(r, Tensor)]

    def checks(self, sizes: tuple[int, ...]) -> Iterator[tuple[str, Callable[[], str]]]:
        """The checks by name."""
        versions = [self.tensors(v) for v in range(2)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                whole = [self(v) for v in versions]
        except Exception:
            return  # a sample of an error
        if not versions[0] or not whole[0] or any(not isinstance(r, Tensor) for r in whole[0]):
            return
        count = len(versions[0])
        alone = [(i,) for i in range(count)] if 1 < count <= 4 else []
        for places in [*alone, tuple(range(count))]:
            for size in sizes:
                name = f"vmap over {'all' if len(places) == count else places[0]} of {size}"
                yield name, lambda places=places, size=size: self.batched(versions, places, size)
        yield "other dimensions", lambda: self.batched(versions, tuple(range(count)), 2, -1)
        inputs = [i for i, t in enumerate(versions[0]) if t.dtype in FLOATS and self.described[i].grad]
        if inputs and any(r.dtype in FLOATS for r in whole[0]):
            yield "jvp", lambda: self.pushed(versions, inputs)
            yield "vmap of jvp", lambda: self.batch_of_tangents(versions, inputs)
            yield "jvp of vmap", lambda: self.tangents_of_batch(versions, inputs)

    def random_checks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Of an operator that draws random numbers: each kind of randomness means what it says."""
        tensors = self.tensors(0)
        before = xtensor.get_rng_state()
        try:
            self([t.clone() for t in tensors])
        except Exception:
            return
        if xtensor.equal(before, xtensor.get_rng_state()):
            return  # its results are free, but none of its numbers is drawn
        for randomness in ("error", "same", "different"):
            yield f"randomness {randomness}", lambda randomness=randomness: self.drawn(tensors, randomness)

    def drawn(self, tensors: list[Tensor], randomness: str) -> str:
        lead = xtensor.zeros(16)
        given = [xtensor.stack([t] * 16) for t in tensors]
        call = xtensor.vmap(lambda x, *own: tuple(self(own)), randomness=randomness)
        if randomness == "error":
            try:
                call(lead, *given)
            except RuntimeError as error:
                return "" if "randomness error mode" in str(error) else f"{type(error).__name__}: {error}"
            return "random numbers are drawn"
        found = call(lead, *given)
        # Of few elements, or of what hardly varies, all sixteen may be the same by chance; of many calls not all.
        alike = all(bool((f == f[:1]).all()) for f in found if f.numel())
        if randomness == "same":
            return "" if alike else "samples have numbers of their own"
        return "all samples have the same numbers" if alike and any(f.numel() for f in found) else ""

    def batched(self, versions: list[list[Tensor]], places: tuple[int, ...], size: int, dim: int = 0) -> str:
        base = versions[0]
        rows = [
            [versions[b % 2][i] if i in places else t for i, t in enumerate(base)]
            for b in range(max(size, 1))
        ]
        each = [[r.clone() for r in self([t.clone() for t in row])] for row in rows]
        if any(a.shape != b.shape for a, b in zip(each[0], each[-1], strict=True)):
            return ""
        given = [
            xtensor.stack([row[i] for row in rows], dim).narrow(dim, 0, size) if i in places else t.clone()
            for i, t in enumerate(base)
        ]
        dims = tuple([dim if i in places else None for i in range(len(base))])
        found = xtensor.vmap(lambda *tensors: tuple(self(tensors)), in_dims=dims, out_dims=dim)(*given)
        expected = [xtensor.stack(list(p), dim).narrow(dim, 0, size) for p in zip(*each, strict=True)]
        return compared(found, expected)

    def directions(self, versions: list[list[Tensor]], inputs: list[int], seed: int = 0) -> list[Tensor]:
        """A direction for each of the inputs."""
        rng = np.random.default_rng(seed)
        return [like(versions[0][i], rng) for i in inputs]

    def along(self, versions: list[list[Tensor]], inputs: list[int]) -> Callable[..., Any]:
        """The call as a function of the inputs alone, giving what has a derivative."""

        def function(*values: Tensor) -> tuple[Tensor, ...]:
            given = [t.clone() for t in versions[0]]
            for i, value in zip(inputs, values, strict=True):
                given[i] = value
            return tuple([r for r in self(given) if r.dtype in FLOATS])

        return function

    def pushed(self, versions: list[list[Tensor]], inputs: list[int]) -> str:
        function = self.along(versions, inputs)
        points = [versions[0][i].clone() for i in inputs]
        try:
            value, pull = xtensor.func.vjp(function, *points)
            rng = np.random.default_rng(1)
            cotangents = tuple([like(v, rng) for v in value])
            pulled = pull(cotangents)
        except Exception:
            return ""  # without a derivative at all
        directions = tuple(self.directions(versions, inputs))
        again, tangents = xtensor.func.jvp(function, tuple([p.clone() for p in points]), directions)
        text = compared(again, value)
        if text:
            return f"value: {text}"
        left = sum(product(c, t) for c, t in zip(cotangents, tangents, strict=True))
        right = sum(product(p, d) for p, d in zip(pulled, directions, strict=True))
        same = np.allclose(left, right, 1e-6, 1e-8, equal_nan=True)
        return "" if same or not np.isfinite(right) else f"{left} along the tangents, {right} by vjp"

    def batch_of_tangents(self, versions: list[list[Tensor]], inputs: list[int]) -> str:
        function = self.along(versions, inputs)
        points = tuple([versions[0][i].clone() for i in inputs])
        rows = [tuple(self.directions(versions, inputs, seed)) for seed in (0, 1)]
        try:
            each = [xtensor.func.jvp(function, points, row)[1] for row in rows]
        except Exception:
            return ""  # which `jvp` tells
        given = [xtensor.stack(list(parts)) for parts in zip(*rows, strict=True)]
        found = xtensor.vmap(lambda *d: xtensor.func.jvp(function, points, d)[1])(*given)
        return compared(found, [xtensor.stack(list(parts)) for parts in zip(*each, strict=True)])

    def tangents_of_batch(self, versions: list[list[Tensor]], inputs: list[int]) -> str:
        function = self.along(versions, inputs)
        points = [tuple([version[i].clone() for i in inputs]) for version in versions]
        rows = [tuple(self.directions(versions, inputs, seed)) for seed in (0, 1)]
        try:
            each = [
                xtensor.func.jvp(function, tuple([t.clone() for t in p]), row)[1]
                for p, row in zip(points, rows, strict=True)
            ]
        except Exception:
            return ""  # which `jvp` tells
        if any(a.shape != b.shape for a, b in zip(*each, strict=True)):
            return ""
        given = [
            tuple([xtensor.stack(list(p)) for p in zip(*parts, strict=True)]) for parts in (points, rows)
        ]
        found = xtensor.func.jvp(xtensor.vmap(function), *given)[1]
        return compared(found, [xtensor.stack(list(parts)) for parts in zip(*each, strict=True)])


def like(tensor: Tensor, rng: np.random.Generator) -> Tensor:
    """Random values in a tensor's shape and dtype."""
    made = rng.standard_normal(tuple(tensor.shape))
    if tensor.is_complex():
        made = made + 1j * rng.standard_normal(tuple(tensor.shape))
    return xtensor.tensor(made, dtype=tensor.dtype)


def product(a: Tensor, b: Tensor) -> float:
    """The inner product of two tensors as real vectors."""
    x, y = OURS.values(a.detach().resolve_conj()), OURS.values(b.detach().resolve_conj())
    return float(np.sum(np.conj(x) * y).real)


def compared(found: Any, expected: Any) -> str:
    """How two lists of tensors differ, or nothing."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.shape != b.shape or a.dtype is not b.dtype:
            return f"result {i}: {a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        x, y = OURS.values(a.detach().resolve_conj()), OURS.values(b.detach().resolve_conj())
        if not np.allclose(x, y, 1e-6, 1e-8, equal_nan=True):
            return f"result {i} differs by {np.nanmax(np.abs(x.astype(complex) - y)):.3g}"
    return ""
