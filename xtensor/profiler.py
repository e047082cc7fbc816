"""`torch.profiler`: the engine's profiler under PyTorch's module name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from .engine.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded."""
    return {ProfilerActivity.CPU, ProfilerActivity.DEVICE}


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """An `on_trace_ready` that writes each trace to a file of its own in a folder."""
    os.makedirs(dir_name, exist_ok=True)

    def handle(profiler: Any) -> None:
        name = f"{worker_name or os.getpid()}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return handle
