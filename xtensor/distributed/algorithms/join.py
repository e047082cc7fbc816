"""`torch.distributed.algorithms.join`: loops in which processes have unequal numbers of batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...ops.create.ingest import tensor as make_tensor
from .. import collectives
from ..work import Work

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process without batches does in the place of what the others do with theirs."""

    def main_hook(self) -> None:
        """As long as others have batches, for each of theirs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When nobody has any; is_last_joiner: whether this process had as many as anybody."""


@dataclass(frozen=True)
class _JoinConfig:
    """What a `Joinable` knows of the block that it is in."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """Whose collectives `Join` can have shadowed: it calls `Join.notify_join_context(self)` before those of a batch."""

    _join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook that stands in; kwargs: those of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where the tensors of its collectives are."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Which processes take part."""


class Join:
    """A block for processes with unequal numbers of batches: who has none left stands in for its `joinables` until nobody has any.

    enable: False for a block that does nothing. throw_on_early_termination: all raise when the first has no batch left. kwargs: for the hooks.

    Raises: ValueError where the joinables are of different process groups, or there are none.

    >>> from xtensor import distributed as dist
    >>> from xtensor.distributed.algorithms.join import Join
    >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> with Join([model]):
    ...     for batch in [xtensor.ones(3, 2), xtensor.ones(3, 2)]:
    ...         model(batch).sum().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        first = joinables[0]
        if any(j.join_process_group is not first.join_process_group for j in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        self._group, self._device = first.join_process_group, first.join_device
        for joinable in joinables:
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, joinable is first)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if not self._enable or kind is not None:
            return
        last = True
        while counted(self._group, self._device, 0):
            last = False
            if self._throws:
                counted(self._group, self._device, 1)
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig()

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Say that this process has a batch; None where it need not be said.

        Raises: RuntimeError where another has none left, with `throw_on_early_termination`.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        marks = make_tensor([1], device=device)
        work = collectives.all_reduce(marks, group=group, async_op=True)
        if config.throw_on_early_termination and counted(group, device, 0):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def counted(group: Any, device: Any, own: int) -> int:
    """The sum over the processes of a number of each."""
    total = make_tensor([own], device=device)
    collectives.all_reduce(total, group=group)
    return int(total.item())
