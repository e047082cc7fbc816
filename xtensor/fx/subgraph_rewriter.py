"""Every place of a graph that does what one function does, made to do what another does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where a pattern was found: the node that the search began at, and by node of the pattern the graph's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place that was replaced, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replace each place of a module's graph that does what `pattern` does by what `replacement` does; the places.

    Both are functions or modules, which are traced; their inputs are matched in order. Places that share nodes with one before
    them, and those of which a node inside is used outside, stay as they are.

    >>> traced = xtensor.fx.symbolic_trace(lambda x: xtensor.relu(x) + xtensor.relu(x + 1))
    >>> _ = xtensor.fx.replace_pattern(traced, lambda x: xtensor.relu(x), lambda x: x.clamp(min=0))
    >>> print(traced.code.strip())
    def forward(self, x):
        add = x + 1
        clamp = x.clamp(min = 0);  x = None
        clamp_1 = add.clamp(min = 0);  add = None
        add_1 = clamp + clamp_1;  clamp = clamp_1 = None
        return add_1
    """
    return [Match(one.anchor, one.nodes_map) for one in _replaced(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """`replace_pattern` of the places that all filters want.

    match_filters: functions of a place, the graph and the pattern's graph. replacement_callback: the replacement's graph for a
    place. ignore_literals: numbers in the pattern stand for any.
    """
    return _replaced(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(what: Any) -> Graph:
    if isinstance(what, GraphModule):
        return what.graph
    return what if isinstance(what, Graph) else symbolic_trace(what).graph


def _replaced(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: Any = None,
    ignore_literals: bool = False,
    replacement_callback: Any = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match)
        if all(wanted(match, graph, pattern_graph) for wanted in match_filters or ())
    ]
    common = None if replacement is None else _graph_of(replacement)
    done: list[ReplacedPatterns] = []
    renewed: dict[Node, Node] = {}
    for match in matches:
        if common is None and replacement_callback is None:
            raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
        other = common if common is not None else replacement_callback(match, graph, pattern_graph)
        done.append(_replace_one(graph, pattern_graph, other, match, renewed))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _replace_one(
    graph: Graph, pattern: Graph, replacement: Graph, match: InternalMatch, renewed: dict[Node, Node]
) -> ReplacedPatterns:
    """Put the replacement in one place; renewed: what stands now for nodes that places before it have replaced."""
    inputs = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"{len(match.placeholder_nodes)} inputs of the pattern, but {len(inputs)} of the replacement"
        )
    values: dict[Node, Any] = {}
    for theirs, ours in zip(inputs, match.placeholder_nodes, strict=True):
        values[theirs] = renewed.get(ours, ours) if isinstance(ours, Node) else ours
    users = {user for node in match.returning_nodes for user in node.users}
    behind = next((node for node in graph.nodes if node in users), None)
    if behind is None:
        ends = set(match.returning_nodes)
        behind = next(node for node in reversed(graph.nodes) if node in ends).next
    before = set(graph.nodes)
    with graph.inserting_before(behind):
        made = graph.graph_copy(replacement, values)
    results = [made] if isinstance(made, Node) else list(made or ())
    added = [node for node in graph.nodes if node not in before]
    if len(match.returning_nodes) != len(results):
        raise AssertionError(
            f"{len(match.returning_nodes)} results of the pattern, but {len(results)} of the replacement"
        )
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        renewed[old] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give the module what its graph names now, from the replacement."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()

    def found(module: Module, target: str) -> Any:
        parent, _, name = target.rpartition(".")
        try:
            return getattr(module.get_submodule(parent), name, None)
        except AttributeError:
            return None

    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or found(gm, str(node.target)) is not None:
            continue
        new = copy.deepcopy(found(replacement, str(node.target)))
        if new is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        parent, _, name = str(node.target).rpartition(".")
        if parent:
            gm.add_submodule(parent, Module())
        setattr(gm.get_submodule(parent), name, new)
    gm.graph.lint()
