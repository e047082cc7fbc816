"""Messages of processes to one another: a list of byte strings, each with its length before it."""

from __future__ import annotations

import socket
import struct
import time

from .errors import DistNetworkError

__all__ = ["connect", "listen", "read", "send"]

COUNT = struct.Struct("!I")
LENGTH = struct.Struct("!Q")


def send(to: socket.socket, *parts: bytes) -> None:
    """Send a message."""
    head = COUNT.pack(len(parts))
    to.sendall(b"".join([head, *[LENGTH.pack(len(p)) + p for p in parts]]))


def read(source: socket.socket) -> list[bytes]:
    """The next message; ConnectionError where the other side has ended."""
    (count,) = COUNT.unpack(exactly(source, COUNT.size))
    found = []
    for _ in range(count):
        (length,) = LENGTH.unpack(exactly(source, LENGTH.size))
        found.append(exactly(source, length))
    return found


def exactly(source: socket.socket, count: int) -> bytes:
    """So many bytes."""
    made = bytearray(count)
    view = memoryview(made)
    while view:
        got = source.recv_into(view)
        if not got:
            raise ConnectionError("the other side has ended")
        view = view[got:]
    return bytes(made)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen(1024)
    return made


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """A connection, tried again until somebody listens; DistNetworkError after so many seconds."""
    until = time.monotonic() + seconds
    pause = 0.01
    while True:
        try:
            made = socket.create_connection((host, port), timeout=max(until - time.monotonic(), 0.1))
        except OSError as error:
            if time.monotonic() + pause > until:
                raise DistNetworkError(
                    f"no store answers at {host}:{port} within {seconds:g} s: is the process of rank 0 there? ({error})"
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.5)
            continue
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
