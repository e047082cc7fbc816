"""What two libraries computed, compared: tensors by shape, dtype and values, everything else by equality."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import xtensor

from .translate import as_numpy, same_shape

__all__ = ["Differs", "attempt", "compare", "text"]

TOLERANCES = {
    "float64": 1e-7,
    "float32": 2e-5,
    "complex64": 2e-5,
    "complex128": 1e-7,
    "bfloat16": 2e-2,
    "float16": 2e-3,
}


class Differs(Exception):
    """The two libraries disagree."""


def is_tensor(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, xtensor.Tensor))


def compare(expected: Any, got: Any, where: str, values: bool = True) -> None:
    """Raise `Differs` unless `got` is what PyTorch gave; of random results only shapes and dtypes count."""
    if is_tensor(expected) and is_tensor(got):
        if not same_shape(expected, got):
            raise Differs(
                f"{where}: {got.dtype} {tuple(got.shape)} instead of {expected.dtype} {tuple(expected.shape)}"
            )
        if values:
            compare_values(as_numpy(expected), as_numpy(got), where)
    elif isinstance(expected, dict) and isinstance(got, dict):
        if list(expected) != list(got):
            raise Differs(f"{where}: keys {list(got)} instead of {list(expected)}")
        for key in expected:
            compare(expected[key], got[key], f"{where}[{key!r}]", values)
    elif isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(expected) != len(got):
            raise Differs(f"{where}: {len(got)} values instead of {len(expected)}")
        for i, (one, two) in enumerate(zip(expected, got, strict=True)):
            compare(one, two, f"{where}[{i}]", values)
    elif isinstance(expected, (int, float)) and isinstance(got, (int, float)):
        if values and not np.isclose(expected, got, rtol=1e-5, atol=1e-7, equal_nan=True):
            raise Differs(f"{where}: {got!r} instead of {expected!r}")
    elif is_tensor(expected) != is_tensor(got) or text(repr(expected)) != text(repr(got)):
        raise Differs(f"{where}: {got!r} instead of {expected!r}")


def compare_values(expected: Any, got: Any, where: str) -> None:
    limit = TOLERANCES.get(expected.dtype.name, 0.0)
    largest = 1.0
    if limit and where.startswith(
        "gradient"
    ):  # a sum of terms as large as its largest element, which rounds as they do
        largest = np.abs(expected, where=np.isfinite(expected), out=np.zeros(expected.shape)).max(initial=1.0)
    if not np.allclose(expected, got, rtol=limit, atol=limit * largest, equal_nan=True):
        error = np.nanmax(np.abs(np.asarray(expected, np.complex128) - np.asarray(got, np.complex128)))
        raise Differs(f"{where}: values differ by {error:.2g}")


def text(value: str) -> str:
    """Text with both libraries' names made one, and addresses left out."""
    value = value.replace("xtensor", "LIB").replace("torch", "LIB")
    return re.sub(r" at 0x[0-9a-f]+", "", value)


def attempt(function: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a function returns, or the error it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(), None
        except Exception as error:
            return None, error
