"""Operators: declared once, one file per family, in packages by what they are about.

A family is imported where users find its names (`xtensor/__init__.py`, `nn/functional.py`, `linalg.py`, ...), and that
line is all that it takes; here are those that have methods of Tensor alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .tensor import display, notebook, tensor_methods, typed_storages

explain: Callable[..., Any]
"""`xtensor.explain.explain`, set by that package."""
source: Callable[..., Any]
"""`xtensor.explain.source`, set by that package."""
