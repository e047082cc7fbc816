"""What PyTorch keeps under `torch.utils`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..ops.tensor.swapping import swap_tensors
from . import data, deterministic, dlpack

__all__ = ["data", "deterministic", "dlpack", "swap_tensors"]

# Imported when first asked for.
_MODULES = frozenset(
    ("_python_dispatch", "_pytree", "benchmark", "flop_counter", "checkpoint", "hooks", "model_zoo")
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
