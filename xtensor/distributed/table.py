"""What a store holds, and the server that answers for it: keys with values, and who of the ranks has gone."""

from __future__ import annotations

import contextlib
import socket
import threading

from .errors import DistStoreError
from .wire import LENGTH, read, send

__all__ = ["Server", "Table", "gone_key", "named_timeout"]


def named_timeout(what: str, seconds: float) -> DistStoreError:
    """The error of a wait that took too long."""
    return DistStoreError(f"wait timeout after {seconds * 1000:.0f}ms, keys: {what}")


class Table:
    """Keys and values, for threads; an operation is a name and byte strings, and so is its answer."""

    def __init__(self, content: bytes = b"") -> None:
        self.values: dict[bytes, bytes] = {}
        self.changed = threading.Condition()
        at = 0
        while at < len(content):
            pair = []
            for _ in range(2):
                (length,) = LENGTH.unpack_from(content, at)
                at += LENGTH.size
                pair.append(content[at : at + length])
                at += length
            self.values[pair[0]] = pair[1]

    def content(self) -> bytes:
        """All of it, as the constructor takes it."""
        return b"".join(LENGTH.pack(len(p)) + p for pair in self.values.items() for p in pair)

    def answer(self, operation: str, parts: list[bytes]) -> list[bytes]:
        """What an operation answers; DistStoreError where it waited for too long."""
        with self.changed:
            if operation in ("get", "wait"):
                limit = float(parts[1] if operation == "get" else parts[0])
                keys = [parts[0]] if operation == "get" else parts[1:]
                if not self.changed.wait_for(lambda: all(k in self.values for k in keys), limit):
                    missing = [k.decode() for k in keys if k not in self.values]
                    raise named_timeout(", ".join(missing), limit)
                return [self.values[keys[0]]] if operation == "get" else []
            if operation == "check":
                return [b"1" if all(k in self.values for k in parts) else b"0"]
            if operation == "count":
                return [str(len(self.values)).encode()]
            return self._write(operation, parts)

    def _write(self, operation: str, parts: list[bytes]) -> list[bytes]:
        key = parts[0]
        found: list[bytes] = []
        if operation == "set":
            self.values[key] = parts[1]
        elif operation == "add":
            found = [str(int(self.values.get(key, b"0")) + int(parts[1])).encode()]
            self.values[key] = found[0]
        elif operation == "append":
            self.values[key] = self.values.get(key, b"") + parts[1]
        elif operation == "compare_set":
            expected, desired = parts[1:]
            if self.values.get(key, b"") == expected:
                self.values[key] = desired
            found = [self.values.get(key, expected)]
        elif operation == "delete":
            found = [b"0" if self.values.pop(key, None) is None else b"1"]
        else:
            raise ValueError(f"a store knows no operation {operation!r}")
        self.changed.notify_all()
        return found


def gone_key(attempt: int | str) -> str:
    """The key under which it stands which rank of an attempt was the first to go without a word."""
    return f"xtensor/gone/{attempt}"


class Server:
    """Answers for a table; a connection that introduced itself as a rank and breaks off is told to who waits for its `gone_key`."""

    def __init__(self, door: socket.socket, table: Table) -> None:
        self.door = door
        self.table = table
        self.port: int = door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True, name="xtensor store").start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self.door.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(line,), daemon=True, name="xtensor store").start()

    def _serve(self, line: socket.socket) -> None:
        rank: list[bytes] | None = None
        with line, contextlib.suppress(OSError):
            try:
                while True:
                    operation, *parts = read(line)
                    name = operation.decode()
                    if name == "rank":
                        rank = parts
                    elif name == "bye":
                        rank = None
                    else:
                        try:
                            found = self.table.answer(name, parts)
                        except DistStoreError as error:
                            what = str(error).partition("keys: ")[2]
                            limit = parts[1] if name == "get" else parts[0]
                            send(line, b"timeout", what.encode(), limit)
                            continue
                        except Exception as error:
                            send(line, b"error", str(error).encode())
                            continue
                        send(line, b"ok", *found)
                        continue
                    send(line, b"ok")
            finally:
                if rank is not None:
                    number, key = rank
                    self.table.answer("compare_set", [key, b"", number])

    def close(self) -> None:
        """Take no more connections."""
        self.door.close()
