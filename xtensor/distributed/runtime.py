"""JAX's runtime of several processes: how it is set, started and told of its coordinator."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import Any

import jax

from ..devices.placement import start_again
from ..plans.plans import executor
from . import watching
from .store import Store, TCPStore

__all__ = ["host_of", "running", "start", "watch"]


class _Runtime:
    """Whether JAX's runtime runs, and for which rank of how many."""

    world: tuple[int, int] | None = None


_runtime = _Runtime()


def running() -> tuple[int, int] | None:
    """The rank and the number of processes of JAX's runtime, or None."""
    return _runtime.world


def start(store: Store, rank: int, world_size: int, seconds: float) -> None:
    """Start JAX's runtime, once in a process (`world` has set CPUs to one program at a time); the coordinator's address goes through the store."""
    executor.background = False
    if world_size == 1:
        return
    if _runtime.world is not None:
        if _runtime.world != (rank, world_size):
            raise RuntimeError(
                f"this process was rank {_runtime.world[0]} of {_runtime.world[1]}, and JAX's runtime keeps that to the end"
            )
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if rank == 0:
        store.set("xtensor/coordinator", f"{host_of(store)}:{free_port()}")
    address = store.get("xtensor/coordinator").decode()
    options: dict[str, Any] = {}
    with contextlib.suppress(KeyError, ValueError):
        # Each process has one accelerator of its host, as PyTorch's programs choose them.
        if os.environ.get("JAX_PLATFORMS", "") not in ("cpu",) and "LOCAL_RANK" in os.environ:
            options["local_device_ids"] = [int(os.environ["LOCAL_RANK"])]
    start_again()
    try:
        jax.distributed.initialize(
            address, world_size, rank, initialization_timeout=max(int(seconds), 1), **options
        )
    except RuntimeError as error:
        if "before any JAX" in str(error):
            raise RuntimeError(
                "init_process_group comes too late: JAX has started its backends, which a tensor does. "
                "Call it first, or start the program with `python -m xtensor.distributed.run`, which does so for it"
            ) from None
        raise
    _runtime.world = (rank, world_size)


def host_of(store: Any) -> str:
    """The host of the process of rank 0, as the others reach it."""
    while not isinstance(store, TCPStore) and hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store.host if isinstance(store, TCPStore) else "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def watch(store: Any, rank: int, world_size: int) -> None:
    """Have the others told when this process ends by an error, and this one when another does."""
    if isinstance(store, TCPStore) and world_size > 1:
        watching.begin(store, rank)
