"""A program as a list of nodes: built, searched, changed, checked and written as Python."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import checks
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from .codegen import CodeGen, PythonCode, PyTreeCodeGen, PyTreeInfo
from .names import CUSTOM_BUILTINS, CustomBuiltin, Namespace, candidate_for, snake_case
from .node import Argument, Node, Target, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

# PyTorch's own names, which packages import.
_PyTreeCodeGen, _PyTreeInfo, _Namespace, _snake_case = PyTreeCodeGen, PyTreeInfo, Namespace, snake_case
_custom_builtins, _CustomBuiltin = CUSTOM_BUILTINS, CustomBuiltin
TransformCodeFunc = Callable[[list[str]], list[str]]


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Have generated code find an object under a name, which `import_str` imports where code is written to files."""
    CUSTOM_BUILTINS[name] = CustomBuiltin(import_str, obj)


class InsertPoint:
    """Where new nodes go; as a block, what was the place before is again behind it."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class NodeList:
    """The nodes of a graph in their order; changes of the graph show while it is walked."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self.graph, "_prev" if self.direction == "_next" else "_next"))


class Graph:
    """A list of nodes, each of which calls something with the values of those before it.

    New nodes go to the end, or where `inserting_before` and `inserting_after` say. A `GraphModule` of it can be called.

    >>> graph = xtensor.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(xtensor.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=xtensor.relu](args = (%x,), kwargs = {})
        return relu
    >>> xtensor.fx.GraphModule({}, graph)(xtensor.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: type[Any] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._owners = 0
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The one `GraphModule` that has this graph; None for a graph of none or several."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    # -- reading

    @property
    def nodes(self) -> NodeList:
        """The nodes in order; `reversed(graph.nodes)` backwards."""
        return NodeList(self)

    def output_node(self) -> Node:
        """The node whose argument is the graph's result."""
        found = next(iter(reversed(self.nodes)))
        if found.op != "output":
            raise AssertionError(f"expected output node, got {found.op}")
        return found

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of an opcode, of `call_function` those that call `target`, in order."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # -- nodes from other graphs

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Argument | None:
        """Copy another graph's nodes to here, and give what its output gives; `val_map` knows theirs by ours, and learns all."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                made = map_arg(node.args[0], val_map.__getitem__)
                return (made, node) if return_output_node else made
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        values: dict[Node, Node] = {}
        found = made.graph_copy(self, values, return_output_node=True)
        made._codegen = self._codegen
        if found is not None:
            result, old = found
            node = made.output(result, type_expr=old.type)
            node.meta = dict(old.meta)
        memo[id(self)] = made
        return made

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Copy a node of another graph to here; `arg_transform` says what stands here for the nodes that it takes."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple):
            raise AssertionError(f"Expected args to be tuple, got {type(args)}")
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    # -- making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the place where new nodes go; a name that is taken gets a number."""
        if not isinstance(args, (tuple, type(None))):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, (dict, type(None))):
            raise AssertionError("kwargs must be a dict")
        wish = name if name is not None else self._target_to_str(target)
        made = Node(
            self,
            self._graph_namespace.create_name(wish, None),
            op,
            target,
            args or (),
            kwargs or {},
            type_expr,
        )
        for hook in getattr(self._owning_module, "_create_node_hooks", None) or ():
            hook(made)
        self._graph_namespace.associate_name_with_obj(made.name, made)
        self._insert(made)
        self._len += 1
        return made

    def _target_to_str(self, target: Target) -> str:
        return candidate_for(target)

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody uses; RuntimeError where somebody does."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            checks.warn(f"erase_node({to_erase}) on an already erased node")
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._unlink()
        to_erase._set((), {})
        to_erase._erased = True
        self._len -= 1

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Have new nodes go before a node, or to the front; for good, or for a block."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Have new nodes go behind a node, or to the end; for good, or for a block."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return InsertPoint(self, n.append)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input; `*name` and `**name` are those that take what is left."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """The value of an attribute of the module, by its dotted path."""
        module = self.owning_module
        if module is not None and not _attribute_is_there(module, qualified_name):
            checks.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a submodule, by its dotted path."""
        if self.owning_module is not None and not _submodule_is_there(self.owning_module, module_name):
            checks.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of the method of that name of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The end of the graph, and what it gives."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    # -- inputs and outputs

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders get when the graph is called with `args`."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call gives when the output node has `out`."""
        return self._codegen.process_outputs(out)

    @property
    def _pytree_info(self) -> PyTreeInfo:
        return self._codegen.pytree_info  # pyright: ignore[reportAttributeAccessIssue]

    # -- text

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """The graph as the source of a function `forward`.

        root_module: the name of the module that attributes are taken from, `self`. verbose: with dtypes, sizes and lines of origin.
        """
        namespace = Namespace()
        shown = {}

        def name_of(node: Node) -> str:
            if node not in shown:
                shown[node] = namespace.create_name(node.name, None)
            return shown[node]

        before = [(node, node._repr_fn) for node in self.nodes]
        try:
            for node, _ in before:
                node._repr_fn = name_of
            return self._codegen._gen_python_code(
                self.nodes, root_module, namespace, verbose=verbose, **options
            )
        finally:
            for node, was in before:
                node._repr_fn = was

    def __str__(self) -> str:
        return "".join(["graph():", *(f"\n    {node.format_node()}" for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table. Differs from PyTorch: it needs no package `tabulate`."""
        rows = [[n.op, n.name, str(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        print(table(rows, ["opcode", "name", "target", "args", "kwargs"]))

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have another object write the graph's text."""
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Change the lines of generated code: for good, or for a block.

        make_transformer: takes what changed them so far, or None, and gives a function from lines to lines.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def block() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return block()

    # -- care

    def lint(self) -> None:
        """Check that the graph is sound: RuntimeError where nodes stand before what they use, share names or lead nowhere."""
        names: set[str] = set()
        before: set[Node] = set()
        for node in self.nodes:
            if node.op not in (
                "placeholder",
                "call_method",
                "call_module",
                "call_function",
                "get_attr",
                "output",
            ):
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' did not belong to this Graph!")
            for arg in node.all_input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                        "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
                        f"values\n{self}"
                    )
                if arg not in before:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in "
                        f"the graph are topologically ordered\n{self}"
                    )
            before.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    _check_target(self.owning_module, node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out the nodes that nobody uses, from the last on, but those with effects; whether any was."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            kept = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not kept and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)


def _submodule_is_there(module: Module, path: str) -> bool:
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
        if not isinstance(found, Module):
            return False
    return True


def _attribute_is_there(module: Module, path: str) -> bool:
    parent, _, name = path.rpartition(".")
    if parent and not _submodule_is_there(module, parent):
        return False
    return hasattr(module.get_submodule(parent), name)


def _check_target(module: Module, node: Node) -> None:
    """RuntimeError where a node's path leads to nothing, or to no module where it should be called."""
    found: Any = module
    parts = str(node.target).split(".")
    for i, name in enumerate(parts):
        after = getattr(found, name, None)
        below = ".".join(parts[:i])
        if after is None:
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {name} of {below}"
            )
        if node.op == "call_module" and i == len(parts) - 1 and not isinstance(after, Module):
            raise RuntimeError(
                f"Node {node} target {node.target} {name} of {below} does not reference an nn.Module"
            )
        if (
            node.op == "get_attr"
            and i == len(parts) - 1
            and not isinstance(after, (Module, Parameter))
            and name not in getattr(found, "_buffers", ())
        ):
            checks.warn(
                f"Node {node} target {node.target} {name} of {below} does not reference an nn.Module, nn.Parameter, or buffer, "
                "which is what 'get_attr' Nodes typically target",
            )
        found = after


def table(rows: list[list[str]], heads: list[str]) -> str:
    """Rows of text under heads, in columns as wide as they must be."""
    widths = [max(len(head) + 2, *(len(row[i]) for row in rows), 0) for i, head in enumerate(heads)]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
