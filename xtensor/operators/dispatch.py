"""The complete call path of an operator: arguments checked and converted, modes honoured, the graph recorded.

The functions that `codegen` makes handle the common case inline and come here for everything else: other types of
argument, `out=`, meta tensors, mixed devices, hooks on saved tensors, profiling, anomaly mode, and every error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import checks, geometry
from ..engine import anomaly, modes, profiler
from ..engine.graph import next_sequence_nr
from ..storage import MetaArray, abstract
from ..tensor import (
    Tensor,
    array_of,
    edge_of,
    plain_edge,
    recipe_of,
    sizes_of,
    strides_of,
    wrap,
    wrap_strided,
)
from ..xla.x64 import call
from .operator import Operator
from .reading import Form, Read, operand_of, reading_program
from .saved import result_index, save
from .write import write_out

__all__ = ["execute", "node_for", "prepare", "record", "run"]

NUMBERS = (int, float, complex, bool)
SCALARS = frozenset(NUMBERS)
new = object.__new__


def run(op: Operator, values: tuple[Any, ...], out: Any = None) -> Any:
    """Call `op` with one value per parameter of its schema."""
    if modes.state.mode & modes.PROFILING:
        token = profiler.begin(op.name, shapes_of(values))
        nbytes = 0
        try:
            result = _run(op, values, out)
            if out is None:
                made = (result,) if isinstance(result, Tensor) else result
                nbytes = sum(t._xt_storage.nbytes() for t in made)
            return result
        finally:
            profiler.end(token, nbytes)
    return _run(op, values, out)


def shapes_of(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """The sizes of the tensors among arguments, for a profile."""
    tensors = [t for v in values for t in (v if type(v) in (list, tuple) else (v,)) if isinstance(t, Tensor)]
    return [tuple(sizes_of(t)) for t in tensors]


# Set by `ops.autocast`: the arguments of a call with the dtypes that autocast wants for this operator.
autocast: Callable[[Operator, tuple[Any, ...]], tuple[Any, ...]] | None = None


def _run(op: Operator, values: tuple[Any, ...], out: Any) -> Any:
    if modes.state.mode & modes.AUTOCAST and out is None and autocast is not None:
        values = autocast(op, values)
    runtime, key = prepare(op, values)
    if out is not None:
        return into(op, runtime, key, out)
    arrays = [arrays_of(v) for v in runtime]
    tensors = execute(op, key, runtime, arrays)
    if not modes.state.mode & modes.NO_GRAD and op.rules.differentiable:
        record(op, key, runtime, arrays, tensors)
    return handed(op, tensors)


def handed(op: Operator, results: list[Tensor]) -> Any:
    """What the caller is given of an operator's results."""
    if op.single or op.hidden:
        return results[0]
    return op.returns(*results) if op.returns is not None else tuple(results)


def prepare(op: Operator, values: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """The runtime arguments (Tensors, numbers, lists of Tensors, None) and the key of static ones, all checked."""
    parameters = op.schema.parameters
    runtime: list[Any] = []
    for i in op.indices:
        runtime.append(convert(op, i + 1, parameters[i], values[i]))
    key = tuple([static(values[i]) for i in op.static_indices])
    if is_odd(op, key):
        at = next(op.static_indices[i] for i in op.integral if odd(key[i]))
        expected = "int" if parameters[at].annotation.startswith("int") else "tuple of ints"
        raise checks.argument_error(op.name, parameters[at].name, at + 1, expected, values[at])
    check_devices(op, runtime)
    return runtime, key


def convert(op: Operator, position: int, parameter: Any, value: Any) -> Any:
    kind = parameter.kind
    if value is None:
        if parameter.optional:
            return None
        raise wrong(op, parameter, position, value)
    if kind == "Array":
        if isinstance(value, Tensor):
            return value
        raise wrong(op, parameter, position, value)
    if kind == "Operand":
        if isinstance(value, Tensor):
            return value
        return number(op, parameter, position, value)
    if kind == "Number":
        if isinstance(value, Tensor):
            if value.numel() != 1 or value.requires_grad:
                raise wrong(op, parameter, position, value)
            value = value.item()
        value = number(op, parameter, position, value)
        default = parameter.default
        return None if default is not None and type(default) in SCALARS and value == default else value
    if isinstance(value, Tensor) or not isinstance(value, (list, tuple)):
        raise wrong(op, parameter, position, value)
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument {position - 1}, but got {checks.type_name(item)}"
            )
    return list(value)


