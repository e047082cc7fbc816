"""Segments: calls of programs that wait for each other, and then run as one program, each kept as it is by itself.

A call of small arrays is noted down: its program, its arguments (arrays, or results of earlier calls), and what it will give, as
`Pending`s. Whoever needs a value has the segment run (`Segment.finish`). Its structure, which programs on what, is found in a tree
as the calls come (`Node`): so a call's results are known by their forms at once, and a segment that came before has its program
at hand. The programs inside it are not fused with each other (`apart`), so that its results have the bits that they have by
themselves, and nobody can tell whether a call waited.

A new structure runs by its calls' own programs, one after the other; those that are missing are compiled beside each other by
threads. That is what waiting gains in a first start. Once a structure has come `HOT` times, whose calls gain something, a
thread compiles one program for the whole segment, as far as there is time for compiling (`Budget`), and that answers from then on.
In a training loop that nobody looks into, a whole step is a segment (`Patience`).
Where neither is gained, calls wait no more: those that begin such segments (`Node.ended`), and then all, for longer each time
(`rest`), until a program has to be compiled (`wake`). A process whose programs are all on disk begins so. Whether segments that run as one
program gain time is told by the clock (`Trial`).

Calls with large arrays run longer than a call takes, and Python goes on beside them: they wait only where their program is still to
be compiled. Calls wait on the first device, as long as one thread runs operators; what is long and what is gained there, `Pace` says.
`XTENSOR_SEGMENTS=0` in the environment or `enable(False)` has every call run at once. With `XTENSOR_SEGMENTS=hot` every
structure has its program at once, for tests.
"""

from __future__ import annotations

from ..pending import workers
from .calls import (
    Known,
    Segment,
    allowed,
    close,
    enable,
    enabled,
    finish,
    known,
    offer,
    patience,
    paused,
    stats,
    unmade,
    waiting,
)
from .structures import READING, WRITING, state, watchers
from .waiters import SINGLE, describe, prompt, waiter, waiter_of_tuples

__all__ = [
    "READING",
    "SINGLE",
    "WRITING",
    "Known",
    "Segment",
    "close",
    "describe",
    "allowed",
    "enable",
    "enabled",
    "finish",
    "known",
    "offer",
    "patience",
    "paused",
    "prompt",
    "state",
    "stats",
    "waiter",
    "waiter_of_tuples",
    "unmade",
    "waiting",
    "watchers",
    "workers",
]
