"""Backward graphs told from one another: patterns, and the bounded collection in which a graph finds its own.

A graph is compared with a pattern in one walk along the pattern's order, which the first difference ends. Which patterns
it is compared with is a matter of hints: first those that ran last and begin as it does, in training always the
right ones; then those whose nodes say `hint()` alike, for which the whole graph must be walked once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from ..engine import AccumulateGrad, Node, Replayable

__all__ = ["Pattern", "Patterns"]

Found = tuple["Pattern", list[Any], list[Any], list[Any]]
"""A pattern, and of a graph that has it: nodes as the interpreter runs them, the program's arguments, and leaves."""

NOWHERE: Any = (None, -1)
"""Where an edge leads that is None: no edge arrives at such a place."""

# How many patterns a graph is compared with that begin as it does, and how many that have its hints.
RECENT = 4
ALIKE = 8

tick = itertools.count().__next__
by_use = attrgetter("used")


class Pattern:
    """The structure of a graph: what each node compares itself with (`Replayable.matches`), and where its edges lead.

    steps: of each node its class, its own pattern, and per edge NOWHERE or the number of the node it leads to (leaves: -1, -2, ...)
    with the place among its inputs. plans: by the leaves asked for, what is known of the graph's program. place: where
    `Patterns` keeps it. used: when it was found last. grad: the shape and dtype of the root's gradient.
    """

    __slots__ = ("grad", "n_leaves", "place", "plans", "steps", "used")

    def __init__(self, steps: list[Any], n_leaves: int, place: Any, grad: Any) -> None:
        self.steps = steps
        self.n_leaves = n_leaves
        self.place = place
        self.grad = grad
        self.plans: dict[Any, Any] = {}
        self.used = 0

    def find(self, root: Any, grad: Any) -> Found | None:
        """The parts of the graph below `root` in the order of this one, or None where anything differs."""
        nodes: list[Any] = [None] * len(self.steps)
        leaves: list[Any] = [None] * self.n_leaves
        args = [grad]
        nodes[0] = root
        place: Any = None
        last = root._xt_sequence_nr + 1
        for at, (kind, pattern, edges) in enumerate(self.steps):
            node = nodes[at]
            # Numbers that fall strictly show that the order is the interpreter's, and that no node has two places.
            number = node._xt_sequence_nr
            if type(node) is not kind or number >= last or node._xt_meta is not None:
                return None
            if not node.matches(pattern, args):
                return None
            last = number
            for edge, (to, slot) in zip(node._xt_edges, edges):
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
                    if target.__class__ is not AccumulateGrad or target._xt_meta is not None:
                        return None
                    if target.leaf.post_accumulate or (target._xt_device is not place and place is not None):
                        return None
                    place = target._xt_device
                    leaves[to] = target
                elif known is not target:
                    return None
        if len(set(leaves)) != len(leaves):
            return None
        leaves.reverse()
        self.used = tick()
        return self, nodes, args, leaves


def pattern_of(nodes: Sequence[Any], place: Any, grad: Any) -> Pattern | None:
    """The pattern of a graph; None where a node can only run by itself, or not in this order."""
    number: dict[Node, int] = {node: i for i, node in enumerate(nodes)}
    leaves: dict[Node, int] = {}
    steps: list[Any] = []
    for at, node in enumerate(nodes):
        own = node.pattern()
        if own is None:
            return None
        edges = []
        for edge in node._xt_edges:
            to = NOWHERE
            if edge is not None:
                to = (number.get(edge[0]), edge[1])
                if to[0] is None:
                    to = (leaves.setdefault(edge[0], -1 - len(leaves)), edge[1])
                elif to[0] <= at:
                    return None
            edges.append(to)
        steps.append((type(node), own, tuple(edges)))
    return Pattern(steps, len(leaves), place, grad)


class Patterns:
    """The patterns that are known. A start is what a graph shows at once: the root's class, and the gradient it is given."""

    def __init__(self) -> None:
        self._recent: dict[Any, list[Pattern]] = {}
        self._tried: dict[Any, list[Pattern]] = {}
        self._alike: dict[Any, list[Pattern]] = {}

    def __iter__(self) -> Iterator[Pattern]:
        return itertools.chain.from_iterable(list(self._alike.values()))

    def clear(self) -> None:
        """Forget all."""
        self._recent.clear()
        self._tried.clear()
        self._alike.clear()

    def recent(self, start: Any, root: Node, grad: Any) -> Found | None:
        """The pattern of a graph, if it is one of those that ran last."""
        for pattern in self._tried.get(start, ()):
            found = pattern.find(root, grad)
            if found is not None:
                return found
        return None

    def find(self, start: Any, nodes: list[Any], grad: Any) -> Found | None:
        """The pattern of a graph, which is made if it is not known; None where the graph cannot have one."""
        hints: list[Any] = []
        for node in nodes:
            if not isinstance(node, Replayable):
                return None
            hints += (type(node), node.hint())
        place = (start, hash(tuple(hints)))
        alike = self._alike.get(place, [])
        for pattern in alike:
            found = pattern.find(nodes[0], grad)
            if found is not None:
                return found
        made = pattern_of(nodes, place, grad.aval)
        if made is None:
            return None
        if len(alike) >= ALIKE:
            self._drop(min(alike, key=by_use))
        self._alike[place] = [made, *self._alike.get(place, ())]
        return made.find(nodes[0], grad)

    def ran(self, pattern: Pattern) -> None:
        """Compare graphs that begin as this one does with it first; with it alone, if other comparisons were in vain."""
        start = pattern.place[0]
        known = self._recent.get(start, [])
        last = self._recent[start] = [pattern, *[p for p in known if p is not pattern][: RECENT - 1]]
        self._tried[start] = last if pattern in known else last[:1]

    def forget(self, share: int) -> None:
        """Let go of one in `share` patterns, and of one at least: of those that were not found for longest."""
        every = sorted(self, key=by_use)
        for pattern in every[: max(1, len(every) // share)]:
            self._drop(pattern)

    def _drop(self, pattern: Pattern) -> None:
        # Lists are made anew, never changed: backward passes of other threads may be reading them.
        start = pattern.place[0]
        for kept, where in ((self._alike, pattern.place), (self._recent, start), (self._tried, start)):
            left = [p for p in kept.get(where, ()) if p is not pattern]
            if left:
                kept[where] = left
            else:
                kept.pop(where, None)
