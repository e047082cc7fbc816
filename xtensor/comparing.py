"""The same function on several devices: how far its results and gradients are apart, and how long it takes.

`devices` stands below tensors and cannot hold this; it is attached there as `xtensor.devices.compare`.
"""

from __future__ import annotations

import copy
import dataclasses
import html
import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import devices, gradients, trees
from .devices import DeviceLike
from .engine import modes
from .nn.modules.module import Module
from .operators.generator import fork_rng, manual_seed
from .tensor import Tensor, array_of, wrap
from .ulps import is_floating, largest_ulps
from .xla import sizes

__all__ = ["Comparison", "Difference", "Timing", "compare"]


@dataclass(frozen=True)
class Difference:
    """How far a result of a device is from that of the first one.

    name: "output", "output['loss']", "gradient of args[0]", "gradient of function.weight". size: the largest absolute
        value on the first device. difference: the largest absolute difference; inf where shapes or dtypes differ, or one
        of the two is NaN. ulps: the same in units in the last place at the largest value.
    """

    name: str
    device: devices.device
    dtype: str
    shape: tuple[int, ...]
    size: float
    difference: float
    ulps: float

    def __str__(self) -> str:
        if math.isinf(self.difference):
            return "another"
        return "same" if self.difference == 0 else f"{self.difference:.1e} ({self.ulps:.3g} ulps)"


