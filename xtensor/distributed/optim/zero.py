"""ZeroRedundancyOptimizer: each process keeps the optimizer's state of its share of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...optim.optimizer import Optimizer
from ...tensor import Tensor
from .. import collectives, messages
from ..algorithms.join import Join, Joinable, JoinHook
from ..data_parallel.buckets import share_out
from ..group import chosen

__all__ = ["ZeroRedundancyOptimizer"]


class _Shadow(JoinHook):
    """What a process without batches does while others make steps: those of its share."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        """A step."""
        self.optimizer._advance(None)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An `optimizer_class(params, **defaults)` of which each process keeps and runs a share, then all get all parameters.

    Parameters go to the process that has the fewest elements so far, the largest first.

    >>> from xtensor import distributed as dist
    >>> from xtensor.distributed.optim import ZeroRedundancyOptimizer
    >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.Linear(2, 1)
    >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), xtensor.optim.Adam, lr=0.1)
    >>> model(xtensor.ones(2)).sum().backward()
    >>> optimizer.step()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: Callable[..., Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp: a step that runs within backward is not in xtensor")
        self.process_group = chosen(process_group)
        self._made = False
        super().__init__(params, defaults)
        self._made = True
        self._share()
        here = self.process_group.rank()
        own = [
            {
                **{k: v for k, v in g.items() if k != "params"},
                "params": [p for p in g["params"] if self._owner[id(p)] == here],
            }
            for g in self.param_groups
        ]
        self.optim = (
            optimizer_class([g for g in own if g["params"]], **defaults)
            if any(g["params"] for g in own)
            else None
        )
        self._optimizer_class, self._defaults = optimizer_class, defaults
        if self.optim is not None:
            for group, theirs in zip(
                [g for g, o in zip(self.param_groups, own, strict=True) if o["params"]],
                self.optim.param_groups,
                strict=True,
            ):
                for key, value in theirs.items():
                    group.setdefault(key, value)

    def _share(self) -> None:
        """Say which process has which parameter."""
        load = [0] * self.process_group.size()
        self._owner: dict[int, int] = {}
        every = [p for g in self.param_groups for p in g["params"]]
        for parameter in sorted(every, key=lambda p: -p.numel()):
            rank = load.index(min(load))
            load[rank] += parameter.numel()
            self._owner[id(parameter)] = rank

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters, which go to the processes as the first ones did; NotImplementedError once it is made."""
        if self._made:
            raise NotImplementedError("ZeroRedundancyOptimizer takes its parameters when it is made")
        super().add_param_group(param_group)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What stands in for its steps."""
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """The device of its parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """Its processes."""
        return self.process_group

    def step(self, closure: Callable[[], Any] | None = None, **_: Any) -> Any:
        """The step of this process's share, then the new values of all."""
        Join.notify_join_context(self)
        return self._advance(closure)

    def _advance(self, closure: Callable[[], Any] | None) -> Any:
        loss = None
        if self.optim is not None:
            self._tell()
            loss = self.optim.step() if closure is None else self.optim.step(closure)  # pyright: ignore[reportCallIssue, reportArgumentType]
        elif closure is not None:
            loss = closure()
        every = [p for g in self.param_groups for p in g["params"]]
        for rank in range(self.process_group.size()):
            owned: list[Tensor] = [p for p in every if self._owner[id(p)] == rank]
            if owned:
                share_out(owned, self.process_group.ranks[rank], self.process_group)
        return loss

    def _tell(self) -> None:
        """Have the share's optimizer use the groups' present settings."""
        assert self.optim is not None
        here = self.process_group.rank()
        groups = [g for g in self.param_groups if any(self._owner[id(p)] == here for p in g["params"])]
        for group, theirs in zip(groups, self.optim.param_groups, strict=True):
            theirs.update({k: v for k, v in group.items() if k != "params"})

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring all states to one process, whose `state_dict` then has them; all processes call this."""
        here = self.process_group
        numbers = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        own = {} if self.optim is None else {numbers[id(p)]: s for p, s in self.optim.state.items()}
        target = here.ranks[to]
        if here.rank() == to:
            found = dict(own)
            for rank in range(here.size()):
                if rank != to:
                    more: list[Any] = [None]
                    messages.recv_object_list(more, here.ranks[rank], here)
                    found.update(more[0])
            self._whole: dict[int, Any] | None = found
        else:
            messages.send_object_list([own], target, here)
            self._whole = None
        collectives.barrier(here)

    def state_dict(self) -> dict[str, Any]:
        """What `consolidate_state_dict` has brought here, with the groups."""
        if getattr(self, "_whole", None) is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to=...)` on all "
                "ranks beforehand if you meant to save the global state."
            )
        numbers = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        return {"state": dict(self._whole or {}), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this process's share of a state, and the groups' settings."""
        every = [p for g in self.param_groups for p in g["params"]]
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({k: v for k, v in saved.items() if k != "params"})
        if self.optim is None:
            return
        own = [p for g in self.optim.param_groups for p in g["params"]]
        numbers = {id(p): i for i, p in enumerate(every)}
        inner = self.optim.state_dict()
        inner["state"] = {
            i: state_dict["state"][numbers[id(p)]]
            for i, p in enumerate(own)
            if numbers[id(p)] in state_dict["state"]
        }
        self.optim.load_state_dict(inner)
        self._tell()
