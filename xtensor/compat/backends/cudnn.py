"""`torch.backends.cudnn`: not here; XLA brings its own convolutions, and the same ones every time. `allow_tf32` is theirs."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from ...operators.precision import convolutions_are_exact, make_convolutions_exact
from .switches import ConvolutionPrecision, Precision, flags_of

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
conv = ConvolutionPrecision()
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


class _Switches(ModuleType):
    """A module one of whose attributes is a setting."""

    @property
    def allow_tf32(self) -> bool:
        return not convolutions_are_exact()

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        make_convolutions_exact(not allowed)


sys.modules[__name__].__class__ = _Switches
