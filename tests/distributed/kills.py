"""A training in four processes of which random ones are killed at random moments: `python -m tests.distributed.kills 200`.

The launcher's agent watches the processes, ends all when one dies and starts them again; they resume from the checkpoint. Checked is that a start
resumes at the last step that any process knew to be saved, or later; that every step has the loss, and the end the parameters, of a run that nobody
disturbed, to the bit; and that after a kill all processes are gone within 30 seconds, with the name of one that was killed. Only the start is cheaper than in
real life: processes are forked from one that has imported the library.
"""

from __future__ import annotations

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_NUM_CPU_DEVICES"] = "1"

import argparse
import json
import multiprocessing
import pathlib
import random
import sys
import tempfile
import threading
import time
import warnings
from typing import Any

from xtensor.distributed.agent import Agent, Job

from .killed import WORLD, child

LIMIT = 30.0
"""Seconds within which all are gone after a kill."""
HANG = 300.0
"""Seconds that a start may take to its end before it counts as hanging."""


def tick() -> float:
    """A little time; of the seconds in which this process was not let run, as others were not, few count."""
    began = time.monotonic()
    time.sleep(0.05)
    return min(time.monotonic() - began, 0.2)


class Forked:
    """A process as the agent sees one: the part of `subprocess.Popen` that it uses."""

    def __init__(self, made: Any) -> None:
        self.made = made
        made.start()
        self.pid: int = made.pid
        self.terminate, self.kill = made.terminate, made.kill

    @property
    def returncode(self) -> int:
        return self.made.exitcode

    def poll(self) -> int | None:
        return self.made.exitcode

    def wait(self, timeout: float | None = None) -> None:
        self.made.join(timeout)


class Child:
    """A worker of the agent."""

    def __init__(self, rank: int, made: Any) -> None:
        self.local = self.rank = rank
        self.process = Forked(made)

    def close(self) -> None:
        """Nothing: its output is in a file."""


class Killing(Agent):
    """An agent some of whose processes are killed. span: seconds after a start within which half of the kills fall."""

    span = 6.0

    def __init__(self, job: Job, folder: pathlib.Path, kills: int, seed: int, steps: int) -> None:
        super().__init__(job)
        self.run_folder, self.left, self.steps = folder, kills, steps
        self.random = random.Random(seed)
        self.context: Any = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["tests.distributed.killed"])
        self.children: list[Child] = []
        self.killed: list[int] = []
        self.took = 0.0
        self.longest = 0.0
        self.hung = False

    def worker(self, local: int, attempt: int) -> Child:
        """Fork a process; with the last of them, set the clock for a kill."""
        given = (self.environment(local, attempt), self.run_folder, self.steps)
        made = Child(local, self.context.Process(target=child, args=given))
        self.children = [*self.children, made] if local else [made]
        if local == self.job.processes - 1:
            self._set_clock(list(self.children))
        return made

    def _set_clock(self, children: list[Child]) -> None:
        count = min(self.left, 2 if self.random.random() < 0.15 else 1)
        chosen = self.random.sample(children, count)
        # Half of the kills fall into the start, the others into steps and checkpoints.
        stepping = self.random.random() < 0.5
        delay = self.random.uniform(0, 2.0 if stepping else self.span)
        before = len(noted(self.run_folder, "step"))
        self.killed = []

        def kill() -> None:
            if count:
                waited = 0.0
                while stepping and len(noted(self.run_folder, "step")) == before and waited < HANG:
                    waited += tick()
                pause = 0.0
                while pause < delay:
                    pause += tick()
                for each in chosen:
                    if each.process.poll() is None:
                        self.killed.append(each.rank)
                        each.process.kill()
                self.left -= len(self.killed)
                if not self.left:
                    (self.run_folder / "go").unlink(missing_ok=True)
            self.took = 0.0
            while any(c.process.poll() is None for c in children):
                self.took += tick()
                if self.took > (LIMIT if self.killed else HANG):
                    self.hung = True
                    for each in children:
                        each.process.kill()
                    return

        self.clock = threading.Thread(target=kill, daemon=True)
        self.clock.start()

    def _attempt(self, attempt: int) -> str | None:
        """Once; then what was seen of it."""
        failure = super()._attempt(attempt)
        self.clock.join()
        if self.killed:
            self.longest = max(self.longest, self.took)
        if attempt % 10 == 9:
            print(
                f"{self.left} kills are left, step {max(noted(self.run_folder, 'saved') or [0])} is saved",
                flush=True,
            )
        named = failure is None or any(f"rank {rank} " in failure for rank in self.killed)
        if self.hung or not named or (failure is not None and not self.killed):
            raise SystemExit(f"hung: {self.hung}; killed: {self.killed}; said: {failure}")
        return failure


def lines(folder: pathlib.Path, rank: int) -> list[dict[str, Any]]:
    path = folder / f"notes-{rank}"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def noted(folder: pathlib.Path, what: str) -> list[int]:
    return [line[what] for rank in range(WORLD) for line in lines(folder, rank) if what in line]


def run(folder: pathlib.Path, kills: int, seed: int, steps: int) -> Killing:
    """Train to the end; SystemExit says what went wrong."""
    folder.mkdir()
    if kills:
        (folder / "go").touch()
    job = Job([], "script", 1, 0, WORLD, "127.0.0.1", 0, "kills", 10 * kills, 0.05, "default", None, "0", "0")
    agent = Killing(job, folder, kills, seed, steps)
    if agent.run():
        raise SystemExit(f"the training failed: see {folder}")
    return agent


def check(folder: pathlib.Path, alone: pathlib.Path) -> int:
    """Compare with the undisturbed run; how many starts there were. AssertionError says what was lost."""
    for rank in range(WORLD):
        wanted = {n["step"]: n["loss"] for n in lines(alone, rank) if "step" in n}
        known = 0
        starts = 0
        for each in lines(folder, rank):
            if "start" in each:
                assert each["start"] >= known, f"rank {rank} lost step {known}: it resumed at {each['start']}"
                starts += 1
            known = max(known, each.get("saved", 0), each.get("start", 0))
            # A step behind the last saved one may have been made when the last kill came.
            if "step" in each and each["step"] in wanted:
                assert each["loss"] == wanted[each["step"]], f"rank {rank}, step {each['step']}: another loss"
        last, other = lines(folder, rank)[-1], lines(alone, rank)[-1]
        assert "end" in last and last == other, f"rank {rank} ends with other parameters"
    return len(noted(folder, "start")) // WORLD


def main(argv: list[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.kills", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--span", type=float, default=6.0, help="seconds after a start within which half of the kills fall"
    )
    options = parser.parse_args(argv)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="xtensor_kills_"))
    Killing.span = options.span
    began = time.monotonic()
    agent = run(folder / "killed", options.kills, options.seed, 3)
    steps = max(noted(folder / "killed", "end"))
    run(folder / "alone", 0, 0, steps)
    starts = check(folder / "killed", folder / "alone")
    print(
        f"{options.kills} processes were killed; {starts} starts came to training, {steps} steps; nothing is lost, and nothing hung: all were gone "
        f"within {agent.longest:.1f} s of a kill; {time.monotonic() - began:.0f} s"
    )
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    sys.exit(main())
