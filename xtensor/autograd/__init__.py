"""Automatic differentiation: `backward`, `grad`, custom functions, hooks, checks and the graph made visible."""

from __future__ import annotations

from ..engine import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from ..engine.profiler import ProfilerActivity
from ..gradients import backward, grad
from ..operators.saved import SavedTensor
from . import anomaly_mode, forward_ad, functional, grad_mode, graph, profiler, profiler_legacy, profiler_util
from .drawing import draw
from .function import Function, FunctionCtx
from .grad_mode import (
    enforce_grad_layout_policy,
    is_multithreading_enabled,
    is_view_replay_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function",
    "FunctionCtx",
    "ProfilerActivity",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "draw",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "kineto_available",
    "no_grad",
    "profiler",
    "profiler_legacy",
    "profiler_util",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def kineto_available() -> bool:
    """False: traces are recorded by this library and by JAX's profiler."""
    return False