@dataclass(frozen=True)
class Timing:
    """How long a device took, in seconds: the first run with its compilations, and the median of later ones.

    backward: all gradients; None where nothing asks for one. error: why the device has no results.
    """

    device: devices.device
    first: float | None
    forward: float | None
    backward: float | None
    error: str | None = None


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. Prints as a table, also in a notebook.

    rows: a difference for each result and each device but the first. times: of every device.
    """

    rows: tuple[Difference, ...]
    times: tuple[Timing, ...]

    @property
    def max_ulps(self) -> float:
        """The largest difference of all, in units in the last place; inf where a device has failed."""
        failed = any(t.error is not None for t in self.times)
        return math.inf if failed else max((row.ulps for row in self.rows), default=0.0)

    def lines(self) -> list[tuple[str, ...]]:
        """The table: what, its dtype and shape, and a column for each device."""
        places = [t.device for t in self.times]
        found: dict[str, dict[devices.device, Difference]] = {}
        for row in self.rows:
            found.setdefault(row.name, {})[row.device] = row
        lines: list[tuple[str, ...]] = [("", "dtype", "shape", *map(str, places))]
        for name, by_device in found.items():
            first = next(iter(by_device.values()))
            cells = [str(by_device[p]) if p in by_device else "" for p in places[1:]]
            lines.append((name, first.dtype, str(list(first.shape)), f"up to {first.size:.3g}", *cells))
        for what in ("first", "forward", "backward"):
            cells = [milliseconds(getattr(t, what)) for t in self.times]
            if any(cells):
                lines.append((f"time, {what} run" if what == "first" else f"time, {what}", "", "", *cells))
        return lines

    @property
    def errors(self) -> list[str]:
        """What devices failed with."""
        return [f"{t.device}: {t.error}" for t in self.times if t.error is not None]

    def __str__(self) -> str:
        lines = self.lines()
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        table = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([*table, *self.errors])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return (
                "<tr>"
                + "".join(f"<{tag} style='text-align:left'>{html.escape(c)}</{tag}>" for c in cells)
                + "</tr>"
            )

        head, *body = self.lines()
        errors = "".join(f"<p><b>{html.escape(error)}</b></p>" for error in self.errors)
        return f"<table>{row(head, 'th')}{''.join(row(cells, 'td') for cells in body)}</table>{errors}"

    def as_dict(self) -> dict[str, Any]:
        """All of it as what JSON can hold; an infinite difference is the text "inf"."""

        def plain(value: Any) -> Any:
            if isinstance(value, devices.device):
                return str(value)
            return "inf" if isinstance(value, float) and math.isinf(value) else value

        def all_of(item: Any) -> dict[str, Any]:
            return {f.name: plain(getattr(item, f.name)) for f in dataclasses.fields(item)}

        return {"rows": [all_of(r) for r in self.rows], "times": [all_of(t) for t in self.times]}


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g} ms"


def compare(
    function: Callable[..., Any],
    *args: Any,
    devices: Iterable[DeviceLike] | None = None,
    backward: bool = True,
    repeat: int = 5,
    seed: int = 0,
    **kwargs: Any,
) -> Comparison:
    """Call a function on each device, by default on all there are, and compare with the first what comes out.

    function: a function of tensors, or a module. args, kwargs: tensors and modules, also in lists, tuples and dicts; each
        device works on copies of its own, and so on a copy of `function` if that is a module.
    backward: whether gradients are compared too, of every tensor and parameter that requires grad: those of the sum of
        all results, each times the same random numbers.
    repeat: how many runs are timed after the first, whose results are those compared. seed: of what the function draws;
        the generators are as before afterwards.
    What a device but the first raises is part of the answer. ValueError without a device.
    """
    places = [resolve(place) for place in (every() if devices is None else devices)]
    if not places:
        raise ValueError("compare() needs a device")
    results: list[dict[str, np.ndarray]] = []
    times: list[Timing] = []
    for place in places:
        try:
            # Else the program of one of them may be one for several sizes, which rounds otherwise.
            with sizes.paused():
                found, timing = run(place, function, args, kwargs, backward, repeat, seed)
        except Exception as error:
            if not results:
                raise
            found, timing = {}, Timing(place, None, None, None, f"{type(error).__name__}: {error}")
        results.append(found)
        times.append(timing)
    first = results[0]
    rows = [
        difference(name, place, first.get(name), found.get(name))
        for place, found, timing in zip(places[1:], results[1:], times[1:], strict=True)
        if timing.error is None
        for name in dict.fromkeys([*first, *found])
    ]
    return Comparison(tuple(rows), tuple(times))


every, resolve = devices.list, devices.resolve


def run(
    place: devices.device,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backward: bool,
    repeat: int,
    seed: int,
) -> tuple[dict[str, np.ndarray], Timing]:
    """The results and gradients by name, as NumPy arrays, and the times."""
    called, given, named = moved((function, args, kwargs), place)
    leaves = leaves_of(called, given, named) if backward else {}

    def once() -> tuple[dict[str, Tensor], dict[str, Tensor], float, float]:
        started = time.perf_counter()
        outputs = tensors_in(called(*given, **named), "output")
        wait(outputs)
        between = time.perf_counter()
        wanted = {name: t for name, t in outputs.items() if t.requires_grad} if leaves else {}
        found: dict[str, Tensor] = {}
        if wanted:
            weights = [cotangent(t, name, seed) for name, t in wanted.items()]
            made = gradients.grad(list(wanted.values()), list(leaves.values()), weights, allow_unused=True)
            found = {f"gradient of {n}": g for n, g in zip(leaves, made, strict=True) if g is not None}
            wait(found)
        return outputs, found, between - started, time.perf_counter() - between

    with place, fork_rng(), modes.enable_grad():
        manual_seed(seed)
        outputs, found, *first = once()
        # Now, since later runs may write to them.
        arrays = {name: np.array(on_host(t)) for name, t in (outputs | found).items()}
        later = [once()[2:] for _ in range(repeat)]
    forward, behind = zip(*(later or [first]), strict=True)
    after = statistics.median(behind) if found else None
    return arrays, Timing(place, sum(first), statistics.median(forward), after)


def moved(value: Any, place: devices.device) -> Any:
    """The same structure on a device: modules copied, tensors as leaves of their own; what is shared stays shared."""
    memo: dict[int, Any] = {}

    def move(leaf: Any) -> Any:
        if id(leaf) not in memo:
            memo[id(leaf)] = moved_leaf(leaf, place)
        return memo[id(leaf)]

    return trees.tree_map(move, value)


def moved_leaf(leaf: Any, place: devices.device) -> Any:
    if isinstance(leaf, Module):
        return copy.deepcopy(leaf).to(place)
    if isinstance(leaf, Tensor):
        return wrap(devices.put(on_host(leaf), place)).requires_grad_(leaf.requires_grad)
    return leaf


def leaves_of(function: Any, args: Any, kwargs: Any) -> dict[str, Tensor]:
    """The tensors and parameters that require grad, by name, each once."""
    found: dict[str, Tensor] = {}
    for name, value in (("function", function), ("args", args), ("kwargs", kwargs)):
        for path, leaf in trees.tree_leaves_with_path(value):
            at = name + trees.keystr(path)
            if isinstance(leaf, Module):
                found |= {f"{at}.{n}": p for n, p in leaf.named_parameters() if p.requires_grad}
            elif isinstance(leaf, Tensor) and leaf.requires_grad:
                found[at] = leaf
    return {
        name: t
        for i, (name, t) in enumerate(found.items())
        if not any(t is o for o in list(found.values())[:i])
    }


def tensors_in(result: Any, name: str) -> dict[str, Tensor]:
    """The tensors of a result by their place in it; numbers become tensors, all else is left out."""
    found = {}
    for path, leaf in trees.tree_leaves_with_path(result):
        if isinstance(leaf, (bool, int, float, complex)):
            leaf = wrap(devices.put(np.asarray(leaf), resolve("cpu")))
        if isinstance(leaf, Tensor):
            found[name + trees.keystr(path)] = leaf
    return found


def wait(tensors: dict[str, Tensor]) -> None:
    for tensor in tensors.values():
        array_of(tensor).block_until_ready()


def on_host(tensor: Tensor) -> np.ndarray:
    return np.asarray(array_of(tensor))


def cotangent(tensor: Tensor, name: str, seed: int) -> Tensor:
    """Random numbers in the shape and dtype of a result: the same ones on every device."""
    array = array_of(tensor)
    drawn = np.random.default_rng([seed, *name.encode()]).uniform(0.5, 1.5, array.shape).astype(array.dtype)
    return wrap(devices.put(drawn, tensor.device))


def difference(
    name: str, place: devices.device, first: np.ndarray | None, found: np.ndarray | None
) -> Difference:
    """How far one result is from that of the first device; a result that only one of them has is wholly different."""
    shown = found if found is not None else first
    assert shown is not None
    known, size = (shown.dtype.name, shown.shape), largest(first)
    if first is None or found is None or first.shape != found.shape or first.dtype != found.dtype:
        return Difference(name, place, *known, size, math.inf, math.inf)
    if first.size == 0:
        return Difference(name, place, *known, size, 0.0, 0.0)
    right = (
        first.astype(np.complex128 if first.dtype.kind == "c" else np.float64) if computed(first) else first
    )
    ulps = largest_ulps(found, right, norm=True)
    with np.errstate(invalid="ignore"):
        apart = np.abs(right.astype(np.result_type(right, np.float64)) - found.astype(right.dtype))
    distance = (
        0.0
        if ulps == 0
        else float(np.nanmax(apart))
        if math.isfinite(ulps) or not computed(first)
        else math.inf
    )
    return Difference(name, place, *known, size, distance, ulps)


def computed(array: np.ndarray) -> bool:
    """Whether an array holds floating-point numbers, real or complex."""
    return array.dtype.kind == "c" or is_floating(array.dtype)


def largest(array: np.ndarray | None) -> float:
    if array is None or array.size == 0:
        return 0.0
    size = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(size, where=np.isfinite(size), initial=0.0))


# Upwards, as operators attach methods to Tensor: `devices` knows none of what this needs.
devices.compare = compare
