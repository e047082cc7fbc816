"""Collectives on tensors: what every process of a group calls, in the same order, each with its own tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .. import dtypes
from ..engine.modes import no_grad
from ..ops.create.creation import zeros
from ..ops.create.ingest import tensor as make_tensor
from ..ops.shape.joining import cat, stack
from ..tensor import Tensor, array_of, wrap
from . import programs
from .errors import DistStoreError
from .group import ProcessGroup, chosen, get_group_rank
from .work import Work

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
]


class _Named(type):
    @property
    def RedOpType(cls) -> Any:
        """The class of the members, as which PyTorch has another: here they are reductions themselves."""
        return cls

    def __getattr__(cls, name: str) -> Any:
        if name in (*programs.REDUCTIONS, "PREMUL_SUM"):
            found = ReduceOp(name)
            setattr(cls, name, found)
            return found
        raise AttributeError(f"ReduceOp has no {name}: {', '.join(programs.REDUCTIONS)}")


class ReduceOp(metaclass=_Named):
    """What a reduction does: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR.

    >>> import xtensor.distributed as dist
    >>> dist.ReduceOp.SUM == dist.ReduceOp.SUM, dist.ReduceOp.MAX
    (True, <RedOpType.MAX: 'MAX'>)
    """

    def __init__(self, name: Any) -> None:
        self.name: str = name.name if isinstance(name, ReduceOp) else name
        self.factor: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReduceOp) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.name!r}>"

    def __reduce__(self) -> Any:
        return (ReduceOp, (self.name,))


reduce_op = ReduceOp
"""The older name."""


def premul_sum(factor: Any) -> ReduceOp:
    """A sum of the values times a factor."""
    made = ReduceOp("PREMUL_SUM")
    made.factor = factor
    return made


def asked(group: Any, tensor: Any, name: str = "tensor") -> tuple[ProcessGroup, Any]:
    """The group and its mesh for a tensor; errors are PyTorch's."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got "
            f"{type(tensor)} instead."
        )
    if tensor.device.sharding is not None:
        raise ValueError(f"a collective takes the tensor of one process: this one lies on {tensor.device}")
    found = chosen(group)
    return found, found.mesh(tensor.device.type)


