"""Sizes that vary: one program for all sizes up to a bound, where a program's signatures differ in sizes alone.

    terms       which sizes go together, and as JAX's symbolic ones
    padded      a program over symbolic sizes run with longer arrays, by the `rules` of its primitives
    spans       a function's programs for spans of sizes, and how a call of true sizes goes through one
    families    which calls are answered so

`XTENSOR_SIZES=0` in the environment, or `enable(False)`, switches it off.
"""

from __future__ import annotations

from .families import (
    OFTEN,
    Families,
    Sized,
    comes_again,
    count_host,
    enable,
    enabled,
    forget,
    is_made,
    is_one_cpu,
    paused,
    stats,
)

__all__ = [
    "OFTEN",
    "Families",
    "Sized",
    "comes_again",
    "count_host",
    "enable",
    "enabled",
    "forget",
    "is_made",
    "is_one_cpu",
    "paused",
    "stats",
]
