"""Whether a backward graph is the one that a plan was made for, found in one walk along the plan's own order.

The key of a plan (`plans.py`) finds it among all; that takes a sort, a number for every node and a hash of everything.
Where a graph comes again and again, as in training, comparing it with the ones that came last is a third of the work.
"""

from __future__ import annotations

from typing import Any

from ..engine import AccumulateGrad, Node

__all__ = ["Pattern"]

Found = tuple[list[Any], list[Any], list[Any]]
"""The nodes in the order in which the interpreter runs them, the program's arguments, and the leaves."""


NOWHERE: Any = (None, -1)
"""Where an edge leads that is None: no edge arrives at such a place."""


class Pattern:
    """The structure of a graph: what each node compares itself with (`Node.matches`), and where its edges lead.

    steps: of each node its class, its own pattern, and per edge None or the number of the node it leads to (leaves: -1, -2, ...)
    with the place among its inputs.
    """

    __slots__ = ("n_leaves", "steps")

    def __init__(self, nodes: list[Any], leaves: list[Any]) -> None:
        number: dict[Node, int] = {node: i for i, node in enumerate(nodes)}
        number |= {leaf: -1 - i for i, leaf in enumerate(leaves)}
        self.steps = [
            (
                type(node),
                node.pattern(),
                tuple([NOWHERE if e is None else (number[e[0]], e[1]) for e in node.edges]),
            )
            for node in nodes
        ]
        self.n_leaves = len(leaves)

    def find(self, root: Any, grad: Any) -> Found | None:
        """The parts of the graph below `root` in the order of this one, or None where anything differs."""
        nodes: list[Any] = [None] * len(self.steps)
        leaves: list[Any] = [None] * self.n_leaves
        args = [grad]
        nodes[0] = root
        place: Any = None
        last = root.sequence_nr + 1
        for at, (kind, pattern, edges) in enumerate(self.steps):
            node = nodes[at]
            # Numbers that fall strictly show that the order is the interpreter's, and that no node has two places.
            number = node.sequence_nr
            if type(node) is not kind or number >= last or node.meta is not None:
                return None
            if not node.matches(pattern, args):
                return None
            last = number
            for edge, (to, slot) in zip(node.edges, edges):
                if edge is None:
                    if to is not None:
                        return None
                    continue
                target, into = edge
                if into != slot:
                    return None
                if to >= 0:
                    known = nodes[to]
                    if known is None:
                        nodes[to] = target
                    elif known is not target:
                        return None
                    continue
                known = leaves[to]
                if known is None:
                    if target.__class__ is not AccumulateGrad or target.meta is not None:
                        return None
                    if target.leaf.post_accumulate or (target.device is not place and place is not None):
                        return None
                    place = target.device
                    leaves[to] = target
                elif known is not target:
                    return None
        leaves.reverse()
        return (nodes, args, leaves) if len(set(leaves)) == len(leaves) else None
