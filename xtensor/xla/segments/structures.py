"""What is known of segments: signatures of calls, and the tree of the structures that came."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from ..cache import bounded
from ..jax_internals import programs as inside
from ..pending import Work
from .trial import DUE, Trial

__all__ = ["Node", "Signature", "Tree", "counts", "ended", "longest", "pace", "state", "watchers"]

HELD_BYTES = 1 << 28
"""Bytes of the arguments and results of calls that wait for their programs: then they run."""
MOST, MOST_PATIENT = 64, 160
"""Calls of a segment, and of one of patient calls: then it runs."""
STRANGE = 64
"""Segments of new structures, one after the other, after which no call waits for a while."""
UNPAID = 64
"""Segments with one first call, one after the other, that gained nothing, after which that call runs at once for a while."""
PASSED = 512
"""Two for each such segment or call, one for a segment that may gain later, and two less for one that gains: past so many no call waits
for a while, or until one has to be compiled."""
WORK, LENGTH, LOOP = "its work", "its length", "a loop's turn"
"""What ends segments by themselves."""
READING, WRITING = -0.5, -1.5
"""What calls gain that read views, and those that write: on a CPU both were slower within a larger program."""
HOT = 32
"""Times that a structure comes before it has a program of its own, where there is time for compiling it."""
IDLE = 4096
"""Calls that do not wait then; of all together twice as many, and each time more, up to `LONGEST`."""
LONGEST = 1 << 20
NODES = 1 << 14
"""Nodes of the tree; then it is begun anew."""
Array: Any = None if inside is None else inside.Array


class Pace(NamedTuple):
    """About how fast the device of the calls that wait is, in microseconds.

    each: that a call takes on it at least. byte: of memory read or written. product: a multiplication in a product. long: of work after
    which a segment runs, so that the device has something to do; a call of more does not wait. share: of the time that goes by, which
    may go into compiling programs for segments. gain: what the calls of a segment have to gain, all together, so that they run faster as
    one program. reads: whether calls that read views or write to them gain as others do.
    """

    each: float
    byte: float
    product: float
    long: float
    patient: float
    share: float
    gain: float
    reads: bool


CPU = Pace(each=0.0, byte=1e-4, product=2e-5, long=50.0, patient=3000.0, share=0.03, gain=8.0, reads=False)
ACCELERATOR = Pace(
    each=3.0, byte=5e-7, product=5e-8, long=300.0, patient=300.0, share=0.3, gain=2.0, reads=True
)


@bounded(1)
def pace() -> Pace:
    """That of the first device. A call takes an accelerator some 40 us to launch, most of them more than to compute."""
    return CPU if jax.devices()[0].platform == "cpu" else ACCELERATOR


def longest() -> float:
    """The work after which a segment runs."""
    return pace().patient if state.patient else pace().long


class Signature:
    """What is known of a program's calls with arguments of these forms.

    avals: the forms of the results. form: as the store has it. held: of each argument its form, and whether it is tied to its
    device. work: about how many microseconds a call takes. size: the bytes of what it takes and gives. ready: whether the program
    itself is compiled, or on disk. made: what compiles it, once somebody asked for that. alone: whether what answers them has other
    bits than the program itself, so that they are made within no other. passing: whether calls do not wait since something else answers the
    first ones.
    """

    __slots__ = ("alone", "avals", "form", "held", "made", "passing", "ready", "size", "work")

    def __init__(
        self, avals: Sequence[Any], form: Any, held: Any, products: int, alone: bool = False
    ) -> None:
        self.alone = alone
        self.avals = avals
        self.form = form
        self.held = held
        self.ready = self.passing = False
        self.made: Work | None = None
        forms = [*[h[0] for h in held if h is not None], *avals]
        self.size = sum([a.size * a.dtype.itemsize for a in forms])
        self.work = pace().each + self.size * pace().byte + products * pace().product

    def is_long(self) -> bool:
        """Whether a call waits for nothing but its program: it takes longer than Python."""
        return self.alone or self.work > longest()


class Node:
    """A structure: the calls that lead to it from the root of the tree, the last of which is its own.

    sources: of each argument of that call None, a result's number in the segment, from -1 downwards, or 0 for an array from outside.
    first: the number of the call's first result. unmade: whether one of their programs was still to be compiled. gain: of all these
    calls. next: the structures with a call more, by what is asked of that call.
    """

    __slots__ = (
        "aliases",
        "aval",
        "avals",
        "called",
        "epoch",
        "committed",
        "ends",
        "first",
        "gain",
        "next",
        "parent",
        "signature",
        "size",
        "sources",
        "structure",
        "unmade",
        "unpaid",
        "waits",
        "work",
    )

    def __init__(self, parent: Node | None, called: Any, signature: Any, sources: tuple[Any, ...]) -> None:
        self.parent = parent
        self.called: Any = called
        self.signature: Signature = signature
        self.sources = sources
        self.first = -1 if parent is None else parent.first - len(parent.avals)
        # Behind a call whose program is being compiled all do that may: what comes next is found out meanwhile.
        self.waits = (
            parent is not None
            and bool(signature.avals)
            and (parent.unmade or not (signature.is_long() and called.is_ready(signature)))
        )
        self.avals: Sequence[Any] = signature.avals if self.waits else ()
        self.aval = self.avals[0] if self.avals else None
        # Why a segment that comes to here is to run; empty where it is not.
        self.size = self.work = 0.0
        if parent is not None and self.waits:
            self.size = parent.size + signature.size
            self.work = parent.work + signature.work
        self.unmade = parent is not None and self.waits and (parent.unmade or not called.is_ready(signature))
        full = self.waits and ((self.work > longest() and not self.unmade) or self.size > HELD_BYTES)
        self.ends = WORK if full else ""
        own = (
            0.0 if not self.waits else max(called.gain, 1.0) if pace().reads or state.patient else called.gain
        )
        self.gain = 0.0 if parent is None else parent.gain + own
        self.committed = parent is not None and called.commits(signature)
        self.next: dict[Any, Node] = {}
        self.aliases = 0
        # How many segments that begin here gained nothing, the last so many; below zero how often this call is still to run at once.
        self.unpaid = 0
        # When that was: of `state.epoch`.
        self.epoch = 0
        self.structure: Any = None

    def ended(self, paid: bool | None) -> None:
        """Count a segment that began here. Did none gain anything, by one program for many calls or by compiling beside others, then
        waiting costs more than it gains. paid: None where it may gain later.
        """
        if paid:
            self.unpaid = 0
        if paid is not False:
            return
        self.unpaid += 1
        if self.unpaid >= UNPAID and self.called.is_ready(self.signature):
            self.unpaid = -IDLE
            self.waits = False
            self.epoch = state.epoch


class Tree:
    """All structures that came: the root, how many nodes there are, and forms whose addresses stand in keys."""

    def __init__(self) -> None:
        self.root = Node(None, None, None, ())
        self.count = 0
        self.held: dict[int, Any] = {}


class State:
    """The segment that calls join, None where they do not wait; closed: one that waits still, and that none joins; the tree; how many blocks let none wait.

    strange: segments of new structures that ran last. start: of a loop whose turns are segments, the numbers of two calls in
    a row, of which the second begins one; turn: how many it has; seeking: calls that do not wait until then, at most; last:
    the number of the call before. passed: what gained nothing of late (`PASSED`). idle: calls that do not wait, from now on,
    unless a program has to be compiled; rest: how many they were last. epoch: how often calls began to wait again. hot: times
    that a structure runs by its calls' own programs. background: whether its program is then compiled by a thread. making:
    programs for segments that are being made. trial: of whether waiting pays, while it goes on. ran: segments that ran as one
    program since the last one; due: how many are to before the next; away: calls that do not wait after one in which it did
    not. first: whether no program's calls wait yet. patient: whether calls wait for a whole step; most: calls of a segment; other: the tree for when it is
    otherwise; reads: looks at values since an optimizer's step.
    """

    def __init__(self) -> None:
        self.tree = Tree()
        self.other = Tree()
        self.patient = False
        self.most = MOST
        self.reads = 0
        self.segment: Any = None
        self.closed: Any = None
        self.on = inside is not None and told() not in ("0", "off", "no", "false")
        self.blocks = self.strange = self.passed = self.making = self.epoch = 0
        self.background = told() != "hot"
        self.start: tuple[int, int] | None = None
        self.turn = self.seeking = self.last = 0
        self.trial: Trial | None = None
        self.ran = 0
        self.due = DUE
        self.away = 4 * IDLE
        self.hot = HOT if self.background else 1
        # A program whose programs are all on disk gains nothing before its loops have run for a while; on an accelerator (`wake_first`) it does.
        self.idle = 4 * IDLE if self.background else 0
        self.first = True
        self.rest = IDLE


def told() -> str:
    """What the environment says."""
    return os.environ.get("XTENSOR_SEGMENTS", "").lower()


COUNTED = ("whole", "by call", "calls", "compiled")
counts: dict[str, int] = collections.Counter()
ended: dict[str, int] = collections.Counter()
state = State()
watchers: list[Callable[[Sequence[str], bool, str], None]] = []
"""Told of every segment that runs: the programs that it calls, whether as one program, and what ended it."""
