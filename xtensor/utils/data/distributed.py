"""DistributedSampler: the part of a dataset that one of several processes takes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sized
from typing import Any

from ...operators.generator import Generator
from ...ops.create.random import randperm
from .sampler import Sampler

__all__ = ["DistributedSampler"]


in_world: list[Callable[[], tuple[int, int]]] = []
"""Set by `xtensor.distributed`: this process's rank, and the number of processes."""


def own_share() -> tuple[int, int]:
    """The rank of this process and the number of processes: 0 of 1 where there is no group."""
    with contextlib.suppress(ValueError):
        if in_world:
            return in_world[0]()
    return 0, 1


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th sample from number `rank` on, of an order that all processes share.

    num_replicas, rank: those of the process group where they are not given.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            if not in_world:
                raise ValueError(
                    "Default process group has not been initialized, please make sure to call init_process_group."
                )
            own, count = in_world[0]()
            num_replicas = count if num_replicas is None else num_replicas
            rank = own if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas, self.rank, self.epoch = num_replicas, rank, 0
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        size = len(dataset)
        short = drop_last and size % num_replicas != 0
        self.num_samples = (
            math.ceil((size - num_replicas) / num_replicas) if short else math.ceil(size / num_replicas)
        )
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        order: list[Any] = list(range(size))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(size, generator=generator, device="cpu").tolist()
        missing = self.total_size - len(order)
        if missing > 0 and order:
            order += (order * math.ceil(missing / len(order)))[:missing]
        return iter(order[: self.total_size][self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Which order to take: another one for every epoch, the same in all processes."""
        self.epoch = epoch
