"""What layers of several layers ask for: to have their parts seen, or quantised. Those who can install themselves here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["INSTALLED", "converted", "observed"]

INSTALLED: dict[str, Callable[..., Any]] = {}
"""`prepare`, `prepare_qat` and `convert`, which know all kinds of layers."""


def observed(module: Any) -> Any:
    """The module with its parts seen; in training, rounded."""
    return INSTALLED["prepare_qat" if module.training else "prepare"](module, inplace=True)


def converted(module: Any) -> Any:
    """A copy of an observed module with its parts quantised."""
    return INSTALLED["convert"](module, inplace=False)
