"""Run operators on a device and hold their results against float64 on the host."""

from __future__ import annotations

import fnmatch
import inspect
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from .. import devices
from ..devices import DeviceLike
from ..engine import modes
from ..operators.dispatch import arrays_of, prepare
from ..operators.operator import REGISTRY, Operator
from ..tensor import Tensor, array_of, wrap
from ..ulps import is_floating, largest_ulps
from ..xla.x64 import call
from . import elementwise, folds, matrices, movement, networks
from .cases import Case, Drawn, Fixed, case, drawn
from .report import Finding, Report

__all__ = ["CASES", "check"]

CASES: dict[str, list[Case]] = {
    name: cases if isinstance(cases, list) else [cases]
    for family in (elementwise, folds, matrices, movement, networks)
    for name, cases in family.CASES.items()
}
"""What operators are tried on, by name: all of the library's own, see `all_cases` for those that a program adds."""

# In units in the last place of a half type: two roundings at an element, some more where sums are rounded on their way.
HALF, HALF_OF_SUMS = 2.0, 8.0
# XLA's own words for what a device cannot do, as against an operator's for what it does not take.
UNSUPPORTED = (
    "UNIMPLEMENTED",
    "not supported on",
    "not implemented on",
    "No registered implementation",
    "unsupported",
)
REFUSED = (
    "not implemented for",
    "not support",
    "Expected",
    "expected",
    "must be",
    "can't be",
    "should be",
    "only ",
)
# Compiled as written, so that no loop over vectors is XLA's: what a device's is held against.
AS_WRITTEN = {"xla_backend_optimization_level": 0}


