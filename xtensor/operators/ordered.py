"""Calls whose result lies in memory in another order than row-major."""

from __future__ import annotations

from typing import Any

from .. import geometry
from ..engine import modes
from ..storage import MetaArray
from ..tensor import Tensor, wrap_strided
from . import dispatch
from .arguments import prepare
from .operator import Operator

__all__ = ["run_like", "run_ordered"]


def run_ordered(
    op: Operator,
    values: tuple[Any, ...],
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    memory: tuple[int, ...],
) -> Tensor:
    """Call `op`; its result, of these sizes, has these strides, `memory` listing its dimensions from the slowest."""
    runtime, key = prepare(op, values)
    arrays = [dispatch.arrays_of(v) for v in runtime]
    if dispatch.has_meta(arrays):
        made: Any = MetaArray(tuple([sizes[d] for d in memory]), arrays[0].dtype)
    else:
        made = dispatch.invoke(op, op.permuted_program(key, memory), arrays)
    result = wrap_strided(made, sizes, strides)
    if not modes.state.mode & modes.NO_GRAD and op.rules.differentiable:
        dispatch.record(op, key, runtime, arrays, [result])
    return result


def run_like(op: Operator, values: tuple[Any, ...]) -> Tensor:
    """Call `op`, whose result has the sizes of its first argument, and its order in memory: a changed clone."""
    view = values[0]._xt_view
    if view is not None:
        strides = geometry.preserve_strides(view.sizes, view.strides)
        if strides != geometry.contiguous_strides(view.sizes):
            return run_ordered(op, values, view.sizes, strides, dispatch.memory_order(view.sizes, strides))
    return op.call(values)
