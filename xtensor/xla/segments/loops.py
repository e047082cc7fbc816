"""Loops whose turns nobody reads: a turn is found in what segments had, and segments begin and end with turns."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from .structures import LOOP, state

__all__ = ["ENOUGH", "align", "seek"]

ENOUGH = 16
"""Calls of a segment that are made sooner together; more cost only time for compiling."""
PATIENCE = 4096
"""Calls in which a loop is looked for again."""


def align(calls: list[Any], before: Sequence[Any]) -> None:
    """Have segments end with a loop's turns where their length or work ends them: else each begins elsewhere in the loop, and none comes again.

    before: the calls that came just before these, where that ended them too.
    """
    made = [(node.called.number, id(node.signature)) for node, _, _ in calls[1:]]
    following = state.segment
    if following is not None and len(following.calls) == 1:
        following.before = made
    turn = state.turn
    if not (turn and state.start and made[0][0] == state.start[1] and made[turn:] == made[:-turn]):
        turn = period([*before, *made])
        if not before or turn > len(made):
            return
        numbers = [number for number, _ in made[:turn]]
        pairs = collections.Counter(zip([numbers[-1], *numbers[:-1]], numbers, strict=True))
        # Wherever in the loop this segment began, it is the same pair.
        state.turn = turn
        state.start = min([pair for pair, count in pairs.items() if count == 1], default=None)
        if state.start not in (None, (numbers[-1], numbers[0])):
            seek()
            return
    calls[turn * min(-(-ENOUGH // turn), len(made) // turn)][0].ends = LOOP


def period(found: Sequence[Any]) -> int:
    """After how many elements a sequence repeats; its length where it does not."""
    # As Knuth, Morris and Pratt: of each part from the beginning, how much of that is its end too.
    ends, at = [0], 0
    for one in found[1:]:
        while at and found[at] != one:
            at = ends[at - 1]
        at += found[at] == one
        ends.append(at)
    return len(found) - ends[-1]


def seek() -> None:
    """Let calls wait from where a loop's turn begins, where one was found."""
    if state.start is not None and state.segment is not None:
        state.idle, state.seeking, state.last, state.segment = 1, PATIENCE, 0, None
