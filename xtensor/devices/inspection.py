"""What devices there are, what they are like, what they hold, and waiting for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import jax

from ..xla import segments
from .placement import (
    PLATFORMS,
    DeviceLike,
    device,
    jax_device,
    local_devices,
    of_array,
    of_jax_device,
    resolve,
)

__all__ = ["Memory", "Properties", "count", "is_available", "memory", "present", "properties", "synchronize"]


def present(kind: str | None = None) -> tuple[device, ...]:
    """The devices of this process, of one kind ("cpu", "cuda", "gpu", "rocm", "tpu") or of all; CPUs come first.

    A machine's CPU is one device unless JAX_NUM_CPU_DEVICES says otherwise when Python starts: with 4, there are
    `cpu`, `cpu:1`, `cpu:2` and `cpu:3`, which share its cores and its memory.
    """
    if kind is not None:
        kind = device(kind).type
    found: list[device] = []
    for name, platforms in PLATFORMS.items():
        if kind is not None and name != kind:
            continue
        for platform in platforms:
            try:
                local = local_devices(platform)
            except RuntimeError:
                continue
            found += [of_jax_device(d) for d in local]
    return tuple(dict.fromkeys(found))


def count(kind: str | None = None) -> int:
    """How many devices there are, of one kind or of all."""
    return len(present(kind))


def is_available(kind: str) -> bool:
    """Whether there is a device of that kind (a `meta` device there always is)."""
    return kind == "meta" or count(kind) > 0


@dataclass(frozen=True)
class Properties:
    """What a device is: its maker's name, how XLA reaches it, its memory in bytes (None where XLA does not tell)."""

    name: str
    device: device
    platform: str
    platform_version: str
    total_memory: int | None
    cores: int | None
    process: int


def properties(place: DeviceLike = None) -> Properties:
    """What a device (the current one by default) is like."""
    place = resolve(place)
    found = jax_device(place)
    stats = memory_stats(found)
    on_cpu = place.type == "cpu"
    total = stats.get("bytes_limit")
    return Properties(
        name=found.device_kind,
        device=of_jax_device(found),
        platform=found.platform,
        platform_version=found.client.platform_version,
        total_memory=host_memory() if on_cpu and total is None else total,
        cores=os.cpu_count() if on_cpu else getattr(found, "core_count", None),
        process=found.process_index,
    )


def host_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


@dataclass(frozen=True)
class Memory:
    """The memory of a device in bytes. allocated: held by arrays. peak: the most so far; None where XLA keeps no count.

    reserved: taken from the system, free parts included. limit: what XLA may take.
    """

    allocated: int
    peak: int | None
    reserved: int | None
    limit: int | None


def memory(place: DeviceLike = None) -> Memory:
    """How much memory a device's arrays hold (of the current device by default); on a CPU, counted array by array."""
    found = jax_device(resolve(place))
    stats = memory_stats(found)
    allocated = stats.get("bytes_in_use")
    if allocated is None:
        allocated = sum(shard_bytes(array, found) for array in jax.live_arrays())
    return Memory(
        allocated, stats.get("peak_bytes_in_use"), stats.get("pool_bytes"), stats.get("bytes_limit")
    )


def memory_stats(found: Any) -> dict[str, int]:
    """What XLA's allocator counts; nothing on a CPU."""
    try:
        return found.memory_stats() or {}
    except (AttributeError, NotImplementedError, RuntimeError):
        return {}


def shard_bytes(array: Any, found: Any) -> int:
    """The bytes of an array that lie on one device."""
    if array.is_deleted() or found not in (places := array.devices()):
        return 0
    if len(places) == 1:
        return array.nbytes
    return sum(shard.data.nbytes for shard in array.addressable_shards if shard.device == found)


def synchronize(place: DeviceLike = None) -> None:
    """Wait until everything that was asked of a device (the current one by default) is computed."""
    place = resolve(place)
    if place.type == "meta":
        return
    found = jax_device(place)
    segments.finish()
    for array in jax.live_arrays():
        if not array.is_deleted() and (of_array(array) is place or found in array.devices()):
            array.block_until_ready()
