"""The engine's entry: one call, the choice of executor for it, and the counts of what was chosen."""

from __future__ import annotations

from typing import Any

from .. import checks
from ..errors import noted
from ..xla import segments
from .executor import Executor, Fallback, Interpreter
from .graph import EdgeTuple, Gradients
from .modes import SAVED_HOOKS, state

__all__ = [
    "RELEASED",
    "default",
    "executors",
    "install",
    "interpreter",
    "reset_stats",
    "run_backward",
    "stats",
]

RELEASED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
    "you need to access saved tensors after calling backward."
)
"""What a node raises (RuntimeError) when it is run, or its saved values are read, after `release`."""

_interpreter = Interpreter()
_executors: tuple[Executor, ...] = (_interpreter,)
_runs: dict[str, int] = {}
_fallbacks: dict[str, int] = {}


def interpreter() -> Interpreter:
    """The reference executor; the layer that knows gradients sets its `validate`, `is_nan` and `check_hook`."""
    return _interpreter


def executors() -> tuple[Executor, ...]:
    """The executors in the order in which they are asked; the interpreter is the last."""
    return _executors


def default() -> Executor:
    """The executor that is asked first."""
    return _executors[0]


def install(*preferred: Executor) -> None:
    """Ask these executors before the interpreter; each may decline a graph by returning a `Fallback`."""
    global _executors
    _executors = (*preferred, _interpreter)


def stats() -> dict[str, Any]:
    """Counts since `reset_stats`: runs per executor, fallbacks per "executor: reason", executors' own figures, and `segments`.

    Of segments, calls that waited and ran together (`xla/segments.py`), since the process began: whole, those that ran as one program, and
    calls, the calls in them; by call, those that ran one call after the other; compiled; structures that are known.
    """
    result: dict[str, Any] = {"runs": dict(_runs), "fallbacks": dict(_fallbacks)}
    for executor in _executors:
        own = getattr(executor, "stats", None)
        if own is not None:
            result[executor.name] = own()
    result["segments"] = segments.stats()
    return result


def reset_stats() -> None:
    """Start counting anew."""
    _runs.clear()
    _fallbacks.clear()


def run_backward(
    edges: tuple[EdgeTuple, ...],
    grads: Gradients,
    keep_graph: bool = False,
    create_graph: bool = False,
    inputs: tuple[EdgeTuple | None, ...] | None = None,
    allow_unreachable: bool = False,
    accumulate_grad: bool = True,
) -> Gradients:
    """Send `grads` from `edges` through the graph.

    Without `inputs` every leaf reached is accumulated into. With `inputs` (an edge each, None for one that no graph
    reaches) only those: accumulated into with `accumulate_grad`, else their gradients are returned.

    Raises:
        RuntimeError: an input was not reached and `allow_unreachable` is off; or whatever a node or hook raised.
    """
    if create_graph and accumulate_grad:
        checks.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
            "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters "
            "to None after use to break the cycle and avoid the leak.",
        )
    for executor in _executors:
        hooks = state.saved_hooks
        try:
            captured = executor.run(edges, grads, inputs, keep_graph, create_graph, accumulate_grad)
        except RuntimeError as error:
            noted(error)
            raise
        finally:
            if state.saved_hooks is not hooks:  # what was entered within the pass ends with it
                state.saved_hooks = hooks
                state.mode = state.mode | SAVED_HOOKS if hooks else state.mode & ~SAVED_HOOKS
        name = executor.name
        if not isinstance(captured, Fallback):
            break
        reason = f"{name}: {captured.reason}"
        _fallbacks[reason] = _fallbacks.get(reason, 0) + 1
    else:
        raise RuntimeError("no executor ran the graph")
    _runs[name] = _runs.get(name, 0) + 1
    if inputs is None or accumulate_grad:
        return ()
    if not allow_unreachable:
        for index, grad in enumerate(captured):
            if grad is None:
                raise noted(
                    RuntimeError(
                        f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
                        "Set allow_unused=True if this is the desired behavior."
                    )
                )
    return captured
