"""`torch.backends.cudnn`: not here; XLA brings its own convolutions, and the same ones every time."""

from __future__ import annotations

from typing import Any

from .switches import Precision, flags_of

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
conv = Precision()
rnn = Precision()
flags = flags_of(
    __name__,
    enabled="enabled",
    benchmark="benchmark",
    benchmark_limit="benchmark_limit",
    deterministic="deterministic",
    allow_tf32="allow_tf32",
)


def is_available() -> bool:
    """False: XLA brings its own convolutions."""
    return False


def version() -> None:
    """There is none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """False: there is nothing to accept it."""
    return False


def set_flags(**values: Any) -> dict[str, Any]:
    """Set switches; their values before."""
    before = {name: globals()[name] for name in values}
    globals().update(values)
    return before
