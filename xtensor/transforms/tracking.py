"""Transforms that go backwards: what an inner derivative's results depend on besides its own arguments.

Each of them differentiates the one graph that autograd has. Its arguments enter as places of their own: views of what an
outer graph already follows, leaves where nothing does. A result keeps its graph where that leads to something still
being differentiated (an argument of an enclosing level, or a tensor of the user's that requires grad), and is cut
off where it leads to arguments of finished levels alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from .. import engine
from ..engine import is_grad_enabled
from ..engine.modes import state
from ..gradients import gradient_edge
from ..storage import AGE, births
from ..tensor import CUSTOM_FUNCTION, Tensor, alias, asks_grad, sizes_of, strides_of
from ..trees import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ..xla.signals import from_start

__all__ = ["Tracked", "chosen", "cut_off", "depends", "kept", "refuse_complex", "split", "tensors"]


class Tracked:
    """One run of a transform: the leaves that it made, which are followed while it is open; given: arguments that may be
    written, where tensors from outside may not.
    """

    __slots__ = (
        "__weakref__",
        "before",
        "born",
        "deriving",
        "given",
        "name",
        "open",
        "places",
        "refuses_writes",
        "tracking",
    )

    def __init__(self, name: str, given: Any = None, refuses_writes: bool = True) -> None:
        self.name = name
        self.given = given
        self.refuses_writes = refuses_writes
        self.born = 0
        self.open = True
        self.deriving = 0
        # The nodes of arguments that something outside follows, too.
        self.places: weakref.WeakSet[engine.Node] = weakref.WeakSet()
        # As PyTorch's levels, one inside `no_grad` is differentiated itself, but not by what is around it.
        self.tracking = is_grad_enabled()

    def __enter__(self) -> Tracked:
        self.before = before = state.transforms
        if self.refuses_writes:
            births.now = self.born = births.now + AGE
            births.open += 1
        state.transforms = (*before, self)
        return self

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self.open  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            self.open = False
            if self.refuses_writes:
                births.open -= 1
            state.transforms = self.before

    def was_given(self, storage: Any) -> bool:
        """Whether a storage is that of an argument."""
        return any(t._xt_storage is storage for t in tensors(self.given))

    def own(self, edge: Any) -> bool:
        """A leaf that is made within asks for gradients as long as the level is open."""
        _levels[edge] = self
        return True

    def leaf(self, tensor: Tensor) -> Tensor:
        """The tensor's values as a leaf of this level."""
        made = alias(tensor, tuple(sizes_of(tensor)), tuple(strides_of(tensor)), tensor.storage_offset())
        if not (made.is_floating_point() or made.is_complex()):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        made._xt_edge = engine.LeafEdge(made)
        self.own(made._xt_edge)
        return made

    def enter(self, tree: Any) -> Any:
        """The tensors of an argument, each as a place to ask gradients of; ValueError where there is no tensor."""
        return tree_map(self._entered, tree)

    def entered(self, leaves: list[Any]) -> list[Tensor]:
        """`enter` of the leaves of a tree."""
        return [self._entered(leaf) for leaf in leaves]

    def _entered(self, tensor: Any) -> Tensor:
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
        if not (self.tracking and tensor.requires_grad):
            return self.leaf(tensor)
        made = tensor.view(tensor.shape)
        edge = gradient_edge(made)
        if edge is not None:
            self.places.add(edge[0])
        # A write would reach the caller's tensor: PyTorch, whose arguments are leaves of their level, refuses it too.
        if made._xt_view is not None:
            made._xt_view.creation = CUSTOM_FUNCTION
        return made

    def cut(self, tensor: Tensor) -> Any:
        """The edge of a tensor that this derivative takes for a constant, and those around it do not; None where it is one."""
        edge = gradient_edge(tensor)
        if edge is None or not self._leads_in(edge[0]):
            return None
        return (Constant(self, edge), 0)

    def _leads_in(self, node: engine.Node) -> bool:
        seen, waiting = {node}, [node]
        while waiting:
            node = waiting.pop()
            if node in self.places:
                return True
            if isinstance(node, engine.AccumulateGrad) and _levels.get(node.leaf) is self:
                return True
            for further in node.edges:
                if further is not None and further[0] not in seen:
                    seen.add(further[0])
                    waiting.append(further[0])
        return False

    def keeps(self, *trees: Any) -> bool:
        """Whether anything outside this level follows one of the tensors."""
        return self.tracking and any(depends(tensors(trees)))

    def shown(self, tree: Any) -> Any:
        """Results for the caller: cut off from the graph unless it leads outside."""
        found, structure = tree_flatten(tree)
        return tree_unflatten(self.shown_each(found), structure)

    def shown_each(self, values: list[Any]) -> list[Any]:
        """`shown` of the leaves of a tree."""
        if not self.tracking:
            return [kept(v, False) for v in values]
        return [kept(v, live) for v, live in zip(values, depends(values), strict=True)]


