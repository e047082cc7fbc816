"""A graph as a picture, by Graphviz."""

from __future__ import annotations

from typing import Any

from ...autograd.dot import Dot, quoted
from ..codegen import SHORT
from ..graph_module import GraphModule
from ..names import shown_target
from ..node import Node

__all__ = ["Dot", "FxGraphDrawer"]

COLOURS = {
    "placeholder": "#f7e6c4", "get_attr": "#cfe8cf", "call_module": "#dde7f5", "call_function": "#eef2f7",
    "call_method": "#eef2f7", "output": "#f7e6c4",
}  # fmt: skip


class FxGraphDrawer:
    """Draws a GraphModule, and those in it: a box for each node, with target, sizes and dtype where passes left them.

    >>> from xtensor.fx.passes.graph_drawer import FxGraphDrawer
    >>> drawer = FxGraphDrawer(xtensor.fx.symbolic_trace(lambda x: xtensor.relu(x)), "small")
    >>> drawer.get_dot_graph().to_string().splitlines()[0]
    'digraph "small" {'
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self.ignore_getattr, self.shape = ignore_getattr, dot_graph_shape or "box"
        self.skip_names, self.origin = skip_node_names_in_args, parse_stack_trace
        self._dots = {name: self._drawn(graph_module, name)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._dots[f"{name}_{path}"] = self._drawn(module, f"{name}_{path}")
        self._name = name

    def get_dot_graph(self, submod_name: str | None = None) -> Dot:
        """The picture of the graph, or of a submodule's."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Dot:
        """The picture of the graph."""
        return self._dots[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Dot:
        """The picture of a submodule's graph."""
        return self._dots[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Dot]:
        """All pictures, by name."""
        return self._dots

    def _drawn(self, module: GraphModule, name: str) -> Dot:
        nodes = [n for n in module.graph.nodes if not (self.ignore_getattr and n.op == "get_attr")]
        lines = [f"digraph {quoted(name)} {{", "  rankdir=TB; node [fontname=Helvetica, fontsize=10];"]
        for node in nodes:
            look = f'shape={self.shape}, style="rounded,filled", fillcolor="{COLOURS[node.op]}"'
            lines.append(f"  {quoted(node.name)} [label={quoted(self._label(module, node))}, {look}];")
        shown = set(nodes)
        for node in nodes:
            lines += [
                f"  {quoted(n.name)} -> {quoted(node.name)};" for n in node.all_input_nodes if n in shown
            ]
        return Dot("\n".join([*lines, "}", ""]), len(nodes))

    def _label(self, module: GraphModule, node: Node) -> str:
        lines = [f"{node.op}: {node.name}"]
        if node.op == "call_module":
            lines.append(repr(module.get_submodule(str(node.target))).split("\n")[0])
        elif node.op not in ("placeholder", "output"):
            lines.append(shown_target(node.target))
        given = [repr(a) for a in node.args if not (self.skip_names and isinstance(a, Node))]
        given += [
            f"{k}={v!r}" for k, v in node.kwargs.items() if not (self.skip_names and isinstance(v, Node))
        ]
        if given and node.op not in ("output", "placeholder"):
            lines.append(", ".join(given)[:80])
        meta: Any = node.meta.get("tensor_meta")
        if hasattr(meta, "shape"):
            lines.append(f"{SHORT.get(meta.dtype, meta.dtype)}{list(meta.shape)}")
        if self.origin and node.stack_trace:
            lines.append(node.stack_trace.strip().split("\n")[-1].strip())
        return "\n".join(lines)
