"""A program run again, operator by operator, on other tensors: eagerly, or while something else traces it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from .. import devices
from ..tensor import Tensor
from .calls import Stack
from .dims import Size, evaluate
from .graph import Graph, Node, Subgraph, map_nodes

__all__ = ["called", "placed", "replay"]


def replay(
    graph: Graph,
    inputs: Mapping[str, Tensor],
    sizes: Mapping[str, Any],
    table: Mapping[Any, Callable[..., Any]] | None = None,
    stack: Stack | None = None,
) -> tuple[Any, ...]:
    """The results for tensors in the place of inputs, which are written where the program writes them.

    sizes: the values of open sizes. table: functions to be called in the place of operators. stack: is told whose call each step is of.
    """
    values: dict[Node, Any] = {}
    dead = graph.last_uses()

    def given(value: Any) -> Any:
        if isinstance(value, Subgraph):
            return called(value, sizes, table)
        return values[value] if isinstance(value, Node) else evaluate(value, sizes)

    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = inputs[node.name]
            continue
        if node.op == "output":
            return tuple([given(value) for value in node.args[0]])
        if stack is not None:
            stack.now = node.meta.get("nn_module_stack", {})
        args, kwargs = map_nodes((node.args, node.kwargs), given, (Node, Size, Subgraph))
        if node.target is operator.getitem:
            values[node] = args[0][args[1]]
        else:
            target = node.target if not table else table.get(node.target, node.target)
            values[node] = target(*args, **placed(kwargs))
        for each in dead[node]:
            del values[each]
    return ()


def called(
    subgraph: Subgraph, sizes: Mapping[str, Any], table: Mapping[Any, Callable[..., Any]] | None = None
) -> Callable[..., tuple[Any, ...]]:
    """A program within a program as a function of tensors."""
    names = [node.name for node in subgraph.graph.nodes if node.op == "placeholder"]

    def run(*tensors: Tensor) -> tuple[Any, ...]:
        return replay(subgraph.graph, dict(zip(names, tensors, strict=True)), sizes, table)

    return run


def placed(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments, with the device of now in the place of the one that the program was exported on."""
    if isinstance(kwargs.get("device"), devices.device) and kwargs["device"].type != "meta":
        return {**kwargs, "device": devices.current()}
    return kwargs
