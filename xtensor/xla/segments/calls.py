"""Calls that wait: the segment that notes them down, and when calls wait at all."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax

from ..cache import clear_all
from ..jax_internals import programs as inside
from ..jax_internals import started
from ..pending import Pending
from ..store import made_anew
from ..threads import OWN
from ..x64 import choose, chosen
from .loops import ENOUGH, align, seek
from .running import by_call, run, sharding
from .steps import Patience
from .structures import (
    COUNTED,
    IDLE,
    LENGTH,
    LONGEST,
    MOST,
    MOST_PATIENT,
    PASSED,
    WORK,
    Node,
    counts,
    ended,
    pace,
    state,
)
from .trial import Trial

__all__ = [
    "Known",
    "Segment",
    "begin",
    "close",
    "allowed",
    "enable",
    "enabled",
    "finish",
    "known",
    "offer",
    "patience",
    "paused",
    "stats",
    "unmade",
]

OUTSIDE = chosen()
VALUE = "a value"


class Segment:
    """Calls that wait: `(node, arguments, results)` of each, the root's first. late: whether it was run before. before: as `align` has it.
    closed: what ended it, if it waits longer; after: what is done then, once it has run. offered: by the identity of an array that only the
    calls see, where a storage held it before, the number of the result that it holds now.
    """

    __slots__ = ("after", "before", "calls", "closed", "late", "lock", "offered")

    def __init__(self) -> None:
        self.calls: list[Any] = [(state.tree.root, (), ())]
        self.before: Sequence[Any] = ()
        self.late = False
        self.closed = ""
        self.after: Callable[[], None] | None = None
        self.offered: dict[int, int] = {}
        self.lock = threading.RLock()

    @property
    def sharding(self) -> Any:
        """Where the results will lie."""
        return sharding()

    def is_committed(self, at: int) -> bool:
        """Whether the result of a number will be tied to its device."""
        node: Node = self.calls[-1][0]
        while node.first < at:
            node = node.parent  # type: ignore[assignment]
        return node.committed

    def finish(self, why: str = VALUE) -> None:
        """Have all results. What is interrupted or fails is done again when it is asked for. why: as `stats` counts it."""
        with self.lock:
            if state.segment is self:
                begin()
            elif state.closed is self:
                state.closed = None
                why = self.closed
            calls = self.calls[:]
            if len(calls) == 1:
                return
            # As outside of xtensor's own calls: a program's signature is another where 64-bit types are on.
            before = chosen()
            told: tuple[Any, ...] = (calls,) if self.late else (calls, why, self.offered)
            how: Callable[..., bool | None] = by_call if self.late else run
            if not self.late:
                ended[why] += 1
            self.late = True
            try:
                choose(OUTSIDE)
                if inside is None or inside.is_clean():
                    paid = how(*told)
                else:  # JAX traces something else here, in what it keeps for this thread
                    paid = elsewhere(how, *told)
            finally:
                choose(before)
            last: Node = calls[-1][0]
            full = why in (LENGTH, WORK) and len(calls) > ENOUGH
            if full and last.structure is not None and not last.structure.whole:
                align(calls, self.before)
            # What another thread noted down meanwhile runs when it is asked for.
            del self.calls[1 : len(calls)]
            self.offered = {}
            if self.after is not None:
                self.after()
                self.after = None
            if not state.patient:
                first: Node = calls[1][0]
                paid = paid if paid is None or last.gain >= pace().gain else False
                first.ended(paid)
                rest(1 if paid is None else -2 if paid else 2)
                if state.background:
                    try_out(calls, last)
                return
        # Without the lock: it may have another segment run.
        structure = last.structure
        whole = structure is not None and structure.whole
        # One for other results may be compiled: they come now and then.
        first_one = structure is not None and structure.waits() and not structure.programs
        patience.ran(len(calls) - 1, whole, first_one, why)

    _run = finish


def try_out(calls: list[Any], last: Node) -> None:
    """Count a segment's calls in a trial, or begin one where segments run as one program."""
    trial = state.trial
    if trial is None:
        if last.structure is not None and last.structure.whole:
            state.ran += 1
            if state.ran >= state.due and not state.making:
                state.trial = Trial(calls[1][0].called.number, switch, judged)
        return
    waits = trial.waits
    for node, _, _ in calls[1:]:
        trial.seen(node.called.number)
        if state.trial is not trial or trial.waits is not waits:
            return


