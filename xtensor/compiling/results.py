"""What a captured function leaves behind, described while the capture still watches: results, writes, gradients.

A description speaks of places among the program's results, and of where things are found at a call; it holds no tracer.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.core import Tracer

from .. import dtypes
from ..engine import RELEASED, modes, run_backward
from ..lowering.sharded import ShardedStorage
from ..nn.modules.module import Module
from ..optim.optimizer import Optimizer
from ..storage import Storage, cell
from ..tensor import Counter, Size, Tensor, array_of, edge_of, make_view, meta_of, tensor_over, wrap
from .watch import UNSET, Break, Source, Trace, grad_slot, hooks_of, storage_slot

__all__ = ["Leaves", "Result", "describe"]

PLAIN = (bool, int, float, complex, str, bytes, type(None), dtypes.dtype, Size, slice, type(Ellipsis))


class Geometry(NamedTuple):
    """A view, without its storage."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: Any
    conj: bool
    neg: bool


class Result(NamedTuple):
    """A tensor among results or gradients.

    kind: "new" (over the storage of this number, which the program fills), or, for tensors that were there: "given" (an argument), "same" (the tensor
    itself), "grad" (in a slot), "alias" (a view of a source's storage). edge: which of the outputs that backward knows, or None.
    """

    kind: str
    what: Any
    geometry: Geometry | None
    edge: int | None
    leaf: bool


class Written(NamedTuple):
    """A storage that is written: where it is found, by how much its version moves, and who wrote."""

    source: Source
    storage: Storage
    versions: int
    writer: Any


class Leaves:
    """What a call leaves behind.

    outs: the program's results while they are traced. puts: which of them go to storages that were there, and then to new ones, `filled` of them.
    build: makes the function's value of its tensors. grads: slots and the tensors that they then hold. draws: generators and how many draws are made.
    sets: objects, names of their attributes, and what makes the values that they get. roots: places of the outputs that backward starts
    from, and whether their graph is gone. borders: where backward ends.
    """

    def __init__(self) -> None:
        self.outs: list[Any] = []
        self.written: list[Written] = []
        self.filled = 0
        self.puts: list[int] = []
        self.results: list[Result] = []
        self.build: Callable[[list[Any]], Any] = lambda made: None
        self.grads: list[tuple[Any, int | None]] = []
        self.draws: list[tuple[Any, int]] = []
        self.counters: list[tuple[Counter, int]] = []
        self.released: list[bool] = []
        self.avals: list[Any] = []
        self.borders: list[tuple[str, Any]] = []
        self.gradients: list[Any] = []
        self.checks: list[tuple[int | None, int, Callable[[Any], bool], int | None]] = []
        self.scalers: list[tuple[Any, int]] = []
        self.sets: list[tuple[Any, str, Callable[[list[Any]], Any]]] = []


def geometry_of(view: Any) -> Geometry | None:
    if view is None:
        return None
    return Geometry(view.sizes, view.strides, view.offset, view.dtype, view.conj, view.neg)


def over(storage: Storage, geometry: Geometry | None) -> Tensor:
    """A tensor over a storage as a description has it."""
    tensor = tensor_over(storage)
    if geometry is not None:
        g = geometry
        tensor._xt_view = make_view(storage, storage, g.dtype, g.sizes, g.strides, g.offset, g.conj, g.neg)
    if modes.state.mode & modes.INFERENCE:
        meta_of(tensor).inference = True
    return tensor


