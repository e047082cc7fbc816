"""Functions of eager code that become parts of a program: branches, and bodies of loops.

Where values are not known (within a capture, an export, `jax.jit`), a branch or a body is traced inside of JAX's own control flow. What
it reads from around it are values of the trace, so nothing has to be passed in. It runs several times: once for its form (what it
gives, what autograd would follow, what it draws and asks of values), once for its values, and once more for its gradients, which are
those of the code run again, as eager code has them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.core import Tracer

from .. import capture
from ..engine import Node, modes, next_sequence_nr, run_backward
from ..engine.graph import LEAF_SEQUENCE_NR
from ..gradients import gradient_edge
from ..tensor import Tensor, array_of, wrap
from ..trees import tree_flatten, tree_unflatten
from ..xla import segments
from ..xla.levels import KINDS, ground

__all__ = [
    "Form",
    "Staged",
    "StagedBackward",
    "Writing",
    "ask",
    "aval_of",
    "form_of",
    "gradients",
    "is_leveled",
    "is_unknown",
    "rewind",
    "step",
    "zeros",
]

Tensors = list[Tensor]


def is_unknown(value: Any) -> bool:
    """Whether a value is a tensor whose elements are not known: a trace runs."""
    return isinstance(value, Tensor) and isinstance(ground(array_of(value)), Tracer)


def is_leveled(value: Any) -> bool:
    """Whether a value is a tensor at a level of `xtensor.func`: a batch, or with tangents."""
    return isinstance(value, Tensor) and type(array_of(value)) in KINDS


@runtime_checkable
class Reading(Protocol):
    """A capture that knows which storages are there, and notes which are read."""

    def versions(self) -> dict[int, tuple[Any, int]]: ...

    def reading(self) -> Any: ...

    def refuse(self, reason: str) -> None: ...


@runtime_checkable
class Writing(Protocol):
    """A mode that writes operators into a program, branches and loops with their functions among them."""

    def control_flow(
        self,
        name: str,
        functions: Sequence[tuple[Callable[..., Any], Sequence[Tensor]]],
        args: tuple[Any, ...],
        options: dict[str, Any],
        run: Callable[[], Sequence[Tensor]],
    ) -> Tensors:
        """The results of `run`, which becomes a step with these functions; each is given with tensors like those that it is called with."""
        ...


def step(
    name: str,
    functions: Sequence[tuple[Callable[..., Any], Sequence[Tensor]]],
    args: tuple[Any, ...],
    options: dict[str, Any],
    run: Callable[[], Any],
) -> Any:
    """What `run` gives; where the innermost mode below autograd writes a program, it is a step of that (see `Writing`)."""
    found = modes.state.dispatch_modes
    if not found or not isinstance(found[-1], Writing):
        return run()
    told: list[Any] = []

    def tensors() -> Tensors:
        made, build, _ = flat(run())
        told.append(build)
        return made

    made = found[-1].control_flow(name, functions, args, options, tensors)
    return told[0](made)


class Asked(NamedTuple):
    """Values that a run asks about: they must fit, at least where `when` holds."""

    array: Any
    when: Any
    fits: Callable[[Any], bool]


class Drawn:
    """What a function draws of a generator: the seed and the number of its first draw, and how many there are."""

    def __init__(self, generator: Any, seed: Any, first: Any) -> None:
        self.generator = generator
        self.seed = seed
        self.first = first
        self.count = 1


class Staged:
    """A function while it is traced: the watcher that stands between it and the capture around it (see `capture.Watcher`).

    what: names it in messages. drawn: what it draws, known from its first run. asked: what the last run asks of values.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.outer: Any = capture.running()
        self.root = getattr(self.outer, "root", self.outer)
        self.thread = threading.get_ident()
        self.drawn: dict[int, Drawn] = {}
        self.asked: list[Asked] = []
        self.offset: Any = None
        self._first = True
        self._at: dict[int, int] = {}

    @property
    def place(self) -> Any:
        return None if self.outer is None else self.outer.place

    @contextmanager
    def running(self, first: bool = False, offset: Any = None) -> Iterator[None]:
        """A run of the function; offset: how many runs there were before it, where it is a loop's body."""
        self._first, self.offset, self.asked, self._at = first, offset, [], {}
        try:
            capture.begin(self)
            with segments.paused():
                yield
        finally:
            capture.end(self)

    def draw(self, generator: Any) -> tuple[Any, Any]:
        found = self.drawn.get(id(generator))
        if self._first:
            if self.outer is None:
                raise RuntimeError(f"{self.what} draws random numbers, and no capture runs")
            seed, at = self.outer.draw(generator)
            if found is None:
                self.drawn[id(generator)] = Drawn(generator, seed, at)
            else:
                found.count += 1
            return seed, at
        at = self._at.get(id(generator), 0)
        if found is None or at >= found.count:
            self.refuse(f"{self.what} draws other random numbers when it runs again")
            raise AssertionError
        self._at[id(generator)] = at + 1
        number = found.first + at
        return found.seed, number if self.offset is None else number + self.offset * found.count

    def skip(self, generator: Any, count: int) -> None:
        if self._first:
            if id(generator) in self.drawn:
                self.drawn[id(generator)].count += count
            self.outer.skip(generator, count)
        else:
            self._at[id(generator)] = self._at.get(id(generator), 0) + count

    def unseen(self, array: Any, fits: Callable[[Any], bool], when: Any = None) -> None:
        self.asked.append(Asked(array, when, fits))

    def refuse(self, reason: str) -> None:
        if self.outer is None:
            raise RuntimeError(reason)
        self.outer.refuse(reason)

    def numbers(self, optimizer: Any) -> Any:
        self.steps(optimizer)

    def counts(self, counters: list[Any]) -> list[Any]:
        self.refuse(f"{self.what} makes a step of an optimizer")
        return []

    def steps(self, optimizer: Any) -> None:
        self.refuse(f"{self.what} makes a step of {type(optimizer).__name__}")

    def new_module(self, module: Any) -> None:
        if self.outer is not None:
            self.outer.new_module(module)

    def repeats(self, owner: Any, name: str | None, value: Any) -> bool:
        return False


