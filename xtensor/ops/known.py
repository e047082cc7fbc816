"""Calls whose signature has come before: nothing is checked or laid out again, and views enter the kernels that read them.

The inline path of a generated function takes whole tensors and numbers; a pointwise call with views comes here when its
modes are the default ones, and goes to `dispatch` where anything is new or unusual.

A pointwise kernel reads a view as part of its loop, as PyTorch's do: no copy is made, and since moving data rounds nothing the
bits are the same. What a derivative saves, and what is reached in roundabout ways only, is read first and kept. A pointwise
write to a view that autograd does not follow reads, computes and writes in one program, which reuses the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import lowering
from ..engine.modes import state
from ..number_arrays import NUMBER_ARRAYS, operand
from ..storage import MetaArray, Storage
from ..tensor import Tensor, View, array_of, asks_grad, read_view, recipe_of, wrap, wrap_strided
from ..x64 import call, jit
from . import dispatch
from .write import bump, check_writable, fit_result

if TYPE_CHECKING:
    from .declare import Operator

__all__ = ["fresh", "run_known", "run_known_inplace"]

LIMIT = 4096
"""Signatures kept per operator."""
DIRECT = ("reshape", "digits")
"""The kinds of views that a kernel reads by itself; the others take many elements for one."""
SCALARS = dispatch.SCALARS
SEQUENCES = (list, tuple)


def fresh(storage: Storage, view: View) -> Any:
    """The values of a view that are there without running anything."""
    if view.cached_at == storage.writes:
        return view.cached
    if recipe_of(storage, view).identity:
        return storage.array
    raise LookupError


def run_known(op: Operator, values: tuple[Any, ...]) -> Any:
    """A pointwise call in the default modes, one value per parameter; None where the complete path must answer."""
    try:
        return _run(op, values)
    except Exception:
        # The complete path finds the error again, and says it in PyTorch's words.
        return None


def _run(op: Operator, values: tuple[Any, ...]) -> Any:
    key = tuple([values[i] for i in op.static_indices])
    if dispatch.is_odd(op, key):
        return None
    operands = [values[i] for i in op.indices]
    saved: Any = None
    if not state.mode and op.rules.differentiable and any(map(_asks, operands)):
        saved = op.rules.saved
    # What the program and its result's layout depend on; the program's arguments, how each is read, and where views begin.
    signature: list[Any] = [key]
    arrays: list[Any] = []
    recipes: list[Any] = []
    offsets: list[Any] = []
    for at, parameter in enumerate(op.runtime):
        value = operands[at]
        recipe = None
        if value is None or type(value) in SCALARS:
            value = operands[at] = _number(parameter, value)
            signature.append(None if value is None else type(value))
            arrays.append(None if value is None else NUMBER_ARRAYS[type(value), value])
        elif parameter.kind == "Number":
            return None
        else:
            view, storage = value._view, value._storage
            array = storage.array
            if type(array) is MetaArray:
                return None
            if view is None:
                signature.append(array.shape)
            else:
                if view.cached_at == storage.writes:
                    array = view.cached
                else:
                    recipe = recipe_of(storage, view)
                    if recipe.identity:
                        recipe = None
                    elif recipe.kind not in DIRECT or (saved is not None and parameter.name in saved):
                        array, recipe = read_view(storage, view), None
                    elif not recipe.static:
                        offsets.append(operand(view.offset))
                signature += (recipe, view.sizes, view.strides)
            arrays.append(array)
        recipes.append(recipe)
    mark = tuple(signature)
    found = op.known.get(mark)
    if found is None:
        found = _learn(op, mark, values, key, operands, tuple(recipes))
        if found is None:
            return None
    program, layout = found
    # Ints need the 64-bit types that `call` turns on; arrays have theirs.
    plain = not offsets or type(offsets[0]) is not int
    results = program(*arrays, *offsets) if plain else call(program, *arrays, *offsets)
    tensor = wrap(results) if layout is None else wrap_strided(results, layout[0], layout[1])
    if saved is not None:
        # Of an operand that is not saved only shape and dtype are asked for, which a recipe has too.
        seen = [
            r if r is not None else a if isinstance(o, Tensor) else o
            for o, a, r in zip(operands, arrays, recipes, strict=True)
        ]
        dispatch.record(op, key, operands, seen, [tensor])
    return tensor


def _number(parameter: Any, value: Any) -> Any:
    """A Python number or None, as the complete path would pass it: None also stands for a default."""
    if value is None:
        if not parameter.optional:
            raise LookupError
    elif parameter.kind == "Number":
        if type(parameter.default) in SCALARS and value == parameter.default:
            return None
    elif parameter.kind != "Operand":
        raise LookupError
    return value


def _learn(
    op: Operator, mark: Any, values: tuple[Any, ...], key: Any, operands: list[Any], recipes: tuple[Any, ...]
) -> tuple[Any, Any] | None:
    """The program for a signature, and its result's layout; None where arguments change on their way."""
    if not _check(op, values, key, operands):
        return None
    layout = dispatch.result_layout(operands)
    order = None if layout is None else layout[2]
    if any(r is not None for r in recipes):
        program = reading_program(op, key, recipes, order)
    else:
        program = op.program(key) if order is None else op.permuted_program(key, order)
    found = op.known[mark] = (program, layout)
    return found


