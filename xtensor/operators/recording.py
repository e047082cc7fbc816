"""The recorder of nodes made by hand: for results that no declared operator's own path gives their place in the graph.

Generated functions, `dispatch` and what is as hot as they (views, `clone`, reads by index arrays) do the same inline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..engine import anomaly
from ..engine.graph import Node
from ..engine.modes import ANOMALY, NO_GRAD, state
from ..tensor import Tensor, edge_of, plain_edge

__all__ = ["edges_to", "noted", "recorded"]

N = TypeVar("N", bound=Node)


def edges_to(inputs: Sequence[Tensor]) -> tuple[Any, ...] | None:
    """The edges of a node with these inputs; None where no graph is recorded or none of them asks for a gradient."""
    if state.mode & NO_GRAD:
        return None
    edges = [edge_of(t) for t in inputs]
    # An edge may be there and lead nowhere: `plain_edge` gives None for it.
    return tuple(map(plain_edge, edges)) if any(e is not None for e in edges) else None


def noted(node: N) -> N:
    """A new node; in anomaly mode it remembers where it was made."""
    if state.mode & ANOMALY:
        anomaly.record(node)
    return node


def recorded(result: Tensor, node: Node) -> Tensor:
    """A result with a new node as its history."""
    result._xt_edge = (noted(node), 0)
    return result
