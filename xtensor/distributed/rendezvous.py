"""How processes find one another: the store, the rank and the number of processes that an `init_method` means."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import timedelta

from .store import DEFAULT, FileStore, Store, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}


def register_rendezvous_handler(
    scheme: str, handler: Callable[..., Iterator[tuple[Store, int, int]]]
) -> None:
    """Let `handler(url)` find the store, the rank and the world size of `scheme://...`, of which it gives an iterator.

    >>> from xtensor import distributed as dist
    >>> dist.register_rendezvous_handler("alone", lambda url, **_: iter([(dist.HashStore(), 0, 1)]))
    >>> dist.init_process_group(init_method="alone://")
    >>> dist.get_world_size()
    1
    >>> dist.destroy_process_group()
    """
    if scheme in ("env", "file", "tcp") or scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = DEFAULT
) -> tuple[Store, int, int]:
    """The store, the rank and the world size of `env://`, `tcp://host:port` or `file:///path`; ValueError says what is missing."""
    parts = urllib.parse.urlparse(url)
    if parts.scheme in _handlers:
        return next(iter(_handlers[parts.scheme](url, timeout=timeout)))
    query = dict(urllib.parse.parse_qsl(parts.query))
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    if parts.scheme == "env":
        rank = int(environment("RANK")) if rank == -1 else rank
        world_size = int(environment("WORLD_SIZE")) if world_size == -1 else world_size
        host, port = environment("MASTER_ADDR"), int(environment("MASTER_PORT"))
        served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = TCPStore(
            host, port, world_size, rank == 0 and not served, timeout, wait_for_workers=not served
        )
        store.attempt = attempt
        return store, rank, world_size
    if rank == -1:
        raise ValueError(
            f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: rank parameter missing"
        )
    if world_size == -1:
        raise ValueError(
            f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: world size parameter missing"
        )
    if parts.scheme == "tcp":
        if not parts.port:
            raise ValueError(
                "Error initializing torch.distributed using tcp:// rendezvous: port number missing"
            )
        host = parts.hostname or "127.0.0.1"
        return TCPStore(host, parts.port, world_size, rank == 0, timeout), rank, world_size
    if parts.scheme == "file":
        if not parts.path:
            raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
        return FileStore(parts.path, world_size), rank, world_size
    raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")


def environment(name: str) -> str:
    """A variable of the environment; ValueError where it is not set."""
    found = os.environ.get(name)
    if found is None:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
        )
    return found
