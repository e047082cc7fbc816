"""Collectives as functions: `torch.distributed._functional_collectives`, which leave their arguments as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ops.shape.joining import cat, stack
from ..tensor import Tensor
from .collectives import ReduceOp
from .device_mesh import DeviceMesh
from .group import chosen
from .nn import functional

__all__ = [
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "wait_tensor",
]


def group_of(group: Any) -> Any:
    """The process group that a group, a mesh of one dimension, or a mesh and a dimension mean."""
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple):
        return group[0].get_group(group[1])
    return group


def op_of(name: Any) -> Any:
    """A reduction by its name."""
    return (
        ReduceOp({"PRODUCT": "PRODUCT", "PROD": "PRODUCT"}.get(str(name).upper(), str(name).upper()))
        if isinstance(name, str)
        else name
    )


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once it is there."""
    return tensor


def all_reduce(self: Tensor, reduceOp: Any, group: Any = None, tag: str = "") -> Tensor:
    """The sum ("sum", "avg", "max", ...) of the tensors of all processes."""
    return functional.all_reduce(self, op_of(reduceOp), group_of(group))


def broadcast(self: Tensor, src: int, group: Any = None, tag: str = "") -> Tensor:
    """The tensor of rank `src`."""
    return functional.broadcast(self, src, group_of(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any = None, tag: str = "") -> Tensor:
    """The tensors of all processes, joined along a dimension."""
    return cat(list(functional.all_gather(self, group_of(group))), gather_dim)


def reduce_scatter_tensor(
    self: Tensor, reduceOp: Any, scatter_dim: int, group: Any = None, tag: str = ""
) -> Tensor:
    """The part number `rank` along a dimension of the sum of the tensors of all processes."""
    found = group_of(group)
    parts = stack(list(self.chunk(chosen(found).size(), scatter_dim)))
    return functional.reduce_scatter(self, list(parts.unbind(0)), op_of(reduceOp), found)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any = None,
    tag: str = "",
) -> Tensor:
    """The parts number `rank` of the tensors of all processes."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty(rows, *self.shape[1:])
    return functional.all_to_all_single(output, self, output_split_sizes, input_split_sizes, group_of(group))


all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
