"""Which nodes of a graph some other compiler or device takes: what a partitioner asks."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import dtypes
from ...nn.modules.module import Module
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

SupportDict = Mapping[str, Any]
IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]
CALLABLE = {"call_module", "call_function", "call_method"}


class OperatorSupportBase(abc.ABC):
    """Says of each node whether it is taken."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether a node is taken; submodules: those of the graph's module by path."""
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """Takes the targets of a table: a function's path (`torch.relu`), a method's name, or the class of a module.

    The value of a target is None, or for its arguments by position and by name which dtypes they may have: `([[float32], None], {"out": [float32]})`.
    Dtypes are what `ShapeProp` leaves.
    """

    _support_dict: SupportDict = {}

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or self._support_dict

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the table has the node's target, with the dtypes of its arguments."""
        if node.op not in CALLABLE:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_place, by_name = wanted
        args: Sequence[Any] = node.args
        if any(i < len(args) and not has_dtype(args[i], allowed) for i, allowed in enumerate(by_place)):
            return False
        return not any(
            name in node.kwargs and not has_dtype(node.kwargs[name], allowed)
            for name, allowed in by_name.items()
        )


def has_dtype(argument: Any, allowed: Sequence[dtypes.dtype] | None) -> bool:
    """Whether an argument is no tensor of another dtype."""
    meta = argument.meta.get("tensor_meta") if isinstance(argument, Node) else None
    if not allowed or not isinstance(argument, Node):
        return True
    return isinstance(meta, TensorMetadata) and meta.dtype in allowed


class FunctionalSupport(OperatorSupportBase):
    """Takes what a function says."""

    def __init__(self, is_node_supported: IsNodeSupported) -> None:
        self.function = is_node_supported

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """What the function says."""
        return self.function(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """The nodes for which `is_node_supported(submodules, node)` is true."""
    return FunctionalSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """The nodes that all of them take."""
    return create_op_support(
        lambda submodules, node: all(x.is_node_supported(submodules, node) for x in op_support)
    )


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """The nodes that one of them takes."""
    return create_op_support(
        lambda submodules, node: any(x.is_node_supported(submodules, node) for x in op_support)
    )


class OpSupports:
    """Kinds of support that are often combined."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: dtypes.dtype) -> OperatorSupportBase:
        """The nodes none of whose inputs has this dtype, by what `ShapeProp` left."""

        def taken(submodules: Mapping[str, Module], node: Node) -> bool:
            metas = [each.meta.get("tensor_meta") for each in node.all_input_nodes]
            return all(getattr(meta, "dtype", None) is not dtype for meta in metas)

        return create_op_support(taken)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """The nodes of other names."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)