def _check(op: Operator, values: tuple[Any, ...], key: Any, operands: list[Any]) -> bool:
    """Whether the complete path's checks leave the arguments as they are; makes room for one more signature."""
    if len(op.known) >= LIMIT:
        op.known.clear()
    checked, checked_key = dispatch.prepare(op, values)
    return checked_key == key and all(map(_same, checked, operands))


def reading_program(
    op: Operator, key: tuple[Any, ...], recipes: tuple[Any, ...], order: tuple[int, ...] | None
) -> Callable[..., Any]:
    """The kernel that reads the operands which have a recipe by itself, in the order in which its result lies in memory."""
    name = ("reading", key, (recipes, order))
    found = op.variants.get(name)
    if found is not None:
        return found
    run = op.traced(key)

    def reading(*values: Any) -> Any:
        offsets = iter(values[len(recipes) :])
        return run(
            *[
                in_order(v, order)
                if r is None
                else read_in_order(r, v, 0 if r.static else next(offsets), order)
                for v, r in zip(values, recipes, strict=False)
            ]
        )

    reading.__name__ = reading.__qualname__ = op.name
    found = op.variants[name] = jit(reading)
    return found


def in_order(array: Any, order: tuple[int, ...] | None) -> Any:
    """An operand with its dimensions as they lie in the memory of the result."""
    if order is None or array is None or array.ndim == 0:
        return array
    return lowering.transpose(array.reshape((1,) * (len(order) - array.ndim) + array.shape), order)


def read_in_order(recipe: Any, base: Any, offset: Any, order: tuple[int, ...] | None) -> Any:
    """`in_order` of a view's values: where the view has the result's order, nothing is transposed."""
    if order is None or len(recipe.sizes) == len(order):
        return lowering.read(recipe, base, offset, order)
    return in_order(lowering.read(recipe, base, offset), order)


def _asks(value: Any) -> bool:
    if type(value) in SEQUENCES:
        return any(map(asks_grad, value))
    return isinstance(value, Tensor) and asks_grad(value)


def _same(checked: Any, given: Any) -> bool:
    if type(given) is list:
        return all(a is b for a, b in zip(checked, given, strict=True))
    return checked is given


def run_known_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    """An in-place call in the default modes, which autograd does not follow; else None."""
    try:
        return _run_inplace(op, values)
    except Exception:
        return None


def _run_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    target = values[0]
    view, storage, meta = target._view, target._storage, target._meta
    if not op.single or (meta is not None and meta.inference):
        return None
    recipe: Any = None
    signature: list[Any] = []
    if view is not None:
        if op.kind != "pointwise":
            return None
        recipe = recipe_of(storage, view)
        signature += (recipe, view.strides)
    operands = [values[i] for i in op.indices]
    if not state.mode and any(map(_asks, operands)):
        return None
    key = tuple([values[i] for i in op.static_indices])
    if dispatch.is_odd(op, key):
        return None
    arrays: list[Any] = []
    for at, parameter in enumerate(op.runtime[1:], 1):
        value = operands[at]
        if value is None or type(value) in SCALARS:
            value = operands[at] = _number(parameter, value)
            signature.append(None if value is None else type(value))
            arrays.append(None if value is None else NUMBER_ARRAYS[type(value), value])
        elif parameter.kind == "Number":
            return None
        elif type(value) in SEQUENCES:
            value = operands[at] = list(value)
            if any(t._storage is storage for t in value):
                return None
            signature.append(len(value))
            arrays.append(tuple([array_of(t) for t in value]))
        elif value._storage is storage:
            return None
        else:
            signature.append(Tensor)
            arrays.append(array_of(value))
    donate = storage.sole_owner()
    mark = ("inplace", donate, key, *signature)
    program = op.known.get(mark)
    if program is None:
        if not _check(op, values, key, operands):
            return None
        check_writable(target)
        program = (
            op.inplace_program(key, donate) if view is None else writing_program(op, key, recipe, donate)
        )
        op.known[mark] = program
    if view is None:
        storage.replace(call(program, storage.array, *arrays))
    else:
        storage.replace(call(program, storage.array, operand(view.offset), *arrays))
    bump(target, op.name + "_")
    return target


def writing_program(op: Operator, key: tuple[Any, ...], recipe: Any, donate: bool) -> Callable[..., Any]:
    """The program that writes a view from its own values and the other arguments."""
    run = op.traced(key)

    def writing(base: Any, offset: Any, *values: Any) -> Any:
        old = lowering.read(recipe, base, offset)
        return lowering.write(recipe, base, offset, fit_result(run(old, *values), old.shape, old.dtype))

    writing.__name__ = writing.__qualname__ = op.name + "_"
    return jit(writing, donate_argnums=0 if donate else ())
