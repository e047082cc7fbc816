"""Kernels that know their platform: what runs where, and the figure that chose it.

A kernel that has a better way on the CPU calls `on_cpu(name, better, general, *args)`; both ways are in its family's
file, and the choice and its reason are a row of `CHOICES`. Only the way of the platform that a program is compiled for
enters it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import lax

__all__ = ["CHOICES", "on_cpu"]

CHOICES: dict[str, str] = {
    "sort": (
        "one 64-bit key of value and index instead of a comparison of pairs; float32 [256, 256]: 7.6 ms to 1.3 ms, "
        "[256, 1024]: 36 ms to 7.2 ms"
    ),
    "topk": "XLA's partial sort of float32 where k is at most an eighth; 8 of [256, 1024]: 36 ms to 0.7 ms",
}
"""By kernel: what the CPU does otherwise than the general way, and what it gained (2 cores, AVX2)."""


def on_cpu(name: str, better: Callable[..., Any], general: Callable[..., Any], *args: Any) -> Any:
    """`better(*args)` in a program for the CPU, `general(*args)` in one for another platform."""
    if name not in CHOICES:
        raise KeyError(f"{name} is not in CHOICES")
    return lax.platform_dependent(*args, cpu=better, default=general)
