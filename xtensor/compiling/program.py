"""A captured function as a program: gathers arrays, runs, and puts every result where the function would have put it.

What is written goes into storages, gradients into their slots and draws to their generators in the call of C that runs the
program, so that a signal finds all of it or none. Buffers of what is written are given up where nobody else sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, starmap
from operator import itemgetter
from sys import getrefcount
from typing import Any

import jax
import numpy as np

from .. import capture, devices
from ..devices.placement import of_jax_device
from ..engine import INFERENCE, NO_GRAD, RELEASED, LeafEdge, Node
from ..engine.modes import state
from ..gradients import grad as grad_of
from ..operators.generator import Generator
from ..operators.saved import check_version
from ..operators.write import SOLE
from ..storage import LazyStorage, Storage, put
from ..tensor import Tensor, array_of, edge_of, plain_edge, wrap
from ..xla.threads import others
from ..xla.x64 import call, copied, jit
from .joint import Parts
from .results import Leaves, Result, over
from .watch import Source, grad_slot

__all__ = ["CompiledBackward", "Program"]

set_draws: Any = Generator.draws.__set__  # type: ignore[attr-defined]


class CompiledBackward(Node):
    """The node of a captured function: from the gradients of its results to those of what it read, by one program."""

    __slots__ = ("again", "entries", "metadata_of", "_xt_num_inputs", "program", "released_at")

    _xt_num_inputs: int
    _xt_trusted = True

    def __init__(self, program: Program, edges: Any, entries: list[Any], again: Any) -> None:
        super().__init__(edges)
        self.again = again
        self.program = program
        self.entries: list[Any] | None = entries
        leaves = program.leaves
        self.metadata_of = tuple(leaves.avals)
        self.released_at = leaves.released
        self._xt_num_inputs = len(leaves.avals)

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return self.metadata_of

    def _xt_release(self) -> None:
        self.entries = self.again = None

    def origin_of(self, entry: Any) -> Any:
        """No operator's result: an entry is what the function was given."""
        return None

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        entries = self.entries
        if entries is None or any(g is not None and r for g, r in zip(grads, self.released_at, strict=True)):
            raise RuntimeError(RELEASED)
        if all(g is None for g in grads):
            return (None,) * len(self._xt_edges)
        for entry in entries:
            if entry[0] is not None and entry[0].version != entry[1]:
                check_version(entry, self)
        if not state.mode & NO_GRAD:
            return self._recorded(grads)
        sent = [
            jax.numpy.zeros(a.shape, a.dtype) if g is None else array_of(g)
            for g, a in zip(grads, self.metadata_of, strict=True)
        ]
        pull: Any = self.program.pull
        made = call(pull, *sent, *[entry[2] for entry in entries])
        return tuple([wrap(array) for array in made])

    def _recorded(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """With create_graph: the function is run again, eagerly, and its graph is differentiated."""
        if self.again is None:
            raise RuntimeError(
                "backward with create_graph=True through a compiled function that writes tensors or draws random numbers: "
                "it cannot be run again. Call the function itself, or decorate it with xtensor.compiler.disable()."
            )
        function, args, kwargs, given = self.again
        leaves = self.program.leaves
        made: list[Tensor] = []
        tensors_of(function(*args, **kwargs), made)
        outputs = {r.edge: t for r, t in zip(leaves.results, made) if r.edge is not None}
        sent = [(outputs[number], grad) for number, grad in enumerate(grads) if grad is not None]
        inputs = [what if kind == "held" else given[what] for kind, what in leaves.borders]
        return grad_of(
            [out for out, _ in sent], inputs, [grad for _, grad in sent], create_graph=True, allow_unused=True
        )


def tensors_of(value: Any, found: list[Tensor]) -> None:
    """The tensors in a function's value, each once, in the order in which a description numbers them."""
    if isinstance(value, Tensor):
        if not any(value is t for t in found):
            found.append(value)
    elif isinstance(value, dict):
        for each in value.values():
            tensors_of(each, found)
    elif isinstance(value, (list, tuple)):
        for each in value:
            tensors_of(each, found)


class Away:
    """What a storage elsewhere holds of a program's result until it is touched: to bring it there waits for the program."""

    def __init__(self, array: Any, where: Any) -> None:
        self.array, self.where = array, where
        self.shape, self.dtype = array.shape, array.dtype
        self._there: Any = None

    @property
    def device(self) -> devices.device:
        """Where it is to be."""
        (place,) = self.where.device_set
        return of_jax_device(place)

    def read(self) -> tuple[Any, bool]:
        """The array there, which is that of all storages that hold this."""
        if self._there is None:
            self._there = jax.device_put(self.array, self.where)
        return self._there, True

    def on(self, device: devices.device) -> Away:
        """The same, to be read to another device."""
        return Away(self.array, devices.sharding_of(device))


class Program:
    """One capture, compiled."""

    def __init__(
        self,
        name: str,
        inputs: list[Source],
        parts: Parts,
        leaves: Leaves,
        same: list[Any],
        elsewhere: dict[int, Any],
        sharding: Any,
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.parts = parts
        self.leaves = leaves
        self.same = same
        self.effects: list[Any] = []
        self.guards: Any = None
        asked = [check[0] for check in leaves.checks if check[0] is not None]
        needed = sorted({*parts.reads, *asked, *[k for k in parts.kept if k is not None]})
        self.numbers = needed
        places = {number: at for at, number in enumerate(needed)}
        self.reads = [places[n] for n in parts.reads]
        self.before = [(places[n], fits) for n, _, fits, _ in leaves.checks if n is not None]
        self.after = [(at, fits, when) for n, at, fits, when in leaves.checks if n is None]
        self.all_read = self.reads == list(range(len(needed)))
        self.kept = [None if k is None else places[k] for k in parts.kept]
        self.sources = [inputs[n] for n in needed]
        self.holders = [s.what if s.kind == "held" else None for s in self.sources]
        self.elsewhere = elsewhere
        self.moved: dict[int, tuple[Any, Any]] = {}
        self.sharding = sharding
        self.gathered = [(None if id(h) in elsewhere else h, s) for h, s in zip(self.holders, self.sources)]
        self.counts = len(leaves.outs)
        leaves.outs = []
        leaves.gradients = []
        written = {self._key(w.source) for w in leaves.written}
        residual = {k for k in self.kept if k is not None}
        grouped = {id(s) for group in same for s in group}
        self.donated = tuple(
            [
                i
                for i, at in enumerate(self.reads)
                if self.sources[at].kind in ("held", "grad")
                and self._key(self.sources[at]) in written
                and at not in residual
                and id(self.sources[at].what) not in elsewhere
                and not (self.sources[at].kind == "held" and id(self.sources[at].what) in grouped)
            ]
        )
        if self.after:
            self.donated = ()
        puts = leaves.puts
        self.pick: Any = itemgetter(*puts, *puts[:1]) if puts else iter
        self.owned = [(i, self.sources[self.reads[i]]) for i in self.donated]
        self._programs: dict[bool, Any] = {}
        self.pull = None if parts.backward is None else jit(named(parts.backward, f"{name}_backward"))
        held = all(w.source.kind == "held" for w in leaves.written)
        self.cells = [w.storage for w in leaves.written] if held else None
        self.versions = [w.versions for w in leaves.written]
        self.writers = [w.writer for w in leaves.written]
        self.slots = [meta for meta, _ in leaves.grads]
        self.generators = [g for g, _ in leaves.draws]
        # Of every result the storage that it is all of, where it is the only one that is.
        self.blank = [None] * leaves.filled
        self.whole: list[int | None] = []
        for r in leaves.results:
            plain = r.kind == "new" and r.geometry is None and not r.leaf and r.what not in self.whole
            self.whole.append(r.what if plain else None)
        self.calls = 0

    @staticmethod
    def _key(source: Source) -> tuple[str, int]:
        return (source.kind, source.what if source.kind == "given" else id(source.what))

    def program(self, donate: bool) -> Any:
        """The compiled function, which gives buffers up or not."""
        found = self._programs.get(donate)
        if found is None:
            options: Any = {"donate_argnums": self.donated} if donate and self.donated else {}
            found = self._programs[donate] = jit(named(self.parts.forward, self.name), **options)
        return found

    def storage_at(self, source: Source, given: Sequence[Tensor]) -> Storage:
        """The storage that a source stands for in this call."""
        if source.kind == "held":
            return source.what
        if source.kind == "given":
            return given[source.what]._xt_storage
        return grad_slot.__get__(source.what)._xt_storage

    def _array(self, source: Source, given: Sequence[Tensor]) -> Any:
        if source.kind == "host":
            return source.what()
        if source.kind == "values":
            return array_of(given[source.what])
        if source.kind == "number":
            return call(np.asarray, given[source.what], np.float64)
        storage = self.storage_at(source, given)
        if id(storage) in self.elsewhere:
            held = storage.raw
            own, there = self.moved.get(id(held), (None, None))
            return there if own is held else jax.device_put(storage.array, self.sharding)
        return storage.array

    def _move_back(self, cells: Sequence[Any]) -> None:
        """Give what lies elsewhere its results there: equal ones are one array, which the next call takes from where it was."""
        moved: dict[tuple[int, Any], Away] = {}
        for storage in cells:
            if id(storage) in self.elsewhere:
                array, where = storage.array, self.elsewhere[id(storage)]
                key = (id(array), where)
                if key not in moved:
                    moved[key] = Away(array, where)
                if type(storage) in (Storage, LazyStorage):
                    # In this order, so that a signal between finds the result.
                    storage.__class__ = LazyStorage
                    storage.raw = moved[key]
                else:
                    storage.array = moved[key].read()[0]
        self.moved = {id(away): (away, away.array) for away in moved.values()}

    def __call__(self, given: Sequence[Tensor], call_again: Any = None) -> Any:
        """The function's value, after all it does; see `Unfit`. call_again: the function and its arguments."""
        leaves = self.leaves
        arrays = [self._array(s, given) if h is None else h.array for h, s in self.gathered]
        for place, fits in self.before:
            if not fits(arrays[place]):
                raise Unfit
        entries: list[Any] = []
        tracked = bool(leaves.released) and not state.mode & NO_GRAD
        if tracked:
            entries = [None if k is None else self._entry(k, arrays, given) for k in self.kept]
        args = arrays if self.all_read else [arrays[i] for i in self.reads]
        del arrays
        donate = not others and bool(self.donated)
        if donate:
            self._own(args, given)
        program = self.program(donate)
        holder: list[Any] = []
        cells = self.cells
        if cells is None:
            cells = [
                w.storage if w.source.kind == "held" else self.storage_at(w.source, given)
                for w in leaves.written
            ]
        if not state.mode & INFERENCE:
            wrapped = list(map(wrap, self.blank))
            new = [t._xt_storage for t in wrapped]
            made = [
                self._result(r, given, new) if at is None else wrapped[at]
                for r, at in zip(leaves.results, self.whole)
            ]
        else:
            new = [Storage(None) for _ in range(leaves.filled)]
            made = [self._result(r, given, new) for r in leaves.results]
        grads = [None if n is None else made[n] for _, n in leaves.grads]
        draws = [g.draws + k for g, k in leaves.draws]
        operands = (*args, *self.parts.constants)
        del args
        if self.after:
            # Asked before anything is written: what eager code refuses is left to it.
            results = call(program, *operands)
            for at, fits, when in self.after:
                if (when is None or bool(results[when])) and not fits(results[at]):
                    raise Unfit
            starting = map(holder.append, [results])
        else:
            starting = map(holder.append, starmap(program, (operands,)))
        del operands
        for storage, versions, writer in zip(cells, self.versions, self.writers):
            storage.version += versions
            storage.writes += 1
            if writer is not None:
                storage.writer = writer
        try:
            call(
                any,
                chain(
                    starting,
                    map(put, (*cells, *new), chain.from_iterable(map(self.pick, holder))),
                    map(grad_slot.__set__, self.slots, grads),
                    map(set_draws, self.generators, draws),
                ),
            )
        except Exception:
            for w, storage in zip(leaves.written, cells):
                storage.version -= w.versions
            raise
        for storage in cells:
            storage.writes += 1
            storage.shared = False
        if self.elsewhere:
            self._move_back(cells)
        outs = holder.pop()
        for counter, versions in leaves.counters:
            counter.version += versions
        for scaler, at in leaves.scalers:
            scaler.settle_later(outs[at], outs[at + 1])
        if tracked:
            self._join(made, entries, outs, given, call_again)
        self.calls += 1
        value = leaves.build(made)
        if leaves.sets:
            self._set(made)
        for function, more, options in self.effects:
            function(*more, **options)
        return value

    def _set(self, made: list[Tensor]) -> None:
        """Give objects the attributes that the function sets."""
        for owner, name, build in self.leaves.sets:
            owner.__dict__[name] = build(made)
        guards = self.guards
        latest = guards.epoch == capture.epoch[0]
        capture.moved(False)
        if latest:
            guards.epoch = capture.epoch[0]  # of its own changes a program need not look

    def _own(self, args: list[Any], given: Sequence[Tensor]) -> None:
        """Copies of the arrays to be given up that somebody else can see."""
        counts = list(map(getrefcount, args))
        for i, source in self.owned:
            storage = source.what if source.kind == "held" else self.storage_at(source, given)
            if counts[i] != SOLE or storage.shared:
                args[i] = call(copied, args[i])

    def _entry(self, at: int, arrays: list[Any], given: Sequence[Tensor]) -> Any:
        source = self.sources[at]
        if source.kind in ("host", "values", "number"):
            return (None, 0, arrays[at])
        storage = self.storage_at(source, given)
        return (storage, storage.version, arrays[at])

    def _result(self, result: Result, given: Sequence[Tensor], new: list[Storage]) -> Tensor:
        kind = result.kind
        if kind == "new":
            tensor = over(new[result.what], result.geometry)
            if result.leaf:
                tensor._xt_edge = LeafEdge(tensor)
            return tensor
        if kind == "given":
            return given[result.what]
        if kind == "same":
            return result.what
        if kind == "grad":
            return grad_slot.__get__(result.what)
        return over(self.storage_at(result.what, given), result.geometry)

    def _join(
        self, made: list[Tensor], entries: list[Any], outs: Any, given: Sequence[Tensor], call_again: Any
    ) -> None:
        """Give results their place in the backward graph."""
        leaves = self.leaves
        computed = iter(outs[self.counts :])
        entries = [(None, 0, next(computed)) if e is None else e for e in entries]
        edges = []
        for kind, what in leaves.borders:
            edges.append(plain_edge(edge_of(what if kind == "held" else given[what])))
        pure = not (
            leaves.written or leaves.draws or leaves.grads or leaves.counters or leaves.sets or self.effects
        )
        again = (*call_again, given) if pure and call_again is not None else None
        node = CompiledBackward(self, tuple(edges), entries, again)
        for result, tensor in zip(leaves.results, made):
            if result.edge is not None:
                tensor._xt_edge = (node, result.edge)


class Unfit(Exception):
    """The values that a call met are none that the program was made for: nothing has been changed."""


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function under a name, which profiles show."""

    def run(*args: Any) -> Any:
        return function(*args)

    run.__name__ = run.__qualname__ = name if name.isidentifier() else "compiled"
    return run
