"""The standard's kinds of dtypes, which of them combine, and operands brought to one dtype."""

from __future__ import annotations

from typing import Any, TypeAlias

from .. import dtypes
from ..dtypes import complex_type, dtype
from ..ops.create.ingest import tensor
from ..tensor import Tensor
from .array import plain

__all__ = ["KINDS", "Operand", "category", "check", "combined", "operands", "result_type", "standard"]

Operand: TypeAlias = Tensor | bool | int | float | complex

SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
REAL = (dtypes.float32, dtypes.float64)
COMPLEX = (dtypes.complex64, dtypes.complex128)

KINDS: dict[str, tuple[dtype, ...]] = {
    "bool": (dtypes.bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}

# What a function may be asked of, by the letters of the kinds.
ALLOWED = {
    "bool": "b",
    "integral": "i",
    "bool or integral": "bi",
    "real": "if",
    "numeric": "ifc",
    "floating": "fc",
    "real floating": "f",
    "complex floating": "c",
    "any": "bifc",
}


def category(d: dtype) -> str:
    """The kind of a dtype: `b`ool, `i`nteger, `f`loat or `c`omplex."""
    return "c" if d.is_complex else "f" if d.is_floating_point else "i" if d.is_integral else "b"


def standard(d: Any) -> bool:
    """Whether the standard knows a dtype."""
    return d in KINDS["numeric"] or d is dtypes.bool


def check(name: str, allowed: str, *given: dtype) -> None:
    """TypeError where a function is not for arrays of these dtypes."""
    for d in given:
        if category(d) not in ALLOWED[allowed]:
            raise TypeError(f"{name}() is for {allowed} dtypes, not for {d}")


def combined(a: dtype, b: dtype) -> dtype:
    """The dtype that two dtypes promote to; TypeError where the standard has none.

    >>> xtensor.array_api.result_type(xtensor.uint16, xtensor.int16)
    xtensor.int32
    """
    if a is b:
        return a
    kinds = category(a) + category(b)
    if kinds in ("ff", "fc", "cf", "cc"):
        return dtypes.promote_types(a, b)
    if kinds == "ii":
        if a.is_signed == b.is_signed:
            return a if a.itemsize > b.itemsize else b
        signed, unsigned = (a, b) if a.is_signed else (b, a)
        if unsigned.itemsize < signed.itemsize:
            return signed
        if unsigned is not dtypes.uint64:
            return next(d for d in SIGNED if d.itemsize > unsigned.itemsize)
    raise TypeError(f"{a} and {b} do not promote to one dtype")


SCALARS: dict[type, tuple[str, str]] = {
    bool: ("b", "bool"),
    int: ("ifc", "numeric"),
    float: ("fc", "floating-point"),
    complex: ("fc", "floating-point"),
}


def with_scalar(d: dtype, value: Any) -> dtype:
    """The dtype of an array of dtype `d` with a Python number; TypeError where they do not go together."""
    kind = next((k for k in type(value).__mro__ if k in SCALARS), None)
    if kind is None:
        raise TypeError(f"an array or a Python number is needed, not {type(value).__name__}")
    if category(d) not in SCALARS[kind][0]:
        raise TypeError(f"a Python {kind.__name__} goes with {SCALARS[kind][1]} arrays, not with {d}")
    return complex_type(d) if kind is complex else d


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype that arrays, dtypes and Python numbers promote to; TypeError where there is none.

    >>> xp = xtensor.array_api
    >>> xp.result_type(xp.float32, xp.asarray(1.0, dtype=xp.float64), 2)
    xtensor.float64
    """
    found: dtype | None = None
    numbers: list[Any] = []
    for value in arrays_and_dtypes:
        if isinstance(value, (dtype, Tensor)):
            d = value if isinstance(value, dtype) else value.dtype
            found = d if found is None else combined(found, d)
        else:
            numbers.append(value)
    if found is None:
        raise ValueError("result_type() needs an array or a dtype")
    for value in numbers:
        found = with_scalar(found, value)
    return found


def operands(name: str, allowed: str, *values: Operand) -> list[Tensor]:
    """Plain tensors of one dtype of arrays and numbers, of which at least one is an array."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors:
        raise TypeError(f"{name}() needs an array among its arguments")
    check(name, allowed, *[t.dtype for t in tensors])
    first = tensors[0]
    if len(tensors) == len(values) and all(t.dtype is first.dtype for t in tensors):
        return [plain(t) for t in tensors]
    wanted = result_type(*values)
    out: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            out.append(plain(value) if value.dtype is wanted else plain(value).to(wanted))
        else:
            out.append(tensor(value, dtype=wanted, device=first.device))
    return out
