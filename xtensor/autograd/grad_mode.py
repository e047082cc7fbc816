"""`torch.autograd.grad_mode`: the contexts that switch recording on and off."""

from __future__ import annotations

from typing import Any

from ..engine import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class _Threads:
    enabled = True


class set_multithreading_enabled:
    """Remembered, at once and for the block: backward uses one worker per device whatever is chosen."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev, _Threads.enabled = _Threads.enabled, mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _Threads.enabled = self.prev

    def clone(self) -> Any:
        return self.__class__(self.mode)


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told."""
    return _Threads.enabled
