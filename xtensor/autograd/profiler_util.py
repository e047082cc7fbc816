"""`torch.autograd.profiler_util`: a profile's events under PyTorch's names, `aten::mul` and the like."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from ..engine import profile_report

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "functions_of"]


class Interval:
    """From when to when, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long that is."""
        return self.end - self.start


class FunctionEvent:
    """One run of a function, with its times in microseconds and the events inside of it on its thread.

    Differs from PyTorch: what is said of devices is 0, since only the Chrome trace has their times.
    """

    count = 1
    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    is_legacy = is_async = is_remote = False

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        cpu_memory_usage: int = 0,
        sequence_nr: int = -1,
        node_id: int = -1,
        flops: int | None = None,
        is_user_annotation: bool = False,
        **others: Any,
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = self.trace_name = name
        self.thread = thread
        self.time_range = Interval(start_us, end_us)
        self.fwd_thread = fwd_thread
        self.input_shapes = input_shapes or []
        self.stack = stack or []
        self.scope = scope
        self.cpu_memory_usage = cpu_memory_usage
        self.sequence_nr = sequence_nr
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Any] = []

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Say that an event ran inside of this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Say that this one ran inside of an event."""
        self.cpu_parent = parent

    key = property(lambda self: self.name)

    @property
    def cpu_time_total(self) -> float:
        """From its start to its end."""
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """What the events inside of it leave of that."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of its own results."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time:.3f}us "
            f"cpu_start_us={self.time_range.start} cpu_end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg:
    """The sums of the events of one name; one that has seen none takes the name of the first."""

    device_time = device_time_total = self_device_time_total = 0.0
    cuda_time = cuda_time_total = self_cuda_time_total = 0.0

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []
        self.scope: int | None = None
        self.flops = 0
        self.cpu_time_total: float = 0
        self.self_cpu_time_total: float = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    name = property(lambda self: self.key)

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, other: Any) -> FunctionEventAvg:
        """Count one more event, or the events of another sum."""
        if self.key is None:
            self.key = other.key
            self.node_id = other.node_id
            self.input_shapes = other.input_shapes
            self.stack, self.scope = other.stack, other.scope
            self.cpu_parent = other.cpu_parent
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total / max(self.count, 1):.3f}us "
            f"cpu_time={self.cpu_time:.3f}us input_shapes={self.input_shapes}>"
        )


class EventList(profile_report.EventList):
    """Events or their averages, which print as a table.

    Differs from PyTorch: the columns of devices, of stacks and of FLOPs are not in the table.
    """

    def __init__(self, events: Iterable[Any] = (), **options: Any) -> None:
        super().__init__(
            events, bool(options.get("profile_memory")), bool(options.get("group_by_input_shape"))
        )

    def _populate_cpu_children(self) -> None:
        """Find which events ran inside of which, on each thread; of two that overlap the later takes what follows."""
        threads: dict[Any, list[FunctionEvent]] = {}
        for event in self:
            threads.setdefault((event.thread, event.node_id), []).append(event)
        for events in threads.values():
            open_events: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                span = event.time_range
                while open_events and (
                    span.start >= open_events[-1].time_range.end or span.end > open_events[-1].time_range.end
                ):
                    open_events.pop()
                if open_events:
                    open_events[-1].append_cpu_child(event)
                    event.set_cpu_parent(open_events[-1])
                open_events.append(event)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        header: str | None = None,
        top_level_events_only: bool = False,
        **widths: int,
    ) -> str:
        """Format as text, as the engine's list of events; of the top level only, if asked."""
        rows = self
        if top_level_events_only:
            rows = EventList(
                [event for event in self if event.cpu_parent is None],
                profile_memory=self.memory,
                group_by_input_shape=self.by_shape,
            )
        return profile_report.EventList.table(rows, sort_by, row_limit, max_name_column_width, header)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **options: Any
    ) -> EventList:
        """Sum the events by name, and by input shapes if asked."""
        groups: dict[tuple[str, str], FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else []
            groups.setdefault((event.key, repr(shapes)), FunctionEventAvg()).add(event)
        averages = EventList(
            groups.values(), profile_memory=self.memory, group_by_input_shape=group_by_input_shape
        )
        if not group_by_input_shape:
            for average in averages:
                average.input_shapes = []
        return averages

    def total_average(self) -> FunctionEventAvg:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All events as one."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for chrome://tracing or Perfetto."""
        events = [
            {
                "name": event.trace_name,
                "ph": "X",
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "tid": event.thread,
                "pid": "CPU functions",
                "args": {"Input Dims": event.input_shapes} if event.input_shapes else {},
            }
            for event in self
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(events, file)


def functions_of(events: Iterable[profile_report.Event], origin: int, **options: Any) -> EventList:
    """The engine's events, by their starts, as PyTorch's: operators as `aten::`, backward nodes each in their evaluation.

    Threads are numbered from 1 by their first event. `origin` is the clock at the start of the profile, in nanoseconds.
    """
    made: list[FunctionEvent] = []
    threads: dict[int, int] = {}
    # Of a backward node's event the thread of its operator's is told.
    forward: dict[int, int] = {}
    for event in events:
        if event.kind in ("operator", "function"):
            names = [f"aten::{event.name}"]
        elif event.kind == "backward":
            names = [f"autograd::engine::evaluate_function: {event.name}", event.name]
        else:
            names = [event.name]
        thread = threads.setdefault(event.thread, len(threads) + 1)
        if event.kind != "backward" and event.sequence_nr >= 0:
            forward[event.sequence_nr] = thread
        for name in names:
            made.append(
                FunctionEvent(
                    id=len(made) + 1,
                    name=name,
                    thread=thread,
                    fwd_thread=forward.get(event.sequence_nr, 0) if event.kind == "backward" else 0,
                    start_us=(event.start - origin) / 1000,
                    end_us=(event.end - origin) / 1000,
                    input_shapes=event.input_shapes,
                    cpu_memory_usage=event.cpu_memory_usage,
                    sequence_nr=event.sequence_nr,
                    is_user_annotation=event.kind == "region",
                )
            )
    found = EventList(made, **options)
    found._populate_cpu_children()
    return found