def check(
    device: DeviceLike = None,
    patterns: Sequence[str] = ("*",),
    dtypes: Iterable[str] | None = None,
    *,
    forget: bool = False,
) -> Report:
    """Try every operator whose name matches one of `patterns` on `device`, in the dtypes of its cases or in these.

    The right values are those of NumPy and SciPy in float64 where they have the function; else those of the operator's
    own kernel in float64 on the host, compiled without optimisation. LookupError where no operator matches.
    forget: let go of each operator's compiled programs after it, which are gigabytes in all.
    """
    place = devices.resolve(device)
    devices.jax_device(place)
    wanted = None if dtypes is None else {name.removeprefix("xtensor.") for name in dtypes}
    cases = all_cases()
    names = [n for n in cases if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
    if not names:
        raise LookupError(f"no operator is called {' or '.join(map(repr, patterns))}")
    started = time.perf_counter()
    found: list[Finding] = []
    for name in names:
        found += findings(name, cases[name], place, wanted)
        if forget and name in REGISTRY:
            REGISTRY[name].forget()
    return Report(place, tuple(found), time.perf_counter() - started)


def all_cases() -> dict[str, list[Case]]:
    """The cases of every operator: an operator of arrays alone that has none is tried between 0.2 and 0.9."""
    guessed = {
        name: [case(*[drawn(4_099, low=0.2, high=0.9) for p in op.schema.parameters if p.required])]
        for name, op in REGISTRY.items()
        if name not in CASES
        and all(p.kind in ("Array", "Operand") for p in op.schema.parameters if p.required)
    }
    return CASES | guessed


def findings(
    name: str, cases: Sequence[Case], place: devices.device, wanted: set[str] | None = None
) -> Iterator[Finding]:
    """What there is to say of one operator, dtype by dtype: the worst of its cases."""
    for dtype in dict.fromkeys(d for one in cases for d in one.dtypes if wanted is None or d in wanted):
        tried = [tried_case(name, one, dtype, place, i) for i, one in enumerate(cases) if dtype in one.dtypes]
        yield max(tried, key=lambda finding: finding.badness)


def tried_case(name: str, case: Case, dtype: str, place: devices.device, number: int) -> Finding:
    """One call in one dtype."""
    arguments, named = made(case, dtype, f"{name}/{number}")
    reference = "kernel" if case.numpy is None else "NumPy"
    shown = Finding(name, dtype, "right", 0.0, bound_of(case, dtype), reference, "")
    with modes.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = on_device(name, case, arguments, named, place)
            if case.read is not None:
                results = [np.asarray(case.read(*map(wide, results))).astype(results[0].dtype)]
        except Exception as error:
            return shown.but(
                verdict=verdict_of(error), detail=f"{type(error).__name__}: {error}".splitlines()[0]
            )
        try:
            expected = by_numpy(case, arguments, named) if case.numpy else by_kernel(name, arguments, named)
            errors = [error_of(got, right, case) for got, right in zip(results, expected, strict=False)]
        except Exception as error:
            return shown.but(verdict="failed", detail=f"{type(error).__name__}: {error}".splitlines()[0])
    worst = max(errors)
    return shown.but(ulps=worst, verdict="right" if worst <= shown.bound else "wrong")


def bound_of(case: Case, dtype: str) -> float:
    if dtype in ("bfloat16", "float16"):
        return HALF_OF_SUMS if case.norm else HALF
    return case.bound


def verdict_of(error: Exception) -> str:
    """Whether an operator does not take a dtype, a device cannot do it, or something is broken."""
    text = str(error)
    if any(sign in text for sign in UNSUPPORTED):
        return "unsupported"
    own = type(error).__module__ == "builtins" and not isinstance(
        error, (AttributeError, NameError, AssertionError)
    )
    return "refused" if own and any(sign in text for sign in REFUSED) else "failed"


# -- arguments


def made(case: Case, dtype: str, key: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with NumPy arrays in their dtypes: what every device, and the host, starts from."""
    count = 0

    def convert(value: Any) -> Any:
        nonlocal count
        if isinstance(value, (Drawn, Fixed)):
            count += 1
            return value.make(dtype, f"{key}/{count}")
        return type(value)([convert(v) for v in value]) if type(value) in (list, tuple) else value

    return [convert(a) for a in case.args], {k: convert(v) for k, v in case.kwargs.items()}


def mapped(value: Any, change: Any) -> Any:
    if isinstance(value, np.ndarray):
        return change(value)
    return type(value)([mapped(v, change) for v in value]) if type(value) in (list, tuple) else value


def wide(array: np.ndarray) -> np.ndarray:
    """The same values in float64 or complex128; whole numbers and truth values as they are."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if is_floating(array.dtype):
        return array.astype(np.float64)
    return array


def widest(array: np.ndarray) -> np.ndarray:
    """The same, and whole numbers in 64 bits."""
    return array.astype(np.int64) if array.dtype == np.int32 else wide(array)


def bound_arguments(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """One value for each parameter of the schema."""
    bound = inspect.signature(op.kernel).bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.arguments[p.name] for p in op.schema.parameters)


def on(place: devices.device, value: Any) -> Any:
    return mapped(value, lambda array: wrap(devices.put(array, place)))


# -- the two sides


def on_device(
    name: str, case: Case, args: list[Any], kwargs: dict[str, Any], place: devices.device
) -> list[np.ndarray]:
    """The results of the operator on a device, as NumPy arrays."""
    args, kwargs = [on(place, a) for a in args], {k: on(place, v) for k, v in kwargs.items()}
    if case.call is not None:
        result = case.call(*args, **kwargs)
    else:
        op = REGISTRY[name]
        result = op.call(bound_arguments(op, args, kwargs))
    return [np.asarray(array_of(t)) if isinstance(t, Tensor) else np.asarray(t) for t in flat(result)]


def by_numpy(case: Case, args: list[Any], kwargs: dict[str, Any]) -> list[np.ndarray]:
    assert case.numpy is not None
    change = (lambda array: array) if case.same else widest
    with np.errstate(all="ignore"):
        result = case.numpy(
            *[mapped(a, change) for a in args], **{k: mapped(v, change) for k, v in kwargs.items()}
        )
    return [np.asarray(part) for part in flat(result)]


def by_kernel(name: str, args: list[Any], kwargs: dict[str, Any]) -> list[np.ndarray]:
    """The operator's kernel in float64 on the host, compiled without optimisation."""
    op, host = REGISTRY[name], devices.device("cpu")
    arguments = (
        [on(host, mapped(a, wide)) for a in args],
        {k: on(host, mapped(v, wide)) for k, v in kwargs.items()},
    )
    runtime, key = prepare(op, bound_arguments(op, *arguments))
    arrays = [arrays_of(v) for v in runtime]

    def run() -> Any:
        program: Any = jax.jit(op.traced(key)).lower(*arrays)
        return program.compile(compiler_options=AS_WRITTEN)(*arrays)

    result = call(run)
    parts = [result] if op.single else list(result)
    return [np.asarray(part) for part in (parts[: op.shown] if op.hidden else parts)]


def flat(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in flat(item)]
    return [result]


def error_of(got: np.ndarray, right: np.ndarray, case: Case) -> float:
    """How far a result is off, in units in the last place; inf where its shape is wrong."""
    if got.shape != right.shape:
        return float("inf")
    if is_floating(got.dtype) and right.dtype.kind not in "fc":
        right = right.astype(np.float64)
    return largest_ulps(got, right, case.norm)
