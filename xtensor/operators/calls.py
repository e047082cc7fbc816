"""Calls that a generated function does not answer itself: at once where the signature has come before, else the complete way.

The inline path of a generated function takes whole tensors, numbers, and views whose values are there; every other call comes
here. In the default modes a signature that has come before is neither checked nor laid out again, and views enter the
programs that read them (how a program reads a view, and what is kept of it, says `reading`). A pointwise write to a view that
autograd does not follow reads, computes and writes in one program, which reuses the buffer.

A program that raises has run once: its error is the user's, but for arguments that no program takes as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .. import geometry
from ..engine import profiler
from ..engine.modes import FUNCTION_MODE, NO_GRAD, PROFILING, state
from ..host.numbers import THERE, HostNumber, exactly, held
from ..host.writes import host_room, write_host
from ..lowering import Recipe
from ..storage import UNREAD, HostValues, LazyStorage, MetaArray, Storage
from ..tensor import (
    ARRAY,
    Tensor,
    View,
    array_of,
    asks_grad,
    operands_array,
    recipe_of,
    sizes_of,
    wrap,
    wrap_strided,
)
from ..xla.number_arrays import NUMBER_ARRAYS, beside, operand
from ..xla.pending import Pending, settled
from ..xla.segments import READING, SINGLE, WRITING, prompt, waiter
from ..xla.x64 import call
from . import dispatch
from .arguments import SCALARS, is_odd, prepare
from .below.dispatching import asked_about, dispatching
from .operator import Operator
from .overriding import answer, arm, armed, claimed, overloaded, trimmed
from .reading import Form, Read, operand_of, packed_program, reading_program, writing_program
from .write import bump, check_writable, may_pend, promised, rewrite

__all__ = [
    "MISSED",
    "folded",
    "known",
    "known_inplace",
    "missed",
    "overridden",
    "recover",
    "run",
    "run_method",
]

MISSED = (AttributeError, LookupError, TypeError)
"""What the inline path of a generated function meets where it is not meant: no Tensor, no program yet, no key."""

SEQUENCES = (list, tuple)
RETRIES = 8


class Unusual(Exception):
    """A call that only the complete path can answer."""


def run(op: Operator, values: tuple[Any, ...], out: Any = None) -> Any:
    """Call `op` with one value per parameter of its schema; about a derivative's operator, which is no function, nobody is asked here."""
    if (armed or state.mode & FUNCTION_MODE) and op.function is not None:
        found = claimed((*values, out))
        if found is not None:
            return overridden(op, op.function, found, values, out)
    if state.mode & PROFILING:
        return profiled(op, values, out)
    if state.mode <= NO_GRAD and out is None and not (dispatching and asked_about(values)):
        if op.exact is not None:
            made = exactly(op.exact, values)
            if made is not None:
                return made
        try:
            made = known_alone(op, values)
            return known(op, values) if made is None else made
        except Unusual:
            pass
        except dispatch.CLEANED as error:
            raise dispatch.shortened(error)  # noqa: B904  # the error itself, less the frames between
    try:
        return complete(op, values, out)
    except dispatch.CLEANED as error:
        # What is no tensor at all may be one to its own class.
        if type(error) is TypeError and (found := overloaded((*values, out))) and not state.overrides_off:
            arm(type(found[0]))
            return overridden(op, op.function, found, values, out)
        raise dispatch.shortened(error)  # noqa: B904


def run_method(op: Operator, asked: str, reflected: bool, values: tuple[Any, ...]) -> Any:
    """`run` of a dunder that is asked about as the method `asked`."""
    if armed or state.mode & FUNCTION_MODE:
        found = claimed(values)
        if found is not None:
            own, other = values[1::-1] if reflected else values[:2]
            return answer(getattr(Tensor, asked), found, (own, other), {})
    return run(op, values)