def switch(waits: bool) -> None:
    """Have calls wait, or not, in a trial."""
    state.idle = 0 if waits else 1
    state.seeking = 0
    begin()
    if waits:
        seek()


def judged(pays: bool | None) -> None:
    """End a trial. pays: whether calls shall wait; None where it says nothing."""
    state.trial, state.ran, state.seeking = None, 0, 0
    if pays is False:
        state.idle, state.segment = state.away, None
        state.away = min(4 * state.away, LONGEST)
        return
    if pays:
        state.due *= 8
        state.passed, state.away = 0, 4 * IDLE
    state.idle = 0
    begin()
    seek()


def be_patient(on: bool) -> None:
    """Have calls wait for a whole step, or no longer. Structures are other ones then: what a segment ends with, and which calls wait."""
    finish()
    state.patient = on
    state.most = MOST_PATIENT if on else MOST
    state.tree, state.other = state.other, state.tree
    state.trial = state.start = None
    state.passed = state.idle = state.seeking = 0
    begin()


patience = Patience(be_patient)


def elsewhere(how: Callable[..., bool | None], *told: Any) -> bool | None:
    """Have calls made by a thread of their own."""
    failed: list[BaseException] = []
    found: list[bool | None] = []

    def work() -> None:
        try:
            found.append(how(*told))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name=f"{OWN}segments")
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()
    return found.pop()


def begin() -> None:
    """Let calls wait, where they may."""
    state.segment = Segment() if state.on and not (state.blocks or state.idle) else None


def pass_by(number: int) -> bool:
    """Count a call that does not wait since structures did not come again, or a trial is on, or a loop's turn has not begun; False where this
    one begins it.
    """
    if state.trial is not None:
        state.trial.seen(number)
    elif not state.seeking:
        state.idle -= 1
        if not state.idle:
            state.epoch += 1
            begin()
            seek()
        return True
    if state.seeking:
        if (state.last, number) == state.start:
            state.idle = state.seeking = 0
            begin()
            return state.segment is None
        state.last = number
        state.seeking -= 1
        if not state.seeking:
            state.start, state.idle = None, 0
            begin()
    return True


def pass_first(node: Node) -> None:
    """Count a call that does not wait since segments which begin with it gained nothing."""
    node.unpaid = 0 if node.epoch != state.epoch else node.unpaid + 1
    node.waits = not node.unpaid
    rest(2)


def rest(much: int) -> None:
    """Count what gained nothing, less what did. Past some no call waits, each time for longer."""
    state.passed += much
    if state.passed <= 0:
        state.passed, state.rest = 0, IDLE
    elif state.passed >= PASSED and state.background:
        state.rest = min(2 * state.rest, LONGEST)
        state.passed, state.idle, state.seeking, state.segment = 0, state.rest, 0, None


def wake() -> None:
    """A program was compiled: what comes next may have to be compiled too, which calls that wait do beside each other."""
    if state.idle and not state.making:
        state.trial = None
        state.idle = state.seeking = 0
        state.epoch += 1
        begin()


made_anew.append(wake)


def wake_first() -> None:
    """Let calls wait from the beginning where each takes long to launch."""
    state.first = False
    if pace().reads and state.background:
        state.idle = 0
        begin()


def close(why: str, after: Callable[[], None]) -> None:
    """Let what waits wait until one of its results is needed, though no call joins it any more: what nobody can see by then is not given.

    after: what is done once it has run. At most one such segment waits.
    """
    before, segment = state.closed, state.segment
    if segment is None or len(segment.calls) == 1:
        after()
        return
    segment.closed, segment.after = why, after
    state.closed = segment
    begin()
    if before is not None:
        before.finish()


