"""Who takes part: the processes, the devices of all of them, and the process groups that are known."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax

from .. import devices
from ..devices import placement

# Set before JAX starts its backends, which read it. Programs that run beside one another on simulated devices wait for each other's
# threads in their collectives, and processes would each begin them in another order.
jax.config.update("jax_cpu_enable_async_dispatch", False)
# On a few cores the threads of XLA would all wait in collectives for devices whose work waits for a thread.
if os.environ.get("JAX_NUM_CPU_DEVICES", "1") not in ("", "0", "1"):
    os.environ.setdefault("NPROC", str(max(os.cpu_count() or 1, 3 * int(os.environ["JAX_NUM_CPU_DEVICES"]))))

__all__ = ["devices_of", "first_device", "group_of", "has"]


def devices_of(kind: str) -> list[Any]:
    """JAX's devices of a kind, those of all processes, in the order of the processes; RuntimeError where there are none."""
    kind = devices.device(kind).type
    _ = devices.jax_device(devices.device(kind))  # says what is missing
    for platform in placement.PLATFORMS[kind]:
        if placement.has_devices(platform):
            return sorted(jax.devices(platform), key=lambda d: (d.process_index, d.id))
    return []


def first_device(kind: str) -> int:
    """The number of this process's first device among those of all processes."""
    return next(i for i, d in enumerate(devices_of(kind)) if d.process_index == jax.process_index())


make_group: list[Callable[[list[int]], Any]] = []
"""What gives the process group of some ranks, once there are process groups."""


def group_of(ranks: list[int]) -> Any:
    """The process group of these ranks; RuntimeError where no process group was initialized."""
    if not make_group:
        raise RuntimeError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return make_group[0](ranks)


def has(kind: str) -> bool:
    """Whether there are devices of a kind."""
    return any(placement.has_devices(platform) for platform in placement.PLATFORMS[kind])
