"""Anomaly mode: where in the forward pass the node that failed, or returned NaN, was made."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .. import checks
from ..xla.signals import from_start
from .graph import Gradients, Node, name_of
from .modes import ANOMALY, set_flag, state
from .task import local

__all__ = [
    "PARENT_KEY",
    "TRACE_KEY",
    "check",
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "record",
    "report",
    "set_detect_anomaly",
    "watch",
]

TRACE_KEY = "traceback_"
PARENT_KEY = "parent_"

_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _is_ours(filename: str) -> bool:
    """Whether a frame is the library's: its files, and the functions that it makes."""
    return filename.startswith("<xtensor ") or os.path.abspath(filename).startswith(_LIBRARY)


def record(node: Node) -> None:
    """Note where `node` is being made and, inside a backward pass, the node whose run makes it."""
    frames = traceback.extract_stack()
    user = frames[:]
    while user and _is_ours(user[-1].filename):
        user.pop()
    metadata = node.metadata
    metadata[TRACE_KEY] = traceback.format_list(user or frames)
    if local.node is not None:
        metadata[PARENT_KEY] = local.node


def watch(node: Node, grads: Gradients) -> Gradients:
    """Run the node, known to `record` as the maker of what it makes."""
    outer, local.node = local.node, node
    try:
        return node.apply(grads)
    finally:
        local.node = outer


def check(node: Node, outputs: Any, is_nan: Callable[[Any], bool]) -> None:
    """Raise if an output holds NaN, unless the mode was entered with `check_nan=False`."""
    if is_anomaly_check_nan_enabled():
        for index, output in enumerate(outputs):
            if output is not None and is_nan(output):
                raise RuntimeError(f"Function '{name_of(node)}' returned nan values in its {index}th output.")


def report(node: Node) -> None:
    """Warn with the forward traceback of the node that failed, and once for each that induced it."""
    metadata = node.metadata
    trace = metadata.get(TRACE_KEY)
    messages = []
    message = f"Error detected in {name_of(node)}. "
    if trace is None:
        message += (
            "No forward pass information available. Enable detect anomaly during forward pass "
            "for more information."
        )
    else:
        message += "Traceback of forward call that caused the error:\n" + "".join(trace)
    parent = metadata.get(PARENT_KEY)
    while parent is not None:
        messages.append(message)
        message = f"\n\nPrevious calculation was induced by {name_of(parent)}. "
        trace = parent.metadata.get(TRACE_KEY)
        if trace is None:
            message += "No forward pass information available."
        else:
            message += "Traceback of forward call that induced the previous calculation:\n" + "".join(trace)
        parent = parent.metadata.get(PARENT_KEY)
    for each in (*messages, message):
        try:
            checks.warn(each)
        except Warning:
            # Warnings that are errors must not hide the error that is being reported.
            print(each, file=sys.stderr)


class set_detect_anomaly:
    """Switch anomaly mode of this thread: at once when called, until the end of the block as a context manager.

    Differs from PyTorch: the switch is this thread's (and its backward passes'), not the process's.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev_check_nan: bool = is_anomaly_check_nan_enabled()
        self.prev = set_flag(ANOMALY, mode)
        state.check_nan = check_nan

    def __enter__(self) -> None:
        pass

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self.prev  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            state.mode = state.mode | ANOMALY if self.prev else state.mode & ~ANOMALY
            state.check_nan = self.prev_check_nan


class detect_anomaly:
    """Inside the block, keep every node's forward traceback, and refuse NaN gradients unless `check_nan` is False."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        checks.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
        )

    def __enter__(self) -> None:
        self._before = state.mode & ANOMALY, state.check_nan
        state.check_nan = self.check_nan
        state.mode |= ANOMALY

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self._before  # noqa: B018
        finally:
            state.mode = state.mode & ~ANOMALY | self._before[0]
            state.check_nan = self._before[1]


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode."""
    return bool(state.mode & ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode also refuses NaN gradients."""
    return state.check_nan