_levels: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


class Constant(engine.Node):
    """The node of `tensor.data` inside of a derivative: no gradient goes through it while that one is taken."""

    __slots__ = ("aval", "level")
    trusted = True

    def __init__(self, level: Tracked, edge: Any) -> None:
        super().__init__((edge,))
        self.level = level
        self.aval = edge[0].input_metadata[edge[1]]

    @property
    def input_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def name(self) -> str:
        return "DataBackward"

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradient as it is, or None."""
        return (None,) if self.level.deriving else grads


def cut_off(level: Any, values: list[Any]) -> list[Any]:
    """Results of a level that has ended, without the graph that leads to leaves made within alone."""
    _levels.update(dict.fromkeys(level.leaves, level))
    return [kept(v, live) for v, live in zip(values, depends(values), strict=True)]


def kept(value: Any, live: bool) -> Any:
    """The value with its graph, if that is `live`, or without."""
    if live or not isinstance(value, Tensor) or not asks_grad(value):
        return value
    return alias(value, tuple(sizes_of(value)), tuple(strides_of(value)), value.storage_offset())


def depends(values: Iterable[Any]) -> list[bool]:
    """Of each tensor, whether its graph leads to a leaf that is none of a finished level's."""
    dead: set[engine.Node] = set()
    return [isinstance(value, Tensor) and asks_grad(value) and _leads_out(value, dead) for value in values]


def _leads_out(tensor: Tensor, dead: set[engine.Node]) -> bool:
    edge = gradient_edge(tensor)
    if edge is None:
        return False
    seen = {edge[0]}
    waiting = [edge[0]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, engine.AccumulateGrad):
            level = _levels.get(node.leaf)
            if level is None or level.open:
                return True
        for next_edge in node.edges:
            if next_edge is not None and next_edge[0] not in seen and next_edge[0] not in dead:
                seen.add(next_edge[0])
                waiting.append(next_edge[0])
    dead |= seen
    return False


# ---- arguments and results ---------------------------------------------------------------------------------------------


def tensors(tree: Any) -> list[Tensor]:
    """The leaves of a tree that are tensors."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def chosen(argnums: Any, count: int) -> tuple[int, ...]:
    """The places that `argnums` names among `count` positional arguments; RuntimeError where there is none."""
    if not isinstance(argnums, (int, tuple)) or not all(isinstance(i, int) for i in _listed(argnums)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = _listed(argnums)
    if not places:
        raise RuntimeError("argnums must be non-empty")
    for i in places:
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    places = tuple([i % count for i in places])
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return places


def _listed(argnums: Any) -> tuple[Any, ...]:
    return argnums if isinstance(argnums, tuple) else (argnums,)


def split(found: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """A function's result and what it returns besides; RuntimeError unless those are a pair where there are both."""
    if not has_aux:
        return found, None
    if not (isinstance(found, tuple) and len(found) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for leaf in tree_leaves(found[1]):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return found


def refuse_complex(values: Iterable[Tensor], name: str, what: str) -> None:
    """RuntimeError for a complex tensor among the `what` of the function `name`."""
    for i, value in enumerate(values):
        if value.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )
