"""The named tuples that functions of several results return: `xtensor.return_types.sort`, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from .operators.operator import STRUCTURES


def __getattr__(name: str) -> Any:
    if name in STRUCTURES:
        return STRUCTURES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *STRUCTURES})
