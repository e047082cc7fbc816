"""Calls whose signature has come before: nothing is checked or laid out again, and views enter the programs that read them.

The inline path of a generated function takes whole tensors, numbers, and views whose values are there; a call with other views
comes here when its modes are the default ones, and goes to `dispatch` where anything is new or unusual. How a program reads a
view, and what is kept of it, says `reading`. A pointwise write to a view that autograd does not follow reads, computes and
writes in one program, which reuses the buffer.
"""

from __future__ import annotations

from typing import Any

from ..engine.modes import state
from ..storage import MetaArray
from ..tensor import Tensor, array_of, asks_grad, recipe_of, wrap, wrap_strided
from ..xla.number_arrays import NUMBER_ARRAYS, operand
from ..xla.x64 import call
from . import dispatch
from .operator import Operator
from .reading import Form, Read, operand_of, reading_program, writing_program
from .write import bump, check_writable

__all__ = ["run_known", "run_known_inplace"]

LIMIT = 4096
"""Signatures kept per operator."""
SCALARS = dispatch.SCALARS
SEQUENCES = (list, tuple)


def run_known(op: Operator, values: tuple[Any, ...]) -> Any:
    """A call in the default modes, one value per parameter; None where the complete path must answer."""
    try:
        return _run(op, values)
    except Exception:
        # The complete path finds the error again, and says it in PyTorch's words.
        return None


def _run(op: Operator, values: tuple[Any, ...]) -> Any:
    key = _key(op, values)
    if op.integral and dispatch.is_odd(op, key):
        return None
    operands = [values[i] for i in op.indices]
    asked = state.mode == 0 and op.rules.differentiable and True in map(_asks, operands)
    pointwise, folds, apart = op.kind == "pointwise", op.views == "fold", op.views == "apart"
    # What the program and its result's layout depend on; the program's arguments, how each is read, and where views begin.
    signature: list[Any] = [key]
    arrays: list[Any] = []
    recipes: list[Any] = []
    offsets: list[Any] = []
    # The tensors whose views are kept once read, each with its place among the arguments.
    kept: list[tuple[int, Tensor]] = []
    for at, value in enumerate(operands):
        if isinstance(value, Tensor):
            tensors: Any = (value,)
        elif type(value) in SEQUENCES:
            if op.runtime[at].kind != "Arrays":
                return None
            tensors = operands[at] = list(value)
            signature.append(len(tensors))
        else:
            value = operands[at] = _number(op.runtime[at], value)
            signature.append(None if value is None else type(value))
            arrays.append(None if value is None else NUMBER_ARRAYS[type(value), value])
            recipes.append(None)
            continue
        for tensor in tensors:
            view, storage = tensor._xt_view, tensor._xt_storage
            if view is None:
                array = storage.array
                recipes.append(None)
                signature.append(array.shape if pointwise else None)
            else:
                array, recipe = operand_of(tensor, folds)
                recipes.append(recipe)
                signature.append(recipe)
                if recipe is not None:
                    if not recipe.static:
                        offsets.append(operand(view.offset))
                    if apart or (asked and op.runtime[at].name in op.rules.saved):
                        kept.append((len(arrays), tensor))
                        signature.append(True)
                if pointwise:
                    signature += (view.sizes, view.strides)
            if type(array) is MetaArray:
                return None
            arrays.append(array)
    mark = tuple(signature)
    found = op.known.get(mark)
    if found is None:
        found = _learn(op, mark, values, key, operands, recipes, [at for at, _ in kept])
        if found is None:
            return None
    program, layout, reads = found
    # Ints need the 64-bit types that `call` turns on; arrays have theirs.
    plain = not offsets or type(offsets[0]) is not int
    results = program(*arrays, *offsets) if plain else call(program, *arrays, *offsets)
    if reads:
        results, read = results
        for (at, tensor), found in zip(kept, read):
            view: Any = tensor._xt_view
            arrays[at], recipes[at] = found, None
            view.cached, view.cached_at = found, tensor._xt_storage.writes
    if layout is not None:
        made = [wrap_strided(results, layout[0], layout[1])]
    else:
        made = [wrap(results)] if op.single else [wrap(r) for r in results]
    if asked:
        dispatch.record(op, key, operands, _seen(operands, arrays, recipes), made)
    return dispatch.handed(op, made)


