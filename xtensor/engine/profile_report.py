"""What a profile shows: its events, their sums by name, a table, and a Chrome trace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["OPERATORS", "Event", "EventAverage", "EventList", "chrome_trace", "format_time"]

OPERATORS = {"operator": "cpu_op", "function": "cpu_op", "backward": "backward"}
"""The kinds of events whose time is not that of compiling, with their categories in a Chrome trace."""


class Event:
    """One run of an operator, a backward node or a region, in nanoseconds of the host's clock.

    `compiled` is what compiling took inside; a "function" is one that is written by hand, over operators or none.
    `sequence_nr` is that of the node, by which an operator and its backward know each other; -1 where there is none.
    """

    __slots__ = (
        "compiled",
        "depth",
        "end",
        "inner",
        "inner_memory",
        "kind",
        "memory",
        "name",
        "sequence_nr",
        "shapes",
        "start",
        "thread",
    )

    def __init__(
        self, name: str, kind: str, thread: int, depth: int, shapes: Sequence[Any] | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.thread = thread
        self.depth = depth
        self.shapes = shapes
        self.start = self.end = self.inner = self.compiled = 0
        self.memory = self.inner_memory = 0
        self.sequence_nr = -1

    key = property(lambda self: self.name)
    count = 1

    @property
    def input_shapes(self) -> list[Any]:
        """The shapes of the operator's arguments, where recorded."""
        return [list(s) if isinstance(s, tuple) else s for s in self.shapes or ()]

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from begin to end; of an operator, less those of compiling."""
        return (self.end - self.start - (self.compiled if self.kind in OPERATORS else 0)) / 1000

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds outside the events that it contains."""
        return (self.end - self.start - self.inner) / 1000

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the results made inside."""
        return self.memory

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of its own results."""
        return self.memory - self.inner_memory

    def __repr__(self) -> str:
        return f"<Event {self.name} {self.cpu_time_total:.3f}us>"


class EventAverage:
    """The events of one name (and input shapes, where grouped by them)."""

    def __init__(self, key: str, input_shapes: list[Any]) -> None:
        self.key = self.name = key
        self.input_shapes = input_shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, event: Event) -> None:
        """Count one more event."""
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count

    def __repr__(self) -> str:
        return f"<EventAverage {self.key} x{self.count} {self.cpu_time_total:.3f}us>"


_SORT_KEYS = {
    "cpu_time", "cpu_time_total", "self_cpu_time_total", "count", "cpu_memory_usage", "self_cpu_memory_usage",
}  # fmt: skip


class EventList(list[Any]):
    """Events or their averages, which print as a table."""

    def __init__(self, events: Iterable[Any] = (), memory: bool = False, by_shape: bool = False) -> None:
        super().__init__(events)
        self.memory = memory
        self.by_shape = by_shape

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, none counted twice."""
        return sum(event.self_cpu_time_total for event in self)

    def total_average(self) -> EventAverage:
        """All events as one."""
        total = EventAverage("Total", [])
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_memory_usage += event.cpu_memory_usage
            total.self_cpu_memory_usage += event.self_cpu_memory_usage
        return total

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """Sum the events by name, and by input shapes if asked."""
        groups: dict[tuple[str, str], EventAverage] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shape else []
            key = (event.key, repr(shapes))
            if key not in groups:
                groups[key] = EventAverage(event.key, shapes)
            groups[key].add(event)
        return EventList(groups.values(), self.memory, group_by_input_shape)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        header: str | None = None,
    ) -> str:
        """Format as text: the `row_limit` largest by `sort_by` (all if -1), in order of first call without it."""
        rows: list[Any] = list(self)
        if sort_by is not None:
            if sort_by not in _SORT_KEYS:
                raise ValueError(f"sort_by must be one of {sorted(_SORT_KEYS)}, but got {sort_by!r}")
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        if row_limit >= 0:
            rows = rows[:row_limit]
        whole = self.self_cpu_time_total
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        titles += ["CPU Mem", "Self CPU Mem"] if self.memory else []
        titles += ["# of Calls"]
        titles += ["Input Shapes"] if self.by_shape else []
        lines = [titles]
        for event in rows:
            name = event.key
            if len(name) > max_name_column_width > 3:
                name = name[: max_name_column_width - 3] + "..."
            line = [name, _share(event.self_cpu_time_total, whole), format_time(event.self_cpu_time_total)]
            line += [
                _share(event.cpu_time_total, whole),
                format_time(event.cpu_time_total),
                format_time(event.cpu_time),
            ]
            if self.memory:
                line += [_bytes(event.cpu_memory_usage), _bytes(event.self_cpu_memory_usage)]
            line += [str(event.count)]
            line += [str(event.input_shapes)] if self.by_shape else []
            lines.append(line)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        text = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        ]
        head = [header.center(len(rule)).rstrip()] if header is not None else []
        body = [rule, text[0], rule, *text[1:], rule]
        return "\n".join([*head, *body, f"Self CPU time total: {format_time(whole)}", ""])

    def __str__(self) -> str:
        return self.table()


def format_time(microseconds: float) -> str:
    """Microseconds with the unit that suits them."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def chrome_trace(
    events: Iterable[Event], origin: int, device_events: list[dict[str, Any]], shapes: bool
) -> dict[str, Any]:
    """The profile in the Trace Event format; `device_events` are in it already, their clock starting at `origin`."""
    # The device's trace numbers its processes itself: the host's gets a number that it does not use.
    used = {event.get("pid") for event in device_events}
    process = next(number for number in range(os.getpid(), os.getpid() + len(used) + 1) if number not in used)
    host: list[dict[str, Any]] = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": "xtensor (host)"}},
        {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": -1}},
    ]
    for event in events:
        entry: dict[str, Any] = {
            "ph": "X",
            "name": event.name,
            "cat": {**OPERATORS, "region": "user_annotation"}.get(event.kind, event.kind),
            "pid": process,
            "tid": event.thread,
            "ts": (event.start - origin) / 1000,
            "dur": (event.end - event.start) / 1000,
        }
        arguments: dict[str, Any] = {}
        if shapes and event.shapes is not None:
            arguments["Input Dims"] = event.input_shapes
        if event.memory:
            arguments["Bytes"] = event.memory
        if arguments:
            entry["args"] = arguments
        host.append(entry)
    return {"displayTimeUnit": "ms", "traceEvents": host + device_events}
