"""What runs below autograd, written down: one node for each operator, with the tensors that it takes by the nodes that gave them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from jax.core import Tracer

from .. import capture
from ..control_flow.staging import Staged, form_of, rewind
from ..jax.pure import TraceError, line_of_user
from ..operators.below.aten import find, packet
from ..operators.below.dispatching import without_modes
from ..operators.generator import Generator
from ..storage import AGE, Storage, births
from ..tensor import Tensor, array_of, tensor_over, wrap
from ..utils._python_dispatch import TorchDispatchMode
from .calls import Stack
from .dims import size_of
from .graph import Graph, Node, Subgraph, TensorMeta, map_nodes
from .higher_order import HIGHER_ORDER, NAMES

__all__ = ["Recorder"]

VALUES = {
    "__bool__": "a Python boolean", "__int__": "a Python integer", "__index__": "a Python index", "__float__": "a Python float",
    "__complex__": "a Python complex", "item": "a Python number", "_local_scalar_dense": "a Python number", "tolist": "a Python list",
    "numpy": "a NumPy array", "__array__": "a NumPy array",
}  # fmt: skip
"""Functions that read values, and what they give."""
DERIVATIVES = frozenset("grad backward jacobian hessian vjp jvp vhp hvp".split())
CONSTANTS = frozenset("tensor as_tensor asarray from_numpy frombuffer".split())
CONSTANT = "constant"


class Recorder(TorchDispatchMode):
    """A mode that writes operators into a graph while it runs them.

    constants: tensors that were there before and are no inputs, by the names of their nodes. reading: what is told of values that Python
    asks for, where operators run on values; where they run on tracers there are none.
    """

    def __init__(self, graph: Graph, reading: Callable[[str], None] | None = None) -> None:
        self.graph = graph
        self.reading = reading
        self._within = 0
        self._lost = False
        self.stack: Stack | None = None
        self.born = 0
        if reading is not None:
            births.now = self.born = births.now + AGE  # storages tell by it whether they were there before
        self.constants: dict[str, Tensor] = {}
        self._nodes: dict[int, tuple[Tensor, Node, Any]] = {}
        self._alike: dict[tuple[Any, ...], Node] = {}
        self._memory: dict[int, tuple[Any, int]] = {}
        self._values: dict[int, Any] = {}

    # -- tensors and nodes

    def input(self, name: str, tensor: Tensor) -> Node:
        """Add an input, which a tensor stands for."""
        return self._told(self.graph.placeholder(name), tensor)

    def meta(self, tensor: Tensor) -> TensorMeta:
        """What is known of a tensor."""
        storage, view = tensor._xt_storage, tensor._xt_view
        number = self._memory.setdefault(id(storage), (storage, len(self._memory)))[1]
        shape = tuple(map(size_of, tensor.shape))
        if view is None:
            return TensorMeta(shape, tensor.dtype, number)
        strides = tuple(map(size_of, view.strides))
        return TensorMeta(shape, tensor.dtype, number, strides, size_of(view.offset))

    def _key(self, tensor: Tensor) -> tuple[Any, ...]:
        view = tensor._xt_view
        if view is None:
            return (id(tensor._xt_storage),)
        seen = (view.sizes, view.strides, view.offset, view.dtype, view.conj, view.neg)
        return (id(tensor._xt_storage), *map(str, seen))

    def _told(self, node: Node, tensor: Tensor) -> Node:
        node.meta["val"] = self.meta(tensor)
        key = self._key(tensor)
        self._nodes[id(tensor)] = (tensor, node, key)
        self._alike[key] = node
        self._values[id(tensor._xt_storage)] = tensor._xt_storage.array
        return node

    def _known(self, tensor: Tensor) -> Node | None:
        """The node that gave a tensor, or one that sees the same; None for what no node has given."""
        found, key = self._nodes.get(id(tensor)), self._key(tensor)
        # A tensor may have got other sizes since, in place.
        return found[1] if found is not None and found[2] == key else self._alike.get(key)

    def node(self, tensor: Tensor) -> Node:
        """The node that gave a tensor; a constant where it was there before. TraceError where no operator that was seen made it."""
        node = self._known(tensor)
        storage = tensor._xt_storage
        if node is not None:
            if not self._is_current(storage):
                return self._unknown("memory was written by other means than an operator")
            return node
        if self._is_new(storage):
            return self._unknown("a tensor was made by other means than an operator")
        return self._constant(tensor)

    def _constant(self, tensor: Tensor) -> Node:
        """An input for a tensor whose values are part of the program."""
        name = self.graph.name(f"c_lifted_tensor_{len(self.constants)}")
        self.graph._names.discard(name)
        # What is written later is another tensor's memory: constants stay.
        self.constants[name] = tensor_over(tensor._xt_storage, tensor._xt_view)
        return self._told(self.graph.placeholder(name), tensor)

    def _unknown(self, reason: str) -> Node:
        """A node for a tensor that none has given: within a function that then is a step itself, which leaves it out; else refused."""
        if not self._within:
            self._refuse(reason)
        self._lost = True
        return Node(self.graph, "unknown", "call_function", None, (), {})

    def _refuse(self, reason: str) -> None:
        line = line_of_user()
        raise TraceError(f"the program cannot be exported: {reason}{f' ({line})' if line else ''}")

    def argument(self, value: Any) -> Any:
        """An argument with nodes for tensors and text for symbolic sizes."""
        if isinstance(value, Generator):
            self._refuse("it draws random numbers from a generator of its own")
        return self.node(value) if isinstance(value, Tensor) else size_of(value)

    def is_known(self, tensor: Tensor) -> bool:
        """Whether a tensor's values are what nodes give, or were there before."""
        storage = tensor._xt_storage
        if self._known(tensor) is not None:
            return self._is_current(storage)
        return not self._is_new(storage)

    def _is_current(self, storage: Any) -> bool:
        """Whether memory holds what it held when it was last seen."""
        return type(storage) is not Storage or self._values[id(storage)] is storage.array

    def _is_new(self, storage: Any) -> bool:
        """Whether memory was made since the recording began."""
        return storage.writes >= self.born if self.born else isinstance(storage.array, Tracer)

    # -- calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.reading is not None and func._opname in VALUES:
            self.reading(VALUES[func._opname])
            return func(*args, **kwargs)
        taken = self._taken(args, kwargs)
        if func._opname in CONSTANTS and not taken:
            made = func(*args, **kwargs)
            if self.reading is not None:
                self.reading(CONSTANT)
            if not isinstance(made._xt_storage.array, Tracer):
                self._constant(made)
                return made
        node = self._called(func, args, kwargs)
        made = func(*args, **kwargs)
        self._finish(node, made, taken)
        return made

    def whole_call(self, asked: Any, plain: Any, args: Any, kwargs: Any) -> Any:
        """A call of a function written in Python: one node where operators do not tell what it did."""
        name = asked.__name__
        if self.reading is not None and name in VALUES:
            self.reading(VALUES[name])
            with without_modes():
                return plain(*args, **kwargs)
        taken = self._taken(args, kwargs)
        start = len(self.graph.nodes)
        lost, self._lost = self._lost, False
        self._within += 1
        try:
            made = plain(*args, **kwargs)
        finally:
            self._within -= 1
            lost, self._lost = self._lost, lost
        if name in CONSTANTS and isinstance(made, Tensor) and self._is_new(made._xt_storage) and not taken:
            if self.reading is not None:
                self.reading(CONSTANT)
            self._constant(made)
            return made
        given = [t for t, _ in taken]
        if not lost and all(self.is_known(t) for t in (*given, *tensors_in(made))):
            return made
        if name in DERIVATIVES:
            self._refuse("it takes derivatives")
        inputs = [n for n in self.graph.nodes[start:] if n.op == "placeholder"]
        gone = set(self.graph.nodes[start + len(inputs) :])
        del self.graph.nodes[start + len(inputs) :]
        self._nodes = {key: entry for key, entry in self._nodes.items() if entry[1] not in gone}
        self._alike = {key: n for key, n in self._alike.items() if n not in gone}
        for _, before, key in self._nodes.values():
            self._alike.setdefault(key, before)  # what the same part of memory was called before
        for tensor, array in taken:
            if tensor._xt_storage.array is not array:
                self._values[id(tensor._xt_storage)] = tensor._xt_storage.array
        node = self._called(function_of(asked, args, kwargs), args, kwargs)
        self._finish(node, made, taken)
        return made

    # -- branches and loops

    def control_flow(
        self,
        name: str,
        functions: Sequence[tuple[Callable[..., Any], Sequence[Tensor]]],
        args: tuple[Any, ...],
        options: dict[str, Any],
        run: Callable[[], Sequence[Tensor]],
    ) -> list[Tensor]:
        """Record a branch or a loop as one step, and its functions as programs within it; its results.

        functions: each with tensors like those that it is called with. args: the step's arguments besides the functions and what they
        read from around them, those of `cond` before them. run: gives the results.
        """
        lifted: dict[Node, Tensor] = {}
        with without_modes():
            inner = [Inner(self, lifted, self.reading) for _ in functions]
            ends = [
                each.function(name, function, tensors)
                for each, (function, tensors) in zip(inner, functions, strict=True)
            ]
            made = list(run())
        programs = []
        for each, end, title in zip(inner, ends, NAMES[name], strict=True):
            each.lift_all()
            each.graph.output(end)
            programs.append(Subgraph(self._free(title), each.graph))
        before, after = (args[:1], args[1:]) if name == "cond" else ((), args)
        node = self._called(HIGHER_ORDER[name], (*before, *programs, *after, tuple(lifted)), options)
        self._finish(node, tuple(made), [])
        return made

    def _free(self, title: str) -> str:
        """A name for a function with the first number that is free."""
        number = 0
        while f"{title}_{number}" in self.graph._names:
            number += 1
        return self.graph.name(f"{title}_{number}")

    def _called(self, func: Any, args: Any, kwargs: Any) -> Node:
        given, options = map_nodes((args, kwargs), self.argument, Leaf)
        node = self.graph.call_function(func, given, options)
        node.meta["line"] = line_of_user()
        if self.stack is not None:
            node.meta["nn_module_stack"] = self.stack.now
        return node

    @staticmethod
    def _taken(args: Any, kwargs: Any) -> list[tuple[Tensor, Any]]:
        """The tensors among arguments, one of each memory, with what is there."""
        taken = {id(t._xt_storage): t for t in tensors_in((args, kwargs))}
        return [(t, t._xt_storage.array) for t in taken.values()]

    def _finish(self, node: Node, made: Any, taken: list[tuple[Tensor, Any]]) -> None:
        """Note what a call has written and given."""
        written = [t for t, array in taken if t._xt_storage.array is not array]
        if written:
            for tensor in written:
                self._values[id(tensor._xt_storage)] = tensor._xt_storage.array
            before = {id(t): entry[1] for t in written if (entry := self._nodes.get(id(t))) is not None}
            node.meta["writes"] = tuple([before.get(id(t)) or self.node(t) for t in written])
        if isinstance(made, Tensor):
            known = self._nodes.get(id(made))
            if known is None or known[2] != self._key(made):
                self._told(node, made)  # or one of its arguments, with other sizes
            else:  # one of its arguments, written
                node.meta["val"], node.meta["same"] = known[1].meta["val"], known[1]
        elif isinstance(made, (tuple, list)):
            node.meta["val"] = tuple([self.meta(t) if isinstance(t, Tensor) else t for t in made])
            for at, part in enumerate(made):
                if isinstance(part, Tensor) and id(part) not in self._nodes:
                    item = self.graph.call_function(operator.getitem, (node, at), name=f"{node.name}_{at}")
                    item.meta |= {n: node.meta[n] for n in ("line", "nn_module_stack") if n in node.meta}
                    self._told(item, part)


