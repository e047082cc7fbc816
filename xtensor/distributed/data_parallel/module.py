"""DistributedDataParallel: the same module in every process, whose gradients are the means over all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from ...engine import AccumulateGrad, modes
from ...engine.modes import no_grad
from ...nn.modules.module import Module
from ...ops.create.ingest import tensor as make_tensor
from ...tensor import Tensor, edge_of, plain_edge
from .. import collectives, objects
from ..algorithms.join import Join, Joinable, JoinHook
from ..collectives import ReduceOp
from ..group import ProcessGroup, chosen
from .buckets import Bucket, GradBucket, buckets_of, reduce, share_out, spread

__all__ = ["DistributedDataParallel"]


class _Shadow(JoinHook):
    """What a process without batches does while others make steps."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self.model = model

    def main_hook(self) -> None:
        """Take part in what the others reduce."""
        self.model._count_active(0)
        if self.model._active_sync:
            self.model._shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over what the last to go has learnt."""
        model = self.model
        share_out([*model._all, *model._buffers_shared], model._first_active, model.process_group)
        model._share = 1 / model.process_group.size()


class DistributedDataParallel(Module, Joinable):
    """Holds a module as `module`, whose parameters are the same in all processes and get the mean of their gradients.

    At construction all take over the parameters and buffers of the group's first rank. In backward, gradients are reduced in buckets of
    `bucket_cap_mb`, the last parameters first, as soon as they are there. find_unused_parameters, static_graph: parameters that a forward pass
    has not used count as ready. broadcast_buffers: whether every forward pass begins with the buffers of the first rank.

    Differs from PyTorch: gradients are no views of the buckets (`gradient_as_bucket_view`); on the CPU reducing does not overlap with
    backward.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **_: Any,
    ) -> None:
        super().__init__()
        self.process_group = chosen(process_group)
        found = [p for p in module.parameters() if p.requires_grad]
        if not found:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                "device_ids can only be None or contain a single element: one process has one device of a data parallel module"
            )
        self.module = module
        self.device_ids = device_ids
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters or static_graph
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        self._all = [p for _, p in named]
        self._buffers_shared = [b for n, b in module.named_buffers() if n not in ignored]
        self._parameters_reduced = [p for p in self._all if p.requires_grad]
        self._verify([n for n, _ in named])
        if init_sync:
            share_out([*self._all, *self._buffers_shared], self.process_group.ranks[0], self.process_group)
        self._buckets = buckets_of(self._parameters_reduced, 25 if bucket_cap_mb is None else bucket_cap_mb)
        self._bucket_of: dict[int, Bucket] = {id(p): b for b in self._buckets for p in b.parameters}
        self._hook: Callable[[GradBucket], Any] | None = None
        self._ready: set[int] = set()
        self._used: set[int] = set()
        self._next = 0
        self._expects = self._active_sync = False
        self._divides_by_all = True
        self._share = 1 / self.process_group.size()
        self._first_active = self.process_group.ranks[0]
        for parameter in self._parameters_reduced:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    def _verify(self, names: list[str]) -> None:
        """RuntimeError where another process has other parameters."""
        own = [(n, tuple(p.shape), str(p.dtype)) for n, p in zip(names, self._all, strict=True)]
        found: list[Any] = [None] * self.process_group.size()
        objects.all_gather_object(found, own, self.process_group)
        for rank, theirs in enumerate(found):
            for mine, other in zip(own, theirs, strict=False):
                if mine != other:
                    raise RuntimeError(
                        f"DDP expects same model across all ranks, but Rank {self.process_group.rank()} has {mine[0]} of {list(mine[1])} "
                        f"{mine[2]}, while rank {rank} has {other[0]} of {list(other[1])} {other[2]}."
                    )
            if len(own) != len(theirs):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {self.process_group.rank()} has {len(own)} params, while rank {rank} "
                    f"has inconsistent {len(theirs)} params."
                )

    # -- forward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._join_config.enable:
            Join.notify_join_context(self)
            self._count_active(2 if self.require_backward_grad_sync else 1)
        tracked = modes.is_grad_enabled() and self.require_backward_grad_sync
        if tracked and self._expects and self._ready:
            self._refuse_unfinished()
        if self.broadcast_buffers and self._buffers_shared and self.require_backward_grad_sync:
            share_out(self._buffers_shared, self._source(), self.process_group)
        output = self.module(*inputs, **kwargs)
        if tracked:
            self._begin(output)
        return output

    def _source(self) -> int:
        """The rank whose buffers all take over: the first that still has data."""
        return self._first_active if self._join_config.enable else self.process_group.ranks[0]

    def _begin(self, output: Any) -> None:
        """Ready the buckets for the backward pass of an output."""
        self._expects = True
        self._ready = set()
        self._next = 0
        for bucket in self._buckets:
            bucket.waiting = len(bucket.parameters)
        self._used = {id(p) for p in self._parameters_reduced}
        if self.find_unused_parameters:
            reached = leaves_below(output)
            self._used &= reached
            for parameter in self._parameters_reduced:
                if id(parameter) not in reached:
                    self._count(parameter)

    def _refuse_unfinished(self) -> None:
        missing = [
            name for name, p in self.module.named_parameters() if p.requires_grad and id(p) not in self._ready
        ]
        if missing:
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
                "module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the "
                "keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all "
                f"`forward` function outputs participate in calculating loss. Parameters which did not receive grad: {', '.join(missing)}"
            )

    # -- backward

    def _arrived(self, parameter: Tensor) -> None:
        """A parameter has its gradient."""
        if self.require_backward_grad_sync and self._expects:
            self._count(parameter)
            self._launch()

    def _count(self, parameter: Tensor) -> None:
        if id(parameter) not in self._ready:
            self._ready.add(id(parameter))
            self._bucket_of[id(parameter)].waiting -= 1

    def _launch(self) -> None:
        """Reduce the buckets that are ready, in their order, which all processes share."""
        while self._next < len(self._buckets) and self._buckets[self._next].waiting == 0:
            self._reduce(self._next)
            self._next += 1
        if self._next == len(self._buckets):
            self._expects = False

    def _reduce(self, index: int) -> None:
        bucket = self._buckets[index]
        last = index == len(self._buckets) - 1
        joined = reduce(bucket, index, last, self.process_group, self._share, self._hook)
        used = [id(p) in self._used for p in bucket.parameters]
        if self.find_unused_parameters:
            marks = make_tensor([int(u) for u in used], device=joined.device)
            collectives.all_reduce(marks, ReduceOp.MAX, self.process_group)
            used = [bool(m) for m in marks.tolist()]
        with no_grad():
            for parameter, grad, anywhere in zip(
                bucket.parameters, spread(joined, bucket.parameters), used, strict=True
            ):
                if not anywhere:
                    continue
                if parameter.grad is None:
                    parameter.grad = grad.clone()
                else:
                    parameter.grad.copy_(grad)

    # -- what programs set

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients stay those of this process; the next backward pass after it reduces what was added up."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let `hook(state, bucket)` reduce the buckets: it gives a tensor, or a future of one."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")

        def run(bucket: GradBucket) -> Tensor:
            made = hook(state, bucket)
            made = (
                made if isinstance(made, Tensor) else made.wait() if hasattr(made, "wait") else made.result()
            )
            return made[0] if isinstance(made, (list, tuple)) else made

        self._hook = run

    def _set_static_graph(self) -> None:
        self.static_graph = self.find_unused_parameters = True

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A block for processes with unequal numbers of batches: those that have none left take part in what the others reduce."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What stands in for its steps; `divide_by_initial_world_size` says whether means are over all or over who has batches."""
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """The device of its parameters."""
        return self._all[0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        """Its processes."""
        return self.process_group

    def _count_active(self, own: int) -> None:
        """Note which processes have a batch. own: 0 for none, 1 for one whose gradients stay here, 2 for one."""
        group = self.process_group
        flags = make_tensor([0] * group.size(), device=self._all[0].device)
        with no_grad():
            flags[group.rank()] = own
        collectives.all_reduce(flags, group=group)
        active = [i for i, flag in enumerate(flags.tolist()) if flag]
        self._first_active = group.ranks[active[0]]
        self._active_sync = flags.max().item() == 2
        self._share = 1 / (group.size() if self._divides_by_all else len(active))

    def _shadow(self) -> None:
        """What a process without batches does while others make a step."""
        if self.broadcast_buffers and self._buffers_shared:
            share_out(self._buffers_shared, self._source(), self.process_group)
        for parameter in self._parameters_reduced:
            parameter.grad = None
        # The others' gradients come here as well: an optimizer may be shared among all.
        self._used = set() if self.find_unused_parameters else {id(p) for p in self._parameters_reduced}
        for index in range(len(self._buckets)):
            self._reduce(index)


def leaves_below(output: Any) -> set[int]:
    """The leaves that the graph of an output reaches, by identity."""
    stack: list[Any] = []
    for leaf in jax.tree.leaves(output, is_leaf=lambda v: isinstance(v, Tensor)):
        if isinstance(leaf, Tensor) and (edge := plain_edge(edge_of(leaf))) is not None:
            stack.append(edge[0])
    seen: set[Any] = set()
    found: set[int] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if type(node) is AccumulateGrad:
            found.add(id(node.variable))
        stack += [edge[0] for edge in node._xt_edges if edge is not None]
    return found
