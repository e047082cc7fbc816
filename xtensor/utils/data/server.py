"""Where worker processes come from: a process that has imported xtensor, started no XLA, and is forked for each.

It is a fresh interpreter, since neither XLA's threads nor a script's own state survive a fork; the program's `__main__`
is not run again in it. Where there is no fork, and on macOS, every worker is a fresh interpreter.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from multiprocessing import connection as connections
from multiprocessing import reduction
from multiprocessing.connection import Connection, Pipe
from typing import Any

from .workers import live

__all__ = ["FORKS", "Worker", "prepare", "start_worker"]

FORKS = sys.platform == "linux"
"""Whether workers are forked from the server unless a loader says `spawn`; macOS's own libraries may not be forked."""

WINDOWS = sys.platform == "win32"
LAST_WORD = 1.0  # seconds for a process that has nothing left to do


# ---- fresh interpreters --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits: a process started inside begins without it, so that it shows no traceback of its own."""
    if WINDOWS:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def launch(function: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """A fresh interpreter that calls a function of this module with the other end of a connection."""
    ours, theirs = Pipe(duplex=True)
    handle = theirs.fileno()
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import begin; begin({function!r}, {handle})"
    )
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    options: dict[str, Any] = {"pass_fds": [handle]}
    if WINDOWS:
        os.set_handle_inheritable(handle, True)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        options = {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})}  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    with interrupts_held():
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", code],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
            **options,
        )
    theirs.close()
    return process, ours


def begin(function: str, handle: int) -> None:
    """In a fresh interpreter: leave Ctrl-C to the program, and do what was asked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not WINDOWS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    kind: Any = getattr(connections, "PipeConnection", Connection)
    os._exit({"serve": serve, "live": live}[function](kind(handle)))


# ---- the server ----------------------------------------------------------------------------------------------------


def serve(connection: Connection) -> int:
    """Fork a worker whenever the program asks for one, and end what is left of them when the program is gone."""
    children: dict[int, int | None] = {}
    while True:
        try:
            number, request, *details = connection.recv()
            if request == "fork":
                handle = reduction.recv_handle(connection)
                with warnings.catch_warnings():
                    # BLAS may have threads, which look after themselves; XLA has none here.
                    warnings.simplefilter("ignore")
                    child = os.fork()
                if child == 0:
                    connection.close()
                    os._exit(live(Connection(handle)))
                os.close(handle)
                children[child] = None
                reply: Any = child
            else:
                child, seconds = details
                reply = ended(child, children, seconds)
            connection.send((number, reply))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            for child, status in children.items():
                if status is None:
                    ended(child, children, 0)
            return 0


def ended(child: int, children: dict[int, int | None], seconds: float) -> int:
    """The exit status of a child as `subprocess` has it, after killing it if it does not end in time."""
    status = children[child]
    if status is None:
        limit = time.monotonic() + seconds
        killed = False
        while True:
            found, code = os.waitpid(child, 0 if killed else os.WNOHANG)
            if found:
                break
            if time.monotonic() >= limit:
                os.kill(child, signal.SIGKILL)
                killed = True
            else:
                time.sleep(0.001)
        status = children[child] = os.waitstatus_to_exitcode(code)
    return status


class Server:
    """The program's side of its server."""

    def __init__(self) -> None:
        self.process, self.connection = launch("serve")
        self.number = 0
        self.answers: list[int] = []
        self.stop = weakref.finalize(self, stop, self.process, self.connection, self.answers, os.getpid())

    def ask(self, request: str, *details: Any, handle: int | None = None) -> Any:
        """The answer to a request. What was asked before and not waited for, after Ctrl-C, is passed over."""
        self.number += 1
        self.connection.send((self.number, request, *details))
        if handle is not None:
            reduction.send_handle(self.connection, handle, self.process.pid)
        while True:
            connections.wait([self.connection])
            number, reply = self.connection.recv()
            self.answers[:] = [number]
            if number == self.number:
                return reply


def stop(process: subprocess.Popen[bytes], connection: Connection, answers: list[int], owner: int) -> None:
    """Let the server end, which it does when nobody is connected any more; one that still imports is not waited for."""
    if os.getpid() != owner:  # a fork of the program
        return
    connection.close()
    finish(process, LAST_WORD if answers else 0)


def finish(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Wait for a process, and kill it if it does not end in time."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class _Shared:
    """The server of this process, and of which process it is: a fork of the program has its own."""

    lock = threading.RLock()
    server: Server | None = None
    owner = 0


def server() -> Server:
    if _Shared.owner != os.getpid():
        _Shared.server, _Shared.owner, _Shared.lock = None, os.getpid(), threading.RLock()
    if _Shared.server is None:
        _Shared.server = Server()
    return _Shared.server


def ask(request: str, *details: Any, handle: int | None = None) -> Any:
    """Ask the server; one that has died is replaced, once."""
    for last in (False, True):
        with _Shared.lock:
            found = server()
            try:
                return found.ask(request, *details, handle=handle)
            except (EOFError, BrokenPipeError, ConnectionResetError) as error:
                found.stop()
                _Shared.server = None
                if last or request != "fork":
                    raise RuntimeError(
                        "DataLoader's server of worker processes ended "
                        f"(exit status {found.process.returncode}); its output says why"
                    ) from error
    return None


def prepare(method: str | None) -> None:
    """Begin to start the server: it imports while the program does other things."""
    if method != "spawn" and (FORKS or method is not None):
        with _Shared.lock:
            server()


# ---- workers -------------------------------------------------------------------------------------------------------


class Worker:
    """A worker process, seen from the program."""

    def __init__(self, method: str | None) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        if method == "spawn" or (method is None and not FORKS):
            self.process, self.connection = launch("live")
            self.pid: int = self.process.pid
        else:
            self.connection, theirs = Pipe(duplex=True)
            try:
                self.pid = ask("fork", handle=theirs.fileno())
            except BaseException:
                self.connection.close()
                raise
            finally:
                theirs.close()
        self.status: int | None = None

    def end(self, seconds: float) -> int | None:
        """The exit status, after killing it if it does not end in time; None where its server is gone too."""
        if self.status is None:
            if self.process is not None:
                self.status = finish(self.process, seconds)
            else:
                with contextlib.suppress(RuntimeError, KeyError):
                    self.status = ask("end", self.pid, seconds)
        return self.status

    def is_alive(self) -> bool:
        """Whether it has not been seen to end."""
        return self.status is None


def start_worker(method: str | None) -> Worker:
    """A worker that waits for its settings."""
    return Worker(method)