def check_list(tensors: Any, name: str, count: int | None = None) -> list[Tensor]:
    """A list of tensors, as many as the group has processes."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
            f"{type(tensors)} instead."
        )
    if count is not None and len(tensors) != count:
        raise ValueError(f"{name} has {len(tensors)} tensors, and the group has {count} processes")
    return list(tensors)


def written(targets: Sequence[Tensor], arrays: Sequence[Any], async_op: bool) -> Work | None:
    """Write results to tensors; the work, if it is asked for."""
    with no_grad():
        for target, array in zip(targets, arrays, strict=True):
            target.copy_(
                wrap(array).reshape(target.shape) if array.shape != tuple(target.shape) else wrap(array)
            )
    work = Work(arrays, list(targets))
    if async_op:
        return work
    work.wait()
    return None


def reduced(found: ProcessGroup, mesh: Any, tensor: Tensor, op: Any, kind: str = "all_reduce") -> Any:
    """What a reduction gives this process."""
    op = ReduceOp(op) if isinstance(op, str) else op
    array = array_of(tensor)
    if op.name in ("BAND", "BOR", "BXOR") and array.dtype.kind not in "iub":
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op.name in ("MIN", "MAX", "PRODUCT") and array.dtype.kind == "c" and op.name != "PRODUCT":
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    if op.name == "PREMUL_SUM":
        with no_grad():
            array = array_of(tensor * op.factor)
        return programs.run(kind, mesh, array, "SUM")
    return programs.run(kind, mesh, array, op.name)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Give all processes the sum (product, ...) of their tensors, in place."""
    found, mesh = asked(group, tensor)
    return written([tensor], [reduced(found, mesh, tensor, op)], async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """`all_reduce` of several tensors."""
    found, mesh = asked(group, tensors[0])
    return written(tensors, [reduced(found, mesh, t, op) for t in tensors], async_op)


def source_in(found: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    """The rank in the group of who sends or receives."""
    if (rank is None) == (group_rank is None):
        raise ValueError(
            f"Can't specify both {name} and group_{name}"
            if rank is not None
            else f"Must specify {name} or group_{name}"
        )
    return get_group_rank(found, rank) if rank is not None else int(group_rank or 0)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Give all processes the tensor of rank `src`, in place."""
    found, mesh = asked(group, tensor)
    source = source_in(found, src, group_src, "src")
    made = programs.run("broadcast", mesh, array_of(tensor), numbers=(source,))
    return written([tensor], [made], async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Give rank `dst` the sum (product, ...) of all tensors, in place; the others keep theirs."""
    found, mesh = asked(group, tensor)
    target = source_in(found, dst, group_dst, "dst")
    made = reduced(found, mesh, tensor, op)
    return written([tensor], [made], async_op) if found.rank() == target else written([], [], async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """Give all processes the tensors of all, in the order of the ranks; they may differ in shape as `tensor_list` says."""
    found, mesh = asked(group, tensor)
    targets = check_list(tensor_list, "tensor_list", found.size())
    sizes = [t.numel() for t in targets]
    if len({tuple(t.shape) for t in targets}) == 1 and tuple(targets[0].shape) == tuple(tensor.shape):
        made = programs.run("all_gather", mesh, array_of(tensor))
        return written(targets, [array_of(part) for part in wrap(made)], async_op)
    flat = padded(tensor, max(sizes))
    made = wrap(programs.run("all_gather", mesh, array_of(flat)))
    return written(targets, [array_of(made[i, :n]) for i, n in enumerate(sizes)], async_op)


def padded(tensor: Tensor, count: int) -> Tensor:
    """The elements of a tensor, and zeros behind them."""
    with no_grad():
        flat = tensor.detach().reshape(-1)
        missing = count - flat.numel()
        return flat if missing == 0 else cat([flat, zeros(missing, dtype=flat.dtype, device=flat.device)])


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """Give all processes the tensors of all, stacked or joined along the first dimension as the output's shape says."""
    found, mesh = asked(group, input_tensor, "input_tensor")
    if output_tensor.numel() != input_tensor.numel() * found.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    if output_tensor.dtype is not input_tensor.dtype:
        raise TypeError("output tensor must have the same type as input tensor")
    return written([output_tensor], [programs.run("all_gather", mesh, array_of(input_tensor))], async_op)


_all_gather_base = all_gather_single = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """`all_gather` of several tensors: a list of results for each of them."""
    works = [
        all_gather(outputs, tensor, group, True)
        for outputs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True)
    ]
    if async_op:
        return Work([a for work in works for a in work._arrays], output_tensor_lists)
    for work in works:
        work.wait()
    return None


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Give rank `dst` (0 if not said) the tensors of all, in `gather_list`, which the others leave out."""
    found, mesh = asked(group, tensor)
    target = source_in(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    mine = found.rank() == target
    if mine and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not mine and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    made = programs.run("all_gather", mesh, array_of(tensor))
    if not mine:
        return written([], [], async_op)
    targets = check_list(gather_list, "gather_list", found.size())
    return written(targets, [array_of(part) for part in wrap(made)], async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Give each process its tensor of the `scatter_list` of rank `src` (0 if not said), in place."""
    found, mesh = asked(group, tensor)
    source = source_in(found, 0 if src is None and group_src is None else src, group_src, "src")
    mine = found.rank() == source
    if mine and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if not mine and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    with no_grad():
        if mine:
            whole = stack(check_list(scatter_list, "scatter_list", found.size()))
        else:
            whole = zeros(found.size(), *tensor.shape, dtype=tensor.dtype, device=tensor.device)
    made = programs.run("scatter", mesh, array_of(whole), numbers=(source,))
    return written([tensor], [made], async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Give each process the sum (product, ...) of all processes' tensors number `rank` of the list."""
    found, mesh = asked(group, output, "output")
    with no_grad():
        whole = stack(check_list(input_list, "input_list", found.size()))
    return written([output], [reduced(found, mesh, whole, op, "reduce_scatter")], async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Give each process its part along the first dimension of the sum (product, ...) of all inputs."""
    found, mesh = asked(group, output, "output")
    if input.numel() != output.numel() * found.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    with no_grad():
        whole = input.detach().reshape((found.size(), *output.shape))
    return written([output], [reduced(found, mesh, whole, op, "reduce_scatter")], async_op)


_reduce_scatter_base = reduce_scatter_single = reduce_scatter_tensor


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Give each process tensor number `rank` of every process's list."""
    found, mesh = asked(group, input_tensor_list[0], "input_tensor_list")
    outputs = check_list(output_tensor_list, "output_tensor_list", found.size())
    inputs = check_list(input_tensor_list, "input_tensor_list", found.size())
    made = exchanged(found, mesh, inputs, [t.numel() for t in outputs])
    return written(outputs, made, async_op)


def exchanged(found: ProcessGroup, mesh: Any, inputs: list[Tensor], counts: list[int]) -> list[Any]:
    """The elements that each process has for this one, of which there are so many."""
    own = make_tensor(
        [max(counts + [t.numel() for t in inputs])], dtype=dtypes.int64, device=inputs[0].device
    )
    most = int(wrap(programs.run("all_reduce", mesh, array_of(own), "MAX")).item())
    with no_grad():
        whole = stack([padded(t, most) for t in inputs])
    made = wrap(programs.run("all_to_all", mesh, array_of(whole)))
    return [array_of(made[i, :n]) for i, n in enumerate(counts)]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Give each process the parts number `rank` of all inputs, which are split evenly or into so many rows."""
    found, mesh = asked(group, output, "output")
    count = found.size()
    if not output_split_sizes and not input_split_sizes:
        if input.shape[0] % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        whole = input.detach().reshape((count, input.shape[0] // count, *input.shape[1:]))
        return written([output], [programs.run("all_to_all", mesh, array_of(whole))], async_op)
    taken = list(output_split_sizes or [output.shape[0] // count] * count)
    given = list(input_split_sizes or [input.shape[0] // count] * count)
    row = math.prod(input.shape[1:])
    if sum(taken) != output.shape[0] or sum(given) != input.shape[0]:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    made = exchanged(found, mesh, list(input.detach().split(given)), [n * row for n in taken])
    with no_grad():
        joined = cat([wrap(part) for part in made])
    return written([output], [array_of(joined)], async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait until all processes have come here."""
    found = chosen(group)
    one = zeros(1, device="cpu")
    return written([one], [reduced(found, found.mesh("cpu"), one, ReduceOp.SUM)], async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all processes have come here; RuntimeError names a rank that has not come in time (all with `wait_all_ranks`)."""
    found = chosen(group)
    limit = timeout or found.timeout
    call = f"monitored/{found.next_call()}"
    if found.rank() != 0:
        found.store.set(f"{call}/{found.rank()}", b"")
        found.store.wait([f"{call}/done"], limit * 2)
        verdict = found.store.get(f"{call}/done").decode()
        if verdict:
            raise RuntimeError(verdict)
        return
    missing = []
    for rank in range(1, found.size()):
        try:
            found.store.wait([f"{call}/{rank}"], limit)
        except DistStoreError:
            missing.append(found.ranks[rank])
            if not wait_all_ranks:
                break
    verdict = ""
    if missing:
        who = ", ".join(map(str, missing))
        verdict = f"Rank {who} failed to pass monitoredBarrier in {limit.total_seconds() * 1000:.0f} ms"
    found.store.set(f"{call}/done", verdict)
    if verdict:
        raise RuntimeError(verdict)