def overridden(
    op: Operator, function: Any, found: list[Any], values: tuple[Any, ...], out: Any = None
) -> Any:
    """A call as who overrides it answers."""
    args, kwargs = trimmed(op.schema.parameters, values)
    return answer(function, found, args, kwargs if out is None else {**kwargs, "out": out})


def complete(op: Operator, values: tuple[Any, ...], out: Any = None) -> Any:
    """The complete path; again where another thread's write took an array away in its midst, which it can do once more or not at all."""
    for _ in range(RETRIES):
        try:
            return dispatch.complete(op, values, out)
        except RuntimeError as error:
            if not dispatch.is_gone(error):
                raise
    return dispatch.complete(op, values, out)


def profiled(op: Operator, values: tuple[Any, ...], out: Any) -> Any:
    """A call, seen by the profiler."""
    token = profiler.begin(op.name, shapes_of(values))
    nbytes = 0
    try:
        result = dispatch.complete(op, values, out)
        if out is None:
            made = (result,) if isinstance(result, Tensor) else result
            nbytes = sum(t._xt_storage.nbytes() for t in made)
            edge = made[0]._xt_edge if made else None
            if token is not None and type(edge) is tuple:
                token.sequence_nr = edge[0]._xt_sequence_nr
        return result
    finally:
        profiler.end(token, nbytes)


