"""Where worker processes come from: a process that has imported xtensor, started no XLA, and is forked for each.

It is a fresh interpreter, since neither XLA's threads nor a script's own state survive a fork; the program's `__main__`
is not run again in it. Where there is no fork, and on macOS, every worker is a fresh interpreter.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import connection as connections
from multiprocessing import reduction
from multiprocessing.connection import Connection, Pipe
from typing import Any

from ...interop.alias import install, is_installed
from ...xla.jax_internals import started
from .workers import live

__all__ = ["FORKS", "Worker", "prepare", "suggest"]

FORKS = sys.platform == "linux"
"""Whether workers are forked from the server unless a loader says `spawn`; macOS's own libraries may not be forked."""

PACKAGES = {"site-packages", "dist-packages"}
STANDARD = sysconfig.get_path("stdlib")
WINDOWS = sys.platform == "win32"
MOST = 200  # modules at a time, which an exit status can count
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


def launch(function: str) -> tuple[subprocess.Popen[Any], Connection]:
    """A fresh interpreter that calls a function of this module with the other end of a connection."""
    ours, theirs = Pipe(duplex=True)
    handle = theirs.fileno()
    path = list(map(str, sys.path))
    code = f"import sys; sys.path[:] = {path!r}; from {__name__} import begin; begin({function!r}, {handle})"
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
            reply: Any = None
            if request == "fork":
                handle = reduction.recv_handle(connection)
                reply = fork()
                if reply == 0:
                    connection.close()
                    os._exit(live(Connection(handle)))
                os.close(handle)
                children[reply] = None
            elif request == "end":
                reply = ended(details[0], children, details[1])
            else:
                bring(*details)
            connection.send((number, reply))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            for child, status in children.items():
                if status is None:
                    ended(child, children, 0)
            return 0


def fork() -> int:
    with warnings.catch_warnings():
        # BLAS may have threads, which look after themselves; XLA has none here.
        warnings.simplefilter("ignore")
        return os.fork()


def bring(names: Sequence[str], path: list[str], torch: bool) -> None:
    """Import modules for the workers to come; a child tries first, and the first that starts XLA stays out."""
    sys.path[:] = path
    if torch:
        install()
    names = [name for name in names if name not in sys.modules][:MOST]
    while names and started is not None:
        child = fork()
        if child == 0:
            os._exit(fit(names))
        count = max(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        bring_in(names[:count])
        names = names[count + 1 :]


def fit(names: Sequence[str]) -> int:
    """How many of these modules can be imported one after the other without XLA starting."""
    for i, name in enumerate(names):
        bring_in([name])
        if started():
            return i
    return len(names)


def bring_in(names: Sequence[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):  # the worker that needs it says why
            importlib.import_module(name)


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
        self.sound = True
        self.wanted: set[int] = set()
        self.replies: dict[int, Any] = {}
        self.known: set[str] = set()
        self.answers: list[int] = []
        self.stop = weakref.finalize(self, stop, self.process, self.connection, self.answers, os.getpid())

    def tell(self, request: str, *details: Any) -> int:
        """Ask for something; the number that the answer will have."""
        self.number += 1
        with self.talking():
            self.connection.send((self.number, request, *details))
        return self.number

    def ask(self, request: str, *details: Any, handle: int | None = None) -> Any:
        """The answer to a request. Answers that nobody waits for are passed over."""
        number = self.tell(request, *details)
        if handle is not None:
            with self.talking():
                reduction.send_handle(self.connection, handle, self.process.pid)
        self.wanted.add(number)
        try:
            while number not in self.replies:
                connections.wait([self.connection])
                with self.talking():
                    answered, reply = self.connection.recv()
                self.answers[:] = [answered]
                if answered in self.wanted:
                    self.replies[answered] = reply
            return self.replies[number]
        finally:
            self.wanted.discard(number)
            self.replies.pop(number, None)

    @contextlib.contextmanager
    def talking(self) -> Iterator[None]:
        """Around part of a message: what Ctrl-C cuts here, or a garbage collection enters, cannot be talked to."""
        self.sound = False
        yield
        self.sound = True


def stop(process: subprocess.Popen[Any], connection: Connection, answers: list[int], owner: int) -> None:
    """Let the server end, which it does when nobody is connected any more; one that still imports is not waited for."""
    if os.getpid() != owner:  # a fork of the program
        return
    connection.close()
    finish(process, LAST_WORD if answers else 0)


def finish(process: subprocess.Popen[Any], seconds: float) -> int:
    """Wait for a process, and kill it if it does not end in time."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class _Shared:
    """The server of this process."""

    lock = threading.RLock()
    server: Server | None = None
    others: list[Server] = []


def server() -> Server:
    if _Shared.server is None or not _Shared.server.sound:
        _Shared.server = Server()
    return _Shared.server


def forget_server() -> None:
    """In a fork of the program, which has a server of its own if it needs one."""
    _Shared.lock = threading.RLock()
    if _Shared.server is not None:
        _Shared.server.connection.close()
        _Shared.others.append(_Shared.server)
        _Shared.server = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_server)


def forked(handle: int) -> tuple[Server, int]:
    """A worker with this end of a connection: its server and its process id. A server that has died is replaced."""
    with _Shared.lock:
        for last in (False, True):
            found = server()
            try:
                return found, found.ask("fork", handle=handle)
            except (EOFError, BrokenPipeError, ConnectionResetError) as error:
                found.stop()
                _Shared.server = None
                if last:
                    status = found.process.returncode
                    raise RuntimeError(
                        f"DataLoader's server of worker processes ended (exit status {status}); its output says why"
                    ) from error
    raise AssertionError


def suggest(names: Iterable[str]) -> None:
    """Have the server import what workers needed, if others wrote it: what the user writes may change."""
    ours = __name__.partition(".")[0]
    installed = [
        name
        for name in names
        if name.startswith(f"{ours}.")
        or (
            not (name.partition(".")[0] == "torch" and is_installed())
            and (file := getattr(sys.modules.get(name), "__file__", None))
            and (PACKAGES.intersection(file.split(os.sep)) or file.startswith(STANDARD + os.sep))
        )
    ]
    with _Shared.lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        if (
            _Shared.server is not None
            and _Shared.server.sound
            and not _Shared.server.known.issuperset(installed)
        ):
            _Shared.server.known.update(installed)
            _Shared.server.tell("import", sorted(installed), sys.path, is_installed())


def prepare(method: str | None) -> None:
    """Begin to start the server: it imports while the program does other things."""
    if method != "spawn" and (FORKS or method is not None):
        with _Shared.lock:
            server()


# ---- workers -------------------------------------------------------------------------------------------------------


class Worker:
    """A worker process, seen from the program; it waits for its settings."""

    def __init__(self, method: str | None) -> None:
        self.process: subprocess.Popen[Any] | None = None
        self.server: Server | None = None
        if method == "spawn" or (method is None and not FORKS):
            self.process, self.connection = launch("live")
            self.pid: int = self.process.pid
        else:
            self.connection, theirs = Pipe(duplex=True)
            try:
                self.server, self.pid = forked(theirs.fileno())
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
            elif self.server is not None:
                with _Shared.lock, contextlib.suppress(EOFError, OSError):
                    if self.server.sound:
                        self.status = self.server.ask("end", self.pid, seconds)
                    elif seconds == 0:  # the id is still this worker's: nobody has waited for it
                        os.kill(self.pid, signal.SIGKILL)
        return self.status

    def is_alive(self) -> bool:
        """Whether it has not been seen to end."""
        return self.status is None
