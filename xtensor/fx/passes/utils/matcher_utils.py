"""Where a small graph is found in a large one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ....operators.below.aten import OpOverload
from ....tensor import Tensor
from ....trees import tree_leaves
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node
from ...operator_schemas import bound, get_signature_for_torch_op

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place where a pattern was found."""

    anchors: list[Node]
    """The nodes that the search began at."""
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    """By node of the pattern, the node of the graph that it is."""
    placeholder_nodes: list[Any] = field(default_factory=list)
    """What the pattern's inputs are, in order."""
    returning_nodes: list[Node] = field(default_factory=list)
    """What the pattern gives, in order."""
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, self.nodes_map.copy(), self.placeholder_nodes.copy(), self.returning_nodes.copy()
        )


class SubgraphMatcher:
    """Finds a pattern's nodes in graphs, from its results backwards.

    match_output: its output is to be the graph's. match_placeholder: its inputs are inputs. remove_overlapping_matches: of places
    that share nodes, the first counts. ignore_literals: numbers and the like may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes: list[Node] = list(output.all_input_nodes)
        if match_output:
            self.pattern_anchors = [output]
        else:
            self.pattern_anchors = [n for n in output.all_input_nodes if len(n.users) == 1]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern is found in a graph, in its order."""
        candidates = [
            (anchor, [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        found = list(self._combined(candidates, InternalMatch(self.pattern_anchors), node_name_match))
        for match in found:
            match.placeholder_nodes = [
                match.nodes_map[n] for n in self.pattern_placeholder_nodes if n in match.nodes_map
            ]
            match.returning_nodes = [match.nodes_map[n] for n in self.pattern_returning_nodes]
        found = [match for match in found if self._is_contained(match.nodes_map)]
        return self._remove_overlapping_matches(found) if self.remove_overlapping_matches else found

    def _combined(
        self, candidates: list[tuple[Node, list[Node]]], match: InternalMatch, name: str
    ) -> Iterator[InternalMatch]:
        """Every way in which the anchors are among their candidates."""
        if not candidates:
            yield match
            return
        (anchor, nodes), *others = candidates
        for node in nodes:
            tried = copy.copy(match)
            if self._match_nodes(anchor, node, tried, name):
                yield from self._combined(others, tried, name)

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if node_name_match and node_name_match in gn.name:
            return True
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        owners = pn.graph.owning_module, gn.graph.owning_module
        if None in owners:
            return pn.target == gn.target
        ours = _get_attr(owners[0], str(pn.target))  # pyright: ignore[reportArgumentType]
        theirs = _get_attr(owners[1], str(gn.target))  # pyright: ignore[reportArgumentType]
        if isinstance(ours, Tensor):
            return isinstance(theirs, Tensor)
        return ours == theirs

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(gn, Node):
            return False
        if not isinstance(pn, Node):
            return type(gn) is type(pn) and gn == pn
        if pn.op != "placeholder":
            return False
        if pn in match.nodes_map:
            return match.nodes_map[pn] == gn
        match.nodes_map[pn] = gn
        return True

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        if isinstance(pn, Node) != isinstance(gn, Node):
            return False
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values() or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        before = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        ours, theirs = flat_arguments(pn), flat_arguments(gn)
        same = len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=False) if same else ():
            if isinstance(a, Node) and isinstance(b, Node):
                same = self._match_nodes(a, b, match, node_name_match)
            else:
                same = self._match_literals(a, b, match) or self.ignore_literals
            if not same:
                break
        if not same:
            match.nodes_map = before.nodes_map
        return same

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nobody outside uses what the match does inside."""
        held = {
            node: pattern
            for pattern, node in nodes_map.items()
            if isinstance(node, Node) and pattern.op != "placeholder"
        }
        return all(
            pattern in self.pattern_returning_nodes or all(user in held for user in node.users)
            for node, pattern in held.items()
        )

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            nodes = {
                node
                for pattern, node in match.nodes_map.items()
                if pattern.op not in ("placeholder", "output")
            }
            if not nodes & taken:
                kept.append(match)
                taken |= nodes
        return kept


def flat_arguments(node: Node) -> list[Any]:
    """A node's arguments without containers, those of operators in the order of the signature."""
    args, kwargs = node.args, node.kwargs
    if node.op == "call_function" and isinstance(node.target, OpOverload):
        signature = get_signature_for_torch_op(node.target)
        pair = bound(signature[0], args, kwargs, True) if signature else None  # pyright: ignore[reportArgumentType]
        if pair is not None:
            args, kwargs = pair
    named = [kwargs[key] for key in sorted(kwargs)]
    return tree_leaves((args, named), is_leaf=lambda x: isinstance(x, Node))
