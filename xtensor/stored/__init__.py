"""Tensors of the dtypes that only store: `complex32`, `bits8`, `int4`, `uint1`, `float4_e2m1fn_x2`, ..."""

from __future__ import annotations

from . import display, operators
from .layout import StoredTensor

__all__ = ["StoredTensor"]
