"""The agent of a machine: it starts the processes, watches them, ends all when one fails, and starts them again."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, BinaryIO

from .store import TCPStore
from .table import gone_key

__all__ = ["Agent", "Job"]

GRACE = 3.0
"""Seconds between asking a process to end and ending it: JAX catches what asks."""


@dataclass
class Job:
    """What is to be run. kind: script, module, torch or executable. node: this machine's number, or None to be given one."""

    command: list[str]
    kind: str
    nodes: int
    node: int | None
    processes: int
    host: str
    port: int
    name: str
    restarts: int
    interval: float
    role: str
    folder: str | None
    redirects: str
    tee: str
    shown: list[int] = field(default_factory=list)
    timeout: float = 600.0


def chosen(text: str, local: int) -> int:
    """What of a process's output is meant: 0 nothing, 1 what is printed, 2 errors, 3 both."""
    if ":" not in text:
        return int(text)
    found = dict(part.split(":") for part in text.split(","))
    return int(found.get(str(local), "0"))


def is_here(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    for address in addresses:
        family = socket.AF_INET6 if ":" in str(address) else socket.AF_INET
        with contextlib.suppress(OSError), socket.socket(family) as probe:
            probe.bind((str(address), 0))
            return True
    return False


class Worker:
    """A process that runs the program."""

    def __init__(self, agent: Agent, local: int, attempt: int) -> None:
        job = agent.job
        self.local, self.rank = local, agent.node * job.processes + local
        self.threads: list[threading.Thread] = []
        self.files: list[BinaryIO] = []
        environment = os.environ | agent.environment(local, attempt)
        head = {
            "script": [sys.executable, "-u", "-m", "xtensor.distributed.worker"],
            "module": [sys.executable, "-u", "-m", "xtensor.distributed.worker", "-m"],
            "torch": [sys.executable, "-u"],
            "executable": [],
        }[job.kind]
        streams: list[Any] = [None, None]
        into = chosen(job.redirects, local) | chosen(job.tee, local)
        also = chosen(job.tee, local)
        hidden = bool(job.shown) and local not in job.shown
        for i, name in enumerate(("stdout", "stderr")):
            if into >> i & 1:
                folder = agent.folder / f"attempt_{attempt}" / str(local)
                folder.mkdir(parents=True, exist_ok=True)
                file = (folder / f"{name}.log").open("wb")
                self.files.append(file)
                streams[i] = subprocess.PIPE if also >> i & 1 else file
            elif hidden:
                streams[i] = subprocess.DEVNULL
        self.process = subprocess.Popen(
            [*head, *job.command], env=environment, stdout=streams[0], stderr=streams[1]
        )
        files = iter(self.files)
        for i, (pipe, to) in enumerate(
            ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        ):
            file = next(files) if into >> i & 1 else None
            if pipe is not None and file is not None:
                target = None if hidden else to
                thread = threading.Thread(target=self._tee, args=(pipe, file, target, job.role), daemon=True)
                thread.start()
                self.threads.append(thread)

    def _tee(self, pipe: Any, file: BinaryIO, to: Any, role: str) -> None:
        for line in pipe:
            file.write(line)
            file.flush()
            if to is not None:
                to.write(f"[{role}{self.local}]:{line.decode('utf-8', 'replace')}")
                to.flush()

    def close(self) -> None:
        """Take the last of the output."""
        for thread in self.threads:
            thread.join(5)
        for file in self.files:
            file.close()


class Agent:
    """Runs a job's processes on this machine."""

    def __init__(self, job: Job) -> None:
        self.job = job
        serves = is_here(job.host) if job.node is None else job.node == 0
        limit = timedelta(seconds=job.timeout)
        if serves:
            try:
                self.store = TCPStore(job.host, job.port, is_master=True, timeout=limit)
            except OSError:  # another agent of this machine was first
                if job.node is not None:
                    raise
                self.store = TCPStore(job.host, job.port, timeout=limit)
        else:
            self.store = TCPStore(job.host, job.port, timeout=limit)
        self.node = self.store.add("agent/nodes", 1) - 1 if job.node is None else job.node
        base = job.folder or (
            tempfile.mkdtemp(prefix="xtensor_run_") if (job.redirects, job.tee) != ("0", "0") else "."
        )
        self.folder = pathlib.Path(base) / job.name

    def environment(self, local: int, attempt: int) -> dict[str, str]:
        """What a process is told in its environment, `torchrun`'s names."""
        job, rank = self.job, self.node * self.job.processes + local
        return {
            "RANK": str(rank),
            "WORLD_SIZE": str(job.nodes * job.processes),
            "LOCAL_RANK": str(local),
            "LOCAL_WORLD_SIZE": str(job.processes),
            "GROUP_RANK": str(self.node),
            "GROUP_WORLD_SIZE": str(job.nodes),
            "ROLE_RANK": str(rank),
            "ROLE_WORLD_SIZE": str(job.nodes * job.processes),
            "ROLE_NAME": job.role,
            "MASTER_ADDR": job.host,
            "MASTER_PORT": str(self.store.port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(job.restarts),
            "TORCHELASTIC_RUN_ID": job.name,
        }

    def worker(self, local: int, attempt: int) -> Any:
        """Start a process."""
        return Worker(self, local, attempt)

    def run(self) -> int:
        """Run the job to its end; 0 where all went well."""
        before = {s: signal.signal(s, self._interrupted) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            for attempt in range(self.job.restarts + 1):
                failure = self._attempt(attempt)
                if failure is None:
                    self._settle("agent/done")
                    return 0
                left = self.job.restarts - attempt
                print(
                    f"xtensor.distributed.run: {failure}; {left} restarts are left",
                    file=sys.stderr,
                    flush=True,
                )
            self._settle("agent/failed")
            return 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupted(self, number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    def _settle(self, key: str) -> None:
        """Serve the store until all machines are done."""
        with contextlib.suppress(OSError):
            self.store.add(key, 1)
            until = time.monotonic() + 60
            while self.store._server is not None and self.store.add(key, 0) < self.job.nodes:
                if time.monotonic() > until:
                    return
                time.sleep(self.job.interval)

    def _attempt(self, attempt: int) -> str | None:
        """Run all processes once; what failed, or None."""
        workers: list[Any] = []
        key = f"agent/failure/{attempt}"
        try:
            workers += [self.worker(local, attempt) for local in range(self.job.processes)]
            while True:
                codes = [w.process.poll() for w in workers]
                if any(codes):
                    self.store.compare_set(key, "", self._told(workers, attempt))
                if self.store.check([key]):
                    return self.store.get(key).decode()
                if all(code == 0 for code in codes):
                    return None
                time.sleep(self.job.interval)
        finally:
            end(workers)

    def _told(self, workers: list[Any], attempt: int) -> str:
        """Which process failed first, and how."""
        failed = [w for w in workers if w.process.poll()]
        time.sleep(self.job.interval)  # so that what ended it is known of the one that went first
        gone = gone_key(attempt)
        if self.store.check([gone]):
            first = int(self.store.get(gone))
            failed = [w for w in workers if w.rank == first and w.process.poll()] or failed
        worker = failed[0]
        code = worker.process.returncode
        how = f"exit code {code}"
        if code < 0:
            how = f"signal {signal.Signals(-code).name}"
        return (
            f"rank {worker.rank} (local rank {worker.local}, process {worker.process.pid}) failed with {how}"
        )


def end(workers: list[Any]) -> None:
    """End processes: asked first, then for certain."""
    for worker in workers:
        if worker.process.poll() is None:
            worker.process.terminate()
    until = time.monotonic() + GRACE
    for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(max(until - time.monotonic(), 0.01))
        if worker.process.poll() is None:
            worker.process.kill()
            worker.process.wait()
        worker.close()
