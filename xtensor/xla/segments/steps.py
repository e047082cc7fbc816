"""When calls wait for a whole training step, though the device would have had something to do long before.

A loop that does not look at values is a step behind the device or ahead of it, whichever is slower, and it is the processors that both share
which a program for the whole step spares: that of a small transformer takes 0.7 of its calls' time. A loop that reads its loss each turn
waits for the device, and needs it to begin early. What tells them apart is counted, not timed: looks at values from one optimizer's step to
the next.
"""

from __future__ import annotations

from collections.abc import Callable

from .running import budget
from .structures import LENGTH, LOOP, pace, state

__all__ = ["Patience"]

QUIET = 8
"""Steps without a look at a value after which calls are patient; one with a look takes back as many."""
CALLS = 32
"""Of a step, about, whose program has to be paid for by then, as long as nobody knows."""
UNSERVED = 96
"""Segments in a row without a program of their own, of patient calls: then they did not come again."""
WARIER = 8
"""How many times as many quiet steps it then takes."""


class Patience:
    """Whether calls are patient (`state.patient`), by what comes between optimizers' steps.

    calls: of a step, at most. switch: has calls be patient, or not. quiet: steps without a look at a value, less what those with one take
    back. needed: how many there are to be. unserved: segments in a row that ran call by call. paid: whether a step's program was compiled.
    """

    __slots__ = ("calls", "needed", "paid", "quiet", "switch", "unserved")

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self.switch = switch
        self.quiet = self.unserved = 0
        self.calls = CALLS
        self.needed = QUIET
        self.paid = False

    def stepped(self) -> None:
        """Count an optimizer's step."""
        if state.reads:
            state.reads = 0
            self.quiet = max(self.quiet - QUIET, -QUIET)
            if state.patient and self.quiet < 0:
                self.switch(False)
        elif self.quiet < 2 * self.needed:
            self.quiet += 1
        if (
            self.quiet >= self.needed
            and not (state.patient or state.making or state.blocks)
            and state.on
            and state.background
            and pace().patient > pace().long
            and (self.paid or budget.allows(self.calls, True))
        ):
            self.unserved = 0
            self.switch(True)

    def ran(self, calls: int, whole: bool, compiling: bool, why: str) -> None:
        """Count a segment of so many patient calls. compiling: whether its program is being compiled, for which nobody waits. why: what ended
        it.
        """
        if state.reads > QUIET:  # something else than steps
            state.reads = 0
            self.leave(-QUIET)
        elif why in (LENGTH, LOOP):  # the steps are longer
            self.give_up()
        elif whole:
            self.unserved = 0
        elif compiling:
            self.paid = True
            self.leave(0)
        else:
            self.unserved += 1
            self.calls = max(self.calls, calls)
            if self.unserved > UNSERVED:
                if budget.allows(self.calls, True):
                    self.give_up()
                else:  # not before its program can be paid for
                    self.leave(0)

    def leave(self, quiet: int) -> None:
        """Have calls be patient no longer, before steps were quiet as often again."""
        self.quiet = quiet
        self.switch(False)

    def give_up(self) -> None:
        """As `leave`, for longer each time."""
        self.needed *= WARIER
        self.paid = False
        self.leave(0)
