"""A program as a list of operators: nodes in the order in which they run, each with what it was called with.

The attributes are those of `torch.fx`'s nodes and graphs, as far as programs read them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..operators.below.aten import OpOverload
from .dims import Size

__all__ = ["Graph", "GraphModule", "Node", "Subgraph", "TensorMeta", "map_nodes", "nodes_in"]

SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16": "i16",
    "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
TAKEN = frozenset("and as assert async await break class continue def del elif else except finally for from global if import in is "
                  "lambda nonlocal not or pass raise return try while with yield None True False self torch".split())  # fmt: skip


class TensorMeta(NamedTuple):
    """What is known of a tensor: sizes (ints, or `Size`s), dtype, and which memory it sees.

    memory: a number, the same for all tensors over one storage. strides, offset: where its elements lie in it, None where they are not plain.
    """

    shape: tuple[Any, ...]
    dtype: Any
    memory: int = -1
    strides: tuple[Any, ...] | None = None
    offset: Any = 0

    def __str__(self) -> str:
        name = str(self.dtype).rpartition(".")[2]
        return f"{SHORT.get(name, name)}[{', '.join(map(str, self.shape))}]"


class Node:
    """One step: an input ("placeholder"), the call of an operator ("call_function") or the results ("output").

    meta: "val", the `TensorMeta` of what it gives (a tuple of them for several); "line", whose code called it; "writes", the nodes whose
    memory it writes.
    """

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: Any, kwargs: Any) -> None:
        self.graph = graph
        self.name, self.op, self.target = name, op, target
        self.args: tuple[Any, ...] = args
        self.kwargs: dict[str, Any] = kwargs
        self.meta: dict[str, Any] = {}

    def __repr__(self) -> str:
        return self.name

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that it takes, each once."""
        return list(dict.fromkeys(nodes_in((self.args, self.kwargs))))

    @property
    def users(self) -> dict[Node, None]:
        """The nodes that take it."""
        return {node: None for node in self.graph.nodes if self in node.all_input_nodes}

    def format_node(self) -> str:
        """The node in one line."""
        if self.op == "placeholder":
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        given = ", ".join(
            [*map(spelled, self.args), *[f"{n} = {spelled(v)}" for n, v in self.kwargs.items()]]
        )
        return f"%{self.name} : [num_users={len(self.users)}] = call_function[target={dotted(self.target)}]({given})"


def nodes_in(value: Any) -> Iterator[Node]:
    """The nodes in nested arguments."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from nodes_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from nodes_in(each)
    elif isinstance(value, slice):
        yield from nodes_in((value.start, value.stop, value.step))


def map_nodes(value: Any, change: Callable[[Any], Any], kind: Any = Node) -> Any:
    """Nested arguments with something else in the place of each node (or of what is of `kind`)."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {name: map_nodes(each, change, kind) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        made = [map_nodes(each, change, kind) for each in value]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*made)
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, slice):
        return slice(*[map_nodes(v, change, kind) for v in (value.start, value.stop, value.step)])
    return value


