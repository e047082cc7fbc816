"""The backward graph: nodes, the edges between them, and the accumulators at its leaves.

An edge is a plain tuple `(node, slot)`: the gradient sent along it is the node's `slot`-th incoming gradient. A node
has one edge for each differentiable input of the operator that made it, or None where that input needs no gradient.
Undefined gradients are None. Gradients are opaque: anything that supports `a + b`.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from .handles import HookDict, RemovableHandle, add_hook
from .modes import NO_GRAD, state

__all__ = [
    "LEAF_SEQUENCE_NR",
    "UNREACHED",
    "AccumulateGrad",
    "Edge",
    "EdgeTuple",
    "Error",
    "Gradients",
    "GraphRoot",
    "LeafEdge",
    "LeafVariable",
    "Node",
    "NodeMeta",
    "Replayable",
    "Unreached",
    "name_of",
    "next_sequence_nr",
]

next_sequence_nr: Callable[[], int] = itertools.count().__next__
"""Number the nodes of the process in the order of creation; the executor runs the highest first."""

LEAF_SEQUENCE_NR = 2**63 - 1
"""Accumulators run before every operator's node that is ready at the same time."""

EdgeTuple = tuple["Node", int]
Gradients = tuple[Any, ...]


class Edge(NamedTuple):
    """What users see of an edge; `function` is None where no gradient flows."""

    function: Node | None
    input_nr: int


class NodeMeta:
    """Hooks and user data of a node, made when first asked for; nodes without it take the executor's short path."""

    __slots__ = ("metadata", "post_hooks", "pre_hooks", "retain_hooks", "tensor_hooks")

    def __init__(self) -> None:
        self.pre_hooks: HookDict | None = None
        self.post_hooks: HookDict | None = None
        self.tensor_hooks: dict[int, HookDict] | None = None
        self.retain_hooks: dict[int, Callable[[Any], None]] | None = None
        self.metadata: dict[Any, Any] | None = None


SPELLED_OUT = ("CopyBackwards", "CopySlices", "Error")
"""Nodes that no operator has, which PyTorch names with the namespace of their classes."""


def name_of(node: Any) -> str:
    """The name of a node's class, whatever its context holds under `name`."""
    return type(node).name(node)


