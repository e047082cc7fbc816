"""`torch.testing`: assertions on tensors, and tensors to test with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import checks, dtypes
from .ops.create.ingest import as_tensor
from .ops.create.random import rand
from .tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# Relative and absolute tolerance by dtype.
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5),
    dtypes.bfloat16: (1.6e-2, 1e-5),
    dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7),
    dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}


def pairs_of(actual: Any, expected: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The leaves of two structures with where they stand; AssertionError where the structures differ."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if set(actual) != set(expected):
            raise AssertionError(
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                f"{sorted(set(expected) - set(actual))}\nMissing keys in the expected mapping: "
                f"{sorted(set(actual) - set(expected))}"
            )
        for key in actual:
            yield from pairs_of(actual[key], expected[key], f"{place}[{key!r}]")
    elif isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
            yield from pairs_of(a, b, f"{place}[{i}]")
    else:
        yield place, actual, expected


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless tensors (numbers, arrays, containers of them) are equal up to `atol + rtol * |expected|`."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or unspecified, but got rtol={rtol} and atol={atol}."
        )
    rules = Rules(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    for place, a, b in pairs_of(actual, expected):
        text = difference(a, b, rules, allow_subclasses)
        if text:
            text += f"\n\nThe failure occurred for item {place}" if place else ""
            raise AssertionError(msg(text) if callable(msg) else msg or text)


class Rules(NamedTuple):
    """What a pair of tensors is compared by, as `assert_close` is told."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


NUMBERS = (bool, int, float, complex)


def tensor_of(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (*NUMBERS, np.ndarray, np.generic)):
        return as_tensor(value, dtype=dtypes.float64 if isinstance(value, float) else None)
    raise unhandled(value)


def unhandled(*values: Any) -> TypeError:
    """The error of what cannot be compared."""
    kinds = [str(type(value)) for value in values]
    return TypeError(f"No comparison pair was able to handle inputs of type {' and '.join(kinds)}.")


def difference(actual: Any, expected: Any, rules: Rules, allow_subclasses: bool) -> str:
    """What is wrong with a pair of leaves; "" where nothing is."""
    if actual is None or expected is None:
        return "" if actual is expected else f"None mismatch: {actual!r} is not {expected!r}"
    if type(actual) is not type(expected):
        tensors = isinstance(actual, Tensor) and isinstance(expected, Tensor)
        numbers = isinstance(actual, NUMBERS) and isinstance(expected, NUMBERS)
        if not ((tensors and allow_subclasses) or numbers):
            raise unhandled(actual, expected)
    if not isinstance(actual, (Tensor, *NUMBERS, np.ndarray, np.generic)):
        raise unhandled(actual, expected)
    if isinstance(actual, NUMBERS) and rules.check_dtype:
        rules = rules._replace(check_dtype=False)
    a, b = tensor_of(actual).detach(), tensor_of(expected).detach()
    wrong = attribute_difference(a, b, rules)
    if wrong or "meta" in (a.device.type, b.device.type):
        return wrong
    if a.is_quantized:
        a, b = a.dequantize(), b.dequantize()
    if a.layout is not b.layout:
        a, b = (t if t.layout is dtypes.strided else t.to_dense() for t in (a, b))
    return "".join(part_differences(a, b, rules))


def attribute_difference(a: Tensor, b: Tensor, rules: Rules) -> str:
    """What two tensors are that they should be alike."""
    checked: list[tuple[str, Any, Any]] = [("shape", a.shape, b.shape)]
    if rules.check_layout:
        checked.append(("layout", a.layout, b.layout))
    if rules.check_device:
        checked.append(("device", a.device, b.device))
    checked.append(("is_quantized", a.is_quantized, b.is_quantized))
    if a.is_quantized and b.is_quantized:
        checked.append(("qscheme()", a.qscheme(), b.qscheme()))
    if rules.check_dtype:
        checked.append(("dtype", a.dtype, b.dtype))
    if rules.check_stride and a.layout is b.layout is dtypes.strided:
        checked.append(("stride()", a.stride(), b.stride()))
    for name, x, y in checked:
        if x != y:
            return f"The values for attribute '{name}' do not match: {x} != {y}."
    return ""


COMPRESSED = {
    dtypes.sparse_csr: ("CSR", "crow_indices", "col_indices"),
    dtypes.sparse_bsr: ("BSR", "crow_indices", "col_indices"),
    dtypes.sparse_csc: ("CSC", "ccol_indices", "row_indices"),
    dtypes.sparse_bsc: ("BSC", "ccol_indices", "row_indices"),
}


def part_differences(a: Any, b: Any, rules: Rules) -> Iterator[str]:
    """What is wrong with the values of two tensors of one layout: first with how they lie, where it is a sparse one."""
    if a.layout is dtypes.sparse_coo:
        yield from coo_differences(a, b, rules)
        return
    if a.layout not in COMPRESSED:
        yield value_difference(a, b, rules, "Tensor-likes")
        return
    kind, outer, inner = COMPRESSED[a.layout]
    if a._nnz() != b._nnz():
        yield f"The number of specified values in sparse {kind} tensors does not match: {a._nnz()} != {b._nnz()}"
        return
    exact = rules._replace(rtol=0.0, atol=0.0)
    for name in (outer, inner, "values"):
        text = value_difference(
            getattr(a, name)(),
            getattr(b, name)(),
            rules if name == "values" else exact,
            f"Sparse {kind} {name}",
        )
        yield text
        if text:
            return


