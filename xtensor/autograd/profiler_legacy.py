"""`torch.autograd.profiler_legacy`: the profiler under its oldest name."""

from __future__ import annotations

from ..engine.profiler import profile

__all__ = ["profile"]
