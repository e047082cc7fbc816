"""Host times of operators, backward nodes and the user's own regions, and the device's trace where JAX gives one.

Operators check the PROFILING bit on their slow path and call `token = begin(name, shapes)`, `end(token, bytes)`. What a
program costs to compile, or to load from a cache, is an event of its own inside the operator that needs it.
"""

from __future__ import annotations

import enum
import glob
import gzip
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import Any

from jax import profiler as jax_profiler

from ..xla import compiles
from .modes import PROFILING, DecoratorContext, set_flag, state
from .profile_report import OPERATORS, Event, EventList, chrome_trace

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "begin",
    "end",
    "profile",
    "record_function",
    "schedule",
]

_MARK = "xtensor profile start"


class ProfilerActivity(enum.Enum):
    """What to record: host times, or also the device's own trace (`DEVICE`, by its vendor's name `CUDA`, `TPU`)."""

    CPU = 0
    DEVICE = 1
    CUDA = 1
    TPU = 1


class ProfilerAction(enum.Enum):
    """What a `schedule` asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class _Stack(threading.local):
    """The events that this thread is inside of."""

    def __init__(self) -> None:
        self.open: list[Event] = []


_stack = _Stack()
_recording: list[Event] | None = None
_since = 0
"""When the recording began: what began before it, on a thread that compiles, is no part of it."""

at_start: list[Callable[[], Callable[[], None]]] = []
"""Called as a recording begins; what each returns is called as it ends."""

at_end: list[Callable[[Event], None]] = []
"""Called with every event that ends while a recording runs."""


def begin(name: str, shapes: Sequence[Any] | None = None, kind: str = "operator") -> Event | None:
    """Open an event on this thread; None when nothing records."""
    if _recording is None:
        return None
    stack = _stack.open
    event = Event(name, kind, threading.get_ident(), len(stack), shapes)
    stack.append(event)
    event.start = perf_counter_ns()
    return event


def end(event: Event | None, memory: int = 0) -> None:
    """Close an event; `memory` is the bytes its results own, where the operator knows them."""
    if event is None:
        return
    event.end = perf_counter_ns()
    event.memory += memory
    stack = _stack.open
    # What an exception left open above this event ends with it.
    while stack and stack.pop() is not event:
        pass
    if stack:
        outer = stack[-1]
        outer.memory += event.memory
        outer.compiled += event.compiled
        if outer.kind == "function" and outer.name == event.name:
            # A function written by hand whose operator has its name: one call, one event.
            outer.sequence_nr = event.sequence_nr
            outer.inner += event.inner
            outer.inner_memory += event.inner_memory
            return
        outer.inner += event.end - event.start
        outer.inner_memory += event.memory
    recording = _recording
    if recording is not None and event.start >= _since:
        recording.append(event)
        for told in at_end:
            told(event)


def _compiling(name: str) -> Callable[[bool | None], None]:
    """Open the event of a program that this thread makes, for the operator that it is inside of."""
    stack = _stack.open
    if stack and (stack[-1].kind in OPERATORS or stack[-1].name.startswith("Optimizer.")):
        name = stack[-1].name
    event = begin(f"compile: {name}", None, "compile")

    def made(cached: bool | None) -> None:
        if event is None:
            return
        if cached is None:
            _forget(event)
            return
        if cached:
            event.name += " (from cache)"
        event.compiled = perf_counter_ns() - event.start
        end(event)

    return made


def _forget(event: Event) -> None:
    """Close an event as if it had not been: its time is that of what it is in."""
    stack = _stack.open
    while stack and stack.pop() is not event:
        pass
    if stack:
        outer = stack[-1]
        outer.inner += event.inner
        outer.compiled += event.compiled
        outer.inner_memory += event.inner_memory
        outer.memory += event.memory


class record_function(DecoratorContext):
    """Name a region of the profile: a context manager, or a decorator of functions and generators."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._event: Event | None = None

    def clone(self) -> record_function:
        return self.__class__(self.name, self.args)

    def __enter__(self) -> record_function:
        if state.mode & PROFILING:
            self._event = begin(self.name, (self.args,) if self.args else None, "region")
        return self

    def __exit__(self, *exc: object) -> None:
        event, self._event = self._event, None
        end(event)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return the action of each step: after `skip_first`, cycles of `wait`, `warmup` and `active` steps.

    `repeat` bounds the cycles (0: until the profile ends).
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise ValueError("Invalid profiler schedule arguments")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class profile:
    """Record what this thread runs inside the block, and the backward passes that it starts.

    Times are the host's. Compiling a program, or loading it from the cache, is a row "compile: ..." of its own, on
    whatever thread, and no part of the times of the operator whose first call needs it.
    Differs from PyTorch: dispatch to the device is asynchronous on every platform, so an operator's time is that of
    its launch; `activities` with `ProfilerActivity.DEVICE` adds the device's own trace to the Chrome file.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
    ) -> None:
        self.activities = {ProfilerActivity.CPU} if activities is None else set(activities)
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.step_num = 0
        self._events: list[Event] = []
        self._started = 0
        self._device_events: list[dict[str, Any]] = []
        self._device_folder: str | None = None
        self._active = False
        self._step: Event | None = None
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def start(self) -> None:
        """Begin; with a schedule, at the action of step 0."""
        if state.mode & PROFILING:
            raise RuntimeError("Profiler is already enabled on this thread")
        if self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._begin_trace()

    def step(self) -> None:
        """End one step of the schedule and begin the next."""
        before = self._action()
        self._end_step()
        self.step_num += 1
        after = self._action()
        if self._active and (
            before is ProfilerAction.RECORD_AND_SAVE or after in (ProfilerAction.NONE, ProfilerAction.WARMUP)
        ):
            self._end_trace()
            self._ready()
        if after in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            if not self._active:
                self._begin_trace()
            else:
                self._begin_step()

    def stop(self) -> None:
        """End; what was being recorded is handed to `on_trace_ready`."""
        if self._active:
            self._end_step()
            self._end_trace()
            self._ready()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self.schedule is not None:
            self._step = begin(f"ProfilerStep#{self.step_num}", None, "region")

    def _end_step(self) -> None:
        step, self._step = self._step, None
        end(step)

    def _begin_trace(self) -> None:
        global _recording, _since
        if _recording is not None:
            raise RuntimeError("Profiler is already enabled in another thread")
        self._events = []
        self._device_events = []
        try:
            # What takes milliseconds comes before the clock starts.
            for start in at_start:
                self._undo.append(start())
            if ProfilerActivity.DEVICE in self.activities:
                self._device_folder = tempfile.mkdtemp(prefix="xtensor-profile-")
                jax_profiler.start_trace(self._device_folder)
                with jax_profiler.TraceAnnotation(_MARK):
                    self._started = perf_counter_ns()
            else:
                self._started = perf_counter_ns()
            _recording, _since = self._events, self._started
            self._active = True
            compiles.watch(_compiling, where_made=True)
            set_flag(PROFILING, True)
        except BaseException:
            self._close()
            raise
        self._begin_step()

    def _close(self) -> None:
        """Record nothing more, and undo what the start did."""
        global _recording
        set_flag(PROFILING, False)
        self._active = False
        _recording = None
        compiles.unwatch(_compiling)
        while self._undo:
            self._undo.pop()()

    def _end_trace(self) -> None:
        self._close()
        folder, self._device_folder = self._device_folder, None
        if folder is not None:
            try:
                jax_profiler.stop_trace()
                self._device_events = _device_trace(folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def events(self) -> EventList:
        """Every event recorded, in the order of their starts."""
        return EventList(sorted(self._events, key=lambda event: event.start), self.profile_memory)

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The events summed by name, and by input shapes if asked."""
        return self.events().key_averages(group_by_input_shape)

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """`key_averages().table(...)`."""
        return self.key_averages().table(sort_by=sort_by, row_limit=row_limit)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for chrome://tracing or Perfetto, gzipped if `path` ends with ".gz"."""
        trace = chrome_trace(profile.events(self), self._started, self._device_events, self.record_shapes)
        path = os.fspath(path)
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "wt", encoding="utf-8") as file:
            json.dump(trace, file)


def _device_trace(folder: str) -> list[dict[str, Any]]:
    """Read JAX's trace of the device, its clock moved so that the profile starts at 0; empty if there is none."""
    events: list[dict[str, Any]] = []
    for path in glob.glob(os.path.join(glob.escape(folder), "**", "*.trace.json.gz"), recursive=True):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events.extend(json.load(file)["traceEvents"])
    origin = next((event["ts"] for event in events if event.get("name") == _MARK), 0.0)
    for event in events:
        if "ts" in event:
            event["ts"] -= origin
    return [event for event in events if event]
