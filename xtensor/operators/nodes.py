"""The node of a declared operator: what it saved, and its derivative rules run as one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import ShapedArray, Tracer

from ..dtypes import FROM_NUMPY, dtype
from ..engine import RELEASED, modes
from ..engine.graph import AccumulateGrad, Replayable
from ..geometry import contiguous_strides
from ..storage import UNREAD, MetaArray, Storage, WrapperArray, abstract, births
from ..tensor import Tensor, array_of, counter_of, make_view, new, recipe_of, tensor_over, wrap
from ..xla.cache import BoundedCache
from ..xla.levels import LevelAval
from ..xla.pending import Pending, settled
from ..xla.segments import unmade
from ..xla.x64 import call, choose, chosen
from .below.dispatching import dispatching
from .operator import Operator
from .pullback import Pullback, RecordedPullback, flatten, is_meta, structure_of, trace_form
from .saved import (
    Hooked,
    SavedTensor,
    check_version,
    result_edge,
    result_index,
    saved_tensor,
    unpack_array,
    unpack_tensor,
)

__all__ = ["OpNode"]

state = modes.state
INFERENCE = modes.INFERENCE
NO_GRAD = modes.NO_GRAD
DISPATCH_MODE = modes.DISPATCH_MODE
SCALARS = frozenset((int, float, complex, bool))
NOTHING = type(None)
MADE: BoundedCache[Any, bool] = BoundedCache(8192)
"""The nodes, by all that decides their programs, whose rules were made ready, to run by themselves or within a plan."""


class InputMetadata(NamedTuple):
    """Shape and dtype of one of an operator's results, which its gradient must have."""

    shape: tuple[int, ...]
    dtype: dtype
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


