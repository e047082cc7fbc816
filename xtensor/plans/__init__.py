"""Backward graphs that ran before, run as one program."""

from .plans import PlanExecutor, executor

__all__ = ["PlanExecutor", "executor"]