class Node:
    """A step of the backward graph: turns the gradients of an operator's outputs into those of its inputs.

    What the engine keeps of a node has names that no program gives to what it keeps: the context of a custom Function is its
    node. Nodes may be made without `__init__` (`object.__new__`); the maker must then store all three slots: `_xt_edges`,
    `_xt_sequence_nr` (from `next_sequence_nr()`) and `_xt_meta` (None). Subclasses override the class attributes below by a
    class attribute, a slot or a property, whichever is cheapest.
    """

    __slots__ = ("__weakref__", "_xt_edges", "_xt_meta", "_xt_sequence_nr")

    _xt_edges: tuple[EdgeTuple | None, ...]
    _xt_sequence_nr: int
    _xt_meta: NodeMeta | None

    _xt_num_inputs: int = 1
    """How many gradients `apply` receives (the number of the operator's outputs)."""
    _xt_device: Any = None
    """Hashable key of the device whose worker runs the node; None is the thread that called backward."""
    _xt_trusted: bool = False
    """Whether the results of `apply` need no validation of shape, dtype and device."""

    def __init__(self, edges: tuple[EdgeTuple | None, ...] = ()) -> None:
        self._xt_edges = edges
        self._xt_sequence_nr = next_sequence_nr()
        self._xt_meta = None

    def apply(self, grads: Gradients) -> Gradients:
        """Return one gradient (or None) per edge; `grads` holds one (or None) per output of the operator."""
        raise NotImplementedError(f"{self.name()} has no derivative")

    def _xt_release(self) -> None:
        """Drop the values saved for backward; a later `apply` must raise the engine's `RELEASED` message."""

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        """Per incoming gradient, an object with the `shape`, `dtype` and `device` that it must have."""
        return ()

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return self._xt_metadata

    def _sequence_nr(self) -> int:
        return self._xt_sequence_nr

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        self._xt_sequence_nr = sequence_nr

    def name(self) -> str:
        """The name shown in messages and drawings."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in SPELLED_OUT else name

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    def __call__(self, *grads: Any) -> Any:
        """Run the node by hand on one gradient per output, without hooks."""
        if len(grads) != self._xt_num_inputs:
            raise TypeError(f"expected {self._xt_num_inputs} arguments, got {len(grads)} instead")
        results = self.apply(grads)
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def next_edges(self) -> tuple[Edge, ...]:
        """The edges as `Edge(function, input_nr)`, with `Edge(None, 0)` where no gradient flows."""
        return tuple(Edge(None, 0) if edge is None else Edge(*edge) for edge in self._xt_edges)

    next_functions = next_edges

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes (anomaly mode keeps the forward traceback here)."""
        meta = self.ensure_meta()
        if meta.metadata is None:
            meta.metadata = {}
        return meta.metadata

    def ensure_meta(self) -> NodeMeta:
        """Return the node's `NodeMeta`, made now if there was none."""
        if self._xt_meta is None:
            self._xt_meta = NodeMeta()
        return self._xt_meta

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run; a returned tuple replaces `grad_inputs`."""
        meta = self.ensure_meta()
        if meta.post_hooks is None:
            meta.post_hooks = OrderedDict()
        return add_hook(meta.post_hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node runs; a returned tuple replaces `grad_outputs`."""
        meta = self.ensure_meta()
        if meta.pre_hooks is None:
            meta.pre_hooks = OrderedDict()
        return add_hook(meta.pre_hooks, fn)

    def tensor_hooks(self, slot: int) -> HookDict:
        """The hooks of the tensor that was the operator's `slot`-th output, as a dictionary to add to."""
        meta = self.ensure_meta()
        if meta.tensor_hooks is None:
            meta.tensor_hooks = {}
        hooks = meta.tensor_hooks.get(slot)
        if hooks is None:
            hooks = meta.tensor_hooks[slot] = OrderedDict()
        return hooks

    def register_tensor_hook(self, slot: int, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call `fn(grad)` when the gradient of output `slot` is complete; what it returns (not None) replaces it."""
        return add_hook(self.tensor_hooks(slot), fn)

    def set_retain_hook(self, slot: int, fn: Callable[[Any], None]) -> None:
        """Hand the gradient of output `slot` to `fn` after every tensor hook (the body of `retain_grad`)."""
        meta = self.ensure_meta()
        if meta.retain_hooks is None:
            meta.retain_hooks = {}
        meta.retain_hooks[slot] = fn

    def pop_retain_hook(self, slot: int) -> Callable[[Any], None] | None:
        """Take the `retain_grad` hook of output `slot` away, to set it on the node of an in-place result."""
        if self._xt_meta is None or self._xt_meta.retain_hooks is None:
            return None
        return self._xt_meta.retain_hooks.pop(slot, None)


class Replayable(Node):
    """A node whose work can be done again without it: what an executor that recognises graphs asks of their nodes.

    Such an executor keeps `pattern()` of each node of a graph, and no node. In a later graph it looks, by `hint()`, for
    nodes of the same class that `matches()` says do the same work; what they saved is then given to `replay()`.
    """

    __slots__ = ()

    def hint(self) -> Any:
        """Something hashable that is the same for all nodes which match one another, and differs for most others."""
        raise NotImplementedError

    def pattern(self) -> Any:
        """All that decides the node's work, and no value; None where only the node itself can run (or say why not)."""
        raise NotImplementedError

    def matches(self, pattern: Any, args: list[Any]) -> bool:
        """Whether the work is that of the node of this class which has the pattern; if so, `args` has its values added."""
        raise NotImplementedError

    def unmade(self) -> Any:
        """Something hashable that stands for the program which `apply` would have to make; None where it needs no new one."""
        return None

    def made_within(self) -> None:
        """Its program is part of another: `unmade` is None from now on."""

    @classmethod
    def replay(cls, pattern: Any, grads: Gradients, values: Sequence[Any]) -> Gradients:
        """`apply` of a node that has the pattern, with the values that `matches` added."""
        raise NotImplementedError


class LeafVariable(Protocol):
    """What the engine asks of a leaf: weak references to it, and the sum into its `.grad`."""

    def _accumulate_grad(self, grad: Any, create_graph: bool) -> None:
        """Add `grad` (never None) to `.grad`; called under the leaf's lock, and keeps the graph if asked."""
        ...


class AccumulateGrad(Node):
    """The node of a leaf: holds the leaf strongly, is held weakly by it, and sums into its `.grad`.

    Tensor hooks and post-accumulate hooks live with the leaf (`LeafEdge`), node hooks with this node.
    """

    __slots__ = ("_xt_device", "leaf", "variable")

    variable: Any
    leaf: LeafEdge
    _xt_trusted = True

    def apply(self, grads: Gradients) -> Gradients:
        grad = grads[0]
        # The leaf may have been told since that it needs no gradient.
        if grad is not None and getattr(self.variable, "requires_grad", True):
            leaf = self.leaf
            with leaf.lock:
                self.variable._accumulate_grad(grad, not state.mode & NO_GRAD)
                if leaf.post_accumulate:
                    leaf.run_post_accumulate(self.variable)
        return ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.variable,)

    def tensor_hooks(self, slot: int) -> HookDict:
        return self.leaf.hooks()


