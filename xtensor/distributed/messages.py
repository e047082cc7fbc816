"""Messages from one process to another: `send`, `recv` and their kin, over connections of their own.

They are no collectives, and may be sent and received in any order that the two agree on; so no program over a mesh would do.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import queue
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .. import devices
from ..engine.modes import no_grad
from ..tensor import Tensor, host_array, wrap
from .collectives import asked
from .group import ProcessGroup, chosen, get_group_rank, world_group
from .runtime import host_of
from .wire import connect, listen, read
from .wire import send as send_parts
from .work import Work

__all__ = [
    "P2POp",
    "batch_isend_irecv",
    "irecv",
    "isend",
    "recv",
    "recv_object_list",
    "send",
    "send_object_list",
]


class _Post:
    """What has come for this process, by sender, group and tag; and the connections on which it sends."""

    def __init__(self, world: ProcessGroup) -> None:
        self.world = world
        self.boxes: dict[tuple[int, str, int], queue.Queue[bytes]] = {}
        self.changed = threading.Condition()
        self.lines: dict[int, tuple[socket.socket, threading.Lock]] = {}
        self.making = threading.Lock()
        # One thread for each, so that messages arrive in the order in which they were sent or asked for.
        self.senders = ThreadPoolExecutor(1, "xtensor send")
        self.receivers: dict[Any, ThreadPoolExecutor] = {}
        door = listen("", 0)
        host = "127.0.0.1"
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host_of(world.store), 9))  # sends nothing; tells the address that the others reach
            host = probe.getsockname()[0]
        world.store.set(f"post/{world.rank()}", f"{host}:{door.getsockname()[1]}")
        threading.Thread(target=self._accept, args=(door,), daemon=True, name="xtensor post").start()

    def _accept(self, door: socket.socket) -> None:
        while True:
            try:
                line, _ = door.accept()
            except OSError:
                return
            threading.Thread(target=self._sort, args=(line,), daemon=True, name="xtensor post").start()

    def _sort(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            while True:
                head, content = read(line)
                sender, group, tag = json.loads(head)
                with self.changed:
                    self.boxes.setdefault((sender, group, tag), queue.Queue()).put(content)
                    self.changed.notify_all()

    def give(self, to: int, group: str, tag: int, content: bytes) -> int:
        """Send a message."""
        with self.making:
            found = self.lines.get(to)
            if found is None:
                host, _, port = self.world.store.get(f"post/{to}").decode().rpartition(":")
                line = connect(host, int(port), self.world.timeout.total_seconds())
                found = self.lines[to] = (line, threading.Lock())
        line, lock = found
        with lock:
            send_parts(line, json.dumps([self.world.rank(), group, tag]).encode(), content)
        return to

    def take(self, source: int | None, group: str, tag: int) -> tuple[int, bytes]:
        """Wait for a message of a sender, or of any."""

        def found() -> tuple[int, bytes] | None:
            for (sender, of, with_tag), box in self.boxes.items():
                if of == group and with_tag == tag and source in (None, sender) and not box.empty():
                    return sender, box.get()
            return None

        got: list[tuple[int, bytes]] = []

        def there() -> bool:
            message = found()
            if message is not None:
                got.append(message)
            return message is not None

        with self.changed:
            if not self.changed.wait_for(there, self.world.timeout.total_seconds()):
                raise RuntimeError(
                    f"no message from {'any rank' if source is None else f'rank {source}'} came in time"
                )
        return got[0]


_posts: dict[int, _Post] = {}


def post() -> _Post:
    """The post of this process; it is opened when first used."""
    world = world_group()
    found = _posts.get(id(world))
    if found is None or found.world is not world:
        _posts.clear()
        found = _posts[id(world)] = _Post(world)
    return found


def peer(found: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    """The rank in the world of who sends or receives; ValueError for this process itself."""
    if rank is None and group_rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    other = found.ranks[group_rank] if rank is None and group_rank is not None else rank
    assert other is not None
    get_group_rank(found, other)
    if other == world_group().rank():
        raise ValueError(
            f"Invalid {'destination' if name == 'dst' else 'source'} rank: {name} rank should not be the same as the rank of the current process."
        )
    return other


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Begin to send a tensor's values to rank `dst`."""
    found, _ = asked(group, tensor)
    to = peer(found, dst, group_dst, "dst")
    content = np.ascontiguousarray(host_array(tensor)).tobytes()
    box = post()
    return Work(thread=box.senders.submit(box.give, to, found.group_name, tag, content), results=[tensor])


def send(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor's values to rank `dst`, which takes them by `recv`."""
    isend(tensor, dst, group, tag, group_dst).wait()


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Begin to receive values of a tensor's sizes and dtype from rank `src`, or from any; they are there after `wait`."""
    found, _ = asked(group, tensor)
    source = None if src is None and group_src is None else peer(found, src, group_src, "src")
    box = post()
    key = (source, found.group_name, tag)
    line = box.receivers.setdefault(key, ThreadPoolExecutor(1, "xtensor recv"))

    def receive() -> int:
        sender, content = box.take(source, found.group_name, tag)
        write(tensor, content)
        return sender

    return Work(thread=line.submit(receive), results=[tensor])


def write(tensor: Tensor, content: bytes) -> None:
    """Write values that have come."""
    dtype = tensor.dtype.numpy
    if len(content) != tensor.numel() * dtype.itemsize:
        raise RuntimeError(f"{len(content)} bytes came for a tensor of {tensor.numel() * dtype.itemsize}")
    values = np.frombuffer(content, np.uint8).view(dtype).reshape(tuple(tensor.shape))
    with no_grad():
        tensor.copy_(wrap(devices.put(values, tensor.device, copy=True)))


def recv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive a tensor's values from rank `src`, or from any; the rank that they came from."""
    return irecv(tensor, src, group, tag, group_src).source_rank()


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to rank `dst`, which takes them by `recv_object_list`."""
    found = chosen(group)
    post().give(peer(found, dst, group_dst, "dst"), found.group_name, -1, pickle.dumps(list(object_list)))


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Put objects from rank `src`, or from any, into a list; the rank that they came from."""
    found = chosen(group)
    source = None if src is None and group_src is None else peer(found, src, group_src, "src")
    sender, content = post().take(source, found.group_name, -1)
    object_list[:] = pickle.loads(content)
    return sender


class P2POp:
    """One of the messages of `batch_isend_irecv`: `isend` or `irecv`, a tensor and the other rank."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise RuntimeError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin to send and receive several messages."""
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
