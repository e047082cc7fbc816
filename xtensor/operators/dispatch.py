"""The complete call path of an operator: arguments checked and converted, modes honoured, the graph recorded.

The functions that `codegen` makes answer the common case, `calls` what has come before; here is everything else: other types
of argument, `out=`, meta tensors, mixed devices, hooks on saved tensors, anomaly mode, autocast.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import jax

from .. import dtypes, geometry
from ..engine import anomaly, modes
from ..engine.graph import next_sequence_nr
from ..errors import noted
from ..storage import MetaArray, Storage, abstract, commit
from ..tensor import (
    Tensor,
    array_of,
    edge_of,
    operands_array,
    plain_edge,
    recipe_of,
    sizes_of,
    strides_of,
    wrap,
    wrap_strided,
)
from ..xla.cache import BoundedCache
from ..xla.levels import KINDS
from ..xla.memory import out_of_memory
from ..xla.number_arrays import as_operand, beside
from ..xla.pending import Pending, settled
from ..xla.segments import unmade
from ..xla.transformed import has_tangent
from ..xla.x64 import call
from .arguments import prepare
from .below.aten import declared
from .below.dispatching import asked_about, dispatched, dispatching, parts
from .functions.columns import as_columns, transposed
from .operator import Operator
from .reading import Form, Read, operand_of, reading_program
from .saved import result_index, save
from .write import write_out

__all__ = ["clean", "complete", "execute", "handed", "invoke", "is_unusual", "node_for", "record"]

new = object.__new__
state = modes.state
INEXACT = frozenset(d.numpy for d in dtypes.ALL if d.is_floating_point or d.is_complex)


WAITING = modes.NO_GRAD | modes.AUTOCAST
"""Modes in which calls may wait on this path too."""

# Set by `autocast`: the arguments of a call with the dtypes that autocast wants for this operator.
autocast: Callable[[Operator, tuple[Any, ...]], tuple[Any, ...]] | None = None


def complete(op: Operator, values: tuple[Any, ...], out: Any = None) -> Any:
    """Call `op` with one value per parameter of its schema, with every check and mode."""
    if state.mode & modes.AUTOCAST and out is None and autocast is not None:
        values = autocast(op, values)
    runtime, key = prepare(op, values)
    if dispatching or state.mode & modes.DISPATCH_MODE:
        found = asked_about((*runtime, out))
        if found is not None:
            if out is not None:
                return answered_into(op, values, out, found)
            return handed(op, answered(op, values, runtime, key, found))
    if out is not None:
        return into(op, runtime, key, out)
    waits = not (watchers or state.mode & ~WAITING) and (unmade() or is_first(op, key, runtime))
    arrays = [operands_array(v) if waits and isinstance(v, Tensor) else arrays_of(v) for v in runtime]
    tensors = execute(op, key, runtime, arrays, waits)
    refuse(op, key, runtime)
    if not state.mode & modes.NO_GRAD and op.rules.differentiable:
        record(op, key, runtime, arrays, tensors)
    return handed(op, tensors)


_came: BoundedCache[Any, bool] = BoundedCache(4096)


def is_first(op: Operator, key: tuple[Any, ...], runtime: Sequence[Any]) -> bool:
    """Whether a call's program may be new, and is compiled beside what comes next: later ones gain nothing by waiting here."""
    forms = [(sizes_of(v), v.dtype) if isinstance(v, Tensor) else type(v) for v in runtime]
    mark = (op.name, key, *forms)
    if mark in _came:
        return False
    _came[mark] = True
    return True


def answered(
    op: Operator, values: tuple[Any, ...], runtime: list[Any], key: tuple[Any, ...], found: list[Any]
) -> list[Tensor]:
    """The results of a call that who is asked below autograd made, with their place in the graph."""
    func, args, kwargs = declared(op, values)
    arrays = [arrays_of(v) for v in runtime]
    results = parts(dispatched(func, found, args, kwargs), args)
    if not state.mode & modes.NO_GRAD and op.rules.differentiable:
        record(op, key, runtime, arrays, results)
    return results


