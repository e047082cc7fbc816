"""The names of nodes where PyTorch has several for one operator: by overload, or by the kernel that it chooses.

A name ends in the overload's number. Here one operator has one node class, whose `name()` tells the cases apart.
"""

from __future__ import annotations

from collections.abc import Callable

from .nodes import OpNode

__all__ = ["NAMERS"]

Namer = Callable[[OpNode], str]


def static_of(node: OpNode, name: str) -> object:
    """A static argument of the call that made a node."""
    for parameter, value in zip(node.op.static, node.key, strict=True):
        if parameter.name == name:
            return value
    return None


def over_dims(title: str, whole: int = 0, dims: int = 1) -> Namer:
    """Reductions that number the overload with `dim` apart."""

    def name(node: OpNode) -> str:
        return f"{title}Backward{whole if static_of(node, 'dim') is None else dims}"

    return name


def product(node: OpNode) -> str:
    """`matmul` by what it multiplies: the rank of the result tells."""
    kinds = {0: "DotBackward0", 1: "MvBackward0", 2: "MmBackward0"}
    return kinds.get(len(node.aval.shape), "UnsafeViewBackward0")


def power(node: OpNode) -> str:
    """`pow` by which of its operands is a tensor: an edge to the exponent is one."""
    return "PowBackward1" if node.edges[1] is not None else "PowBackward0"


def bounded(node: OpNode) -> str:
    """`clamp` by numbers or by tensors: an edge to a bound is one."""
    return "ClampBackward1" if node.edges[1:] == (None, None) else "ClampBackward0"


NAMERS: dict[str, Namer] = {
    "clamp": bounded,
    "matmul": product,
    "max_all": lambda node: "MaxBackward1",
    "mean": over_dims("Mean"),
    "min_all": lambda node: "MinBackward1",
    "pow": power,
    "prod": over_dims("Prod"),
    "sum": over_dims("Sum"),
}
OpNode.namers.update(NAMERS)
