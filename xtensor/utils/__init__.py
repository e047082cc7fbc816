"""What PyTorch keeps under `torch.utils`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import data, deterministic, dlpack

__all__ = ["data", "deterministic", "dlpack"]

# Imported when first asked for.
_MODULES = frozenset(("_pytree", "checkpoint", "hooks", "model_zoo"))


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
