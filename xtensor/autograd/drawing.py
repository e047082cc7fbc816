"""The backward graph as a picture: `draw(loss)` gives SVG, in a notebook or a file."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from ..engine import Node
from ..engine.graph import AccumulateGrad, name_of
from ..gradients import gradient_edge
from ..operators.inplace import CopySlices
from ..operators.nodes import OpNode
from ..operators.saved import line_of
from ..tensor import Tensor, sizes_of
from .function import BackwardCFunction
from .rows import Arrows, Boxes, dot_text, in_rows
from .themes import in_page_colours

__all__ = ["GraphPicture", "draw"]


class GraphPicture:
    """A drawn graph: shows itself in a notebook, `save(path)` writes SVG, `dot` is its Graphviz source."""

    def __init__(self, dot: str, svg: str, nodes: int) -> None:
        self.dot = dot
        self.svg = svg
        self.nodes = nodes

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return in_page_colours(self.svg)

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write the SVG to a file."""
        path = pathlib.Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"<graph of {self.nodes} nodes; .save(path) writes SVG>"


def walk(roots: Iterable[Node]) -> list[Node]:
    """Every node reachable from the roots, without recursion."""
    seen: dict[Node, None] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        stack.extend(edge[0] for edge in node._xt_edges if edge is not None)
    return list(seen)