class Form(NamedTuple):
    """What a run of a function gave: its tensors, the structure around them, and the edges that its graph ends in.

    unchanged: refuses to go on where something that it read has been written since.
    """

    tensors: Tensors
    build: Callable[[Tensors], Any]
    rest: tuple[Any, ...]
    borders: list[Any]
    unchanged: Callable[[], None] | None


def flat(value: Any) -> tuple[Tensors, Callable[[Tensors], Any], tuple[Any, ...]]:
    """The tensors of a tree, what makes a tree of others, and what can be compared of the rest."""
    leaves, tree = tree_flatten(value)
    found = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    rest = tuple([None if isinstance(leaf, Tensor) else (type(leaf), leaf) for leaf in leaves])

    def build(tensors: Tensors) -> Any:
        given = iter(tensors)
        return tree_unflatten([next(given) if r is None else r[1] for r in rest], tree)

    return found, build, (tree, rest)


class _Graph:
    """The part of a graph that a run made: the edges that lead out of it. mark: the number of its first node."""

    def __init__(self, tensors: Tensors, mark: int) -> None:
        self.mark = mark
        self.roots = [gradient_edge(t) for t in tensors]
        self.nodes: dict[int, Node] = {}
        self.borders: dict[tuple[int, int], Any] = {}
        stack = [edge for edge in self.roots if edge is not None]
        for edge in stack:
            self._reach(edge, stack)

    def _reach(self, edge: Any, stack: list[Any]) -> None:
        node, slot = edge
        if self.is_own(node):
            if id(node) not in self.nodes:
                self.nodes[id(node)] = node
                stack.extend(e for e in node._xt_edges if e is not None)
        else:
            self.borders.setdefault((id(node), slot), edge)

    def is_own(self, node: Node) -> bool:
        return self.mark <= node._xt_sequence_nr < LEAF_SEQUENCE_NR

    @contextmanager
    def cut(self, stops: dict[tuple[int, int], Any]) -> Iterator[None]:
        """A block in which the edges that lead out end in nodes of their own: what lies behind is not entered."""
        before = [(node, node._xt_edges) for node in self.nodes.values()]
        try:
            for node, edges in before:
                node._xt_edges = tuple([e and stops.get((id(e[0]), e[1]), e) for e in edges])
            yield
        finally:
            for node, edges in before:
                node._xt_edges = edges


