"""`torch.autograd.profiler_legacy`: the profiler as its oldest interface makes it."""

from __future__ import annotations

from typing import Any

from ..engine import profiler
from .profiler_util import EventList, FunctionEventAvg, functions_of

__all__ = ["profile"]


class profile(profiler.profile):
    """The profiler with the older arguments and PyTorch's events; not `enabled`, it records nothing.

    After the block, `function_events` has every event under PyTorch's name (`aten::mul`), in the order of their starts.
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
        self.entered = False
        self.function_events: EventList | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self.entered = True
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self.stop()
            self.function_events = functions_of(
                super().events(), self._started, profile_memory=self.profile_memory
            )

    def _functions(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def events(self) -> EventList:
        """Every event recorded, in the order of their starts."""
        return self._functions()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any
    ) -> EventList:
        """The events summed by name, and by input shapes if asked."""
        return self._functions().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All events as one."""
        return self._functions().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, none counted twice."""
        return self._functions().self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events as text, with the options of `EventList.table`."""
        return self._functions().table(sort_by, row_limit, **options)

    def __str__(self) -> str:
        return (
            "<unfinished torch.autograd.profile>" if self.function_events is None else str(self._functions())
        )

    def __repr__(self) -> str:
        return (
            "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self._functions())
        )
