"""Stores: keys and values that processes share, over TCP, in a file or in memory."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .table import Server, Table, named_timeout
from .wire import connect, listen, read, send

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

DEFAULT = timedelta(seconds=300)


def as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def seconds(timeout: timedelta | float | None) -> float:
    """A timeout in seconds."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout or 0)


class Store(ABC):
    """What all stores can do. Values are bytes; strings are taken, too."""

    def __init__(self) -> None:
        self._timeout = DEFAULT

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `get` and `wait` wait from now on."""
        self._timeout = timeout

    @abstractmethod
    def _ask(self, operation: str, *parts: bytes) -> list[bytes]:
        """What an operation of `Table` answers."""

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value."""
        self._ask("set", key.encode(), as_bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, which is waited for; DistStoreError after the timeout."""
        return self._ask("get", key.encode(), repr(seconds(self._timeout)).encode())[0]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 at first; what it is then."""
        return int(self._ask("add", key.encode(), str(int(amount)).encode())[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Put a value behind that of a key."""
        self._ask("append", key.encode(), as_bytes(value))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Give a key a value if it has the expected one, or has none and none (`""`) is expected; what it has then."""
        return self._ask("compare_set", key.encode(), as_bytes(expected), as_bytes(desired))[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values; DistStoreError after the timeout."""
        limit = repr(seconds(timeout or self._timeout)).encode()
        self._ask("wait", limit, *[k.encode() for k in keys])

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have values."""
        return self._ask("check", *[k.encode() for k in keys]) == [b"1"]

    def delete_key(self, key: str) -> bool:
        """Take a key away; whether it was there."""
        return self._ask("delete", key.encode()) == [b"1"]

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._ask("count")[0])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Give several keys values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """True: `append`, `multi_get` and `multi_set` are there."""
        return True


class HashStore(Store):
    """A store in the memory of one process, for its threads.

    >>> from xtensor.distributed import HashStore
    >>> store = HashStore()
    >>> store.set("key", "value")
    >>> store.get("key"), store.add("count", 2)
    (b'value', 2)
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()

    def _ask(self, operation: str, *parts: bytes) -> list[bytes]:
        return self._table.answer(operation, list(parts))


class TCPStore(Store):
    """A store that the process with `is_master` serves to all that connect to it.

    port: 0 with `is_master` takes a free one, which `port` then tells. world_size: how many processes the master waits for.
    timeout: of connecting, `get` and `wait`; 5 minutes by default. attempt: which start of the job it serves, as a launcher counts.
    """

    attempt: str = "0"

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self.host = host_name
        self._server: Server | None = None
        self._line: socket.socket | None = None
        if is_master:
            self._server = Server(listen("", port), Table())
            port = self._server.port
        self.port = port
        self._lock = threading.Lock()
        self._line = connect("127.0.0.1" if is_master else host_name, port, seconds(timeout))
        if wait_for_workers and world_size is not None and world_size > 1:
            self.add("xtensor/workers", 1)
            if is_master:
                self._wait_for(world_size)

    def _wait_for(self, count: int) -> None:
        until = time.monotonic() + seconds(self._timeout)
        while self.add("xtensor/workers", 0) < count:
            if time.monotonic() > until:
                raise named_timeout(f"{count} workers", seconds(self._timeout))
            time.sleep(0.01)

    def another(self) -> TCPStore:
        """Another connection to the same store, so that a wait on the one holds up nobody on the other."""
        return TCPStore(self.host, self.port, timeout=self._timeout)

    @property
    def line(self) -> socket.socket:
        """The connection."""
        assert self._line is not None
        return self._line

    def _ask(self, operation: str, *parts: bytes) -> list[bytes]:
        with self._lock:
            send(self.line, operation.encode(), *parts)
            status, *found = read(self.line)
        if status == b"timeout":
            raise named_timeout(found[0].decode(), float(found[1]))
        if status != b"ok":
            raise RuntimeError(found[0].decode())
        return found

    def close(self) -> None:
        """End the connection; the master serves no more."""
        if self._line is not None:
            self._line.close()
        if self._server is not None:
            self._server.close()

    def __del__(self) -> None:
        self.close()


class FileStore(Store):
    """A store in a file that all processes see; the file's name must be new for every job.

    world_size: how many processes use it, or -1.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = pathlib.Path(file_name)

    @property
    def path(self) -> str:
        """The file."""
        return str(self._path)

    def _ask(self, operation: str, *parts: bytes) -> list[bytes]:
        if operation in ("get", "wait"):
            limit = float(parts[1] if operation == "get" else parts[0])
            keys = [parts[0]] if operation == "get" else list(parts[1:])
            until = time.monotonic() + limit
            while True:
                table = self._locked("check", list(keys))
                if table == [b"1"]:
                    return self._locked("get", [keys[0], b"0"]) if operation == "get" else []
                if time.monotonic() > until:
                    raise named_timeout(", ".join(k.decode() for k in keys), limit)
                time.sleep(0.01)
        return self._locked(operation, list(parts))

    def _locked(self, operation: str, parts: list[bytes]) -> list[bytes]:
        lock = self._path.with_name(self._path.name + ".lock")
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                break
            except FileExistsError:
                time.sleep(0.002)
        try:
            content = self._path.read_bytes() if self._path.exists() else b""
            table = Table(content)
            found = table.answer(operation, parts)
            written = table.content()
            if written != content:
                new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
                new.write_bytes(written)
                new.replace(self._path)
            return found
        finally:
            lock.unlink()


class PrefixStore(Store):
    """A store whose keys are those of another with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix = prefix
        self.underlying_store = store
        self._timeout = store.timeout

    def _named(self, key: bytes) -> bytes:
        return self.prefix.encode() + b"/" + key

    def _ask(self, operation: str, *parts: bytes) -> list[bytes]:
        if operation == "wait":
            parts = (parts[0], *[self._named(k) for k in parts[1:]])
        elif operation == "check":
            parts = tuple([self._named(k) for k in parts])
        elif parts:
            parts = (self._named(parts[0]), *parts[1:])
        return self.underlying_store._ask(operation, *parts)


def another(store: Any) -> Any:
    """A store of the same content that may wait while this one is used."""
    if isinstance(store, PrefixStore):
        return PrefixStore(store.prefix, another(store.underlying_store))
    return store.another() if isinstance(store, TCPStore) else store
