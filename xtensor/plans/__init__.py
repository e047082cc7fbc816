"""Backward graphs that ran before, run as one program."""

from __future__ import annotations

from .plans import PlanExecutor, executor

__all__ = ["PlanExecutor", "executor"]
