"""Whether it pays that calls wait, by the clock: the same loop with segments and without, in turns.

Nothing but time tells: a segment saves calls, and may lose the device's work beside Python's. What is timed are calls of one program that the
loop makes again and again (`Trial.number`), in windows of as many: in one half of them calls wait, in the other they do not. Values are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

__all__ = ["DUE", "Trial"]

DUE = 64
"""Segments that run as one program before the first trial; before each that follows eight times as many."""
SECONDS = 0.02
"""Of a window, about."""
LEAST = 8
"""Calls of the program in a window, at least."""
TURNS = 10
"""Windows of a trial."""
LONG = 10.0
"""How many times as long a window may be: else the program did something else meanwhile, or its calls are so long that nothing is gained."""
CLEAR = 0.8
"""The share of the other windows' time below which no more are needed."""
PATIENCE = 1 << 14
"""Calls of other programs in a window, at most, for each of this one."""
MARGIN = 1.02
"""How many times as long waiting may take: it leaves the processors more room."""


class Trial:
    """A trial that goes on, with calls of the program of a number.

    waits: whether calls wait in this window. times: of the windows that are over; one before them finds out how many calls a window has (`count`).
    switch: has calls wait, or not. ended: told whether they shall, None where the trial says nothing.
    """

    __slots__ = ("began", "count", "ended", "left", "number", "others", "switch", "times", "waits")

    def __init__(
        self, number: int, switch: Callable[[bool], None], ended: Callable[[bool | None], None]
    ) -> None:
        self.number = number
        self.switch = switch
        self.ended = ended
        self.times: list[float] = []
        self.waits = True
        self.count = self.left = self.others = 0
        self.began = perf_counter()

    def seen(self, number: int) -> None:
        """Count a call of the program of this number."""
        if number != self.number:
            self.others += 1
            if self.others > PATIENCE * (self.count or LEAST):
                self.ended(None)
            return
        self.left += 1
        if self.left < (self.count or LEAST):
            return
        took = perf_counter() - self.began
        if took > LONG * SECONDS:
            self.ended(None)
            return
        if self.count:
            self.times.append(took)
            if len(self.times) == TURNS or self.is_clear():
                self.ended(self.pays())
                return
            self.waits = not self.waits
            self.switch(self.waits)
        elif took < SECONDS:
            return
        else:
            self.count = self.left
        self.left = self.others = 0
        self.began = perf_counter()

    def is_clear(self) -> bool:
        """Whether calls that wait are so much quicker that two pairs of windows tell."""
        waiting, others = self.times[::2], self.times[1::2]
        return len(others) == len(waiting) > 1 and max(waiting) < CLEAR * min(others)

    def pays(self) -> bool:
        """Whether the windows in which calls waited were no longer than the others."""
        return median(self.times[::2]) <= MARGIN * median(self.times[1::2])