def answered_into(op: Operator, values: tuple[Any, ...], out: Any, found: list[Any]) -> Any:
    """A call with `out=` as who is asked below autograd answers it."""
    func, args, kwargs = declared(op, values, "out")
    return dispatched(func, found, args, {**kwargs, "out": out})


def call_whole(op: Operator, values: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """All results of a call, hidden ones too, unknown to autograd."""
    runtime, key = prepare(op, values)
    found = asked_about(runtime)
    if found is not None:
        return tuple(answered(op, values, runtime, key, found))
    return tuple(execute(op, key, runtime, [arrays_of(v) for v in runtime]))


Operator.call_whole = call_whole


def refuse(op: Operator, key: tuple[Any, ...], runtime: list[Any]) -> None:
    """Raise for values that the operator does not take."""
    if op.refuses is not None and None not in key:
        op.refuses(*runtime)


def handed(op: Operator, results: list[Tensor]) -> Any:
    """What the caller is given of an operator's results."""
    if op.single or op.shown == 1:
        return results[0]
    if op.hidden:
        return tuple(results[: op.shown])
    return op.returns(*results) if op.returns is not None else tuple(results)


def arrays_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return array_of(value)
    if type(value) is list:
        return tuple([array_of(t) for t in value])
    return value


def made_of(op: Operator, key: tuple[Any, ...], results: Any, runtime: Sequence[Any]) -> list[Tensor]:
    """Tensors over results of a call with these arguments."""
    several = (results,) if op.single else results
    return as_columns(op.columns_of(key), several, runtime[0]) if op.columns else [wrap(r) for r in several]


def has_meta(arrays: list[Any]) -> bool:
    return any(
        type(a) is MetaArray or (type(a) is tuple and any(type(x) is MetaArray for x in a)) for a in arrays
    )


def execute(
    op: Operator, key: tuple[Any, ...], runtime: list[Any], arrays: list[Any], waits: bool = False
) -> list[Tensor]:
    """Run the kernel and wrap its results; a pointwise result takes the strides that TensorIterator gives it. waits: whether the call may."""
    run = later if waits else invoke
    if has_meta(arrays):
        return evaluate(op, key, runtime, arrays)
    if op.is_elementwise(key):
        layout = result_layout(runtime)
        if layout is not None:
            sizes, strides, order = layout
            array = run(op, op.permuted_program(key, order, waits), arrays)
            return [wrap_strided(array, sizes, strides)]
    if op.formats:
        order = channels_last(runtime[: op.formats])
        if order is not None:
            return in_order(run(op, op.permuted_program(key, order, waits), arrays), order)
    if op.views == "fold" and any(isinstance(v, Tensor) and v._xt_view is not None for v in runtime):
        out = fold(op, key, runtime)
    else:
        out = run(op, op.waiting(key) if waits else op.program(key), arrays)
    return made_of(op, key, out, runtime)


def channels_last(deciding: Sequence[Any]) -> tuple[int, ...] | None:
    """The order in memory of results whose operator keeps the memory format: that of the first argument that has one.

    Of several tensors that are one argument, all have it.
    """
    for value in deciding:
        found = None
        for tensor in value if type(value) is list else (value,):
            view = tensor._xt_view if isinstance(tensor, Tensor) else None
            found = None if view is None else geometry.channels_last_order(view.sizes, view.strides)
            if found is None:
                break
        if found is not None:
            return found
    return None


def in_order(made: Any, order: tuple[int, ...]) -> list[Tensor]:
    """Results that lie in memory in an order of dimensions, those of another rank aside."""
    results = []
    for array in made if type(made) in (tuple, list) else (made,):
        if array.ndim != len(order):
            results.append(wrap(array))
            continue
        sizes, strides = [0] * array.ndim, [0] * array.ndim
        for dim, size, stride in zip(
            order, array.shape, geometry.contiguous_strides(array.shape), strict=True
        ):
            sizes[dim], strides[dim] = size, stride
        results.append(wrap_strided(array, tuple(sizes), tuple(strides)))
    return results


def fold(op: Operator, key: tuple[Any, ...], runtime: list[Any]) -> Any:
    """A reduction that reads views by itself, as it does on every path."""
    parts = [operand_of(v, again=True) if isinstance(v, Tensor) else (v, None) for v in runtime]
    arrays = [array for array, _ in parts]
    reads = tuple([None if recipe is None else Read(recipe, False) for _, recipe in parts])
    if not any(reads):
        return invoke(op, op.program(key), arrays)
    offsets = [
        v._xt_view.offset
        for v, r in zip(runtime, reads, strict=True)
        if r is not None and not r.recipe.static
    ]
    program = reading_program(op, key, Form((-1,) * len(reads), reads))
    return invoke(op, program, [*arrays, *offsets])[0]


# Told of every program that runs on this path: `ops.explain` looks on here.
watchers: list[Callable[[Operator, Any, list[Any]], None]] = []


def invoke(op: Operator, program: Any, arrays: list[Any], target: Storage | None = None) -> Any:
    """Run a program; what fails while it is traced is the user's error and carries none of JAX's frames.

    With a target, its array is the first argument, and the result takes its place.
    """
    arrays = beside(settled(arrays), None if target is None else target.array)
    for watch in watchers:
        watch(op, program, arrays if target is None else [target.array, *arrays])
    try:
        if target is not None:
            return call(commit, target, program, *arrays)
        found = call(program, *arrays)
    except Exception as error:
        raise clean(op, error) from None
    return settled(found)


def later(op: Operator, program: Any, arrays: list[Any]) -> Any:
    """What a program will give whose call may wait; errors as of `invoke`."""
    try:
        return call(program, *map(as_operand, beside(arrays)))
    except Exception as error:
        raise clean(op, error) from None


def clean(op: Operator, error: Exception) -> Exception:
    """An error that a program raised, as ours and without JAX's frames.

    PyTorch-worded errors of kernels stay what they are, JAX's own become RuntimeErrors that name the operator.
    """
    if not isinstance(error, CLEANED) or is_handlers(error):
        return error
    return noted(worded(op, error))


def worded(op: Operator, error: Exception) -> Exception:
    """The error that a program's error becomes."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if type(error).__module__ == "builtins" and frame.f_globals.get("__name__", "").startswith("xtensor"):
        return type(error)(*error.args)
    text = str(error).split("\n--------------------")[0]
    if (wanted := out_of_memory(text)) is not None:
        return wanted
    if unequal := UNEQUAL.search(text):
        try:
            geometry.broadcast_shapes(*[sizes_in(part) for part in SIZES.findall(unequal[1])])
        except RuntimeError as worded:
            return RuntimeError(*worded.args)
    return RuntimeError(f"{op.name}(): {text}")


# How `jax.numpy` and `lax` say that shapes do not broadcast, and a shape in that.
UNEQUAL = re.compile(r"ncompatible shapes for broadcasting: (.*)", re.DOTALL)
SIZES = re.compile(r"\([\d, ]*\)")


def sizes_in(text: str) -> tuple[int, ...]:
    """The sizes in `(2, 3)`."""
    return tuple(map(int, re.findall(r"\d+", text)))


CLEANED = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, ArithmeticError)


def shortened(error: Exception) -> Exception:
    """An error that this package raised, without the frames that lie between: who reads it wrote none of them."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    ours = frame.f_globals.get("__name__", "").startswith("xtensor.")
    return noted(error.with_traceback(None)) if ours else error


def is_handlers(error: Exception) -> bool:
    """Whether a handler of signals raised an error: its frame was called with a frame."""
    return any(
        any(isinstance(frame.f_locals.get(n), FrameType) for n in frame.f_code.co_varnames[:2])
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def is_gone(error: Exception) -> bool:
    """Whether an array was given up between being taken and being used: another thread wrote to its tensor, and had just begun to."""
    return isinstance(error, RuntimeError) and "has been deleted" in str(error)


def is_unusual(values: Sequence[Any]) -> bool:
    """Whether there are tensors among arguments that no program can take as they are: of several devices, or without values."""
    tensors = [t for v in values for t in (v if type(v) in (list, tuple) else (v,)) if isinstance(t, Tensor)]
    return any(type(t._xt_storage.raw) is MetaArray or t.device is not tensors[0].device for t in tensors)


def result_layout(runtime: list[Any]) -> tuple[Any, Any, Any] | None:
    """Sizes, strides and memory order of a pointwise result, or None where it is plainly contiguous."""
    operands = [v for v in runtime if isinstance(v, Tensor)]
    views = [t._xt_view for t in operands if t._xt_view is not None]
    if all(v.strides == geometry.contiguous_strides(v.sizes) for v in views):
        return None
    shape = geometry.broadcast_shapes(*[tuple(sizes_of(t)) for t in operands])
    # A Python number takes part as a 0-d operand.
    parts = tuple(
        [
            (tuple(sizes_of(v)), strides_of(v)) if isinstance(v, Tensor) else ((), ())
            for v in runtime
            if v is not None
        ]
    )
    strides = geometry.iterator_strides(shape, parts)
    if strides == geometry.contiguous_strides(shape):
        return None
    return shape, strides, memory_order(shape, strides)


def memory_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that lists dimensions from the slowest to the fastest."""
    return tuple(sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] != 1, d)))


def evaluate(op: Operator, key: tuple[Any, ...], runtime: list[Any], arrays: list[Any]) -> list[Tensor]:
    """The results of meta tensors: shapes and dtypes by abstract evaluation."""
    shapes = [tuple([abstract(x) for x in a]) if type(a) is tuple else abstract(a) for a in arrays]
    try:
        out = call(jax.eval_shape, op.traced(key), *shapes)
    except Exception as error:
        raise clean(op, error) from None
    if op.columns:
        given = call(jax.eval_shape, transposed(op.traced(key), op.columns_of(key), op.single), *shapes)
        return made_of(op, key, jax.tree.map(lambda o: MetaArray(o.shape, o.dtype), given), runtime)
    if not op.single:
        return [wrap(MetaArray(o.shape, o.dtype)) for o in out]
    if op.is_elementwise(key) and (layout := result_layout(runtime)) is not None:
        sizes, strides, order = layout
        return [wrap_strided(MetaArray(tuple(sizes[d] for d in order), out.dtype), sizes, strides)]
    return [wrap(MetaArray(out.shape, out.dtype))]


def node_for(
    op: Operator, key: tuple[Any, ...], runtime: list[Any], arrays: list[Any], inplace: bool = False
) -> Any:
    """A node with the edges and saved arguments of a call, or None where no argument asks for a gradient."""
    rules = op.rules
    edges: list[Any] = []
    targets: list[Any] = []
    wanted: list[bool] = []
    for at in rules.places:
        value, array = runtime[at], arrays[at]
        if type(value) is list:
            found = [edge_of(t) for t in value]
            plain = list(map(plain_edge, found))
            targets += [None if e is None else a.aval for e, a in zip(plain, array, strict=True)]
            edges += plain
            wanted.append(any(e is not None for e in found))
            continue
        edge = None
        if isinstance(value, Tensor):
            edge = value._xt_edge if value._xt_view is None else edge_of(value)
        if edge is None:
            wanted.append(False)
            edges.append(None)
            targets.append(None)
            continue
        wanted.append(True)
        edge = edge if type(edge) is tuple else edge.edge()
        edges.append(edge)
        targets.append(None if edge is None else array.aval)  # None where no gradient flows: `UNREACHED`
    if True not in wanted:
        return None
    arrays = beside(arrays)
    node = new(op.node_class)
    node._xt_edges = tuple(edges)
    node.targets = tuple(targets)
    node._xt_sequence_nr = next_sequence_nr()
    node._xt_meta = None
    node.key = key
    node.shapes = tuple([shape_of(runtime[at]) for at in rules.shape_places])
    saved: list[Any] = []
    every = False not in wanted
    for at, users in rules.saved_places:
        if at is None or not (every or any(wanted[u] for u in users)):
            saved.append(None)
            continue
        value, array = runtime[at], arrays[at]
        if isinstance(value, Tensor):
            # An in-place operator saves the values from before its own write.
            saved.append((None, 0, array) if inplace and at == 0 else save(value, array))
        elif type(value) is list:
            saved.append([save(t, a) for t, a in zip(value, array, strict=True)])
        else:
            saved.append(as_operand(array))
    node.saved = tuple(saved)
    if state.mode & modes.ANOMALY:
        anomaly.record(node)
    return node


def shape_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(sizes_of(value))
    return tuple([tuple(sizes_of(t)) for t in value]) if type(value) is list else ()


def save_results(op: Operator, node: Any, results: list[Tensor]) -> None:
    rules = op.rules
    if rules.results:
        saved = list(node.saved)
        for at, name in rules.results:
            if any(e is not None for n in rules.needed[name] for e in edges_of(op, node, n)):
                which = results if name == "results" else [results[result_index(name) or 0]]
                entries = [save(t, operands_array(t)) for t in which]
                saved[at] = entries if name == "results" else entries[0]
        node.saved = tuple(saved)
    node.aval = form_of(results[0]) if op.single else tuple(map(form_of, results))


def form_of(tensor: Tensor) -> Any:
    """The shape and dtype of a tensor as JAX has them; nothing is read."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if view is None or type(storage.raw) in KINDS:
        raw = storage.raw
        return raw.aval if type(raw) is Pending else array_of(tensor).aval
    recipe = recipe_of(storage, view)
    if recipe.identity and type(array := storage.operand) is Pending:
        return array.aval
    return recipe.aval


def edges_of(op: Operator, node: Any, name: str) -> tuple[Any, ...]:
    rules = op.rules
    length = len(node._xt_edges) - len(rules.differentiable) + 1
    at = 0
    for n in rules.differentiable:
        step = length if n == rules.sequence else 1
        if n == name:
            return node._xt_edges[at : at + step]
        at += step
    return ()


def record(
    op: Operator, key: tuple[Any, ...], runtime: list[Any], arrays: list[Any], results: list[Tensor]
) -> None:
    """Give the results of a call their place in the graph."""
    node = node_for(op, key, runtime, arrays)
    if node is None:
        return
    connect(op, node, results)


def connect(op: Operator, node: Any, results: list[Tensor]) -> None:
    differentiable = False
    for i, tensor in enumerate(results):
        if form_of(tensor).dtype in INEXACT:
            tensor._xt_edge = (node, i)
            differentiable = True
    if differentiable:
        save_results(op, node, results)


def is_exact(op: Operator, runtime: list[Any]) -> bool:
    """Whether `out=` must have the dtype of the result."""
    if op.exact_of is None:
        return op.exact_out
    given = [
        v for p, v in zip(op.runtime, runtime, strict=True) if p.kind == "Operand" and isinstance(v, Tensor)
    ]
    # Where a tensor may be a number, one of no dimensions counts as that.
    return not given if op.exact_of == "numbers" else any(sizes_of(v) for v in given)


def into(op: Operator, runtime: list[Any], key: tuple[Any, ...], out: Any) -> Any:
    """`out=`: compute, then write the results to the tensors given."""
    outs = [out] if isinstance(out, Tensor) else list(out)
    tensors = [t for v in runtime for t in (v if type(v) is list else (v,)) if isinstance(t, Tensor)]
    if not state.mode & modes.NO_GRAD and any(t.requires_grad for t in [*tensors, *outs]):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if any(type(t._xt_storage.raw) in KINDS and has_tangent(t._xt_storage.array) for t in [*tensors, *outs]):
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function"
        )
    arrays = [arrays_of(v) for v in runtime]
    at = op.adopts_at
    exact = op.kind if is_exact(op, runtime) or (at is not None and key[at] is not None) else None
    if at is not None and key[at] is None and isinstance(outs[0], Tensor):
        key = (*key[:at], outs[0].dtype, *key[at + 1 :])
    results = execute(op, key, runtime, arrays)
    refuse(op, key, runtime)
    for place, (target, source) in enumerate(zip(outs, results, strict=True)):
        write_out(op.name, target, source, tensors, exact, op.disjoint, op.joins, place)
    if op.single:
        return out
    return op.returns(*outs) if op.returns is not None else tuple(outs)
