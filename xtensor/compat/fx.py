"""`torch.fx`: marks for its tracer, which are kept as they are; there is no tracer, for Python runs as it is."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["wrap"]

T = TypeVar("T")


def wrap(fn_or_name: T) -> T:
    """The function or name itself: it marks what a symbolic trace is not to enter, and nothing is traced."""
    return fn_or_name