class LeafEdge:
    """A leaf's side of the graph: finds or makes its `AccumulateGrad`, and keeps what must outlive that node.

    The leaf holds this object strongly; it holds the leaf weakly. `device` is the key its accumulator runs on.
    """

    __slots__ = (
        "__weakref__",
        "_accumulator",
        "_variable",
        "device",
        "lock",
        "post_accumulate",
        "tensor_hooks",
    )

    _making = threading.Lock()

    def __init__(self, variable: LeafVariable, device: Any = None) -> None:
        self._variable = weakref.ref(variable)
        self._accumulator: Callable[[], AccumulateGrad | None] = _nothing
        self.device = device
        # Backward passes of several threads may meet at this leaf; hooks may re-enter from the same thread.
        self.lock = threading.RLock()
        self.tensor_hooks: dict[int, HookDict] | None = None
        self.post_accumulate: HookDict | None = None

    def edge(self) -> EdgeTuple:
        """The edge into the leaf's accumulator, made anew when the last graph that held it is gone."""
        node = self._accumulator()
        return (self._make() if node is None else node, 0)

    def accumulator(self) -> AccumulateGrad | None:
        """The living accumulator, or None: then no graph reaches the leaf."""
        return self._accumulator()

    def _make(self) -> AccumulateGrad:
        with LeafEdge._making:
            node = self._accumulator()
            if node is None:
                variable = self._variable()
                if variable is None:
                    raise ReferenceError("the leaf of this edge no longer exists")
                node = AccumulateGrad.__new__(AccumulateGrad)
                node._xt_edges = ()
                node._xt_sequence_nr = LEAF_SEQUENCE_NR
                node._xt_meta = None
                node.variable = variable
                node.leaf = self
                node._xt_device = self.device
                if self.tensor_hooks is not None:
                    node.ensure_meta().tensor_hooks = self.tensor_hooks
                self._accumulator = weakref.ref(node)
        return node

    def hooks(self) -> HookDict:
        """The leaf's tensor hooks, as a dictionary to add to."""
        if self.tensor_hooks is None:
            self.tensor_hooks = {0: OrderedDict()}
            node = self._accumulator()
            if node is not None:
                node.ensure_meta().tensor_hooks = self.tensor_hooks
        return self.tensor_hooks[0]

    def register_tensor_hook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """Call `fn(grad)` before the gradient is accumulated; what it returns (not None) replaces it."""
        return add_hook(self.hooks(), fn)

    def register_post_accumulate_hook(self, fn: Callable[[Any], None]) -> RemovableHandle:
        """Call `fn(leaf)` each time `.grad` has been accumulated, under the leaf's lock."""
        if self.post_accumulate is None:
            self.post_accumulate = OrderedDict()
        return add_hook(self.post_accumulate, fn)

    def run_post_accumulate(self, variable: Any) -> None:
        """Run the post-accumulate hooks, which return nothing."""
        for hook in tuple((self.post_accumulate or {}).values()):
            result = hook(variable)
            if result is variable:  # `lambda p: p.add_(...)`, say
                continue
            if hasattr(result, "requires_grad"):
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
            if result is not None:
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")


def _nothing() -> None:
    """Stand in for the weak reference of a leaf whose accumulator has not been made."""


class Unreached:
    """Stands for the edge of what requires grad though no gradient flows to it, as a view made under `no_grad`."""

    __slots__ = ()

    def edge(self) -> None:
        """No edge: nothing is sent."""

    def register_tensor_hook(self, fn: Callable[[Any], Any]) -> RemovableHandle:
        """A handle of a hook that is never called."""
        return add_hook(OrderedDict(), fn)

    register_post_accumulate_hook = register_tensor_hook


UNREACHED = Unreached()


class GraphRoot(Node):
    """The node above several roots: hands each its gradient."""

    __slots__ = ("grads",)

    _xt_num_inputs = 0
    _xt_trusted = True

    def __init__(self, edges: tuple[EdgeTuple, ...], grads: Gradients) -> None:
        super().__init__(edges)
        self.grads = grads

    def apply(self, grads: Gradients) -> Gradients:
        return self.grads


class Error(Node):
    """A node whose gradient cannot be taken: raises when the walk reaches it with a gradient."""

    __slots__ = ("message", "_xt_num_inputs")

    def __init__(self, message: str, edges: tuple[EdgeTuple | None, ...] = (), num_inputs: int = 1) -> None:
        super().__init__(edges)
        self.message = message
        self._xt_num_inputs = num_inputs

    def apply(self, grads: Gradients) -> Gradients:
        raise RuntimeError(self.message)
