"""Calls whose signature has come before: nothing is checked or laid out again, and views enter the program that reads them.

The inline path of a generated function takes whole tensors and numbers; a call with views, sequences of tensors or several
results comes here when its modes are the default ones, and goes to `dispatch` where anything is new or unusual.

- A pointwise kernel reads a view as part of its loop: no copy is made, and the bits are the same.
- Another kernel has its views read within its program, apart (see `apart.py`), from the third call of its signature on.

A view is read inside a kernel once per version: whoever reads it again has its values made, which are then kept. So are
those that a derivative saves, which the program returns besides its result. A pointwise write to a view that autograd does
not follow reads, computes and writes in one program, which reuses the buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import devices, lowering
from ..engine.modes import state
from ..number_arrays import NUMBER_ARRAYS, operand
from ..storage import MetaArray, Storage
from ..tensor import Tensor, View, array_of, asks_grad, read_view, recipe_of, wrap, wrap_strided
from ..x64 import call, jit
from . import dispatch
from .apart import apart
from .write import bump, check_writable, fit_result

if TYPE_CHECKING:
    from .declare import Operator

__all__ = ["fresh", "run_known", "run_known_inplace"]

LIMIT = 4096
"""Signatures kept per operator."""
SCALARS = dispatch.SCALARS
SEQUENCES = (list, tuple)
HOT = 2
"""Calls after which a kernel that is not pointwise gets a program that reads its views."""


def fresh(storage: Storage, view: View) -> Any:
    """The values of a view that are there without running anything."""
    if view.cached_at == storage.writes:
        return view.cached
    if recipe_of(storage, view).identity:
        return storage.array
    raise LookupError


def run_known(op: Operator, values: tuple[Any, ...]) -> Any:
    """A call in the default modes, one value per parameter; None where the complete path must answer."""
    try:
        return _run(op, values)
    except Exception:
        # The complete path finds the error again, and says it in PyTorch's words.
        return None


def _run(op: Operator, values: tuple[Any, ...]) -> Any:
    key = tuple([values[i] for i in op.static_indices])
    operands = [values[i] for i in op.indices]
    saved: Any = None
    if not state.mode and op.rules.differentiable and any(map(_asks, operands)):
        saved = op.rules.saved
    # What the program and its result's layout depend on; the program's arguments, how each is read, and where views begin.
    signature: list[Any] = [key]
    flat: list[Any] = []
    recipes: list[Any] = []
    offsets: list[Any] = []
    # The views that the program reads, with their places among the arguments; those whose values it returns.
    viewed: list[tuple[View, int, int]] = []
    wanted: list[int] = []
    nested = False
    for at, parameter in enumerate(op.runtime):
        value = operands[at]
        if value is None or type(value) in SCALARS:
            value = operands[at] = _number(parameter, value)
            signature.append(None if value is None else type(value))
            flat.append(None if value is None else NUMBER_ARRAYS[type(value), value])
            recipes.append(None)
            continue
        if parameter.kind == "Arrays":
            if type(value) not in SEQUENCES:
                return None
            nested = True
            value = operands[at] = list(value)
            signature.append(len(value))
        elif parameter.kind == "Number":
            return None
        else:
            value = (value,)
        for tensor in value:
            view, storage = tensor._view, tensor._storage
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
                    elif view.fused_at == storage.writes:
                        array, recipe = read_view(storage, view), None
                    else:
                        if saved is not None and parameter.name in saved:
                            wanted.append(len(flat))
                        viewed.append((view, storage.writes, len(flat)))
                        if not recipe.static:
                            offsets.append(operand(view.offset))
                signature += (recipe, view.sizes, view.strides)
            flat.append(array)
            recipes.append(recipe)
    signature += wanted
    mark = tuple(signature)
    found = op.known.get(mark)
    if type(found) is not tuple:
        if viewed and op.kind != "pointwise" and (found or 0) < HOT:
            op.known[mark] = (found or 0) + 1
            return None
        found = _learn(op, mark, values, key, operands, (flat, recipes, viewed, wanted))
        if found is None:
            return None
    program, layout, lengths = found
    if viewed:
        arguments = [*flat, *offsets]
        plain = not offsets or type(offsets[0]) is not int
        results, reads = program(*arguments) if plain else call(program, *arguments)
        made = dict(zip(wanted, reads, strict=True))
        for view, writes, place in viewed:
            view.fused_at = writes
            if place in made:
                view.cached, view.cached_at = made[place], writes
    else:
        results = program(*(nest(flat, lengths) if nested else flat))
    if op.single:
        tensor = wrap(results) if layout is None else wrap_strided(results, layout[0], layout[1])
        tensors = [tensor]
    else:
        tensors = [wrap(r) for r in results]
        tensor = op.returns(*tensors) if op.returns is not None else tuple(tensors)
    if saved is not None:
        arrays = [[_known(t) for t in v] if type(v) is list else _known(v) for v in operands]
        dispatch.record(op, key, operands, arrays, tensors)
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
    op: Operator,
    mark: Any,
    values: tuple[Any, ...],
    key: Any,
    operands: list[Any],
    read: tuple[Any, Any, Any, Any],
) -> tuple[Any, Any, Any] | None:
    """The program for a signature, its result's layout and the lengths of sequences; None where arguments change on their way."""
    checked, checked_key = dispatch.prepare(op, values)
    if checked_key != key or not all(map(_same, checked, operands)):
        return None
    if len(op.known) >= LIMIT:
        op.known.clear()
    layout = dispatch.result_layout(operands) if op.kind == "pointwise" and op.single else None
    order = None if layout is None else layout[2]
    lengths = tuple([len(v) if type(v) is list else None for v in operands])
    flat, recipes, viewed, wanted = read
    if viewed:
        on_cpu = devices.of_array(flat[viewed[0][2]]).type == "cpu"
        program = reading_program(op, key, order, tuple(recipes), lengths, tuple(wanted), on_cpu)
    else:
        program = op.program(key) if order is None else op.permuted_program(key, order)
    found = op.known[mark] = (program, layout, lengths)
    return found