def _key(op: Operator, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not op.static_indices:
        return ()
    return tuple([tuple(v) if type(v := values[i]) is list else v for i in op.static_indices])


def _seen(operands: list[Any], arrays: list[Any], recipes: list[Any]) -> list[Any]:
    """What `record` takes for each operand: of what is not saved only shape and dtype are asked for, which a recipe has too."""
    flat = iter([a if r is None else r for a, r in zip(arrays, recipes, strict=True)])
    seen: list[Any] = []
    for o in operands:
        if type(o) is list:
            seen.append(tuple([next(flat) for _ in o]))
        else:
            array = next(flat)
            seen.append(array if isinstance(o, Tensor) else o)
    return seen


def _number(parameter: Any, value: Any) -> Any:
    """A Python number or None, as the complete path would pass it: None also stands for a default."""
    if value is not None and type(value) not in SCALARS:
        raise LookupError
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
    op: Operator,
    mark: Any,
    values: tuple[Any, ...],
    key: Any,
    operands: list[Any],
    recipes: list[Any],
    kept: list[int],
) -> tuple[Any, Any, bool] | None:
    """The program for a signature, its result's layout, and whether it reads; None where arguments change on their way."""
    if not _check(op, values, key, operands):
        return None
    layout = dispatch.result_layout(operands) if op.kind == "pointwise" else None
    order = None if layout is None else layout[2]
    reads = any(r is not None for r in recipes)
    if reads:
        how = [None if r is None else Read(r, at in kept) for at, r in enumerate(recipes)]
        lengths = tuple([len(o) if type(o) is list else -1 for o in operands])
        program = reading_program(op, key, Form(lengths, tuple(how)), order)
    elif any(type(o) is list for o in operands):
        return None
    else:
        program = op.program(key) if order is None else op.permuted_program(key, order)
    found = op.known[mark] = (program, layout, reads)
    return found


def _check(op: Operator, values: tuple[Any, ...], key: Any, operands: list[Any]) -> bool:
    """Whether the complete path's checks leave the arguments as they are; makes room for one more signature."""
    if len(op.known) >= LIMIT:
        op.known.clear()
    checked, checked_key = dispatch.prepare(op, values)
    return (
        list(map(type, checked_key)) == list(map(type, key))
        and checked_key == key
        and all(map(_same, checked, operands))
    )


def _asks(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._xt_edge is not None or (value._xt_view is not None and asks_grad(value))
    return type(value) in SEQUENCES and any(map(asks_grad, value))


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
    view, storage, meta = target._xt_view, target._xt_storage, target._xt_meta
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
    key = _key(op, values)
    if dispatch.is_odd(op, key):
        return None
    arrays: list[Any] = []
    reads: list[Read | None] = [None] * (len(operands) - 1)
    offsets: list[Any] = []
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
            if any(t._xt_storage is storage for t in value):
                return None
            signature.append(len(value))
            arrays.append(tuple([array_of(t) for t in value]))
        elif value._xt_storage is storage:
            return None
        elif op.kind == "pointwise":
            array, read = operand_of(value)
            if read is not None and not read.static:
                offsets.append(operand(value._xt_view.offset))
            signature += (Tensor, read)
            arrays.append(array)
            reads[at - 1] = None if read is None else Read(read, False)
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
        if view is None and not any(reads):
            program = op.inplace_program(key, donate)
        else:
            program = writing_program(op, key, recipe, tuple(reads), donate)
        op.known[mark] = program
    if view is not None:
        arrays.append(operand(view.offset))
    storage.replace(call(program, storage.array, *arrays, *offsets))
    bump(target, op.name + "_")
    return target
