"""Collectives that autograd follows: what a process gets depends on the tensors of all, and gradients go back to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.function import Function
from ...ops.create.creation import empty, zeros_like
from ...ops.shape.joining import stack
from ...tensor import Tensor
from .. import collectives
from ..collectives import ReduceOp
from ..group import chosen

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        made = tensor.clone()
        collectives.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grads[0])


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        made = tensor.clone()
        collectives.broadcast(made, src, group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grads[0])


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        made = tensor.clone()
        collectives.reduce(made, dst, op, group)
        return made if chosen(group).ranks[chosen(group).rank()] == dst else zeros_like(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grads[0])


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.group = group
        made = empty(chosen(group).size(), *tensor.shape, dtype=tensor.dtype, device=tensor.device)
        collectives.all_gather_into_tensor(made, tensor, group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, grads[0])


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.group = group
        made = empty(tuple(tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)
        collectives.reduce_scatter_tensor(made, tensor, op, group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _AllGather.apply(ctx.group, grads[0])


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, rows: Any, taken: Any, given: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.rows, ctx.taken, ctx.given = group, tensor.shape[0], taken, given
        made = empty(rows, *tensor.shape[1:], dtype=tensor.dtype, device=tensor.device)
        collectives.all_to_all_single(made, tensor, taken, given, group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        back = _AllToAll.apply(ctx.group, ctx.rows, ctx.given, ctx.taken, grads[0])
        return None, None, None, None, back


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (product, ...) of the tensors of all processes; gradients are reduced in the same way."""
    return _AllReduce.apply(op, group, tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`, which gets the sum of all gradients."""
    return _Broadcast.apply(src, group, tensor)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """At rank `dst` the sum (product, ...) of all tensors; zeros at the others."""
    return _Reduce.apply(dst, op, group, tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes, in the order of the ranks."""
    return tuple(_AllGather.apply(group, tensor).unbind(0))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """At rank `dst` the tensors of all processes; zeros at the others."""
    made = all_gather(tensor, group)
    found = chosen(group)
    return made if found.ranks[found.rank()] == dst else tuple([part * 0 for part in made])


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The sum (product, ...) of all processes' tensors number `rank` of the list."""
    return _ReduceScatter.apply(op, group, stack(list(input_list)))


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The tensor number `rank` of the list of rank `src`."""
    found = chosen(group)
    whole = stack(list(tensors))
    if found.ranks[found.rank()] != src:
        whole = whole * 0
    return _ReduceScatter.apply(ReduceOp.SUM, group, whole)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Tensor number `rank` of every process's list, all of one shape."""
    made = all_to_all_single(stack(list(output_tensor_list)), stack(list(input_tensor_list)), group=group)
    return tuple(made.unbind(0))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """The parts number `rank` of all inputs, which are split evenly or into so many rows."""
    return _AllToAll.apply(group, output.shape[0], output_split_sizes, input_split_sizes, input)
