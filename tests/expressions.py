"""Expressions that PyTorch and xtensor must answer alike: text, dtype, sizes, strides and offset, or the error's words.

An expression names the library `T`; a list of them is a test, one parameter per line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor

__all__ = ["answer", "expressions"]


def described(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [described(v) for v in value]
    if hasattr(value, "stride") and hasattr(value, "storage_offset"):
        where = () if value.layout is None else (tuple(value.stride()), value.storage_offset())
        return (named(repr(value)), named(str(value.dtype)), tuple(value.shape), *where)
    return named(repr(value))


def named(text: str) -> str:
    return re.sub(r"\b(torch|xtensor)\b", "LIB", text)


def answer(lib: Any, text: str) -> Any:
    """What an expression gives, or the class and the first words of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(eval(text, {"T": lib, "np": np}))
        except Exception as error:
            # PyTorch lists all signatures; what counts is what was wrong.
            return (type(error).__name__, named(str(error)).split(", but expected")[0].split("  (")[0])


def expressions(text: str) -> Callable[..., None]:
    """The test of a list of expressions, one a line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]

    @pytest.mark.parametrize("line", lines)
    def check(line: str, torch: Any) -> None:
        assert answer(xtensor, line) == answer(torch, line)

    return check
