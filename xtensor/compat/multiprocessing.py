"""`torch.multiprocessing`: Python's own, with `spawn`. Tensors are copied between processes, not shared."""

from __future__ import annotations

import multiprocessing as _multiprocessing
import multiprocessing.connection as _connection
import traceback
from collections.abc import Callable
from multiprocessing import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from typing import Any

__all__ = [  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
]


class ProcessException(Exception):
    """A process of `spawn` ended badly."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """It raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """It exited, with this code."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def get_all_sharing_strategies() -> set[str]:
    """The one there is."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """The one there is."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing: tensors travel as copies."""


def _call(fn: Callable[..., Any], index: int, args: tuple[Any, ...], failures: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        failures.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes that `spawn` started."""

    def __init__(self, processes: list[Any], failures: list[Any]) -> None:
        self.processes = processes
        self._failures = failures

    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait; True when all have ended well. Where one failed, the others are ended and its error is raised."""
        waiting = {
            process.sentinel: i for i, process in enumerate(self.processes) if process.exitcode is None
        }
        ready = [waiting[s] for s in _connection.wait(waiting, timeout)] if waiting else []
        for process in self.processes:
            if (
                process.exitcode is None
                and process.sentinel in waiting
                and waiting[process.sentinel] in ready
            ):
                process.join()
        failed = next((i for i, p in enumerate(self.processes) if p.exitcode), None)
        if failed is None:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(3)
            if process.is_alive():  # JAX catches what asks a process of several to end
                process.kill()
            process.join()
        process = self.processes[failed]
        if not self._failures[failed].empty():
            text = f"\n\n-- Process {failed} terminated with the following error:\n{self._failures[failed].get()}"
            raise ProcessRaisedException(text, failed, process.pid)
        raise ProcessExitedException(
            f"process {failed} terminated with exit code {process.exitcode}",
            failed,
            process.pid,
            process.exitcode,
        )


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Start `nprocs` processes that call `fn(index, *args)`, and wait for them unless `join` is False."""
    context = _multiprocessing.get_context(start_method)
    processes, failures = [], []
    for index in range(nprocs):
        failure = context.SimpleQueue()
        process: Any = context.Process(target=_call, args=(fn, index, args, failure), daemon=daemon)  # pyright: ignore[reportAttributeAccessIssue]
        process.start()
        processes.append(process)
        failures.append(failure)
    started = ProcessContext(processes, failures)
    if not join:
        return started
    while not started.join():
        pass
    return None
