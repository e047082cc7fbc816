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
namespaces: list[Callable[[], Any]] = []
"""Who gives `torch.ops`, whose namespaces of operators (`aten`) are found here too; the package's `__init__.py` says so."""


def __getattr__(name: str) -> Any:
    if namespaces and not name.startswith("_"):
        found = namespaces[0]().present(name)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    """For completion: what is here, and the namespaces of operators, which are loaded when they are first asked for."""
    return sorted({*globals(), *(name for spaces in namespaces for name in dir(spaces()))})