def coo_differences(a: Any, b: Any, rules: Rules) -> Iterator[str]:
    """What is wrong with two COO tensors, as they are stored where both are coalesced or neither is."""
    if a.sparse_dim() != b.sparse_dim():
        yield (
            f"The number of sparse dimensions in sparse COO tensors does not match: {a.sparse_dim()} != {b.sparse_dim()}"
        )
        return
    if a._nnz() != b._nnz():
        yield f"The number of specified values in sparse COO tensors does not match: {a._nnz()} != {b._nnz()}"
        return
    text = value_difference(
        a._indices(), b._indices(), rules._replace(rtol=0.0, atol=0.0), "Sparse COO indices"
    )
    yield text or value_difference(a._values(), b._values(), rules, "Sparse COO values")


def value_difference(a: Tensor, b: Tensor, rules: Rules, what: str) -> str:
    """What is wrong with the values of two dense tensors, which messages call `what`; "" where nothing is."""
    rtol, atol = rules.rtol, rules.atol
    if rtol is None or atol is None:
        found = [TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, b)]
        rtol, atol = max(f[0] for f in found), max(f[1] for f in found)
    if a.numel() == 0:
        return ""
    x, y = (t.cpu().to(wide(t.dtype)).numpy() for t in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        integers = not (a.dtype.is_floating_point or a.dtype.is_complex)
        gap = np.abs(np.subtract(x, y, dtype=np.result_type(x, y, np.int64 if integers else np.float64)))
        close = (gap <= atol + rtol * np.abs(y)) & np.isfinite(y) | (x == y)
    if rules.equal_nan:
        close |= np.isnan(x) & np.isnan(y)
    if close.all():
        return ""
    return explained(x, y, close, gap, rtol, atol, what)


def wide(dtype: dtypes.dtype) -> dtypes.dtype:
    """A dtype that NumPy computes in without loss."""
    if dtype.is_complex:
        return dtypes.complex128
    return dtypes.float64 if dtype.is_floating_point else dtype


def explained(
    x: Any, y: Any, close: Any, gap: Any, rtol: float, atol: float, what: str = "Tensor-likes"
) -> str:
    """The mismatch in PyTorch's words."""
    equal = rtol == 0 and atol == 0
    if x.ndim == 0:
        head = "Scalars are not equal!" if equal else "Scalars are not close!"
        against = "" if equal else f" (up to {rtol} allowed)"
        relative = float(gap) / abs(y) if y else float("inf")
        up_to = "" if equal else f" (up to {atol} allowed)"
        return (
            f"{head}\n\nExpected {y.item()} but got {x.item()}.\nAbsolute difference: {float(gap)}{up_to}\n"
            f"Relative difference: {relative}{against}"
        )
    wrong = ~close
    masked = np.where(wrong, np.nan_to_num(gap, nan=np.inf), -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(wrong, np.nan_to_num(gap / np.abs(y), nan=np.inf), -1)
    at, where = np.unravel_index(masked.argmax(), x.shape), np.unravel_index(relative.argmax(), x.shape)
    count = int(wrong.sum())
    a_up, r_up = ("", "") if equal else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return (
        f"{what} are not {'equal' if equal else 'close'}!\n\n"
        f"Mismatched elements: {count} / {x.size} ({count / x.size:.1%})\n"
        f"Greatest absolute difference: {masked.max()} at index {tuple(map(int, at))}{a_up}\n"
        f"Greatest relative difference: {relative.max()} at index {tuple(map(int, where))}{r_up}"
    )


def assert_allclose(
    actual: Any, expected: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """The older form of `assert_close`: dtypes and devices may differ."""
    assert_close(
        tensor_of(actual),
        tensor_of(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )


def bounds_of(dtype: dtypes.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """From where, and up to where, the values of a tensor are drawn."""
    inexact = dtype.is_floating_point or dtype.is_complex
    if dtype is dtypes.bool:
        lowest, highest, usual = 0, 2, (0, 2)
    elif inexact:
        highest = dtypes.finfo(dtype).max
        lowest, usual = -highest, (-9, 9)
    else:
        limits = dtypes.iinfo(dtype)
        lowest, highest, usual = limits.min, limits.max + 1, (max(-9, limits.min), 10)
    start = usual[0] if low is None else low
    end = usual[1] if high is None else high
    if start != start or end != end:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if start == end and inexact:
        checks.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and "
            "will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif start >= end:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif end < lowest or start >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{lowest}, "
            f"{highest})"
        )
    start, end = max(start, lowest), min(end, highest)
    return (start, end) if inexact else (math.ceil(start), math.ceil(end))


def between(start: float, end: float, sizes: Any) -> Tensor:
    """Random numbers; the distance may be more than a number can hold."""
    share = rand(sizes, dtype=dtypes.float64)
    return share * end + (1 - share) * start


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values from `low` up to `high` (from -9 to 9 by default; bools and bytes from 0).

    Both are brought into the dtype's range; ValueError where that leaves nothing, or one of them is NaN.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=!s}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"`requires_grad` must be False for boolean and integral dtypes, but got {requires_grad=} and {dtype=}"
        )
    start, end = bounds_of(dtype, low, high)
    drawn = between(start, end, sizes)
    if dtype.is_complex:
        drawn = drawn + 1j * between(start, end, sizes)
    elif not dtype.is_floating_point:
        drawn = drawn.floor()
    made = drawn.to(device=device, dtype=dtype)
    if exclude_zero:
        made = made.where(made != 0, 1)
    if noncontiguous and made.numel() > 1:
        made = made.repeat_interleave(2, dim=-1)[..., ::2]
    if memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    return made.requires_grad_(requires_grad)