def size_text(nbytes: int) -> str:
    for unit in ("B", "KB", "MB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024  # pyright: ignore[reportAssignmentType]
    return f"{nbytes:.1f} GB"


def entries(saved: Any) -> list[tuple[Any, int, Any]]:
    """The `(counter, version, array)` entries of what a node saved."""
    if isinstance(saved, tuple) and len(saved) == 3 and hasattr(saved[2], "nbytes"):
        return [saved]
    if isinstance(saved, (list, tuple)):
        return [e for item in saved for e in entries(item)]
    return []


def saved_of(node: Node) -> tuple[int, list[str]]:
    """The bytes that a node saved, and a line per saved value that was written since."""
    total = 0
    conflicts = []
    if isinstance(node, CopySlices):
        return saved_of(node.fn)
    if isinstance(node, OpNode) and node.saved is not None:
        for counter, version, array in entries(list(node.saved)):
            total += array.nbytes
            conflicts += conflict(counter, version)
    elif isinstance(node, BackwardCFunction) and node._saved:
        for kept in node._saved:
            if kept is None or type(kept.entry) is not tuple:
                continue
            counter, version, array = kept.entry
            total += array.nbytes if kept.tensor is None else kept.tensor.nbytes
            conflicts += conflict(counter, version)
    return total, conflicts


def conflict(counter: Any, version: int) -> list[str]:
    """A line where a saved value was written since: the versions, and who wrote where it is known."""
    if counter is None or counter.version == version:
        return []
    writer = getattr(counter, "writer", None)
    where = ""
    if writer is not None:
        code, at, name = writer
        where = f"\nby {name} at {pathlib.PurePath(code.co_filename).name}:{line_of(code, at)}"
    return [f"saved at version {version}, now {counter.version}{where}"]


def hooks_of(node: Node) -> int:
    meta = node._xt_meta
    if meta is None:
        return 0
    count = sum(len(h) for h in (meta.pre_hooks, meta.post_hooks) if h)
    return count + sum(len(h) for h in (meta.tensor_hooks or {}).values()) + len(meta.retain_hooks or {})


def shapes_of(node: Node) -> str:
    try:
        shapes = [list(m.shape) for m in node._xt_metadata if m is not None]
    except (AttributeError, TypeError):
        return ""
    return ", ".join(map(str, shapes))


def describe(node: Node, names: Mapping[int, str]) -> dict[str, str]:
    """The label and style of one node."""
    if isinstance(node, AccumulateGrad):
        variable = node.variable
        name = names.get(id(variable), variable.name or "leaf")
        lines = [name, str(list(sizes_of(variable)))]
        count = hooks_of(node) + len(node.leaf.post_accumulate or ())
        if count:
            lines.append(f"{count} hook{'s' if count > 1 else ''}")
        return {"label": "\n".join(lines), "shape": "box", "style": "filled", "fillcolor": "#cfe8cf"}
    lines = [name_of(node), shapes_of(node)]
    nbytes, conflicts = saved_of(node)
    if nbytes:
        lines.append(f"saved {size_text(nbytes)}")
    hooks = hooks_of(node)
    if hooks:
        lines.append(f"{hooks} hook{'s' if hooks > 1 else ''}")
    style = {"shape": "box", "style": "rounded,filled", "fillcolor": "#eef2f7"}
    if conflicts:
        lines.extend(conflicts)
        style.update(color="red", fontcolor="red", fillcolor="#fbe3e3")
    style["label"] = "\n".join(line for line in lines if line)
    return style


def draw(
    outputs: Tensor | Iterable[Tensor],
    params: Any = None,
    *,
    path: str | pathlib.Path | None = None,
) -> GraphPicture:
    """The graph behind `outputs` as SVG: operators, shapes, leaves, saved sizes, hooks; version conflicts in red.

    params: a Module, or a mapping (or pairs) of names to tensors, that names the leaves. path: write the SVG there too.
    Layout is Graphviz's where pygraphviz (the `viz` extra) is installed, else one of the library's own, in rows.

    >>> w = xtensor.ones(3, requires_grad=True)
    >>> xtensor.autograd.draw((w * 2).sum(), {"w": w})
    <graph of 3 nodes; .save(path) writes SVG>
    """
    names = leaf_names(params)
    tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    boxes: dict[str, dict[str, str]] = {}
    arrows: list[tuple[str, str, str]] = []
    roots = []
    for i, tensor in enumerate(tensors):
        edge = gradient_edge(tensor)
        if edge is None:
            raise RuntimeError("draw(): the tensor does not require grad: there is no graph")
        roots.append(edge[0])
        label = f"{names.get(id(tensor), 'output')}\n{list(sizes_of(tensor))}"
        boxes[f"out{i}"] = {"label": label, "shape": "box", "style": "filled", "fillcolor": "#f7e6c4"}
        arrows.append((f"n{id(edge[0])}", f"out{i}", ""))
    nodes = walk(roots)
    for node in nodes:
        boxes[f"n{id(node)}"] = describe(node, names)
    for node in nodes:
        for edge in node._xt_edges:
            if edge is not None:
                label = str(edge[1]) if edge[0]._xt_num_inputs > 1 else ""
                arrows.append((f"n{id(edge[0])}", f"n{id(node)}", label))
    dot, svg = graphviz(boxes, arrows) or (dot_text(boxes, arrows), in_rows(boxes, arrows))
    found = GraphPicture(dot, svg, len(nodes))
    if path is not None:
        found.save(path)
    return found


def graphviz(boxes: Boxes, arrows: Arrows) -> tuple[str, str] | None:
    """The source and the SVG by Graphviz, or None where pygraphviz is not installed."""
    try:
        import pygraphviz
    except ImportError:
        return None
    picture = pygraphviz.AGraph(directed=True, strict=False, rankdir="BT")
    picture.node_attr.update(fontname="Helvetica", fontsize="10")
    picture.edge_attr.update(fontname="Helvetica", fontsize="9")
    for name, style in boxes.items():
        picture.add_node(name, **style)
    for start, end, label in arrows:
        picture.add_edge(start, end, label=label)
    data = picture.draw(format="svg", prog="dot")
    svg = data.decode() if isinstance(data, bytes) else str(data)
    return picture.to_string(), svg[svg.index("<svg") :]


def leaf_names(params: Any) -> dict[int, str]:
    """Names by identity: from a Module's parameters, a mapping, or pairs."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    pairs = params.items() if isinstance(params, Mapping) else params
    return {id(tensor): name for name, tensor in pairs}