class _Describer:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.leaves = Leaves()
        self.places: dict[int, int] = {}
        self.tensors: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.new: list[Any] = []
        self.roots: list[Any] = []
        self.containers: dict[int, Any] = {}

    def source_of(self, storage: Storage) -> Source:
        """Where a storage that was there is found at a call."""
        held = self.trace.held[id(storage)]
        source = self.trace.inputs[held.number]
        return Source("held", storage) if source.kind == "held" else source

    def result(self, tensor: Tensor) -> int:
        """The number of a tensor among the results."""
        found = self.tensors.get(id(tensor))
        if found is None:
            found = self.tensors[id(tensor)] = len(self.leaves.results)
            self.leaves.results.append(self._result(tensor))
        return found

    def _result(self, tensor: Tensor) -> Result:
        trace = self.trace
        storage = storage_slot.__get__(tensor)
        number = trace.arguments.get(id(tensor), trace.replaced.get(id(tensor)))
        if number is not None:
            return Result("given", number, None, None, False)
        if id(tensor) in trace.grads:
            return Result("grad", trace.grads[id(tensor)], None, None, False)
        if id(tensor) not in trace.fresh:
            return Result("same", tensor, None, None, False)
        if type(tensor) is not Tensor:
            raise Break(f"a {type(tensor).__name__} is made in the function and returned")
        if tensor.__dict__:
            raise Break("a tensor with attributes of its own is returned")
        meta = tensor._xt_meta
        if meta is not None and (grad_slot.__get__(meta) is not None or meta.hooks or meta.retains_grad):
            raise Break("a tensor is returned that has a gradient or hooks of its own")
        view = tensor._xt_view
        edge = edge_of(tensor)
        if id(storage) in trace.held:
            if edge is not None:
                raise Break("a view of a tensor from before is returned, which autograd follows")
            return Result("alias", self.source_of(storage), geometry_of(view), None, False)
        if id(storage) in trace.read_only:
            raise Break("a view of an argument that is a view is returned")
        at = self.storages.get(id(storage))
        if at is None:
            at = self.storages[id(storage)] = len(self.new)
            self.new.append(cell.__get__(storage))
        elif edge is not None:
            raise Break("results that autograd follows share their memory")
        root = None
        if type(edge) is tuple:
            root = len(self.roots)
            self.roots.append((edge, array_of(tensor).aval))
        return Result("new", at, geometry_of(view), root, edge is not None and root is None)

    def value(self, value: Any) -> Callable[[list[Any]], Any]:
        """What makes a value like this of the tensors of a call."""
        kind = type(value)
        if isinstance(value, Tensor):
            number = self.result(value)
            return lambda made: made[number]
        if kind in PLAIN or isinstance(value, enum.Enum):
            return lambda made: value
        known: Any = (Module, Optimizer)
        if isinstance(value, known) and id(value) not in self.trace.modules:
            return lambda made: value
        if id(value) in self.containers:
            raise Break("one container is returned, or kept, twice")
        self.containers[id(value)] = value
        if kind in (dict, OrderedDict):
            parts = {k: self.value(v) for k, v in value.items()}
            return lambda made: kind([(k, part(made)) for k, part in parts.items()])
        if kind in (list, tuple):
            items = [self.value(v) for v in value]
            return lambda made: kind([part(made) for part in items])
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            items = [self.value(v) for v in value]
            return lambda made: kind(*[part(made) for part in items])
        raise Break(f"the function returns a {kind.__name__}")

    def writes(self) -> None:
        """What was written, and what changed that no program can change again."""
        leaves, trace = self.leaves, self.trace
        for held in trace.held.values():
            storage = held.storage
            now, versions = cell.__get__(storage), storage.version - held.version
            if now is held.tracer and not versions:
                continue
            if now.shape != held.array.shape or now.dtype != held.array.dtype:
                raise Break("a tensor from before is resized")
            if held.kind is ShardedStorage:
                now = jax.lax.with_sharding_constraint(now, storage.sharing)
            elif held.kind is not Storage:
                raise Break("memory that NumPy shares is written")
            writer = getattr(storage, "writer", None)
            leaves.written.append(Written(self.source_of(storage), storage, versions, writer))
            self.put(now)
        for storage, array in trace.read_only.values():
            if cell.__get__(storage) is not array or storage.version:
                raise Break("an argument that is a view is written")
        for counter, version in trace.counters.values():
            if counter.version != version:
                leaves.counters.append((counter, counter.version - version))
        for met in trace.met.values():
            tensor, edge = met.tensor, met.tensor._xt_edge
            same = edge is met.edge or (type(met.edge) is tuple and type(edge) is tuple and is_border(edge))
            if storage_slot.__get__(tensor) is not met.storage or tensor._xt_view is not met.view or not same:
                raise Break("a tensor from before becomes another: its memory, its sizes or its history")
            if hooks_of(met.edge) != met.hooks:
                raise Break("a hook is put on a tensor from before, or taken off")
            meta = tensor._xt_meta
            if meta is not met.meta and meta is not None and grad_slot.__get__(meta) is not None:
                raise Break("a tensor from before gets its first gradient", "later")

    def put(self, array: Any) -> None:
        """Have an array put into a storage: the same one into several, where it is the same."""
        place = self.places.get(id(array))
        if place is None:
            place = self.places[id(array)] = len(self.leaves.outs)
            self.leaves.outs.append(array)
        self.leaves.puts.append(place)

    def gradients(self) -> None:
        """The slots that hold other gradients than before."""
        given = {id(m.tensor._xt_meta) for k, m in self.trace.met.items() if k in self.trace.arguments}
        for meta, first in self.trace.metas.values():
            last = grad_slot.__get__(meta)
            if first is UNSET or last is first:
                continue
            if id(meta) in given:
                raise Break("the gradient of an argument is set")
            number = None if last is None else self.result(last)
            if number is not None:
                found = self.leaves.results[number]
                if found.kind != "new" or found.edge is not None or found.leaf:
                    raise Break("a gradient is a tensor from before, or one that autograd follows")
            self.leaves.grads.append((meta, number))

    def backward(self) -> None:
        """The gradients that the outputs' gradients make, at all tensors from before that require grad."""
        leaves, trace = self.leaves, self.trace
        if not self.roots:
            return
        borders, nodes = [], []
        for key, met in trace.met.items():
            edge = met.tensor._xt_edge
            if edge is None:
                continue
            node = edge if type(edge) is tuple else edge.edge()
            if node is None:
                continue
            number = trace.arguments.get(key)
            borders.append(("held", met.tensor) if number is None else ("given", number))
            nodes.append(node)
        metas = [(node, node._xt_meta) for node, _ in nodes]
        for node, _ in nodes:
            node._xt_meta = None  # hooks of what was there before run when a gradient arrives there
        try:
            sent = [wrap(trace.bind(Source("sent", i), aval)) for i, (_, aval) in enumerate(self.roots)]
            live = list(range(len(sent)))
            try:
                found = self._run(live, sent, nodes)
            except RuntimeError as error:
                if str(error) != RELEASED:
                    raise
                live = [i for i in live if self._lives(i, sent, nodes)]
                found = self._run(live, sent, nodes) if live else ()
            leaves.released = [i not in live for i in range(len(sent))]
        finally:
            for node, meta in metas:
                node._xt_meta = meta
        leaves.avals = [aval for _, aval in self.roots]
        for border, grad in zip(borders, found):
            if grad is not None:
                leaves.borders.append(border)
                leaves.gradients.append(array_of(grad))

    def _lives(self, number: int, sent: list[Tensor], nodes: list[Any]) -> bool:
        """Whether the graph of an output is still there."""
        try:
            self._run([number], sent, nodes)
        except RuntimeError as error:
            if str(error) != RELEASED:
                raise
            return False
        return True

    def _run(self, numbers: list[int], sent: list[Tensor], nodes: list[Any]) -> Any:
        if not nodes:
            return ()
        edges = tuple([self.roots[i][0] for i in numbers])
        grads = tuple([sent[i] for i in numbers])
        return run_backward(edges, grads, True, False, tuple(nodes), True, False)