def shapes_of(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """The sizes of the tensors among arguments, for a profile."""
    tensors = [t for v in values for t in (v if type(v) in SEQUENCES else (v,)) if isinstance(t, Tensor)]
    return [tuple(sizes_of(t)) for t in tensors]


def missed(error: Exception) -> None:
    """Let an exception go on that a handler of signals raised, while the inline path was looking whether it is meant.

    The inline path's own way out, a bare LookupError, does not come here.
    """
    at: Any = error.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    if not at.tb_frame.f_globals["__name__"].startswith("xtensor.") and dispatch.is_handlers(error):
        raise error


def recover(op: Operator, error: Exception, values: tuple[Any, ...]) -> Any:
    """What a program raised that was called inline, as ours; the complete path answers where it could not take the arguments."""
    if dispatch.is_gone(error):
        return complete(op, values)
    if dispatch.is_unusual(values):
        return dispatch.complete(op, values)
    raise dispatch.clean(op, error) from None


def known(op: Operator, values: tuple[Any, ...]) -> Any:
    """A call in the default modes by what is kept of its signature, one value per parameter; Unusual where that cannot be."""
    key = _key(op, values)
    if (op.integral or op.booleans) and is_odd(op, key):
        raise Unusual
    operands = [values[i] for i in op.indices]
    asked = state.mode == 0 and op.rules.differentiable and not op.boolean and _asked(operands)
    pointwise = op.kind == "pointwise" if op.elementwise_at is None else op.is_elementwise(key)
    folds, apart = op.views == "fold", op.views == "apart"
    # What the program and its result's layout depend on; the program's arguments, how each is read, and where views begin.
    signature: list[Any] = [key]
    arrays: list[Any] = []
    recipes: list[Any] = []
    offsets: list[Any] = []
    # The tensors whose views are kept once read, each with its place among the arguments.
    kept: list[tuple[int, Tensor]] = []
    # Where numbers are that stand in no array: on the device of the others there may be one.
    loose: list[int] = []
    for at, value in enumerate(operands):
        if value is None:
            if not op.runtime[at].optional:
                raise Unusual
            signature.append(None)
            arrays.append(None)
            recipes.append(None)
            continue
        if isinstance(value, Tensor):
            tensors: Any = (value,)
        elif type(value) in SEQUENCES:
            if op.runtime[at].kind != "Arrays" or not all(isinstance(v, Tensor) for v in value):
                raise Unusual
            tensors = operands[at] = list(value)
            signature.append(len(tensors))
        else:
            value = operands[at] = _number(op.runtime[at], value)
            signature.append(None if value is None else type(value))
            try:
                array = None if value is None else NUMBER_ARRAYS[type(value), value]
            except LookupError:
                array = value
                loose.append(len(arrays))
            arrays.append(array)
            recipes.append(None)
            continue
        for tensor in tensors:
            view, storage = tensor._xt_view, tensor._xt_storage
            if view is None:
                array = storage.operand
                recipes.append(None)
                signature.append(array.shape if pointwise else None)
            elif op.formats and geometry.channels_last_order(view.sizes, view.strides) is not None:
                raise Unusual
            else:
                array, recipe = operand_of(tensor, folds)
                recipes.append(recipe)
                signature.append(recipe)
                if recipe is not None:
                    if not recipe.static:
                        offsets.append(view.offset)
                    if apart or (asked and op.runtime[at].name in op.rules.saved):
                        kept.append((len(arrays), tensor))
                        signature.append(True)
                if pointwise:
                    signature += (view.sizes, view.strides)
            if type(array) in UNREAD and isinstance(array, MetaArray):
                raise Unusual
            arrays.append(array)
    if loose:
        arrays = beside(arrays)
        if any(type(arrays[i]) in SCALARS for i in loose):
            raise Unusual
    packed = len(offsets) >= PACKED and _of_one(arrays, offsets)
    if packed:
        signature.append("packed")
    mark = tuple(signature)
    try:
        found = op.known.get(mark)
    except TypeError:
        raise Unusual from None
    if found is None:
        found = _learn(op, mark, values, key, operands, recipes, [at for at, _ in kept], packed)
    program, layout, reads = found
    try:
        if packed:
            results = call(program, arrays[0], np.array(offsets, np.int64))
        elif offsets:
            offsets = [operand(offset, arrays[0]) for offset in offsets]
            # Ints need the 64-bit types that `call` turns on; arrays have theirs.
            plain = type(offsets[0]) is not int
            results = program(*arrays, *offsets) if plain else call(program, *arrays, *offsets)
        else:
            results = program(*arrays)
    except Exception as error:
        if dispatch.is_gone(error) or dispatch.is_unusual(operands):
            raise Unusual from None
        raise dispatch.clean(op, error) from None
    if op.refuses is not None and None not in key:
        op.refuses(*operands)
    if reads:
        results, read = results
        for (at, tensor), found in zip(kept, read):
            view: Any = tensor._xt_view
            arrays[at], recipes[at] = found, None
            view.cached, view.cached_at = found, tensor._xt_storage.writes
    if layout is not None:
        made = [wrap_strided(results, layout[0], layout[1])]
    else:
        made = dispatch.made_of(op, key, results, operands)
    if asked:
        dispatch.record(op, key, operands, _seen(operands, arrays, recipes), made)
    return dispatch.handed(op, made)


def known_alone(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    """`known` of single tensors and numbers, whose signature has come before; None for every other call."""
    if op.refuses is not None or op.alone is None:
        return None
    key = _key(op, values)
    pointwise = op.kind == "pointwise" if op.elementwise_at is None else op.is_elementwise(key)
    views, graph = op.views, None
    if state.mode == 0 and op.rules.differentiable and not op.boolean:
        for at, _ in op.alone:
            value = values[at]
            if type(value) is Tensor and (value._xt_edge is not None or asks_grad(value)):
                graph = op.graph or op.draw()
                if graph is None:
                    return None
                break
    # As `known` has them; seen: of each argument its array, or how it is read where its values are not kept.
    signature: list[Any] = [key]
    arrays: list[Any] = []
    offsets: list[Any] = []
    kept: list[Any] = []
    seen: list[Any] = []
    try:
        for at, parameter in op.alone:
            value = values[at]
            if type(value) is Tensor:
                view, storage = value._xt_view, value._xt_storage
                how = array = storage.raw
                # Another class of storage looks after its array: it may be shared, or pending.
                if type(array) is HostNumber or type(array) is HostValues:
                    how = array = storage.operand
                elif type(storage) is not Storage or type(array) is not ARRAY:
                    return None
                if view is None:
                    signature.append(array.aval.shape if pointwise else None)
                else:
                    if op.formats and geometry.channels_last_order(view.sizes, view.strides) is not None:
                        return None
                    recipe = view.recipe
                    if recipe is None:
                        recipe = recipe_of(storage, view)
                    if view.cached_at == storage.writes and views != "fold":
                        how = array = view.cached
                        if type(array) is not ARRAY:
                            return None
                        signature.append(None)
                    elif recipe.direct:
                        how = recipe
                        signature.append(recipe)
                        if not recipe.static:
                            offsets.append(operand(view.offset, array))
                        if views == "apart" or (graph is not None and parameter.name in op.rules.saved):
                            kept.append((len(seen), value))
                            signature.append(True)
                    elif recipe.identity:
                        signature.append(None)
                    else:
                        return None
                    if pointwise:
                        signature += (view.sizes, view.strides)
            elif value is None and not parameter.optional:
                return None
            else:
                value = None if value is None else _number(parameter, value)
                signature.append(None if value is None else type(value))
                how = array = None if value is None else NUMBER_ARRAYS[type(value), value]
            arrays.append(array)
            seen.append(how)
        if len(offsets) >= PACKED or ((op.integral or op.booleans) and is_odd(op, key)):
            return None
        program, layout, reads = op.known[tuple(signature)]
        if layout is not None and graph is not None:
            return None
    except Unusual:
        return None
    except MISSED as error:
        missed(error)
        return None
    # Ints need the 64-bit types that `call` turns on; arrays have theirs.
    plain = not offsets or type(offsets[0]) is not int
    try:
        results = program(*arrays, *offsets) if plain else call(program, *arrays, *offsets)
    except Exception as error:
        if dispatch.is_gone(error) or dispatch.is_unusual(values):
            return None
        raise dispatch.clean(op, error) from None
    if reads:
        results, found = results
        for (at, tensor), array in zip(kept, found):
            view: Any = tensor._xt_view
            view.cached, view.cached_at = array, tensor._xt_storage.writes
            seen[at] = array
    made = wrap(results) if layout is None else wrap_strided(results, layout[0], layout[1])
    if graph is not None:
        graph(values, key, seen, made)
    elif views == "fold" and reads and len(seen) == 1 and type(seen[0]) is Recipe:
        others = values[1:]
        kinds = tuple(map(type, others))
        if layout is None and not kept and FLAT.issuperset(kinds):
            op.known[seen[0], others, kinds] = program
    return made


def folded(op: Operator, values: tuple[Any, ...]) -> Tensor | None:
    """`known_alone` of an operator that folds a view, the first argument, which no graph follows; None for what has not come before."""
    tensor = values[0]
    view, storage = tensor._xt_view, tensor._xt_storage
    array = storage.raw
    if type(view) is not View or type(storage) is not Storage or type(array) is not ARRAY:
        return None
    if state.mode == 0 and asks_grad(tensor):
        return None
    recipe = view.recipe
    if recipe is None:
        recipe = recipe_of(storage, view)
    others = values[1:]
    try:
        program = op.known[recipe, others, tuple(map(type, others))]
    except (LookupError, TypeError):
        return None
    try:
        if recipe.static:
            results, _ = program(array)
        else:
            offset = operand(view.offset, array)
            # Ints need the 64-bit types that `call` turns on; arrays have theirs.
            results, _ = program(array, offset) if type(offset) is not int else call(program, array, offset)
    except Exception as error:
        if dispatch.is_gone(error) or dispatch.is_unusual(values):
            return None
        raise dispatch.clean(op, error) from None
    return wrap(results)


FLAT = frozenset((int, bool, type(None)))
"""Arguments that are the same for whom they are equal and of one type."""

PACKED = 6
"""From so many views of one array on they are given as one: each argument costs as much as a small copy."""
INTS = {int}


def _of_one(arrays: list[Any], offsets: list[Any]) -> bool:
    """Whether all operands are views of one array."""
    first = arrays[0]
    return (
        len(offsets) == len(arrays)
        and type(first) is ARRAY
        and len(set(map(id, arrays))) == 1
        and set(map(type, offsets)) == INTS
    )


def number_array(value: Any) -> Any:
    try:
        return NUMBER_ARRAYS[type(value), value]
    except LookupError:
        raise Unusual from None


def _key(op: Operator, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not op.static_indices:
        return ()
    return tuple([tuple(v) if type(v := values[i]) is list else v for i in op.static_indices])


def _foreign(value: Any) -> bool:
    """Whether a static argument is, or holds, a number of NumPy's or a tensor, which the complete path makes Python's."""
    return isinstance(value, (np.generic, Tensor)) or (type(value) is tuple and any(map(_foreign, value)))


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
        raise Unusual
    if value is None:
        if not parameter.optional:
            raise Unusual
    elif parameter.kind == "Number":
        if type(parameter.default) in SCALARS and value == parameter.default:
            return None
    elif parameter.kind != "Operand":
        raise Unusual
    return value


def _learn(
    op: Operator,
    mark: Any,
    values: tuple[Any, ...],
    key: Any,
    operands: list[Any],
    recipes: list[Any],
    kept: list[int],
    packed: bool,
) -> tuple[Any, Any, bool]:
    """The program for a signature, its result's layout, and whether it reads."""
    if any(map(_foreign, key)):
        raise Unusual
    _check(op, values, key, operands)
    layout = dispatch.result_layout(operands) if op.is_elementwise(key) else None
    order = None if layout is None else layout[2]
    reads = any(r is not None for r in recipes)
    if reads:
        how = [None if r is None else Read(r, at in kept) for at, r in enumerate(recipes)]
        lengths = tuple([len(o) if type(o) is list else -1 for o in operands])
        program = (packed_program if packed else reading_program)(op, key, Form(lengths, tuple(how)), order)
        if not (packed or op.looks(key)):
            count = len(how) + sum(r is not None and not r.static for r in recipes)
            program._xt_may_pend = True  # pyright: ignore[reportFunctionMemberAccess]
            given = jax.tree.structure((0, (0,) * len(kept))) if op.single else Parted(len(kept))
            program = waiter(program, count, given, gain=READING)
        else:
            program = prompt(program)
    elif any(type(o) is list for o in operands):
        raise Unusual
    else:
        program = op.waiting(key) if order is None else op.permuted_program(key, order, True)
    found = op.known[mark] = (program, layout, reads)
    return found


class Parted(NamedTuple):
    """The structure of what a program gives that reads, and has several results: those, and so many values that are kept."""

    kept: int

    def unflatten(self, flat: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        at = len(flat) - self.kept
        return flat[:at], flat[at:]


def _check(op: Operator, values: tuple[Any, ...], key: Any, operands: list[Any]) -> None:
    """Make sure that the complete path's checks leave the arguments as they are."""
    checked, checked_key = prepare(op, values)
    if not (
        list(map(type, checked_key)) == list(map(type, key))
        and checked_key == key
        and all(map(_same, checked, operands))
    ):
        raise Unusual


def _asked(operands: list[Any]) -> bool:
    """Whether one of the operands requires grad."""
    for value in operands:
        if value is None or type(value) in SCALARS:
            continue
        if isinstance(value, Tensor):
            if value._xt_edge is not None or (value._xt_view is not None and asks_grad(value)):
                return True
        elif type(value) in SEQUENCES and any(isinstance(v, Tensor) and asks_grad(v) for v in value):
            return True
    return False


def _same(checked: Any, given: Any) -> bool:
    if type(given) is list:
        return all(a is b for a, b in zip(checked, given, strict=True))
    return checked is given


def known_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor:
    """An in-place call in the default modes, which autograd does not follow; Unusual for every other."""
    target = values[0]
    if not isinstance(target, Tensor):
        raise Unusual
    view, storage, meta = target._xt_view, target._xt_storage, target._xt_meta
    if not op.single or (meta is not None and meta.inference):
        raise Unusual
    if op.exact is not None and type(storage.raw) is HostNumber and held(target):
        made = exactly(op.exact, values)
        if made is not None and made._xt_storage.raw.dtype == storage.raw.dtype:
            check_writable(target)
            bump(target, op.name + "_", 4)
            storage.raw = made._xt_storage.raw
            storage.writes += 1
            storage.shared = False
            return target
    if (
        op.exact is not None
        and type(storage.raw) in THERE
        and not (view.sizes if view else storage.raw.shape)
    ):
        made = exactly(op.exact, values)
        number = None if made is None else made._xt_storage.raw
        if (
            number is not None
            and number.dtype == storage.raw.dtype
            and (memory := host_room(target)) is not None
        ):
            bump(target, op.name + "_", 4)
            write_host(memory, storage, view, number.value)
            return target
    pends = type(storage) is LazyStorage and type(storage.operand) is Pending
    recipe: Any = None
    signature: list[Any] = []
    if view is not None:
        if op.kind != "pointwise":
            raise Unusual
        recipe = recipe_of(storage, view)
        signature += (recipe, view.strides)
    operands = [values[i] for i in op.indices]
    if not state.mode and _asked(operands):
        raise Unusual
    key = _key(op, values)
    if is_odd(op, key):
        raise Unusual
    arrays: list[Any] = []
    reads: list[Read | None] = [None] * (len(operands) - 1)
    offsets: list[Any] = []
    for at, parameter in enumerate(op.runtime[1:], 1):
        value = operands[at]
        if value is None or type(value) in SCALARS:
            value = operands[at] = _number(parameter, value)
            signature.append(None if value is None else type(value))
            arrays.append(None if value is None else number_array(value))
        elif parameter.kind == "Number":
            raise Unusual
        elif type(value) in SEQUENCES:
            value = operands[at] = list(value)
            if any(not isinstance(t, Tensor) or t._xt_storage is storage for t in value):
                raise Unusual
            signature.append(len(value))
            arrays.append(tuple([array_of(t) for t in value]))
        elif not isinstance(value, Tensor) or value._xt_storage is storage:
            raise Unusual
        elif op.kind == "pointwise":
            array, read = operand_of(value)
            if read is not None and not read.static:
                offsets.append(operand(value.storage_offset(), array))
            signature += (Tensor, read)
            arrays.append(array)
            reads[at - 1] = None if read is None else Read(read, False)
        else:
            signature.append(Tensor)
            arrays.append(operands_array(value))
    waits = Pending in map(type, arrays)
    pends = (pends or waits) and may_pend(op, key, storage) and tuple not in map(type, arrays)
    if waits and not pends:
        arrays = settled(arrays)
    donate = None if pends else storage.sole_owner()
    mark = ("inplace", donate, key, *signature)
    try:
        program = op.known.get(mark)
    except TypeError:
        raise Unusual from None
    if program is None:
        _check(op, values, key, operands)
        check_writable(target)
        if view is None and not any(reads):
            program = op.inplace_program(key, bool(donate))
        else:
            program = writing_program(op, key, recipe, tuple(reads), bool(donate))
        if pends:
            count = 1 + len(arrays) + len(offsets) + (view is not None)
            program = waiter(program, count, SINGLE, gain=WRITING)
        op.known[mark] = program
    if view is not None:
        arrays.append(operand(view.offset, storage.raw))
    dispatch.refuse(op, key, operands)
    try:
        write = promised if pends else rewrite
        write(target, op.name + "_", program, *arrays, *offsets)
    except Exception as error:
        if dispatch.is_gone(error) or dispatch.is_unusual(operands):
            raise Unusual from None
        raise dispatch.clean(op, error) from None
    return target