def number(op: Operator, parameter: Any, position: int, value: Any) -> Any:
    """A Python number as a runtime operand, exact to 64 bits."""
    kind = type(value)
    if kind not in SCALARS:
        if isinstance(value, np.generic) and not isinstance(value, (np.str_, np.bytes_)):
            value = value.item()
        elif isinstance(value, NUMBERS):
            kind = next(t for t in (bool, int, float, complex) if isinstance(value, t))
            value = kind(value)  # pyright: ignore[reportArgumentType]
        else:
            raise wrong(op, parameter, position, value)
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise RuntimeError("Overflow when unpacking long long")
    return value


def wrong(op: Operator, parameter: Any, position: int, value: Any) -> TypeError:
    expected = {"Array": "Tensor", "Operand": "Tensor", "Number": "Number", "Arrays": "tuple of Tensors"}
    return checks.argument_error(op.name, parameter.name, position, expected[parameter.kind], value)


def static(value: Any) -> Any:
    """A static argument as something that hashes: lists become tuples, integer-like objects ints."""
    kind = type(value)
    if kind is list or isinstance(value, tuple):
        return tuple([static(v) for v in value])
    if kind in SCALARS or value is None or kind is str:
        return value
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    return value


def odd(value: Any) -> bool:
    """Whether a value, or one within it, equals an int without being one: a program kept for the int would answer for it."""
    kind = type(value)
    return kind is bool or kind is float or (kind in (tuple, list) and any(odd(v) for v in value))


def is_odd(op: Operator, key: tuple[Any, ...]) -> bool:
    """Whether what should be an int among the static arguments is none, so that no program kept may answer."""
    for i in op.integral:
        value = key[i]
        if type(value) is not int and odd(value):
            return True
    return False


def check_devices(op: Operator, runtime: list[Any]) -> None:
    """Bring 0-d CPU tensors to the others' device; refuse any other mixture."""
    tensors = [t for v in runtime for t in (v if type(v) is list else (v,)) if isinstance(t, Tensor)]
    if len(tensors) < 2:
        return
    first = tensors[0].device
    if all(t.device is first for t in tensors):
        return
    places = {t.device for t in tensors if not (t.device.type == "cpu" and t.dim() == 0)}
    if len(places) > 1:
        checks.check_same_device(op.name, [t for t in tensors if t.device in places])
    (place,) = places
    for i, v in enumerate(runtime):
        if isinstance(v, Tensor) and v.device is not place:
            runtime[i] = v.to(place)
        elif type(v) is list:
            runtime[i] = [t if t.device is place else t.to(place) for t in v]


def arrays_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return array_of(value)
    if type(value) is list:
        return tuple([array_of(t) for t in value])
    return value


def has_meta(arrays: list[Any]) -> bool:
    return any(
        type(a) is MetaArray or (type(a) is tuple and any(type(x) is MetaArray for x in a)) for a in arrays
    )


def execute(op: Operator, key: tuple[Any, ...], runtime: list[Any], arrays: list[Any]) -> list[Tensor]:
    """Run the kernel and wrap its results; a pointwise result takes the strides that TensorIterator gives it."""
    if has_meta(arrays):
        return evaluate(op, key, runtime, arrays)
    if op.kind == "pointwise":
        layout = result_layout(runtime)
        if layout is not None:
            sizes, strides, order = layout
            array = invoke(op, op.permuted_program(key, order), arrays)
            return [wrap_strided(array, sizes, strides)]
    if op.views == "fold" and any(isinstance(v, Tensor) and v._xt_view is not None for v in runtime):
        out = fold(op, key, runtime)
    else:
        out = invoke(op, op.program(key), arrays)
    return [wrap(out)] if op.single else [wrap(o) for o in out]


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