class Stop(Node):
    """Stands, while gradients are asked for, where the graph of a function leads out of it; then it leads there."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        super().__init__(())
        self.aval = aval

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        return grads


def form_of(staged: Staged, function: Callable[..., Any], *args: Any) -> Form:
    """Run the function in the trace around it, where nothing of it stays, for its form."""
    root = staged.root
    read: Any = None
    mark = next_sequence_nr()
    if isinstance(root, Reading):
        before = root.versions()
        with root.reading() as read, staged.running(first=True):
            tensors, build, rest = flat(function(*args))
        if any(storage.version != version for storage, version in before.values()):
            root.refuse(f"{staged.what} writes to a tensor from before")
        read = {k: before[k] for k in read if k in before}
    else:
        with staged.running(first=True):
            tensors, build, rest = flat(function(*args))

    def unchanged() -> None:
        for storage, version in (read or {}).values():
            if storage.version != version:
                staged.refuse(f"what {staged.what} read is written before its gradients are taken")

    borders = list(_Graph(tensors, mark).borders.values())
    return Form(tensors, build, rest, borders, None if read is None else unchanged)


def zeros(aval: Any) -> Tensor:
    """Zeros of a tensor's or an aval's shape and dtype."""
    return wrap(jnp.zeros(tuple(aval.shape), getattr(aval.dtype, "numpy", aval.dtype)))


def gradients(
    function: Callable[[], Any], flags: Sequence[bool], grads: Sequence[Tensor], wanted: Sequence[Any]
) -> Tensors:
    """What the gradients of a function's results send along the edges `wanted`, zeros where nothing arrives.

    flags: which of the results have gradients; grads: theirs. The function runs again; nothing beyond those edges, and those that its graph
    ends in, is entered. With grad mode on the gradients have their graph.
    """
    create = modes.is_grad_enabled()
    mark = next_sequence_nr()
    with modes.enable_grad():
        tensors, _, _ = flat(function())
    graph = _Graph([t for t, flag in zip(tensors, flags, strict=True) if flag], mark)
    places = {(id(e[0]), e[1]): e for e in (*graph.borders.values(), *wanted)}
    stops = {key: (Stop(e[0]._xt_metadata[e[1]]), 0) for key, e in places.items()}
    sent: Any = [
        (stops.get((id(e[0]), e[1]), e), g) for e, g in zip(graph.roots, grads, strict=True) if e is not None
    ]
    ends = tuple([stops[id(e[0]), e[1]] for e in wanted])
    found: Any = (None,) * len(ends)
    if sent and ends:
        with graph.cut(stops):
            found = run_backward(
                tuple([e for e, _ in sent]),
                tuple([g for _, g in sent]),
                keep_graph=create,
                create_graph=create,
                inputs=ends,
                allow_unreachable=True,
                accumulate_grad=False,
            )
    if create:  # what was saved leads to the nodes that stood there
        for key, (stop, _) in stops.items():
            stop._xt_edges = (places[key],)
    return [zeros(e[0]._xt_metadata[e[1]]) if g is None else g for e, g in zip(wanted, found, strict=True)]


class StagedBackward(Node):
    """The node of a branch or a loop. pull: of the gradients of all results those for the edges, as functions of tensors."""

    __slots__ = ("_xt_num_inputs", "avals", "pull", "title", "unchanged")

    _xt_num_inputs: int

    def __init__(
        self, title: str, edges: Any, avals: Sequence[Any], pull: Callable[[Any], Any], unchanged: Any
    ) -> None:
        super().__init__(tuple(edges))
        self.title = title
        self.avals = tuple(avals)
        self.pull = pull
        self.unchanged = unchanged
        self._xt_num_inputs = len(self.avals)

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return self.avals

    def name(self) -> str:
        return self.title

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if all(g is None for g in grads):
            return (None,) * len(self._xt_edges)
        if self.unchanged is not None:
            self.unchanged()
        return tuple(self.pull(grads))


def ask(outer: Any, asked: Sequence[Asked], values: Sequence[tuple[Any, Any]]) -> None:
    """Pass on what a run asked: of each its values, as they leave the branch or the loop, and whether they count."""
    if outer is not None:
        for each, (array, when) in zip(asked, values, strict=True):
            outer.unseen(array, each.fits, when)


def rewind(outer: Any, staged: Staged) -> None:
    """Take back what a function drew, so that another draws the same numbers."""
    for drawn in staged.drawn.values():
        outer.skip(drawn.generator, -drawn.count)


def asked_arrays(asked: Sequence[Asked]) -> list[Any]:
    """The values that a run asks about, each with where it counts, to be given with its results."""
    found: list[Any] = []
    for each in asked:
        found += [ground(each.array), jnp.asarray(True) if each.when is None else each.when]
    return found


def aval_of(tensor: Tensor) -> Any:
    """Shape and dtype."""
    return jax.ShapeDtypeStruct(tuple(tensor.shape), tensor.dtype.numpy)
