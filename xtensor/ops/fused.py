"""Views that enter the kernel which reads them: a pointwise operator on strided operands is one program, and copies nothing.

A view is read inside a kernel once per version; whoever reads it again has its values made, which are then kept. An
operand that the derivative needs is made at once. Only pointwise kernels read views themselves: they compute the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import lowering
from ..engine.modes import state
from ..number_arrays import NUMBER_ARRAYS, operand
from ..storage import MetaArray, Storage
from ..tensor import Tensor, View, asks_grad, read_view, recipe_of, wrap, wrap_strided
from ..x64 import call, jit
from . import dispatch

if TYPE_CHECKING:
    from jax import Array

    from .declare import Operator

__all__ = ["fresh", "run_fused"]

LIMIT = 4096
"""Signatures kept per operator."""


def fresh(storage: Storage, view: View) -> Any:
    """The values of a view that are there without running anything."""
    if view.cached_at == storage.writes:
        return view.cached
    if recipe_of(storage, view).identity:
        return storage.array
    raise LookupError


def run_fused(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    """A call in the default modes, one value per parameter; None where it is not one of views, or not a plain one."""
    try:
        return _run(op, values)
    except Exception:
        # The complete path finds the error, and says it in PyTorch's words.
        return None


def _run(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    recording = not state.mode and op.rules.differentiable and not op.boolean
    runtime = [values[i] for i in op.indices]
    if not any(isinstance(v, Tensor) and v._view is not None for v in runtime):
        return None
    kept: Any = ()
    if recording:
        if any(isinstance(v, Tensor) and asks_grad(v) for v in runtime):
            kept = op.rules.saved
        else:
            recording = False
    key = tuple([values[i] for i in op.static_indices])
    signature: list[Any] = [key]
    recipes: list[Any] = []
    arguments: list[Any] = []
    offsets: list[Any] = []
    arrays: list[Any] = []
    viewed: list[tuple[View, int]] = []
    for parameter, value in zip(op.runtime, runtime, strict=True):
        if isinstance(value, Tensor):
            view, storage = value._view, value._storage
            array = storage.array
            if type(array) is MetaArray:
                return None
            recipe = None
            if view is None:
                signature.append(array.shape)
            else:
                if view.cached_at == storage.writes:
                    array = view.cached
                else:
                    recipe = recipe_of(storage, view)
                    if recipe.identity:
                        recipe = None
                    elif view.fused_at == storage.writes or parameter.name in kept:
                        array, recipe = read_view(storage, view), None
                    else:
                        viewed.append((view, storage.writes))
                        if not recipe.static:
                            offsets.append(operand(view.offset))
                signature += (recipe, view.sizes, view.strides)
            recipes.append(recipe)
            arguments.append(array)
            arrays.append(array if recipe is None else recipe)
        else:
            number = _number(parameter, value)
            signature.append(None if number is None else type(value))
            recipes.append(None)
            arguments.append(number)
            arrays.append(None if number is None else value)
    for view, writes in viewed:
        view.fused_at = writes
    at = tuple(signature)
    found = op.fused.get(at)
    if found is None:
        checked, key_checked = dispatch.prepare(op, values)
        if key_checked != key or any(
            a is not b for a, b in zip(checked, runtime, strict=True) if a is not None
        ):
            return None
        if len(op.fused) >= LIMIT:
            op.fused.clear()
        layout = dispatch.result_layout(runtime)
        order = None if layout is None else layout[2]
        found = op.fused[at] = (fused_program(op, key, tuple(recipes), order), layout)
    program, layout = found
    result = call(program, *arguments, *offsets)
    tensor = wrap(result) if layout is None else wrap_strided(result, layout[0], layout[1])
    if recording:
        operands = [v if isinstance(v, Tensor) else a for v, a in zip(runtime, arrays, strict=True)]
        dispatch.record(op, key, operands, arrays, [tensor])
    return tensor


def _number(parameter: Any, value: Any) -> Array | None:
    """A Python number as the complete path would pass it; None stands for a default, or for nothing."""
    default = parameter.default
    if value is None:
        if parameter.optional:
            return None
        raise LookupError
    if type(value) not in dispatch.SCALARS:
        raise LookupError
    if (
        parameter.kind == "Number"
        and default is not None
        and type(default) in dispatch.SCALARS
        and value == default
    ):
        return None
    return NUMBER_ARRAYS[type(value), value]


def fused_program(
    op: Operator, key: tuple[Any, ...], recipes: tuple[Any, ...], order: tuple[int, ...] | None
) -> Callable[..., Any]:
    """The kernel that reads the operands which have a recipe by themselves; its result lies in memory by `order`."""
    name = ("fused", key, (recipes, order))
    found = op.variants.get(name)
    if found is not None:
        return found
    run = op.traced(key) if order is None else op.permuted(key, order)

    def fused(*values: Any) -> Any:
        offsets = iter(values[len(recipes) :])
        return run(
            *[
                v if r is None else lowering.read(r, v, 0 if r.static else next(offsets))
                for v, r in zip(values[: len(recipes)], recipes, strict=True)
            ]
        )

    fused.__name__ = fused.__qualname__ = op.name
    found = op.variants[name] = jit(fused)
    return found
