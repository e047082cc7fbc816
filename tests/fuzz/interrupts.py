"""Interrupts in the midst of training: loops, the points at which CPython handles signals, and random ones by a timer.

`python -m tests.fuzz.interrupts [N]` interrupts each of the loops N times (2,000) at random moments, as Ctrl-C does, and says what was
lost: tensors that cannot be read, parameters without their states, modes that stayed.
"""

from __future__ import annotations

import dis
import functools
import random
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import xtensor
from xtensor import nn, optim
from xtensor.engine import modes
from xtensor.plans import executor


class Stop(BaseException):
    """Stands for KeyboardInterrupt."""


class Loop(NamedTuple):
    """A body to be interrupted again and again, and the things whose tensors must outlive that."""

    body: Callable[[], Any]
    things: tuple[Any, ...]


def tensors_of(loop: Loop) -> list[xtensor.Tensor]:
    """Every tensor that a loop's things hold."""
    found: list[xtensor.Tensor] = []
    for thing in loop.things:
        if isinstance(thing, xtensor.Tensor):
            found.append(thing)
        elif isinstance(thing, nn.Module):
            found += [*thing.parameters(), *thing.buffers()]
            found += [p.grad for p in thing.parameters() if p.grad is not None]
        else:
            found += [t for s in thing.state.values() for t in s.values() if isinstance(t, xtensor.Tensor)]
    return found


def adds() -> Loop:
    x = xtensor.zeros(64)
    return Loop(lambda: x.add_(1), (x,))


def rows() -> Loop:
    z, v = xtensor.zeros(4, 16), xtensor.ones(16)

    def body() -> None:
        z[1] = v
        z[2] = 1.0
        z[0].mul_(2)
        z[:, 1:3].add_(z[:, 5:6])
        z[3].copy_(v.view(4, 4).t().reshape(16))

    return Loop(body, (z, v))


def steps(kind: Any, **options: Any) -> Loop:
    layer = nn.Linear(8, 2)
    layer(xtensor.ones(4, 8)).sum().backward()
    optimizer = kind(layer.parameters(), lr=0.01, **options)

    def body() -> None:
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()

    return Loop(body, (layer, optimizer))


def sgd() -> Loop:
    return steps(optim.SGD, momentum=0.9, dampening=0.5)


def adam() -> Loop:
    return steps(optim.Adam)


def normalised() -> Loop:
    layer, x = nn.BatchNorm1d(3), xtensor.ones(4, 3)
    return Loop(lambda: layer(x), (layer,))


def trained() -> Loop:
    """Forward, backward by a plan, a step."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer, x = optim.Adam(model.parameters()), xtensor.ones(4, 8)

    def body() -> None:
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    return Loop(body, (model, optimizer))


LOOPS: dict[str, Callable[[], Loop]] = {
    "add_": adds,
    "rows": rows,
    "SGD": sgd,
    "Adam": adam,
    "batch norm": normalised,
    "plans": trained,
}

RESUME = dis.opmap["RESUME"]
# `CALL_INTRINSIC_1` of Python 3.12, which makes tuples of lists, looks for no signals.
CALLS = frozenset(
    n
    for name, n in dis.opmap.items()
    if (name.startswith("CALL") and "INTRINSIC" not in name) or name == "JUMP_BACKWARD"
)
# Where a signal's exception is seen by nobody: finalizers, what weak references and the collector call. And where JAX's caches
# in C++, which compare keys, make another of it.
ASIDE = frozenset(
    ("__del__", "_remove_dead", "_callback", "_xla_gc_callback", "remove", "_remove", "_commit_removals")
    + ("__eq__", "__hash__")
)


def watched(frame: Any, event: str, argument: Any) -> None:
    """A tracer that only asks for instructions. From Python 3.12 on, code tells of them in the calls after the one in which it was asked to."""
    frame.f_trace_opcodes = True


@functools.lru_cache(None)
def handler(code: Any, at: int) -> int | None:
    """Where an exception goes that an instruction raises. What follows a call may have another: `with` has released its lock by then."""
    table: Any = dis
    return next((e.target for e in table._parse_exception_table(code) if e.start <= at < e.end), None)


def stopped(body: Callable[[], Any], at: int) -> tuple[bool, int]:
    """Run `body` up to its point number `at` among those where CPython handles signals; whether it came there, and how many it met.

    Those are the beginnings of functions, and what follows a call or a jump back.
    """
    count = 0
    last: dict[Any, tuple[int, int]] = {}

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        if frame.f_code.co_name in ASIDE:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            at_now = frame.f_lasti
            now = frame.f_code.co_code[at_now]
            before_it = last.get(frame, (0, 0))
            called = before_it[0] in CALLS and handler(frame.f_code, before_it[1]) == handler(
                frame.f_code, at_now
            )
            if now == RESUME or called:
                count += 1
                if count == at:
                    raise Stop
            last[frame] = now, at_now
        return trace

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        try:
            body()
        finally:
            sys.settrace(before)
    except Stop:
        return True, count
    return False, count


def is_aside(frame: Any) -> bool:
    """Whether a frame, or one that called it, is one from which no exception comes back."""
    while frame is not None:
        if frame.f_code.co_name in ASIDE:
            return True
        frame = frame.f_back
    return False


def lost(loop: Loop) -> list[str]:
    """What an interrupt has broken: tensors that cannot be read, counts and states that do not go together."""
    found = []
    for tensor in tensors_of(loop):
        try:
            tensor.detach().clone().tolist()
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    for thing in loop.things:
        if isinstance(thing, optim.Optimizer):
            counts = {float(s["step"]) for s in thing.state.values() if "step" in s}
            if len(counts) > 1:
                found.append(f"counts {sorted(counts)}")
    return found


def at_random(name: str, times: int, seed: int) -> tuple[int, list[str]]:
    """Interrupt a loop at random moments by a timer; how many interrupts fell into it, and what they broke."""
    loop, draw = LOOPS[name](), random.Random(seed)
    broken: list[str] = []
    hits = 0
    inside = False

    def handler(number: int, frame: Any) -> None:
        if inside and not is_aside(frame):
            raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(8):
            loop.body()
        executor.wait()
        started = time.perf_counter()
        for _ in range(20):
            loop.body()
        length = (time.perf_counter() - started) / 20
        while hits < times:
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 2 * length))
                inside = True
                for _ in range(4):
                    loop.body()
                inside = False
            except Stop:
                inside = False
                hits += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            if modes.state.mode:
                broken.append(f"mode {modes.state.mode}")
                modes.state.mode = 0
            if hits % 16 == 0 and (now := lost(loop)):
                broken += now
                loop = LOOPS[name]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return hits, broken + lost(loop)


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    failed = False
    for name in LOOPS:
        hits, broken = at_random(name, times, 0)
        failed = failed or bool(broken)
        print(
            f"{name}: {hits} interrupts, {len(broken)} broke something", *broken[:3], sep="\n  ", flush=True
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
