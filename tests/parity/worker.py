"""A process that runs entries, and the pool of them: an entry that hangs or crashes costs itself only."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import resource
import selectors
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Job", "Verdict", "run_jobs"]

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY_LIMIT = 4 << 20  # kilobytes; a worker past it is replaced: compiled programs pile up


@dataclass(frozen=True)
class Job:
    """An entry in a dtype, and the facets wanted of it."""

    name: str
    dtype: str
    facets: tuple[str, ...]
    every: bool = False
    large: bool = False


@dataclass
class Verdict:
    """What one facet of one entry came to: "agree", "differ" or "none"."""

    name: str
    dtype: str
    facet: str
    status: str
    detail: str = ""
    samples: int = 0
    seconds: float = 0.0


def serve() -> None:
    """Read jobs from stdin, write verdicts to stdout: a line of JSON each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print is no answer
    import torch

    torch.set_num_threads(1)
    from . import facets
    from .entries import entries

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    answer({"ready": True})
    for line in sys.stdin:
        job = Job(**json.loads(line))
        subject = facets.Subject(entries()[job.name], job.dtype, job.every, job.large)
        for facet in job.facets:
            started = time.perf_counter()
            try:
                status, detail, samples = facets.run(subject, facet)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                status, samples = "differ", 0
                detail = (
                    f"{type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})"
                )
            seconds = round(time.perf_counter() - started, 2)
            answer(asdict(Verdict(job.name, job.dtype, facet, status, detail, samples, seconds)))
        answer({"done": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MEMORY_LIMIT})


class Worker:
    """One such process, seen from the pool."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """A process that has imported both libraries; a second and third try, should the machine be short of memory."""
        for pause in (0, 20, 60):
            time.sleep(pause)
            self.launch()
            if self.read(300) is not None:
                return
            self.stop()
        raise RuntimeError("no worker starts; what it says: python -c 'import tests.parity.facets'")

    def launch(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from tests.parity.worker import serve; serve()"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.buffer, self.ended = b"", False

    def read(self, timeout: float) -> dict[str, Any] | None:
        """The next answer; None where the process ended or the time did."""
        assert self.process is not None and self.process.stdout is not None
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not self.selector.select(left):
                return None
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                self.ended = True
                return None
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def stop(self, ended: bool = False) -> int | None:
        """End the process; its exit code, should it have `ended` itself."""
        if self.process is None:
            return None
        code = self.process.wait(10) if ended else None
        self.process.kill()
        self.process.wait()
        self.selector.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process = None
        return code

    def run(self, job: Job, timeout: float) -> Iterable[Verdict]:
        """A job's verdicts; the facet that hangs or kills the process differs, and the rest is run anew."""
        left = list(job.facets)
        while left:
            if self.process is None:
                self.start()
            assert self.process is not None and self.process.stdin is not None
            message = json.dumps(asdict(Job(job.name, job.dtype, tuple(left), job.every, job.large)))
            self.process.stdin.write(message.encode() + b"\n")
            self.process.stdin.flush()
            while left:
                got = self.read(timeout)
                if got is None:
                    code = self.stop(self.ended)
                    detail = f"took over {timeout:.0f} s" if code is None else f"ended the process ({code})"
                    yield Verdict(job.name, job.dtype, left.pop(0), "differ", detail)
                    break
                yield Verdict(**got)
                left.remove(got["facet"])
            else:
                done = self.read(timeout)
                if done is None or done["done"]:
                    self.stop()


def run_jobs(jobs: list[Job], count: int, timeout: float, on_verdict: Callable[[Verdict], None]) -> None:
    """Every job's verdicts, from `count` processes, as they come."""
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    lock = threading.Lock()
    failures: list[Exception] = []

    def work() -> None:
        worker = Worker()
        try:
            while True:
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    return
                for verdict in worker.run(job, timeout):
                    with lock:
                        on_verdict(verdict)
        except Exception as error:
            failures.append(error)
        finally:
            worker.stop()

    threads = [threading.Thread(target=work) for _ in range(max(1, min(count, len(jobs))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
