"""`torch.distributed`: not available, and it says so; one process drives all devices."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "is_torchelastic_launched",
    "reduce",
]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_torchelastic_launched() -> bool:
    """False."""
    return False


def init_process_group(*args: Any, **options: Any) -> NoReturn:
    """Refused: there are no process groups."""
    raise RuntimeError("torch.distributed is not available in xtensor: one process drives all devices")


def _uninitialized(*args: Any, **options: Any) -> NoReturn:
    raise ValueError(
        "Default process group has not been initialized, please make sure to call init_process_group."
    )


get_rank = get_world_size = get_backend = barrier = _uninitialized
all_reduce = all_gather = broadcast = reduce = _uninitialized


def destroy_process_group(group: Any = None) -> NoReturn:
    """Refused: there is none to destroy."""
    raise AssertionError("Process group cannot be None")


class ReduceOp:
    """Named in calls of `all_reduce`, which there is none of."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"
