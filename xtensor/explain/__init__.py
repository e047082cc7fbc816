"""Where an operator comes from, what it calls, and what runs."""

from __future__ import annotations

from .. import ops
from .explain import explain, source

__all__ = ["explain", "source"]

# Users look for them beside the operators.
ops.explain, ops.source = explain, source