class OpNode(Replayable):
    """The node of a declared operator: runs its derivative rules as one jitted program.

    saved: one entry per name in `Rules.saved`. key: the forward's static arguments. aval: shape and dtype of the
    result, or a tuple of them. targets: shape and dtype of each edge's gradient, None where there is no edge.
    shapes: what `Rules.shapes` names.
    """

    __slots__ = ("aval", "key", "saved", "shapes", "targets")
    op: Operator
    aval: Any
    key: tuple[Any, ...]
    saved: Any
    shapes: tuple[Any, ...]
    targets: tuple[Any, ...]
    _xt_trusted = True

    def name(self) -> str:
        namer = self.op.namer
        return type(self).__name__ if namer is None else namer(self)

    def argument(self, name: str) -> Any:
        """A static argument of the call that made the node."""
        return self.key[[p.name for p in self.op.static].index(name)]

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        aval = self.aval
        return aval if type(aval) is tuple else (aval,)

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        return tuple([InputMetadata(a.shape, FROM_NUMPY[np.dtype(a.dtype)]) for a in self._xt_metadata])

    @property
    def _xt_num_inputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.aval) if type(self.aval) is tuple else 1

    def _xt_release(self) -> None:
        # As in PyTorch, a node that saved no tensor can run again.
        if self.op.rules.keeps:
            self.saved = None

    def origin_of(self, entry: Any) -> Any:
        """The edge of the tensor that a saved entry came from, where it had one."""
        rules = self.op.rules
        for name, kept in zip(rules.saved, self.saved, strict=True):
            for at, found in enumerate(kept if isinstance(kept, list) else [kept]):
                if found is not entry:
                    continue
                result = result_index(name)
                if result is not None or name == "results":
                    return result_edge(self, at if result is None else result)
                if name not in rules.functions:
                    return None
                place = edge_position(self, name)
                return self._xt_edges[place][at] if isinstance(kept, list) else self._xt_edges[place]
        return None

    def __dir__(self) -> list[str]:
        names = [{"input": "self"}.get(name, name) for name in self.op.rules.saved]
        own = [*names, *[p.name for p in self.op.static]]
        # What was released is asked for in vain, and listed still.
        raw = [f"_raw_saved_{n}" for n in names if self.saved is None or hasattr(self, f"_raw_saved_{n}")]
        return [*super().__dir__(), *[f"_saved_{name}" for name in own], *raw]

    def __getattr__(self, name: str) -> Any:
        if name == "targets":
            found = self.targets = targets_of(self._xt_edges)
            return found
        if name.startswith("_saved_"):
            return saved_attribute(self, name[7:])
        if name.startswith("_raw_saved_"):
            return raw_attribute(self, name[11:])
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def apply(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        saved = self.saved
        if saved is None:
            raise RuntimeError(RELEASED)
        mode = state.mode
        if not mode & NO_GRAD or mode & DISPATCH_MODE:
            return self._apply_recorded(grads)
        op = self.op
        if op.single:
            key: Any = (self.key, self.shapes, id(self.aval), *map(id, self.targets))
        else:
            undefined = tuple([g is None for g in grads])
            key = (self.key, self.shapes, tuple(map(id, self.aval)), undefined, *map(id, self.targets))
        if op.rules.optional:
            key = (key, tuple([s is None for s in saved]))
        args: list[Any] = []
        recipes: Any = None
        pends = written = False
        for g in grads:
            if g is None:
                if op.single or all(e is None for e in grads):
                    return (None,) * len(self._xt_edges)
                args.append(None)
                continue
            v, s = g._xt_view, g._xt_storage
            if v is None:
                array = s.operand
                args.append(array)
                if type(array) is Pending:
                    pends = True
            elif v.cached_at == s.writes:
                args.append(v.cached)
            else:
                recipe = recipe_of(s, v)
                args.append(s.array)
                if not recipe.identity:
                    recipes = [None] * len(grads) if recipes is None else recipes
                    recipes[len(args) - 1] = recipe
        for entry in saved:
            if type(entry) is tuple:
                counter = entry[0]
                if counter is not None and counter.version != entry[1]:
                    written = True
                array = entry[2]
                if type(array) is Pending:
                    if array._value is None:
                        pends = True
                    else:
                        array = array._value
                args.append(array)
            elif dispatching and type(entry) is Hooked:
                return self._apply_recorded(grads)  # it may hold a wrapper, and is unpacked once
            else:
                written = written or (type(entry) is list and not all(map(is_unwritten, entry)))
                args.append(unpack_array(entry))
        if dispatching and WrapperArray in map(type, args):
            return self._apply_recorded(grads)
        found = op.pullbacks.get(key)
        if found is None:
            found = self._pullback(key, grads, args, recipes is None)
        program = found.program
        if program is None:
            return found.deliver((), grads)
        if written and not op.copies:
            for entry, needed in zip(saved, found.needs(self, grads, args[len(grads) :]), strict=True):
                check_needed(entry, needed, self)
        if recipes is not None:
            if pends:
                args = list(map(settled, args))
                pends = False
            program = found.reader(tuple(recipes))
            viewed = [g for g, r in zip(grads, recipes, strict=True) if r is not None]
            args += [g._xt_view.offset for g in viewed]  # pyright: ignore[reportOptionalMemberAccess]
        elif pends or found.new:
            # What has to be compiled is compiled while the graph goes on, beside what comes next.
            if (found.new or unmade()) and not mode & SEEN:
                program, pends = found.waiting(args), True
            else:
                args, pends = list(map(settled, args)), False
            found.new = False
        previous = chosen()
        try:
            choose(True)
            results = program(*args)
        except TypeError:
            if not is_meta(args):
                raise
            pairs = zip(self.targets, found.routes, strict=True)
            return tuple([None if r is None else wrap(MetaArray(t.shape, t.dtype)) for t, r in pairs])
        finally:
            choose(previous)
        if pends or not found.plain or mode & INFERENCE:
            return found.deliver(results, grads)
        made = []
        for array in results:
            storage = new(Storage)
            storage.array = array
            storage.version = storage.address = 0
            storage.writes = births.now
            storage.shared = False
            storage.cover = None
            tensor = new(Tensor)
            tensor._xt_storage = storage
            tensor._xt_view = tensor._xt_edge = tensor._xt_meta = None
            made.append(tensor)
        return tuple(made)

    def hint(self) -> Any:
        aval = self.aval
        return self.key, id(aval) if type(aval) is not tuple else tuple([a.shape for a in aval])

    def pattern(self) -> Any:
        saved = self.saved
        if saved is None:
            return None
        forms: list[Any] = []
        for entry in saved:
            if type(entry) is tuple and unwritten(entry):
                forms.append(entry[2].aval)
                continue
            found = form_and_value(entry)
            if found is None:
                return None
            forms.append(found[0])
        return self.key, self.shapes, self.aval, self.targets, forms

    def matches(self, pattern: Any, args: list[Any]) -> bool:
        key, shapes, aval, targets, forms = pattern
        if self.key != key or self.shapes != shapes or self.targets != targets:
            return False
        if self.aval is not aval and (type(aval) is not tuple or self.aval != aval):
            return False
        saved = self.saved
        if saved is None:
            return False
        for entry, form in zip(saved, forms):
            if type(entry) is tuple:
                counter = entry[0]
                array = entry[2]
                if array.aval is not form or (counter is not None and counter.version != entry[1]):
                    return False
                args.append(array)
                continue
            if entry is None:
                if form is not NOTHING:
                    return False
                args.append(None)
                continue
            found = form_and_value(entry)
            if found is None or found[0] != form:
                return False
            args.append(found[1])
        return True

    def unmade(self) -> Any:
        signature = (self.op, self.key, self.shapes, self.aval, self.targets)
        return None if signature in MADE else signature

    def made_within(self) -> None:
        MADE[self.op, self.key, self.shapes, self.aval, self.targets] = True

    @classmethod
    def replay(cls, pattern: Any, grads: tuple[Any, ...], values: Sequence[Any]) -> tuple[Any, ...]:
        made = object.__new__(cls)
        made.key, made.shapes, made.aval, made.targets, _ = pattern
        made._xt_edges = tuple([None if t is None else NOWHERE for t in made.targets])
        made.saved = [replayed(v) for v in values]
        return made.apply(grads)

    def _pullback(self, key: Any, grads: tuple[Any, ...], args: list[Any], whole: bool) -> Pullback:
        count = len(grads)
        saved = [concrete(a) for a in args[count:]]
        known = whole and all(a is b or type(b) is Pending for a, b in zip(saved, args[count:]))
        arrays = [concrete(a) if type(a) is Pending else a for a in args[:count]] if known else None
        found = self.op.pullbacks[key] = call(Pullback, self, grads, saved, arrays)
        MADE[self.op, self.key, self.shapes, self.aval, self.targets] = True
        return found

    def _apply_recorded(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """With create_graph: the rules as operators over Tensors, which autograd follows."""
        if all(g is None for g in grads):
            return (None,) * len(self._xt_edges)
        values: list[Any] = [*grads, *[unpack_saved(self, i) for i in range(len(self.op.rules.saved))]]
        structure, flat = structure_of(values), flatten(values)
        forms = tuple([trace_form(v) for v in flat])
        outputs = tuple(map(id, self._xt_metadata))
        key = ("recorded", self.key, self.shapes, outputs, tuple(map(id, self.targets)), structure, forms)
        cache = self.op.pullbacks
        found = cache.get(key)
        if found is None:
            found = cache[key] = call(RecordedPullback, self, len(grads), structure, forms)
        return found.deliver(flat)


NOWHERE: Any = (None, 0)
SEEN = modes.PROFILING | modes.ANOMALY
"""Modes that tell of a node's time or results, so that neither waits."""


def replayed(value: Any) -> Any:
    """A saved entry around a value that a plan was given."""
    if type(value) is tuple:
        return [(None, 0, v) for v in value]
    return (None, 0, value) if isinstance(value, jax.Array) else value


def is_unwritten(entry: Any) -> bool:
    """Whether an entry that is one of several still holds what was saved, as far as it tells."""
    return type(entry) is not tuple or unwritten(entry)


def check_needed(entry: Any, needed: Any, node: Any) -> None:
    """Refuse what was written since it was saved, if a gradient is made of it. needed: whether it is; of several, of each."""
    if type(entry) is tuple:
        if needed:
            check_version(entry, node)
    elif type(entry) is list:
        for one, its in zip(entry, needed, strict=True):
            check_needed(one, its, node)


def unwritten(entry: Any) -> bool:
    """Whether an entry of one tensor still holds what was saved."""
    return entry[0] is None or entry[0].version == entry[1]


def form_and_value(entry: Any) -> tuple[Any, Any] | None:
    """Of a saved entry that is no single tensor: what a pattern says of it, and its value; None where a graph cannot say."""
    if entry is None or type(entry) in SCALARS:
        return type(entry), entry
    if isinstance(entry, jax.Array):
        return entry.aval, entry
    if type(entry) is not list or not all(type(e) is tuple and unwritten(e) for e in entry):
        return None
    return [e[2].aval for e in entry], tuple([settled(e[2]) for e in entry])


def concrete(value: Any) -> Any:
    """A saved array as a trace can take it."""
    if type(value) is Pending:
        place = value.sharding if value.committed else None
        aval = value.aval
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=place)
    if type(value) in UNREAD:
        return ShapedArray(tuple(value.shape), value.dtype)
    if type(value) is tuple:
        return tuple([concrete(v) for v in value])
    return abstract(value) if isinstance(value, Tracer) else value


def targets_of(edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Shape and dtype that the gradient for each edge must have."""
    return tuple([None if e is None else aval_of(e[0]._xt_metadata[e[1]]) for e in edges])


def aval_of(metadata: Any) -> Any:
    """Shape and dtype of a tensor, or of what describes one, as one hashable object."""
    if type(metadata) is ShapedArray or type(metadata) is LevelAval:
        return metadata
    if isinstance(metadata, Tensor):
        if metadata._xt_view is None:
            raw = metadata._xt_storage.raw
            return raw.aval if type(raw) is Pending else metadata._xt_storage.array.aval
        metadata = metadata._xt_view
        return ShapedArray(tuple(metadata.sizes), metadata.dtype.numpy)
    return ShapedArray(tuple(metadata.shape), getattr(metadata.dtype, "numpy", metadata.dtype))


def saved_attribute(node: OpNode, wish: str) -> Any:
    """`node._saved_self` and the like, under PyTorch's names for the arguments."""
    rules = node.op.rules
    wish = {"self": "input"}.get(wish, wish)
    if wish in rules.saved:
        return itself(node, rules.saved.index(wish))
    if any(p.name == wish for p in node.op.static):
        return node.argument(wish)
    raise AttributeError(f"'{node.name()}' object has no attribute '_saved_{wish}'")


def itself(node: OpNode, index: int) -> Any:
    """A saved value for the user: the leaf itself where it is one, else a tensor over the memory that was saved."""
    found = unpack_saved(node, index)
    entry = node.saved[index]
    if type(entry) is not tuple or not isinstance(found, Tensor):
        return found
    counter, _, array = entry
    array = settled(array)
    edge = found._xt_edge
    leaf = edge[0].variable if type(edge) is tuple and isinstance(edge[0], AccumulateGrad) else None
    if leaf is not None and counter_of(leaf) is counter and array_of(leaf) is array:
        return leaf
    if isinstance(counter, Storage) and counter.array is array:
        shape = tuple(array.shape)
        view = make_view(counter, counter, FROM_NUMPY[array.dtype], shape, contiguous_strides(shape), 0)
        return tensor_over(counter, view, edge)
    return found


def raw_attribute(node: OpNode, wish: str) -> Any:
    """`node._raw_saved_self` and the like: what hooks can be put on, or a tuple of it."""
    names = node.op.rules.saved
    wish = {"self": "input"}.get(wish, wish)
    if wish not in names:
        raise AttributeError(f"'{node.name()}' object has no attribute '_raw_saved_{wish}'")
    if node.saved is None:
        raise RuntimeError(RELEASED)
    index = names.index(wish)
    entry = node.saved[index]
    if isinstance(entry, list):
        return tuple([raw_part(node, index, at) for at in range(len(entry))])
    if isinstance(entry, jax.Array) or type(entry) in SCALARS:
        raise AttributeError(f"'{node.name()}' object has no attribute '_raw_saved_{wish}'")
    return raw_part(node, index, None)


def raw_part(node: OpNode, index: int, at: int | None) -> SavedTensor:
    def entry() -> Any:
        if node.saved is None:
            raise RuntimeError(RELEASED)
        return node.saved[index] if at is None else node.saved[index][at]

    def tensor() -> Tensor | None:
        if entry() is None:
            return None
        found = unpack_saved(node, index)
        return found if at is None else found[at]

    def keep(hooked: Hooked) -> None:
        saved = list(node.saved)
        saved[index] = hooked if at is None else [*saved[index][:at], hooked, *saved[index][at + 1 :]]
        node.saved = type(node.saved)(saved)

    return saved_tensor(tensor, lambda: type(entry()) is Hooked, keep)


def unpack_saved(node: OpNode, index: int) -> Any:
    """A saved value as a Tensor that stands where it stood in the graph."""
    if node.saved is None:
        raise RuntimeError(RELEASED)
    entry = node.saved[index]
    rules = node.op.rules
    name = rules.saved[index]
    if name == "results":
        return (
            [unpack_tensor(e, node, result_edge(node, i)) for i, e in enumerate(entry)]
            if isinstance(entry, list)
            else None
        )
    at = result_index(name)
    if at is not None:
        return unpack_tensor(entry, node, result_edge(node, at))
    edges = node._xt_edges[edge_position(node, name)] if name in rules.functions else None
    if isinstance(entry, list):
        return [unpack_tensor(e, node, edges[i] if edges else None) for i, e in enumerate(entry)]
    return unpack_tensor(entry, node, edges)


def edge_position(node: OpNode, name: str) -> Any:
    """Where the edges of an argument lie among a node's edges: an index, or a slice for a sequence."""
    rules = node.op.rules
    length = len(node._xt_edges) - len(rules.differentiable) + 1
    at = 0
    for n in rules.differentiable:
        step = length if n == rules.sequence else 1
        if n == name:
            return slice(at, at + step) if n == rules.sequence else at
        at += step
    raise KeyError(name)
