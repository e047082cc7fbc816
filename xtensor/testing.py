"""`torch.testing`: assertions on tensors, and tensors to test with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import dtypes
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
    for place, a, b in pairs_of(actual, expected):
        text = difference(
            a, b, rtol, atol, equal_nan, check_device, check_dtype, check_stride, allow_subclasses
        )
        if text:
            text += f"\n\nThe failure occurred for item {place}" if place else ""
            raise AssertionError(msg(text) if callable(msg) else msg or text)


def tensor_of(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (int, float, complex, np.ndarray, np.generic)):
        return as_tensor(value, dtype=dtypes.float64 if isinstance(value, float) else None)
    raise TypeError(
        f"No comparison pair was able to handle inputs of type {type(value)}: tensors, arrays and numbers are compared"
    )


def difference(
    actual: Any,
    expected: Any,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
    check_stride: bool,
    allow_subclasses: bool,
) -> str:
    """What is wrong with a pair of leaves; "" where nothing is."""
    if actual is None or expected is None or isinstance(actual, str):
        return "" if actual == expected else f"{actual!r} is not {expected!r}"
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(
            f"If allow_subclasses=False, the types must match: {type(actual)} and {type(expected)}"
        )
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    a, b = tensor_of(actual).detach(), tensor_of(expected).detach()
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}."
    if check_device and a.device != b.device:
        return f"The values for attribute 'device' do not match: {a.device} != {b.device}."
    if check_dtype and a.dtype is not b.dtype and not numbers:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}."
    if check_stride and a.stride() != b.stride():
        return f"The values for attribute 'stride()' do not match: {a.stride()} != {b.stride()}."
    if rtol is None or atol is None:
        found = [TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (a, b)]
        rtol, atol = max(f[0] for f in found), max(f[1] for f in found)
    if a.numel() == 0:
        return ""
    x, y = (t.cpu().to(wide(t.dtype)).numpy() for t in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(np.subtract(x, y, dtype=np.result_type(x, y, np.float64)))
        close = (gap <= atol + rtol * np.abs(y)) & np.isfinite(y) | (x == y)
    if equal_nan:
        close |= np.isnan(x) & np.isnan(y)
    if close.all():
        return ""
    return explained(x, y, close, gap, rtol, atol)


def wide(dtype: dtypes.dtype) -> dtypes.dtype:
    """A dtype that NumPy computes in without loss."""
    if dtype.is_complex:
        return dtypes.complex128
    return dtypes.float64 if dtype.is_floating_point else dtype


def explained(x: Any, y: Any, close: Any, gap: Any, rtol: float, atol: float) -> str:
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
        f"Tensor-likes are not {'equal' if equal else 'close'}!\n\n"
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
    """A tensor of random values from `low` up to `high` (from -9 to 9 by default; bools and bytes from 0)."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if dtype is dtypes.bool:
        start, end = (0 if low is None else low), (2 if high is None else high)
    elif dtype.is_floating_point or dtype.is_complex or dtype.is_signed:
        start, end = (-9 if low is None else low), (9 if high is None else high)
    else:
        start, end = (0 if low is None else low), (9 if high is None else high)
    drawn = rand(sizes, dtype=dtypes.float64) * (end - start) + start
    if dtype.is_complex:
        other = rand(sizes, dtype=dtypes.float64) * (end - start) + start
        drawn = drawn + 1j * other
    elif not dtype.is_floating_point:
        drawn = drawn.floor()
    made = drawn.to(device=device, dtype=dtype)
    if exclude_zero:
        made = made.where(made != 0, 1)
    if noncontiguous and made.numel() > 1:
        made = made.repeat_interleave(2, dim=-1)[..., ::2]
    if memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    return made.requires_grad_(requires_grad) if made.is_floating_point() or made.is_complex() else made