def reading_program(
    op: Operator,
    key: tuple[Any, ...],
    order: tuple[int, ...] | None,
    recipes: tuple[Any, ...],
    lengths: tuple[int | None, ...],
    wanted: tuple[int, ...],
    on_cpu: bool,
) -> Callable[..., Any]:
    """The program that reads views by itself: its results, and the values of the views that are wanted."""
    name = ("reading", key, (recipes, lengths, wanted, order, on_cpu))
    found = op.variants.get(name)
    if found is not None:
        return found
    pointwise = op.kind == "pointwise"
    kernel = (op.traced(key) if order is None else op.permuted(key, order)) if pointwise else op.program(key)

    def read(recipe: Any, value: Any, offsets: Any) -> Any:
        if recipe is None:
            return value
        offset = 0 if recipe.static else next(offsets)
        return (lowering.read if pointwise else _read_apart)(recipe, value, offset)

    def run(*values: Any) -> Any:
        offsets = iter(values[len(recipes) :])
        flat = [read(r, v, offsets) for r, v in zip(recipes, values, strict=False)]
        return kernel(*nest(flat, lengths)), [flat[i] for i in wanted]

    def reading(*values: Any) -> Any:
        return run(*values) if pointwise or not on_cpu else apart(run, values)

    reading.__name__ = reading.__qualname__ = op.name
    found = op.variants[name] = jit(reading)
    return found


def nest(flat: Sequence[Any], lengths: Sequence[int | None]) -> list[Any]:
    """The arguments of a program from its arrays: of these sequences, one after the other."""
    rest = iter(flat)
    return [next(rest) if n is None else tuple([next(rest) for _ in range(n)]) for n in lengths]


def _read_apart(recipe: Any, base: Any, offset: Any) -> Any:
    return lowering.read_program(recipe)(base, offset)


def _asks(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(asks_grad(t) for t in value)
    return isinstance(value, Tensor) and asks_grad(value)


def _known(value: Any) -> Any:
    """The values of an operand, or of one that nobody needs the recipe, which has its shape and dtype."""
    if not isinstance(value, Tensor):
        return value
    view, storage = value._view, value._storage
    if view is None:
        return storage.array
    if view.cached_at == storage.writes:
        return view.cached
    recipe = recipe_of(storage, view)
    return storage.array if recipe.identity else recipe


def _same(checked: Any, given: Any) -> bool:
    if type(given) is list:
        return all(a is b for a, b in zip(checked, given, strict=True))
    return checked is given


def run_known_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    """An in-place call in the default modes on a view, which autograd does not follow; else None."""
    try:
        return _run_inplace(op, values)
    except Exception:
        return None


def _run_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    target = values[0]
    view, storage, meta = target._view, target._storage, target._meta
    if view is None or op.kind != "pointwise" or not op.single or (meta is not None and meta.inference):
        return None
    operands = [values[i] for i in op.indices]
    if not state.mode and any(map(_asks, operands)):
        return None
    recipe = recipe_of(storage, view)
    key = tuple([values[i] for i in op.static_indices])
    signature: list[Any] = [key, recipe, view.strides]
    arrays: list[Any] = []
    for at, parameter in enumerate(op.runtime[1:], 1):
        value = operands[at]
        if value is None or type(value) in SCALARS:
            value = operands[at] = _number(parameter, value)
            signature.append(None if value is None else type(value))
            arrays.append(None if value is None else NUMBER_ARRAYS[type(value), value])
        elif parameter.kind == "Number" or value._storage is storage:
            return None
        else:
            signature.append(Tensor)
            arrays.append(array_of(value))
    donate = storage.sole_owner()
    mark = ("inplace", donate, *signature)
    program = op.known.get(mark)
    if program is None:
        checked, checked_key = dispatch.prepare(op, values)
        if checked_key != key or not all(map(_same, checked, operands)):
            return None
        check_writable(target)
        program = op.known[mark] = writing_program(op, key, recipe, donate)
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
