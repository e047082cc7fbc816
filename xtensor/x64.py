"""64-bit types for xtensor's own calls, with the user's JAX left as it was.

JAX reads `jax_enable_x64` while tracing, lowering and matching signatures, so a whole call must run under it.
Swapping the thread-local value costs 0.3 us; entering `jax.enable_x64(True)` as a context costs 0.8 us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

__all__ = ["call", "restore", "swap", "x64"]

swap: Callable[[bool], Any] = jax.enable_x64.swap_local
restore: Callable[[Any], None] = jax.enable_x64.set_local


def x64() -> Any:
    """A context in which JAX keeps 64-bit types."""
    return jax.enable_x64(True)


def call(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` with 64-bit types on."""
    previous = swap(True)
    try:
        return function(*args)
    finally:
        restore(previous)
