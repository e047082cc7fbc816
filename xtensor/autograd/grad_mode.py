"""`torch.autograd.grad_mode`: the contexts that switch recording on and off."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from ..engine import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..ops.shape.metadata import Replay

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Threads:
    enabled = True


class _Layout:
    enabled = True


class _Remembered:
    """A choice kept at once and for the block, which nothing here depends on."""

    holder: type[_Threads | _Layout | Replay]

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev, self.holder.enabled = self.holder.enabled, mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.holder.enabled = self.prev

    def clone(self) -> Any:
        return self.__class__(self.mode)


class set_multithreading_enabled(_Remembered):
    """Remembered, at once and for the block: backward uses one worker per device whatever is chosen."""

    holder = _Threads


class enforce_grad_layout_policy(_Remembered, ContextDecorator):
    """Remembered, at once and for the block: how memory is laid out under a gradient is for XLA to choose."""

    holder = _Layout

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


class _force_original_view_tracking(_Remembered):
    """Whether, at once and for the block, a view whose base was written has the calls that made it for its history, not its geometry alone."""

    holder = Replay


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told."""
    return _Threads.enabled


def is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` was told."""
    return Replay.enabled