def is_border(edge: Any) -> bool:
    return type(edge[0]).__name__ == "Boundary"


def describe(trace: Trace, out: Any) -> Leaves:
    """What the captured function leaves behind: called within the capture."""
    if trace.broken is not None:
        raise trace.broken
    if trace.new_state():
        raise Break("an optimizer makes its states", "later")
    d = _Describer(trace)
    leaves = d.leaves
    leaves.build = d.value(out)
    for owner, name, _ in trace.sets.values():
        if name not in owner.__dict__:
            raise Break(f"it sets and deletes the attribute {name}")
        leaves.sets.append((owner, name, d.value(owner.__dict__[name])))
    d.gradients()
    d.writes()
    d.backward()
    for array in d.new:
        leaves.puts.append(len(leaves.outs))
        leaves.outs.append(array)
    leaves.filled = len(d.new)
    numbers = {id(h.tracer): h.number for h in trace.held.values()}
    numbers.update({id(t): n for t, n in trace.values})
    for array, fits, when in trace.checks:
        number = numbers.get(id(array))
        if number is not None and when is None:
            leaves.checks.append((number, -1, fits, None))
            continue
        leaves.checks.append((None, len(leaves.outs), fits, None if when is None else len(leaves.outs) + 1))
        leaves.outs += [array] if when is None else [array, when]
    for generator, seed, first, *_ in trace.generators.values():
        if generator._seed != seed:
            raise Break("a generator is given another seed")
        leaves.draws.append((generator, generator.draws - first))
    for traced in trace.scalers.values():
        if traced.finite:
            raise Break("a GradScaler is not updated in the function")
        leaves.scalers.append((traced.scaler, len(leaves.outs)))
        leaves.outs += [traced.scale_now, traced.tracker]
    for array in leaves.outs:
        if not isinstance(array, (jax.Array, Tracer)):
            raise Break(f"a value of another kind is kept: {type(array).__name__}")
    return leaves
