"""Process groups: the processes that take part in a collective, and the mesh of one device of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import jax
import numpy as np

from ..xla.cache import bounded
from . import runtime, watching, world
from .backends import checked_backend
from .rendezvous import rendezvous
from .store import DEFAULT, PrefixStore, Store

__all__ = [
    "GroupMember",
    "ProcessGroup",
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_initialized",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "split_group",
]

MINUTES = timedelta(minutes=30)


class ProcessGroup:
    """Processes, by their ranks in the world, in the order of their ranks in the group."""

    def __init__(
        self, ranks: Sequence[int], store: Store, name: str, backend: str, timeout: timedelta
    ) -> None:
        self.ranks = tuple(ranks)
        self.store = store
        self.group_name = name
        self.group_desc = name
        self.backend = backend
        self.timeout = timeout
        here = _state.rank
        self._rank = self.ranks.index(here) if here in self.ranks else -1
        self.calls = 0

    def rank(self) -> int:
        """The process's own rank in the group; -1 where it is not in it."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The backend's name."""
        return self.backend

    def next_call(self) -> int:
        """The number of a call that goes through the store, the same in all processes of the group."""
        self.calls += 1
        return self.calls

    def mesh(self, platform: str) -> Any:
        """A mesh of one device of each process."""
        return mesh_of(self.ranks, platform)

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name or 'world'} of ranks {list(self.ranks)}>"


@bounded(256)
def mesh_of(ranks: tuple[int, ...], platform: str) -> Any:
    """A mesh of the first device of each rank."""
    first: dict[int, Any] = {}
    for device in sorted(jax.devices(platform), key=lambda d: d.id):
        first.setdefault(device.process_index, device)
    if runtime.running() is None:
        chosen = [jax.local_devices(backend=platform)[0]]
    else:
        chosen = [first[rank] for rank in ranks]
    found = np.empty(len(chosen), object)
    found[:] = chosen
    return jax.sharding.Mesh(found, ("ranks",), axis_types=(jax.sharding.AxisType.Auto,))


class _State:
    """The groups of this process."""

    rank = 0
    world: ProcessGroup | None = None
    groups: dict[str, ProcessGroup] = {}
    count = 0


_state = _State()


class _Group(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, or None."""
        return _state.world


class group(metaclass=_Group):
    """`group.WORLD` is the group of all processes."""


class GroupMember(metaclass=_Group):
    """`GroupMember.NON_GROUP_MEMBER` is what `new_group` gives to processes that are not in the group."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Whether `init_process_group` has been called."""
    return _state.world is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Begin to be one of several processes, each of which calls this before its first tensor.

    backend: "gloo", "nccl" or "xla", which are all XLA. init_method: `env://` (MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE of the
    environment), `tcp://host:port` or `file:///path`, the latter two with `rank` and `world_size`; or a `store` with both.

    A process that ends with an error, or is killed, ends the others, which say its rank.

    >>> import xtensor.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> x = xtensor.ones(2)
    >>> dist.all_reduce(x)
    >>> dist.get_world_size(), x
    (1, tensor([1., 1.]))
    >>> dist.destroy_process_group()
    """
    if _state.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = checked_backend(backend)
    limit = timeout or MINUTES
    if not isinstance(limit, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {limit}")
    if store is not None:
        if init_method is not None:
            raise AssertionError("Cannot specify both init_method and store.")
        if world_size < 1 or rank < 0:
            raise AssertionError("world_size must be positive and rank non-negative if using store")
    else:
        store, rank, world_size = rendezvous(init_method or "env://", rank, world_size, min(limit, DEFAULT))
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} of {world_size} processes")
    base = PrefixStore(f"job/{getattr(store, 'attempt', 0)}", store)
    runtime.start(
        base, rank, world_size, limit.total_seconds() if limit < DEFAULT else DEFAULT.total_seconds()
    )
    runtime.watch(store, rank, world_size)
    _state.rank = rank
    _state.count += 1
    _state.world = ProcessGroup(
        range(world_size), PrefixStore(f"world/{_state.count}", base), group_name, name, limit
    )
    world.make_group[:] = [lambda ranks: new_group(ranks, use_local_synchronization=True)]


def get_pg_count() -> int:
    """The number of process groups that this process is in."""
    return 0 if _state.world is None else 1 + len(_state.groups)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, or with the world all of them; from then on this process may end as it likes."""
    if group is not None and group is not _state.world:
        _state.groups.pop(group.group_name, None)
        return
    if _state.world is None:
        raise AssertionError("Process group cannot be None")
    _state.world = None
    _state.groups = {}
    world.make_group.clear()
    watching.leave()


