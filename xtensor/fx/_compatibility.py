"""`torch.fx._compatibility`: marks of functions whose interface is settled or not, which are kept as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

T = TypeVar("T")


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that leaves its function as it is."""
    return lambda fn: fn
