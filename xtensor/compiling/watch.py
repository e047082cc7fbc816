"""The watch over tensors while a function is captured: what was there before becomes an input where it is first touched.

`Tensor._xt_storage` and `AutogradMeta.grad` are slots; during a capture they are properties. The first touch of a tensor that
was there before notes its storage and puts a tracer in the place of the array, which stands for an input of the program. At
the end all storages hold what they held; what they would hold is known.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import Primitive

from .. import capture, devices
from ..engine import LeafEdge, Node, modes
from ..nn.modules.module import Module
from ..nn.parameter import Buffer, Parameter
from ..operators.generator import Generator
from ..optim.optimizer import Optimizer, RuleOptimizer
from ..optim.update import TracedCount
from ..storage import LazyStorage, MetaArray, Storage, cell, put
from ..tensor import AutogradMeta, Tensor, array_of, wrap
from ..xla import segments
from ..xla.threads import OWN

__all__ = ["Break", "Source", "Trace", "read", "user_line"]

read = Primitive("xtensor_input")
read.def_abstract_eval(lambda *, number, aval: aval)

storage_slot: Any = Tensor._xt_storage
grad_slot: Any = AutogradMeta.grad  # pyright: ignore[reportAttributeAccessIssue]


class Break(BaseException):
    """A function cannot be captured; no `except Exception` of the user's is meant by it. at: its line, where it has one."""

    def __init__(self, reason: str, line: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = 0
        self.line = user_line() if line is None else line


PLACE = "; place all on the mesh: distribute_tensor(x, mesh, [Shard(0)]), or DTensor.from_local in several processes"
INSIDE = ("xtensor", "jax", "jaxlib", "numpy", "contextlib", "functools")


def user_line(trace: Any = None) -> str:
    """The line of the user's program that runs, or that a traceback leads through last: `file:line`."""
    if trace is not None:
        found = ""
        while trace is not None:
            frame = trace.tb_frame
            if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in INSIDE:
                found = f"{frame.f_code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        return found
    frame: Any = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in INSIDE:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


class Source(NamedTuple):
    """Where an input's array comes from at every call.

    kind: "held" (a storage), "given" (the storage of an argument, by its number), "grad" (that of the gradient in a slot), "host" (a function of
    the host's, without arguments), "number" (one among the arguments), "sent" (the gradient of a result, which a backward pass brings).
    """

    kind: str
    what: Any


class Met(NamedTuple):
    """A tensor that was there before, as it was when first touched."""

    tensor: Tensor
    storage: Storage
    view: Any
    edge: Any
    meta: Any
    attr_version: int
    hooks: Any


class Held(NamedTuple):
    """A storage that was there before: its array, version, writes, `shared`, writer, class, and its tracer."""

    storage: Storage
    array: Any
    version: int
    writes: int
    shared: bool
    writer: Any
    kind: type
    tracer: Any
    number: int


def hooks_of(edge: Any) -> Any:
    """The hooks on a leaf."""
    if type(edge) is not LeafEdge:
        return type(edge) is tuple
    own = edge.tensor_hooks
    return (
        None if own is None else [list(d) for d in own.values()],
        None if edge.post_accumulate is None else list(edge.post_accumulate),
    )


class Boundary(Node):
    """Stands, in a capture, for the graph that made a tensor before it."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        super().__init__(())
        self.aval = aval

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        raise Break("backward goes on into a graph that was made before the call")


class Trace:
    """All that one capture meets. arguments: the tensors among the function's arguments."""

    def __init__(self, arguments: list[Tensor]) -> None:
        self.thread = threading.get_ident()
        self.over = threading.Event()
        self.place: Any = None
        self.sharding: Any = None
        self.arguments = {id(t): i for i, t in reversed(list(enumerate(arguments)))}
        self.inputs: list[Source] = []
        self.met: dict[int, Met] = {}
        self.held: dict[int, Held] = {}
        self.groups: dict[int, list[Held]] = {}
        self.elsewhere: dict[int, Any] = {}
        self.borrowed: set[int] = set()
        self.fresh: set[int] = set()
        self.fresh_storages: dict[int, weakref.ref[Storage]] = {}
        self.metas: dict[int, tuple[AutogradMeta, Any]] = {}
        self.grads: dict[int, AutogradMeta] = {}
        self.counters: dict[int, tuple[Any, int]] = {}
        self.generators: dict[int, list[Any]] = {}
        self.optimizers: dict[int, RuleOptimizer] = {}
        self.known_optimizers: dict[int, Optimizer] = {}
        self.scalers: dict[int, Any] = {}
        self.vectors: dict[int, Any] = {}
        self.known_counts: dict[int, Any] = {}
        self.replaced: dict[int, int] = {}
        self.read_only: dict[int, tuple[Storage, Any]] = {}
        self.values: list[tuple[Any, int]] = []
        self.checks: list[tuple[Any, Callable[[Any], bool], Any]] = []
        self.log: dict[int, Storage] | None = None
        self.modules: dict[int, Any] = {}
        self.states: dict[int, tuple[Any, dict[Any, Any]]] = {}
        self.sets: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self.effects: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
        self.broken: Break | None = None
        self.rate_changed = self.grouping = self.numbered = False

    # -- inputs

    def bind(self, source: Source, aval: Any) -> Any:
        """A tracer that stands for an input."""
        self.inputs.append(source)
        weak = bool(getattr(aval, "weak_type", False))
        shaped = ShapedArray(tuple(aval.shape), aval.dtype, weak_type=weak)
        return read.bind(number=len(self.inputs) - 1, aval=shaped)

    def host(self, function: Callable[[], Any], shape: tuple[int, ...], dtype: Any) -> Any:
        """A tracer for what a function of the host's says at every call."""
        return self.bind(Source("host", function), ShapedArray(shape, np.dtype(dtype)))

    def refuse(self, reason: str) -> None:
        """End the capture, even where a handler of the user's catches what is raised here."""
        found = Break(reason)
        if self.broken is None:
            self.broken = found
        raise found

    def by_value(self, tensor: Tensor, number: int) -> Tensor:
        """What stands in a capture for an argument that is a contiguous view: a tensor with its values as an input."""
        view: Any = tensor._xt_view
        values = self.bind(Source("values", number), ShapedArray(view.sizes, view.dtype.numpy))
        self.values.append((values, len(self.inputs) - 1))
        made = wrap(values)
        storage = made._xt_storage
        self.read_only[id(storage)] = (storage, values)
        self.replaced[id(made)] = number
        return made

    # -- what is met

    def meet(self, tensor: Tensor, storage: Storage) -> None:
        """Note a tensor that was there before, and make its storage an input."""
        view, edge = tensor._xt_view, tensor._xt_edge
        attr_version = -1 if view is None else view.attr_version
        self.met[id(tensor)] = Met(tensor, storage, view, edge, tensor._xt_meta, attr_version, hooks_of(edge))
        if view is not None and view.counter is not storage and id(view.counter) not in self.counters:
            self.counters[id(view.counter)] = (view.counter, view.counter.version)
        if id(storage) not in self.fresh_storages:
            self.lift(storage, tensor)
        if view is not None and view.base is not None:
            if id(tensor) in self.arguments or id(tensor) in self.borrowed:
                self.borrowed.add(id(view.base))
            _ = view.base._xt_storage
        if type(edge) is tuple:
            shape = storage.array.shape if view is None else view.sizes
            dtype = storage.array.dtype if view is None else view.dtype.numpy
            tensor._xt_edge = (Boundary(ShapedArray(tuple(shape), dtype)), 0)

    def lift(self, storage: Storage, tensor: Tensor) -> None:
        """Put a tracer in the place of a storage's array."""
        if id(storage) in self.held:
            return
        if type(storage) is LazyStorage:
            _ = storage.array
        array = storage.array
        if isinstance(array, (Tracer, MetaArray)) or not isinstance(array, jax.Array):
            return
        place = devices.of_array(array)
        if self.place is None:
            self.place, self.sharding = place, place.sharding or array.sharding
        elif place is not self.place:
            if not self.grouping:
                hint = "" if self.place.sharding is None is place.sharding else PLACE
                self.refuse(f"tensors on {self.place} and on {place} come together{hint}")
            self.elsewhere[id(storage)] = array.sharding
        number = self.arguments.get(id(tensor))
        meta = self.grads.get(id(tensor))
        group = self.groups.get(id(array))
        if self.grouping and group is not None:
            # Equal step counts are one array: one input.
            tracer, at = group[0].tracer, group[0].number
        else:
            if number is not None:
                source = Source("given", number)
            elif meta is not None:
                source = Source("grad", meta)
            else:
                source = Source("held", storage)
            tracer, at = self.bind(source, array.aval), len(self.inputs) - 1
        writer = getattr(storage, "writer", None)
        held = Held(
            storage,
            array,
            storage.version,
            storage.writes,
            storage.shared,
            writer,
            type(storage),
            tracer,
            at,
        )
        self.held[id(storage)] = held
        if self.grouping:
            self.groups.setdefault(id(array), []).append(held)
        if type(storage) is not Storage:
            storage.__class__ = Storage  # pyright: ignore[reportAttributeAccessIssue]
        storage.writes += 1  # what views have read before is of before
        cell.__set__(storage, tracer)

    # -- what xtensor asks of a capture

    def draw(self, generator: Generator) -> tuple[Any, Any]:
        """See `capture.Watcher`."""
        found = self.generators.get(id(generator))
        if found is None:
            seed = self.host(lambda: generator.operands()[0], (), np.int64)
            draw = self.host(lambda: generator.operands()[1], (), np.int64)
            found = self.generators[id(generator)] = [
                generator,
                generator._seed,
                int(generator.draws),
                seed,
                draw,
            ]
        _, first_seed, first, seed, draw = found
        at = generator.draws
        generator.draws = at + 1
        if generator._seed != first_seed:
            return generator.operands()[0], at
        return seed, draw + np.int64(at - first)

    def numbers(self, optimizer: Any) -> Any:
        """See `capture.Watcher`."""
        if self.rate_changed:
            self.refuse("an optimizer steps after its scheduler has")
        if not isinstance(optimizer, RuleOptimizer):
            self.refuse(f"a step of {type(optimizer).__name__}")
        self.optimizers[id(optimizer)] = optimizer
        found = self.vectors.get(id(optimizer))
        if found is None:
            groups = optimizer.param_groups
            count = sum(len(optimizer.numbers_of(group)) for group in groups)
            (place, *more) = {p.device for group in groups for p in group["params"]}
            if more:
                self.refuse("an optimizer's parameters lie on several devices")
            found = self.vectors[id(optimizer)] = self.host(
                lambda: optimizer.operand_vector(place), (count,), np.float64
            )
        return found

    def counts(self, counters: list[Tensor]) -> list[Any]:
        """See `capture.Watcher`."""
        found = []
        self.grouping = True
        for counter in counters:
            array = array_of(counter)
            known = self.known_counts.get(id(array))
            if known is None:
                known = self.known_counts[id(array)] = (array, TracedCount(array.astype(np.float64)))
            found.append(known[1])
        self.grouping = False
        return found

    def skip(self, generator: Generator, count: int) -> None:
        """See `capture.Watcher`."""
        generator.draws += count

    def unseen(self, array: Any, fits: Callable[[Any], bool], when: Any = None) -> None:
        """See `capture.Watcher`."""
        self.checks.append((array, fits, when))

    def versions(self) -> dict[int, tuple[Storage, int]]:
        """The storages that are known, with their versions."""
        fresh = [ref() for ref in self.fresh_storages.values()]
        known = [*[h.storage for h in self.held.values()], *[s for s in fresh if s is not None]]
        return {id(s): (s, s.version) for s in known}

    @contextmanager
    def reading(self) -> Iterator[dict[int, Storage]]:
        """A block whose storages that are read are noted."""
        before, own = self.log, {}
        self.log = own
        try:
            yield own
        finally:
            self.log = before
            if before is not None:
                before.update(own)

    def steps(self, optimizer: Any) -> None:
        """See `capture.Watcher`."""
        if id(optimizer) not in self.states:
            own = {p: (s, dict(s)) if isinstance(s, dict) else (s, None) for p, s in optimizer.state.items()}
            self.states[id(optimizer)] = (optimizer, own)

    def new_state(self) -> bool:
        """Whether an optimizer has made states that were not there before."""
        for optimizer, own in self.states.values():
            now = optimizer.state
            if now.keys() != own.keys():
                return True
            for param, (present, before) in own.items():
                if now[param] is not present:
                    return True
                if before is not None and (
                    present.keys() != before.keys() or any(present[n] is not v for n, v in before.items())
                ):
                    return True
        return False

    def new_module(self, module: Any) -> None:
        """See `capture.Watcher`."""
        self.modules[id(module)] = module

    def repeats(self, owner: Any, name: str | None, value: Any) -> bool:
        """See `capture.Watcher`."""
        if id(owner) in self.modules:
            return True
        if name is None:
            return False
        for kind in MEMBERS:
            members = owner.__dict__.get(kind, {})
            if name in members:
                return members[name] is value
        if (id(owner), name) in self.sets:
            return not isinstance(value, (Parameter, Buffer)) and not hasattr(value, "_modules")
        old = owner.__dict__.get(name)
        fresh = type(value) is Tensor and id(value) in self.fresh
        return fresh and id(old) not in self.met and self.set_later(owner, name)

    def set_later(self, owner: Any, name: str) -> bool:
        """Have an attribute of an object's own set at every call; False where setting one does more than that."""
        kind = type(owner)
        own = getattr(owner, "__dict__", None)
        if kind.__setattr__ not in PLAIN_SETTERS or not isinstance(own, dict):
            return False
        if hasattr(getattr(kind, name, None), "__set__"):
            return False
        self.sets.setdefault((id(owner), name), (owner, name, own.get(name, UNSET)))
        return True

    # -- the watch

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the end of the block; then all is as it was before it."""
        mode = modes.snapshot()
        modes.state.autocast_cache = None if modes.state.autocast_cache is None else {}
        Tensor._xt_storage = property(self._storage_of, self._set_storage)  # type: ignore[assignment]
        AutogradMeta.grad = property(self._grad_of, self._set_grad)  # type: ignore[assignment]
        capture.begin(self)
        try:
            with segments.paused():
                yield
        finally:
            try:
                capture.end(self)
                Tensor._xt_storage = storage_slot
                AutogradMeta.grad = grad_slot
            finally:
                self.restore()
                modes.restore(mode)
                self.over.set()

    def _storage_of(self, tensor: Tensor) -> Storage:
        storage = storage_slot.__get__(tensor)
        if threading.get_ident() != self.thread:
            self._wait(storage)
        else:
            if id(tensor) not in self.met and id(tensor) not in self.fresh:
                self.meet(tensor, storage)
            if self.log is not None:
                self.log[id(storage)] = storage
        return storage

    def _set_storage(self, tensor: Tensor, storage: Storage) -> None:
        if threading.get_ident() == self.thread:
            try:
                present = storage_slot.__get__(tensor)
            except AttributeError:
                self.fresh.add(id(tensor))
                if id(storage) not in self.held:
                    self.fresh_storages[id(storage)] = weakref.ref(storage)
            else:
                if id(tensor) not in self.met and id(tensor) not in self.fresh:
                    self.meet(tensor, present)
        storage_slot.__set__(tensor, storage)

    def _grad_of(self, meta: AutogradMeta) -> Any:
        grad = grad_slot.__get__(meta)
        if threading.get_ident() == self.thread:
            self._meet_slot(meta, grad)
        return grad

    def _set_grad(self, meta: AutogradMeta, grad: Any) -> None:
        if threading.get_ident() == self.thread:
            try:
                self._meet_slot(meta, grad_slot.__get__(meta))
            except AttributeError:
                self.metas[id(meta)] = (meta, UNSET)
        grad_slot.__set__(meta, grad)

    def _meet_slot(self, meta: AutogradMeta, grad: Any) -> None:
        if id(meta) in self.metas:
            return
        self.metas[id(meta)] = (meta, grad)
        if grad is None or id(grad) in self.fresh:
            return
        if id(grad) in self.met:
            self.refuse("a gradient is also a tensor that the function reads by another way")
        self.grads[id(grad)] = meta

    def _wait(self, storage: Storage) -> None:
        """Another thread, which must not see tracers."""
        if id(storage) in self.held and not threading.current_thread().name.startswith(OWN):
            self.over.wait()

    def restore(self) -> None:
        """Give all storages, gradients and counts back what they had. In calls of C, so that no signal finds half of it."""
        if self.new_state():
            for optimizer, own in self.states.values():
                optimizer.state.clear()
                for param, (present, before) in own.items():
                    optimizer.state[param] = present
                    if before is not None:
                        present.clear()
                        present.update(before)
        for owner, name, old in self.sets.values():
            if old is UNSET:
                owner.__dict__.pop(name, None)
            else:
                owner.__dict__[name] = old
        held = list(self.held.values())
        for h in held:
            h.storage.version, h.storage.shared = h.version, h.shared
            h.storage.writes += 1
            if h.writer is not None:
                h.storage.writer = h.writer
        any(map(put, [h.storage for h in held], [h.array for h in held]))
        for h in held:
            h.storage.writes += 1
            if h.kind is not Storage:
                h.storage.__class__ = h.kind  # pyright: ignore[reportAttributeAccessIssue]
        slots = [(meta, grad) for meta, grad in self.metas.values() if grad is not UNSET]
        any(map(grad_slot.__set__, [m for m, _ in slots], [g for _, g in slots]))
        for met in self.met.values():
            storage_slot.__set__(met.tensor, met.storage)
            met.tensor._xt_view, met.tensor._xt_edge = met.view, met.edge
            met.tensor._xt_meta = met.meta
            view = met.view
            if view is not None:
                view.attr_version = met.attr_version
                if isinstance(view.cached, Tracer):
                    view.cached, view.cached_at = None, -1
        for counter, version in self.counters.values():
            counter.version = version
        for generator, seed, draws, *_ in self.generators.values():
            generator._seed, generator.draws = seed, draws
        for optimizer in self.optimizers.values():
            optimizer._known = {}


UNSET: Any = object()
MEMBERS = ("_parameters", "_buffers", "_modules")
PLAIN_SETTERS = (object.__setattr__, Module.__setattr__)