def spelled(value: Any) -> str:
    """An argument as code has it."""
    if isinstance(value, (Node, Size)):
        return str(value)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(spelled, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    text = repr(value)
    return re.sub(r"\bxtensor\.", "torch.", text) if not isinstance(value, str) else text


def dotted(target: Any) -> str:
    """An operator's name as code has it."""
    if isinstance(target, OpOverload):
        return f"torch.ops.{target}"
    if getattr(target, "__module__", "") == "_operator":
        return f"operator.{target.__name__}"
    return getattr(target, "qualified", None) or getattr(target, "__name__", str(target))


class Graph:
    """Nodes in the order in which they run."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._names: set[str] = set()

    def name(self, wish: str) -> str:
        """A name that no node has yet."""
        wish = re.sub(r"\W+", "_", wish).strip("_") or "value"
        if wish[0].isdigit() or wish in TAKEN:
            wish = f"_{wish}"
        found, number = wish, 0
        while found in self._names:
            number += 1
            found = f"{wish}_{number}"
        self._names.add(found)
        return found

    def placeholder(self, name: str) -> Node:
        """Add an input."""
        found = self.name(name)
        return self._added(Node(self, found, "placeholder", found, (), {}))

    def call_function(
        self, target: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, name: str = ""
    ) -> Node:
        """Add the call of an operator."""
        wish = name or getattr(target, "_opname", None) or getattr(target, "__name__", "call")
        return self._added(Node(self, self.name(wish), "call_function", target, args, kwargs or {}))

    def output(self, results: tuple[Any, ...]) -> Node:
        """Add the results."""
        return self._added(Node(self, self.name("output"), "output", "output", (results,), {}))

    def _added(self, node: Node) -> Node:
        at = len(self.nodes)
        if node.op == "placeholder":
            # Constants are met while operators are recorded; inputs come first nevertheless.
            at = next((i for i, n in enumerate(self.nodes) if n.op != "placeholder"), at)
        self.nodes.insert(at, node)
        return node

    @property
    def results(self) -> tuple[Any, ...]:
        """What the program gives."""
        return self.nodes[-1].args[0]

    def subgraphs(self) -> list[Subgraph]:
        """The functions that steps call."""
        return [value for node in self.nodes for value in node.args if isinstance(value, Subgraph)]

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes of a kind, of one operator."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def last_uses(self) -> dict[Node, list[Node]]:
        """For each node those that nothing takes after it."""
        seen: set[Node] = set()
        found: dict[Node, list[Node]] = {}
        for node in reversed(self.nodes):
            new = [n for n in node.all_input_nodes if n not in seen]
            seen.update(new)
            found[node] = new
        return found

    def python_code(self) -> str:
        """The program as the text of a function."""
        inputs = [n for n in self.nodes if n.op == "placeholder"]
        given = ", ".join([f'{n.name}: "{n.meta.get("val", "")}"' for n in inputs])
        lines = [f"def forward(self, {given}):" if given else "def forward(self):"]
        dead = self.last_uses()
        before = ""
        for node in self.nodes:
            if node.op == "output":
                lines.append(f"    return {spelled(node.args[0])}")
            if node.op != "call_function":
                continue
            line = node.meta.get("line", "")
            if line and line != before:
                lines.append(f"    # {line}")
                before = line
            parts = [*map(spelled, node.args), *[f"{n} = {spelled(v)}" for n, v in node.kwargs.items()]]
            val = node.meta.get("val")
            kind = f': "{val}"' if isinstance(val, TensorMeta) else ""
            freed = dead[node] + ([] if node.users else [node])
            end = "".join(f"{n.name} = " for n in freed) + "None" if freed else ""
            if node.target is operator.getitem:
                call = f"{parts[0]}[{parts[1]}]"
            else:
                call = f"{dotted(node.target)}({', '.join(parts)})"
            lines.append(f"    {node.name}{kind} = {call}" + (f";  {end}" if end else ""))
        return "\n".join(lines) + "\n"

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [
            (
                n.op,
                n.name,
                n.target if isinstance(n.target, str) else dotted(n.target),
                str(n.args),
                str(n.kwargs),
            )
            for n in self.nodes
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))  # type: ignore[arg-type]
        print("\n".join("  ".join(part.ljust(w) for part, w in zip(row, widths)).rstrip() for row in rows))

    def __str__(self) -> str:
        return "graph():\n" + "\n".join(f"    {n.format_node()}" for n in self.nodes)


class Subgraph:
    """A function that a step calls: a program within the program. Its inputs are the tensors that it is called with; it gives a tuple."""

    def __init__(self, name: str, graph: Graph) -> None:
        self.name, self.graph = name, graph

    def __repr__(self) -> str:
        return f"self.{self.name}"

    def readable(self) -> str:
        """The text of a class with the function as its `forward`."""
        return class_text(self.name, self.graph)


def class_text(name: str, graph: Graph) -> str:
    """The text of a class with the graph as its `forward`, and with the functions that its steps call."""
    lines = graph.python_code().splitlines()
    for inner in graph.subgraphs():
        lines += ["", *inner.readable().splitlines()]
    body = "".join(f"    {line}\n" if line else "\n" for line in lines)
    return f"class {name}(torch.nn.Module):\n{body}"


class GraphModule:
    """A graph with its text."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def code(self) -> str:
        """The graph as Python text."""
        return self.graph.python_code()

    def print_readable(self, print_output: bool = True) -> str:
        """The text of a class with the graph as its `forward`, printed too."""
        text = class_text("GraphModule", self.graph)
        if print_output:
            print(text)
        return text
