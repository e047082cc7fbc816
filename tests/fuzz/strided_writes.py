"""Elementwise reads and writes of the NumPy model: promotion, conversion, and the refusal of overlaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.strided import (
    DTYPES,
    DType,
    Strided,
    Undefined,
    broadcast,
    fail,
    is_dense,
    result_strides,
    result_type,
)
from tests.fuzz.strided_views import Views

LARGE = 1e6


def sane(values: np.ndarray) -> np.ndarray:
    """`values`, refused where arithmetic on them may rightly differ between libraries (NaN, denormal, huge)."""
    if values.dtype.kind in "iub":
        return values
    parts = [values.real, values.imag] if values.dtype.kind == "c" else [values.astype(np.float64)]
    for part in parts:
        size = np.abs(part)
        if not np.all(np.isfinite(part)) or np.any(size > LARGE) or np.any((size > 0) & (size < 1 / LARGE)):
            raise Undefined("values outside the range where arithmetic is exact")
    return values


def convert(values: np.ndarray, dtype: DType) -> np.ndarray:
    """`values` as `copy_` would store them, refused where the conversion has no defined result."""
    values = np.asarray(values)
    if values.dtype == dtype.np:
        return values
    kind = np.dtype(values.dtype).kind
    if kind == "c" and dtype.category in (1, 2):
        values = values.real
    if kind not in "iub":
        sane(values)
    elif dtype.category > 1 and values.size and np.abs(values.astype(np.float64)).max() > LARGE:
        raise Undefined("an integer too large for every float")
    if kind not in "iub" and dtype.category == 1 and values.size:
        limits = np.iinfo(dtype.np)
        whole = np.asarray(values, dtype=np.float64)
        if whole.min() <= limits.min - 1 or whole.max() >= limits.max + 1:
            raise Undefined("a float outside the integer's range")
    if dtype.category == 0:
        return values != 0
    return values.astype(dtype.np)


def can_cast(source: DType, target: DType) -> bool:
    if source.category == 3 and target.category != 3:
        return False
    if source.category == 2 and target.category < 2:
        return False
    return not (source.category > 0 and target.category == 0)


def byte_places(x: Strided) -> np.ndarray:
    return x.places().ravel() * x.dtype.itemsize


def bytes_of(x: Strided) -> set[int]:
    return {p + i for p in byte_places(x).tolist() for i in range(x.dtype.itemsize)}


def refuse_internal_overlap(x: Strided) -> None:
    if not is_dense(x.sizes, x.strides) and any(
        s == 0 and n > 1 for s, n in zip(x.strides, x.sizes, strict=True)
    ):
        fail(
            "RuntimeError", "unsupported operation: more than one element of the written-to tensor refers to"
        )


def overlap(a: Strided, b: Strided) -> str:
    """How two tensors share memory as PyTorch cheaply tells it: none, full, partial or unknown."""
    if a is b:
        return "full"
    if not a.numel() or not b.numel():
        return "none"
    if not is_dense(a.sizes, a.strides) or not is_dense(b.sizes, b.strides):
        return "unknown"
    if a.storage is b.storage:
        (a0, a1), (b0, b1) = (
            (x.offset * x.dtype.itemsize, (x.offset + x.numel()) * x.dtype.itemsize) for x in (a, b)
        )
        if (a0, a1) == (b0, b1):
            return "full" if a.strides == b.strides else "partial"
        if a0 < b1 and b0 < a1:
            return "partial"
    return "none"


def same_place(a: Strided, b: Strided) -> bool:
    return a.storage is b.storage and (a.dtype, a.sizes, a.strides, a.offset, a.conjugated, a.negated) == (
        b.dtype, b.sizes, b.strides, b.offset, b.conjugated, b.negated,
    )  # fmt: skip


def refuse_overlap(target: Strided, other: Any, full_too: bool = False) -> None:
    if isinstance(other, Strided) and overlap(target, other) in (
        ("full", "partial") if full_too else ("partial",)
    ):
        if any(x.conjugated or x.negated for x in (target, other)):
            raise Undefined("a lazily conjugated operand is copied first, so that its overlap goes unseen")
        fail(
            "RuntimeError",
            "unsupported operation: some elements of the input tensor and the written-to tensor",
        )


def need_defined(target: Strided, *others: Any, aligned: bool = True) -> None:
    """Refuses what PyTorch lets through though its result depends on the order of the loop."""
    places = byte_places(target)
    if len(np.unique(places)) < len(places):
        raise Undefined("an overlapping destination")
    for other in others:
        if isinstance(other, Strided) and other.storage is target.storage and other is not target:
            same = aligned and other.sizes == target.sizes and other.dtype is target.dtype
            if same and np.array_equal(byte_places(other), places):
                continue
            if bytes_of(other) & bytes_of(target):
                raise Undefined("source and destination overlap")


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a | b if a.dtype == bool else a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "gt": np.greater,
    "lt": np.less,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
COMPARISONS = ("gt", "lt", "ge", "eq", "ne")


class Elementwise(Views):
    """Views with in-place arithmetic, `copy_`, `fill_` and fresh elementwise results."""

    def _operand(self, other: Any, dtype: DType) -> np.ndarray:
        values = other.values() if isinstance(other, Strided) else np.asarray(other)
        return sane(convert(sane(values), dtype))

    def _combine(self, name: str, other: Any) -> tuple[np.ndarray, DType]:
        """The result of `self <name> other` before any broadcasting to a destination, and its dtype."""
        common = result_type(self, other)
        if name == "sub" and 0 in (self.dtype.category, result_type(other).category):
            fail("RuntimeError", "Subtraction, the `-` operator, with a bool tensor is not supported.")
        if name in ("gt", "lt", "ge") and common.category == 3:
            fail("NotImplementedError", f'"{name}_cpu" not implemented for complex')
        if name in ("maximum", "minimum") and common.category == 3:
            fail("RuntimeError", f"{name} does not support complex inputs.")
        shape = broadcast(self.sizes, other.sizes if isinstance(other, Strided) else ())
        values = OPERATIONS[name](self._operand(self, common), self._operand(other, common))
        dtype = DTYPES["bool"] if name in COMPARISONS else common
        return np.broadcast_to(np.asarray(values).astype(dtype.np), shape), dtype

    def _write(self, values: np.ndarray, dtype: DType, *inputs: Any) -> Any:
        """Stores an elementwise result whose operands were `inputs`."""
        refuse_internal_overlap(self)
        for x in inputs:
            if x is not self:
                refuse_overlap(self, x)
        if not can_cast(dtype, self.dtype):
            fail("RuntimeError", "result type can't be cast to the desired output type")
        if values.shape != self.sizes:
            fail("RuntimeError", "output with shape doesn't match the broadcast shape")
        need_defined(self, *inputs)
        self.store(sane(convert(sane(values), self.dtype)))
        return self

    def _inplace(self, name: str, other: Any) -> Any:
        refuse_internal_overlap(self)
        values, dtype = self._combine(name, other)
        return self._write(values, dtype, other)

    def add_(self, other: Any, alpha: Any = 1) -> Any:
        return self._inplace("add", self._scaled(other, alpha))

    def sub_(self, other: Any, alpha: Any = 1) -> Any:
        return self._inplace("sub", self._scaled(other, alpha))

    def _scaled(self, other: Any, alpha: Any) -> Any:
        if type(alpha) is int and alpha == 1:
            return other
        if isinstance(other, bool):
            raise Undefined("a scaled bool")
        if isinstance(alpha, float) and result_type(self, other).category < 2:
            fail(
                "RuntimeError",
                "For integral input tensors, argument alpha must not be a floating point number.",
            )
        if not isinstance(other, Strided):
            return other * alpha
        # The product stands in for `other` where overlap is asked about: same place, scaled values.
        scaled = other.alias(other.sizes, other.strides)
        wide = result_type(self, other)
        values = convert(sane(other.values()), wide) * np.asarray(alpha).astype(wide.np)
        scaled.values = lambda: values  # type: ignore[method-assign]
        return scaled

    def mul_(self, other: Any) -> Any:
        return self._inplace("mul", other)

    def __iadd__(self, other: Any) -> Any:
        return self.add_(other)

    def __isub__(self, other: Any) -> Any:
        return self.sub_(other)

    def __imul__(self, other: Any) -> Any:
        return self.mul_(other)

    def _unary(self, name: str) -> np.ndarray:
        if name == "neg" and self.dtype.category == 0:
            fail("RuntimeError", "Negation, the `-` operator, on a bool tensor is not supported.")
        if name == "abs" and self.dtype.category == 0:
            fail("NotImplementedError", "\"abs_cpu\" not implemented for 'Bool'")
        if name == "bitwise_not" and self.dtype.category > 1:
            fail("NotImplementedError", '"bitwise_not_cpu" not implemented')
        values = sane(self.values())
        table: dict[str, Callable[[Any], Any]] = {
            "neg": lambda a: -a,
            "abs": np.abs,
            "square": lambda a: a * a,
            "logical_not": np.logical_not,
            "bitwise_not": np.invert,
        }
        return np.asarray(table[name](values))

    def neg_(self) -> Any:
        return self._write(self._unary("neg"), self.dtype)

    def abs_(self) -> Any:
        if self.dtype.category == 3:
            fail("RuntimeError", "In-place abs is not supported for complex tensors.")
        refuse_internal_overlap(self)
        return self._write(self._unary("abs"), self.dtype)

    def logical_not_(self) -> Any:
        return self._write(self._unary("logical_not").astype(self.dtype.np), self.dtype)

    def bitwise_not_(self) -> Any:
        refuse_internal_overlap(self)
        return self._write(self._unary("bitwise_not"), self.dtype)

    def square_(self) -> Any:
        if self.dtype.category == 0:
            raise Undefined("the square of a bool")
        return self._write(self._unary("square"), self.dtype)

    def clamp_(self, min: Any = None, max: Any = None) -> Any:
        if self.dtype.category == 3:
            fail("NotImplementedError", "clamp is not supported for complex types")
        limits = [limit for limit in (min, max) if limit is not None]
        common = result_type(self, *limits)
        if not can_cast(common, self.dtype):
            fail("RuntimeError", "result type can't be cast to the desired output type")
        low, high = (None if v is None else np.asarray(v).astype(common.np) for v in (min, max))
        return self._write(np.asarray(np.clip(sane(convert(self.values(), common)), low, high)), common)

    def copy_(self, other: Any, non_blocking: bool = False) -> Any:
        if other is self:
            self.storage.version += 1
            return self
        if isinstance(other, Strided) and same_place(self, other):
            self.storage.version += 1
            return self
        refuse_internal_overlap(self)
        if not isinstance(other, Strided):
            return self.copy_(self.fresh(np.asarray(other), dtype=result_type(other)))
        refuse_overlap(self, other)
        if broadcast(self.sizes, other.sizes) != self.sizes:
            fail("RuntimeError", "output with shape doesn't match the broadcast shape")
        need_defined(self, other)
        self.store(np.broadcast_to(convert(other.values(), self.dtype), self.sizes))
        return self

    def _need_number(self, value: Any) -> None:
        if isinstance(value, complex) and self.dtype.category in (1, 2):
            fail("RuntimeError", "value cannot be converted without overflow")

    def fill_(self, value: Any) -> Any:
        if isinstance(value, Strided):
            if value.sizes:
                fail("RuntimeError", "fill_ only supports 0-dimension value tensor")
            refuse_internal_overlap(self)
            value = value.values()
        else:
            self._need_number(value)
        self.store(np.broadcast_to(convert(np.asarray(value), self.dtype), self.sizes))
        return self

    def zero_(self) -> Any:
        return self.fill_(0)

    # Fresh results.

    def _fresh_result(self, values: np.ndarray, dtype: DType, *inputs: Any) -> Any:
        resolved = [
            x.clone() if isinstance(x, Strided) and (x.conjugated or x.negated) else x for x in inputs
        ]
        layouts = [(x.sizes, x.strides) if isinstance(x, Strided) else ((), ()) for x in resolved]
        return self.fresh(sane(values), result_strides(values.shape, layouts), dtype)

    def _binary(self, name: str, other: Any) -> Any:
        values, dtype = self._combine(name, other)
        return self._fresh_result(values, dtype, self, other)

    def __add__(self, other: Any) -> Any:
        return self._binary("add", other)

    def __sub__(self, other: Any) -> Any:
        return self._binary("sub", other)

    def __mul__(self, other: Any) -> Any:
        return self._binary("mul", other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("gt", other)

    def __lt__(self, other: Any) -> Any:
        return self._binary("lt", other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("ge", other)

    def eq(self, other: Any) -> Any:
        return self._binary("eq", other)

    def ne(self, other: Any) -> Any:
        return self._binary("ne", other)

    def maximum(self, other: Any) -> Any:
        return self._binary("maximum", other)

    def minimum(self, other: Any) -> Any:
        return self._binary("minimum", other)

    def neg(self) -> Any:
        return self._fresh_result(self._unary("neg"), self.dtype, self)

    def abs(self) -> Any:
        if self.dtype.category == 3:
            raise Undefined("rounding of a complex absolute value")
        return self._fresh_result(self._unary("abs"), self.dtype, self)

    def to(self, dtype: DType) -> Any:
        if dtype is self.dtype:
            return self
        return self.fresh(convert(self.values(), dtype), self.clone().strides, dtype)

    def into(self, out: Any, values: np.ndarray, dtype: DType, *inputs: Any) -> Any:
        """Delivers an elementwise result to `out`, which must already have its shape."""
        if values.shape != out.sizes:
            raise Undefined("resizing of out=")
        return out._write(values, dtype, *inputs)
