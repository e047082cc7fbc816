"""Where an operator comes from, what it calls, and what runs."""

from .. import ops
from ..engine import profiler
from .explain import explain, source
from .seen import show

__all__ = ["explain", "source"]

# Users look for them beside the operators.
ops.explain, ops.source = explain, source

profiler.at_start.append(show)
