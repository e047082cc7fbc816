"""Threads that share tensors: values race, as in PyTorch, and nothing fails.

`python -m tests.fuzz.threads [SECONDS]` runs each case so long (15) and prints how often each thread came round, and every error.
"""

from __future__ import annotations

import collections
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import xtensor
from xtensor import nn, optim

Bodies = list[tuple[str, Callable[[], Any]]]


def model() -> tuple[nn.Module, Callable[[], Any], xtensor.Tensor]:
    """A network with a batch norm, a step of its training, and an input."""
    made = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 4))
    optimizer, x = optim.Adam(made.parameters(), lr=1e-4), xtensor.rand(16, 32)

    def train() -> None:
        optimizer.zero_grad()
        made(x).square().mean().backward()
        nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()

    for _ in range(20):
        train()
    return made, train, x


def evaluated() -> Bodies:
    """Two evaluators, one that records a graph and one that looks at views, beside a trainer."""
    made, train, x = model()

    def evaluate() -> None:
        with xtensor.no_grad():
            made(x).sum().item()

    weight = next(made.parameters())
    return [
        ("train", train),
        ("evaluate", evaluate),
        ("evaluate", evaluate),
        ("record", lambda: made(x).sum().item()),
        ("views", lambda: weight.detach()[1].sum().item()),
    ]


def read() -> Bodies:
    """A trainer, and a thread that only reads on the host."""
    made, train, _ = model()

    def look() -> None:
        for p in made.parameters():
            p.detach().numpy().sum()
            p.detach()[:1].tolist()

    return [("train", train), ("read", look)]


def stepped() -> Bodies:
    """Four threads that step one optimizer, without a lock."""
    made, _, _ = model()
    optimizer = optim.Adam(made.parameters(), lr=1e-6)
    for p in made.parameters():
        p.grad = xtensor.ones_like(p)
    return [("step", optimizer.step)] * 4


def written() -> Bodies:
    """Writers of one tensor, whole and through a view, and a reader."""
    z = xtensor.zeros(64)
    return [
        ("add_", lambda: z.add_(1)),
        ("add_", lambda: z.add_(1)),
        ("set", lambda: z.__setitem__(slice(1, 5), 2.0)),
        ("read", lambda: (z + 1).sum().item()),
    ]


CASES: dict[str, Callable[[], Bodies]] = {
    "evaluated": evaluated,
    "read": read,
    "stepped": stepped,
    "written": written,
}


def race(case: str, seconds: float, rounds: int = 0) -> tuple[dict[str, int], dict[str, int]]:
    """Run a case until the time is over (or its first thread has come round so often); rounds and errors by name."""
    bodies = CASES[case]()
    done: collections.Counter[str] = collections.Counter()
    errors: collections.Counter[str] = collections.Counter()
    over = threading.Event()
    end = time.monotonic() + seconds

    def loop(at: int, name: str, body: Callable[[], Any]) -> None:
        times = 0
        while not over.is_set() and time.monotonic() < end:
            try:
                body()
                done[name] += 1
            except Exception as error:
                errors[f"{name}: {type(error).__name__}: {str(error)[:120]}"] += 1
            times += 1
            if at == 0 and times == rounds:
                over.set()

    threads = [threading.Thread(target=loop, args=(i, *b)) for i, b in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(done), dict(errors)


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
    failed = False
    for case in CASES:
        done, errors = race(case, seconds)
        failed = failed or bool(errors)
        print(case, done, errors or "no errors", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