def world_group() -> ProcessGroup:
    """The group of all processes; ValueError where there is none yet."""
    if _state.world is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return _state.world


def chosen(group: Any) -> ProcessGroup:
    """The group that an argument means; None is the world."""
    if group is None:
        return world_group()
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified: this process is not in it")
    return group


def get_rank(group: Any = None) -> int:
    """The process's own rank in a group; -1 where it is not in it."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else chosen(group).rank()


def get_world_size(group: Any = None) -> int:
    """The number of processes of a group; -1 for who is not in it."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else chosen(group).size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, which the launcher says (LOCAL_RANK)."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming "
            "you are not running in a multi-device context and want the code to run locally instead."
        )
    return int(fallback_rank)


def get_backend(group: Any = None) -> str:
    """The name of the backend that was asked for."""
    return chosen(group).backend


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of a rank in a group."""
    ranks = chosen(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a rank in the world."""
    found = chosen(group)
    if global_rank not in found.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return found.ranks.index(global_rank)


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks in the world of a group's processes."""
    return list(chosen(group).ranks)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> Any:
    """A group of some ranks; all processes call this, in the same order. Who is not in it gets `NON_GROUP_MEMBER`."""
    everyone = world_group()
    chosen_ranks = list(range(everyone.size())) if ranks is None else [int(r) for r in ranks]
    if len(set(chosen_ranks)) != len(chosen_ranks):
        raise ValueError("the new group's rank should be unique")
    if len(chosen_ranks) > everyone.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if any(not 0 <= r < everyone.size() for r in chosen_ranks):
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if use_local_synchronization:
        name = "-".join(map(str, chosen_ranks))
        if name in _state.groups:
            return _state.groups[name]
    else:
        chosen_ranks.sort()
        _state.count += 1
        name = f"group {_state.count}"
    if _state.rank not in chosen_ranks:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(
        chosen_ranks,
        PrefixStore(name, everyone.store),
        name,
        checked_backend(backend) if backend else everyone.backend,
        timeout or everyone.timeout,
    )
    made.group_desc = group_desc or name
    _state.groups[name] = made
    return made


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """The world in groups of so many consecutive ranks: the own one, and all."""
    size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", world_group().size()))
    count = world_group().size()
    if size <= 0 or count < size:
        raise ValueError(
            f"The arg 'group_size' ({size}) must be positive and not exceed the world size ({count})"
        )
    if count % size:
        raise ValueError(f"The world size ({count}) must be divisible by 'group_size={size}'")
    return new_subgroups_by_enumeration(
        [list(range(i, i + size)) for i in range(0, count, size)], timeout, backend
    )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """A group for each of these lists of ranks, none of which meet: the own one, and all."""
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ValueError("a rank appears in more than one subgroup")
    groups = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    own = next((g for g in groups if g != GroupMember.NON_GROUP_MEMBER), None)
    return own, groups


def split_group(
    parent_pg: Any = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    **_: Any,
) -> Any:
    """The group of the list of `split_ranks` (ranks of the parent) that has this process, or None."""
    parent = chosen(parent_pg)
    found = None
    for ranks in split_ranks or []:
        made = new_group([parent.ranks[r] for r in ranks], timeout)
        found = made if made != GroupMember.NON_GROUP_MEMBER else found
    return found