class Inner(Recorder):
    """A recorder of a function that a step calls: tensors from around it become inputs.

    lifted: the nodes around it that any function of the step takes, with their tensors, in the order of the inputs.
    """

    def __init__(
        self, outer: Recorder, lifted: dict[Node, Tensor], reading: Callable[[str], None] | None
    ) -> None:
        super().__init__(Graph(), reading)
        self.outer = outer
        self.lifted = lifted
        self._inputs: dict[Node, Node] = {}

    def function(
        self, name: str, function: Callable[..., Any], tensors: Sequence[Tensor]
    ) -> tuple[Node, ...]:
        """Record a call; the nodes of its results."""
        staged = Staged(f"a function of {name}")
        own = [wrap(array_of(t.detach())) for t in tensors]
        for number, tensor in enumerate(own):
            self.input(f"arg{number}_1", tensor)
        with self:
            form = form_of(staged, function, *own)
        rewind(capture.running(), staged)
        inputs = {n.meta["val"].memory for n in self.graph.nodes if n.op == "placeholder"}
        for node in self.graph.nodes:
            if any(n.meta["val"].memory in inputs for n in node.meta.get("writes", ())):
                self._refuse(f"a function of {name} writes to a tensor from before")
        return tuple([self.node(t) for t in form.tensors])

    def lift_all(self) -> None:
        """Take all that any function of the step takes."""
        found = {}
        for around, tensor in self.lifted.items():
            found[around] = self._inputs.get(around) or self._lift(around, tensor)
        order = {node: at for at, node in enumerate(found.values())}
        holders = [n for n in self.graph.nodes if n.op == "placeholder"]
        rest = [n for n in self.graph.nodes if n.op != "placeholder"]
        self.graph.nodes = [*sorted(holders, key=lambda n: order.get(n, -1)), *rest]

    def _lift(self, around: Node, tensor: Tensor) -> Node:
        node = self._inputs[around] = self.graph.placeholder(around.name)
        node.meta["val"] = self.meta(tensor)
        return node

    def node(self, tensor: Tensor) -> Node:
        """The node that gave a tensor, or the input for one from around the function."""
        if self._known(tensor) is not None:
            return super().node(tensor)
        around = self.outer.node(tensor)
        self.lifted.setdefault(around, tensor)
        return self._told(self._inputs.get(around) or self._lift(around, tensor), tensor)

    def is_known(self, tensor: Tensor) -> bool:
        """Whether a tensor's values are what nodes give, here or around the function."""
        return super().is_known(tensor) or (self._known(tensor) is None and self.outer.is_known(tensor))


def function_of(asked: Any, args: Any, kwargs: Any) -> Any:
    """The operator that a function written in Python is called as, or the function."""
    found = packet(asked.__name__)
    return find(asked.__name__, args, kwargs) if found._run is None and is_resolved(found, asked) else asked


def is_resolved(found: Any, asked: Any) -> bool:
    """Whether an operator's name leads to this function."""
    try:
        return found.function is asked
    except NotImplementedError:
        return False


class _Leaf(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return not isinstance(value, (dict, list, tuple, slice))


class Leaf(metaclass=_Leaf):
    """Whatever is no container."""


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested arguments."""
    found: list[Tensor] = []
    map_nodes(value, found.append, Tensor)
    return found
