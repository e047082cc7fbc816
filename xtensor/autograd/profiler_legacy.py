"""`torch.autograd.profiler_legacy`: the profiler as its oldest interface makes it."""

from __future__ import annotations

from typing import Any

from ..engine import profiler

__all__ = ["profile"]


class profile(profiler.profile):
    """The profiler with the older arguments; not `enabled`, it records nothing.

    Differs from PyTorch: what is said of CUDA, Kineto, stacks and operations changes nothing.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        record_shapes: bool = False,
        profile_memory: bool = False,
        use_cuda: bool = False,
        use_device: str | None = None,
        with_flops: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(record_shapes=record_shapes, profile_memory=profile_memory)
        self.enabled = enabled

    def __enter__(self) -> profile:
        if self.enabled:
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self.stop()
