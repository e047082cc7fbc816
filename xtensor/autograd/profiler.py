"""`torch.autograd.profiler`: the engine's profiler, with the arguments of its older interface."""

from __future__ import annotations

from ..engine import profiler
from ..engine.profiler import *  # noqa: F403
from . import profiler_legacy

__all__ = list(profiler.__all__)
profile = profiler_legacy.profile