def invoke(op: Operator, program: Any, arrays: list[Any]) -> Any:
    """Run a program; what fails while it is traced is the user's error and carries none of JAX's frames."""
    for watch in watchers:
        watch(op, program, arrays)
    try:
        return call(program, *arrays)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, ArithmeticError) as error:
        raise clean(op, error) from None


def clean(op: Operator, error: Exception) -> Exception:
    """The error as ours: PyTorch-worded errors of kernels pass, JAX's own become RuntimeErrors that name the operator."""
    module = type(error).__module__
    raised_by = error.__traceback__
    while raised_by is not None and raised_by.tb_next is not None:
        raised_by = raised_by.tb_next
    source = raised_by.tb_frame.f_globals.get("__name__", "") if raised_by is not None else ""
    if source.startswith("xtensor") and module == "builtins":
        return type(error)(*error.args)
    text = str(error).split("\n--------------------")[0]
    return RuntimeError(f"{op.name}(): {text}")


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
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        raise clean(op, error) from None
    if not op.single:
        return [wrap(MetaArray(o.shape, o.dtype)) for o in out]
    if op.kind == "pointwise" and (layout := result_layout(runtime)) is not None:
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
            targets += [None if e is None else a.aval for e, a in zip(found, array, strict=True)]
            edges += map(plain_edge, found)
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
        edges.append(edge if type(edge) is tuple else edge.edge())
        targets.append(array.aval)
    if True not in wanted:
        return None
    node = new(op.node_class)
    node.edges = tuple(edges)
    node.targets = tuple(targets)
    node.sequence_nr = next_sequence_nr()
    node.meta = None
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
            saved.append(value)
    node.saved = tuple(saved)
    if modes.state.mode & modes.ANOMALY:
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
                entries = [save(t, array_of(t)) for t in which]
                saved[at] = entries if name == "results" else entries[0]
        node.saved = tuple(saved)
    node.aval = form_of(results[0]) if op.single else tuple(map(form_of, results))


def form_of(tensor: Tensor) -> Any:
    """The shape and dtype of a tensor as JAX has them; nothing is read."""
    view, storage = tensor._xt_view, tensor._xt_storage
    return storage.array.aval if view is None else recipe_of(storage, view).aval


def edges_of(op: Operator, node: Any, name: str) -> tuple[Any, ...]:
    rules = op.rules
    length = len(node.edges) - len(rules.differentiable) + 1
    at = 0
    for n in rules.differentiable:
        step = length if n == rules.sequence else 1
        if n == name:
            return node.edges[at : at + step]
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
        if jnp.issubdtype(form_of(tensor).dtype, np.inexact):
            tensor._xt_edge = (node, i)
            differentiable = True
    if differentiable:
        save_results(op, node, results)


def into(op: Operator, runtime: list[Any], key: tuple[Any, ...], out: Any) -> Any:
    """`out=`: compute, then write the results to the tensors given."""
    outs = [out] if isinstance(out, Tensor) else list(out)
    tensors = [t for v in runtime for t in (v if type(v) is list else (v,)) if isinstance(t, Tensor)]
    if not modes.state.mode & modes.NO_GRAD and any(t.requires_grad for t in [*tensors, *outs]):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    arrays = [arrays_of(v) for v in runtime]
    at = op.adopts_at
    if at is not None and key[at] is None and isinstance(outs[0], Tensor):
        key = (*key[:at], outs[0].dtype, *key[at + 1 :])
    results = execute(op, key, runtime, arrays)
    for target, source in zip(outs, results, strict=True):
        exact = op.kind if op.exact_out else None
        write_out(op.name, target, source, tensors, exact, op.disjoint, op.joins)
    if op.single:
        return out
    return op.returns(*outs) if op.returns is not None else tuple(outs)