def offer(identities: Iterable[int], results: Sequence[Any]) -> None:
    """Say which results of the last call stand now where arrays of these identities were held, by storages that share them with nobody."""
    segment = state.segment
    if segment is not None and type(results[0]) is Pending and results[0]._call is segment:
        segment.offered.update(zip(identities, map(at_of, results)))


at_of: Callable[[Any], int] = Pending.at.__get__  # type: ignore[attr-defined]


def finish(why: str = "a pause") -> None:
    """Run what waits."""
    closed = state.closed
    if closed is not None:
        closed.finish()
    segment = state.segment
    if segment is not None and len(segment.calls) > 1:
        segment.finish(why)


def finish_before_fork() -> None:
    """Run what waits, and wait for what runs: a process that is forked has none of XLA's threads, which would end it."""
    finish()
    if started is None or not started():  # asking for arrays would start XLA, which a child cannot have
        return
    for array in jax.live_arrays():
        with contextlib.suppress(RuntimeError):  # what failed, or was given up meanwhile
            array.block_until_ready()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=finish_before_fork)


def unmade() -> bool:
    """Whether some call waits whose program is being compiled."""
    segment = state.segment
    return segment is not None and segment.calls[-1][0].unmade


def waiting() -> bool:
    """Whether some call waits."""
    segment = state.segment
    return segment is not None and len(segment.calls) > 1


def enable(on: bool) -> None:
    """Whether calls may wait from now on."""
    finish()
    state.trial = None
    state.idle = state.passed = state.seeking = 0
    state.start = None
    if state.on is not (on and inside is not None):
        state.on = not state.on
        clear_all()  # functions hold programs whose calls wait, or those that do not
    begin()


def enabled() -> bool:
    """Whether calls may wait."""
    return state.segment is not None


def allowed() -> bool:
    """Whether calls may wait here, though at the time none does since that would not pay."""
    return state.on and not state.blocks


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within the block no call waits; what waited before has run."""
    finish()
    state.blocks += 1
    state.segment = None
    try:
        yield
    finally:
        state.blocks -= 1
        begin()


def stats() -> dict[str, Any]:
    """Segments that ran as one program, and call by call; the calls of those that ran as one; programs compiled for segments; structures
    known; and how many were ended by what: a value that was needed, their length or work, a pause.
    """
    return {
        **dict.fromkeys(COUNTED, 0),
        **counts,
        "structures": state.tree.count + state.other.count,
        "ended by": dict(ended),
    }


class Known(NamedTuple):
    """A structure of segments that ran: the programs of its calls; how often they ran, as one program and one by one; what ended them,
    and how often; how many programs were compiled for it.
    """

    names: tuple[str, ...]
    whole: int
    by_call: int
    ended: dict[str, int]
    compiled: int

    def __str__(self) -> str:
        return (
            f"{len(self.names)} calls ({', '.join(self.names)}): ran {self.whole} times as one program and {self.by_call} one by one; "
            f"ended by {', '.join([f'{why} ({n})' for why, n in self.ended.items()])}; programs compiled: {self.compiled}"
        )


def known(programs: Iterable[Any]) -> list[Known]:
    """The structures in which calls of some programs ran, those that ran most often first."""
    found: list[Known] = []
    asked = set(map(id, programs))
    nodes = [state.tree.root, state.other.root]
    while nodes:
        node = nodes.pop()
        nodes += {id(n): n for n in list(node.next.values())}.values()
        structure = node.structure
        if structure is not None and any(id(n.called.program) in asked for n in structure.nodes):
            ran = sum(structure.ended.values())
            found.append(
                Known(
                    tuple(structure.names()),
                    structure.runs,
                    ran - structure.runs,
                    dict(structure.ended),
                    len(structure.programs),
                )
            )
    return sorted(found, key=lambda k: -(k.whole + k.by_call))


begin()
