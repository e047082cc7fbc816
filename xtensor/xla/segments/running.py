"""How a segment runs: by its calls' own programs, or by one program that makes all of them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from itertools import chain, starmap
from operator import is_
from time import perf_counter
from typing import Any, NamedTuple

import jax

from ..cache import bounded
from ..pending import Pending, Work, settled, workers
from ..sizes.spans import is_uncut
from ..x64 import is_ready, jit, prepare
from .apart import apart
from .structures import IDLE, STRANGE, WORK, Array, Node, counts, longest, pace, state, watchers

__all__ = ["Structure", "by_call", "form_like", "grouped", "pended", "run", "sharding"]


def pended(segment: Any, aval: Any, at: int) -> Pending:
    """A result of a call that waits."""
    made = object.__new__(Pending)
    made._call, made._value, made.aval, made.at = segment, None, aval, at
    return made


def grouped(lengths: tuple[int, ...] | None, flat: Sequence[Any]) -> Any:
    """Arguments that were laid flat, with their tuples."""
    if lengths is None:
        return flat
    rest = iter(flat)
    return [next(rest) if n < 0 else tuple([next(rest) for _ in range(n)]) for n in lengths]


@bounded(1)
def sharding() -> Any:
    """The one device, as arrays say it."""
    return jax.sharding.SingleDeviceSharding(jax.devices()[0])


def form_like(held: Any) -> Any:
    """What stands for an argument of a form when a program is compiled."""
    if held is None:
        return None
    form, committed = held
    place = sharding() if committed else None
    return jax.ShapeDtypeStruct(form.shape, form.dtype, weak_type=form.weak_type, sharding=place)


class Step:
    """A call within a segment's program: the program, and where its arguments come from."""

    __slots__ = ("lengths", "program", "sources")
    _xt_identity = ("program", "sources", "lengths")

    def __init__(self, called: Any, sources: tuple[Any, ...]) -> None:
        self.program = called.program
        self.lengths = called.lengths
        self.sources = sources


class Budget:
    """The seconds that may go into compiling programs for segments: some, and a share of the time that goes by.

    A call within such a program is 1 to 5 us faster each time, and its part of compiling it takes 15 ms, which pays after thousands
    of times: so a program of many structures does not compile them all, and one that runs for long has them in the end.
    There are few whole steps (`Patience`), which may have more of it.
    """

    START, CALL, STEP = 0.2, 0.015, 0.1

    def __init__(self) -> None:
        self.began = perf_counter()
        self.spent = 0.0

    def asked(self, calls: int) -> float | None:
        """The seconds that so many calls take, about, which are taken as spent; None where they are too many."""
        if not self.allows(calls, state.patient):
            return None
        cost = self.CALL * calls
        self.spent += cost
        return cost

    def allows(self, calls: int, patient: bool) -> bool:
        """Whether there are these seconds. patient: for a whole step."""
        share = self.STEP if patient else pace().share
        return self.spent + self.CALL * calls <= self.START + share * (perf_counter() - self.began)


budget = Budget()


class Made(NamedTuple):
    """A program for a segment: the results that it gives, in order, and the buffers that it takes over for the first of them.

    taken: where those stand among its arguments; into: the numbers of the results that are written there, as `Pending.at` has them; seen: how many
    references each of these arrays has that nobody else sees.
    """

    given: tuple[int, ...]
    program: Any
    taken: tuple[int, ...]
    into: tuple[int, ...]
    seen: tuple[int, ...]

    def may_take(self, outside: list[Any], offered: dict[int, int]) -> bool:
        """Whether all of these buffers are nobody else's any more."""
        arrays = [outside[i] for i in self.taken]
        return (
            tuple(map(offered.get, map(id, arrays))) == self.into
            and tuple(map(references, arrays)) == self.seen
        )


TAKEN = 1 << 12
"""Bytes from which on a buffer is taken over: another is had as soon as that one is given up."""
REFUSED = 4
"""Segments in a row of which somebody else saw a buffer, after which their program takes none."""


class Structure:
    """How the segments that end with a node run.

    nodes: of all their calls. outside: where the arguments from outside stand: of which call, and at which place. firsts: of those, the
    places of arrays that no earlier place has, which alone a program is given; repeats and origins: the other places, and where each one's
    array stands first; None until a program is made. used: how often a
    result is an argument within. alone: whether some call is made within no other program. programs: by the results that they give.
    answers: those that give what is wanted, and maybe more. refused: how often in a
    row somebody saw a buffer that a program takes. paid: whether waiting gained something when no program answered last, None
    where it may later. whole: whether one did last. came: how often none did. runs: how often one did. ended: how often what ended them.
    """

    def __init__(self, leaf: Node) -> None:
        nodes: list[Node] = []
        node = leaf
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        nodes.reverse()
        self.nodes = nodes
        self.outside = [(i, j) for i, n in enumerate(nodes, 1) for j, s in enumerate(n.sources) if s == 0]
        self.single = all(n.called.single for n in nodes)
        self.same: list[int] | None = None
        self.firsts: list[tuple[int, int]] = []
        self.repeats: list[tuple[int, int]] = []
        self.origins: list[int] = []
        self.alone = any(n.signature.alone for n in nodes)
        self.used = [0] * sum(len(n.avals) for n in nodes)
        for node in nodes:
            for source in node.sources:
                if source:
                    self.used[-1 - source] += 1
        self.programs: dict[tuple[int, ...], Made] = {}
        self.refused = 0
        self.paid: bool | None = False
        self.whole = False
        # The results that a program would give which was not to be had yet, the program, its arguments, and whether it is on disk.
        self.asked: tuple[tuple[int, ...], Made, list[Any], bool] | None = None
        self.answers: dict[tuple[int, ...], Made] = {}
        self.making: set[tuple[int, ...]] = set()
        self.came = self.runs = 0
        self.ended: dict[str, int] = {}
        self.seen: list[int] = []
        self.last: tuple[int, ...] = ()

    def program(self, wanted: tuple[int, ...], calls: list[Any], offered: dict[int, int]) -> Made | None:
        """The program that gives these results, or None where the calls run by themselves."""
        found = self.answers.get(wanted)
        if found is not None:
            return found
        for given, made in self.programs.items():
            if set(given) >= set(wanted):
                self.answers[wanted] = made
                return made
        self.came += 1
        if self.came > 1:
            state.strange = 0
        elif len(self.nodes) > 1 and not state.patient:
            state.strange += 1
            if state.strange >= STRANGE:
                # From then on sooner.
                state.strange, state.idle, state.segment = STRANGE * 7 // 8, IDLE, None
        new = {(n.called.number, n.signature): n for n in self.nodes if not n.called.is_ready(n.signature)}
        compile_all(list(new.values()))
        pays = (
            not self.alone
            and len(self.nodes) > 1
            and (self.nodes[-1].gain >= pace().gain or not state.background)
        )
        if not (pays and wanted):
            self.paid = bool(new)
            return None
        self.paid = bool(new) or self.waits() or None
        if self.came < state.hot or wanted in self.making:
            return None
        if self.asked is None or self.asked[0] != wanted:
            self.tell_apart(calls)
            made, examples = self.made(wanted, calls, offered), self.examples()
            self.asked = wanted, made, examples, is_ready(made.program, *examples)
        _, made, examples, ready = self.asked
        cost = 0.0 if ready or not state.background else budget.asked(len(self.nodes))
        if cost is None:
            self.paid = bool(new)
            return None
        self.asked = None
        self.making.add(wanted)
        if state.background:
            self.paid = True
            programs = self.programs
            workers.submit(Work(lambda: self.make(wanted, made, examples, cost, programs)))
            return None
        self.make(wanted, made, examples, cost, self.programs)
        return self.programs[wanted]

    def waits(self) -> bool:
        """Whether a program is being compiled."""
        return len(self.making) > len(self.programs)

    def names(self) -> list[str]:
        """Of the calls' programs."""
        return [n.called.program.__name__ for n in self.nodes]

    def make(
        self,
        wanted: tuple[int, ...],
        made: Made,
        examples: list[Any],
        cost: float,
        programs: dict[Any, Any],
    ) -> None:
        """Compile a program; by a thread."""
        state.making += 1
        began = perf_counter()
        try:
            prepare(made.program, *examples)
        finally:
            state.making -= 1
            budget.spent += perf_counter() - began - cost
        counts["compiled"] += 1
        programs[wanted] = made

    def tell_apart(self, calls: list[Any]) -> None:
        """Find the arguments from outside that are one array, in these calls and in those before: programs take each once.

        A weight comes in the forward call, in the backward one and in the update, and each argument takes half a microsecond to hand over.
        Within one call two are the same by accident: an optimizer's states all begin as zeros.
        """
        first: dict[Any, int] = {}
        same = [first.setdefault(id(calls[i][1][j]), at) for at, (i, j) in enumerate(self.outside)]
        same = [
            at if self.outside[at][0] == self.outside[origin][0] else origin for at, origin in enumerate(same)
        ]
        if self.same is not None:
            first = {}
            same = [first.setdefault(pair, at) for at, pair in enumerate(zip(same, self.same, strict=True))]
        if same == self.same:
            return
        self.same = same
        taken = [at for at, origin in enumerate(same) if at == origin]
        again = [at for at, origin in enumerate(same) if at != origin]
        self.firsts, self.repeats = [self.outside[at] for at in taken], [self.outside[at] for at in again]
        self.origins = [taken.index(same[at]) for at in again]
        self.forget()

    def forget(self) -> None:
        """Have other programs made."""
        self.programs, self.answers, self.making, self.asked = {}, {}, set(), None

    def may_run(self, made: Made, outside: list[Any], offered: dict[int, int]) -> bool:
        """Whether a program may be called with these arguments: nobody else sees a buffer that it takes over."""
        if not made.taken:
            return True
        if made.may_take(outside, offered):
            self.refused = 0
            return True
        self.refused += 1
        if self.refused == REFUSED:
            self.forget()
        return False

    def taken(self, calls: list[Any]) -> list[Any] | None:
        """What a program takes from outside; None where some arguments are not the same that were so far."""
        first = [calls[i][1][j] for i, j in self.firsts]
        again = [calls[i][1][j] for i, j in self.repeats]
        if all(map(is_, again, map(first.__getitem__, self.origins))):
            return first
        self.tell_apart(calls)
        self.paid = None
        return None

    def examples(self) -> list[Any]:
        """What stands for the arguments from outside."""
        return [form_like(self.nodes[i - 1].signature.held[j]) for i, j in self.firsts]

    def made(self, wanted: tuple[int, ...], calls: list[Any], offered: dict[int, int]) -> Made:
        """The program that gives these results, of all arguments from outside; it takes over those that calls have replaced by results."""
        assert self.same is not None
        places = {at: place for place, at in enumerate(dict.fromkeys(self.same))}
        from_outside = iter([places[origin] for origin in self.same])
        steps: list[Step] = []
        for node in self.nodes:
            sources: list[Any] = []
            for source in node.sources:
                if source == 0:
                    sources.append(next(from_outside))
                else:
                    sources.append(source)
            steps.append(Step(node.called, tuple(sources)))
        taken: dict[int, int] = {}
        if self.refused < REFUSED:
            for place, (i, j) in enumerate(self.firsts):
                array = calls[i][1][j]
                into = offered.get(id(array))
                if into is not None and -1 - into in wanted and array.nbytes >= TAKEN:
                    taken[place] = into
        # JAX gives the first result of a form the first buffer of that form.
        results = [-1 - into for into in taken.values()]
        given = (*results, *[i for i in wanted if i not in results])
        seen = [ALONE + self.origins.count(place) for place in taken]
        # What is unused too: a program without some of its arguments would be one of JAX's own way.
        program = jit(chained(tuple(steps), given), keep_unused=True, donate_argnums=tuple(taken))
        return Made(given, program, tuple(taken), tuple(taken.values()), tuple(seen))


def chained(steps: tuple[Step, ...], wanted: tuple[int, ...]) -> Callable[..., Any]:
    """The function that makes these calls one after the other."""

    def calls(*outside: Any) -> Any:
        found: list[Any] = []
        for step in steps:
            args = [None if s is None else found[-1 - s] if s < 0 else outside[s] for s in step.sources]
            found += jax.tree.leaves(step.program(*grouped(step.lengths, args)))
        return tuple([found[i] for i in wanted])

    def segment(*outside: Any) -> Any:
        return apart(calls, outside)

    segment.hot = True  # pyright: ignore[reportFunctionMemberAccess]
    segment.__name__ = segment.__qualname__ = f"segment_of_{len(steps)}_calls"
    return segment


def compile_all(nodes: Sequence[Node]) -> None:
    """Have the calls' own programs compiled: those here that no thread has begun. What fails fails again where it is called."""
    for node in nodes:
        with contextlib.suppress(Exception):
            node.called.making(node.signature).result()
        node.signature.made = None


set_value: Any = Pending._value.__set__  # type: ignore[attr-defined]
references = sys.getrefcount


def run(calls: list[Any], why: str, offered: dict[int, int]) -> bool | None:
    """Give the results of waiting calls their values. why: what ended the segment. offered: by the identity of an array that was replaced by a
    result, the number of that. Whether it pays that they waited; None where it may, later.
    """
    leaf: Node = calls[-1][0]
    structure = leaf.structure
    if structure is None:
        structure = leaf.structure = Structure(leaf)
    results: list[Pending] = [c[2] for c in calls[1:]] if structure.single else flat(calls)
    seen = list(map(references, results))
    if seen == structure.seen:
        wanted = structure.last
    else:
        wanted = tuple([i for i, (n, u) in enumerate(zip(seen, structure.used)) if n > u + HELD])
        structure.seen, structure.last = seen, wanted
    made = structure.program(wanted, calls, offered)
    outside = None if made is None else structure.taken(calls)
    if made is not None and outside is not None and not structure.may_run(made, outside, offered):
        outside = None
    structure.whole = outside is not None
    structure.ended[why] = structure.ended.get(why, 0) + 1
    for watcher in watchers:
        watcher(structure.names(), structure.whole, why)
    if made is None or outside is None:
        counts["by call"] += 1
        by_call(calls)
        return structure.paid
    structure.runs += 1
    counts["whole"] += 1
    counts["calls"] += len(calls) - 1
    # In one call of C, so that a signal finds all results, or none.
    any(
        map(
            set_value,
            [results[i] for i in made.given],
            chain.from_iterable(starmap(made.program, (outside,))),
        )
    )
    return True


def flat(calls: list[Any]) -> list[Pending]:
    """All results of calls."""
    found: list[Pending] = []
    for _, _, made in calls[1:]:
        if type(made) is Pending:
            found.append(made)
        else:
            found += made
    return found


def by_call(calls: list[Any]) -> bool:
    """Make the calls one after the other. Those that one fails for are left, and its error is raised in the end. It does not pay."""
    failed: Exception | None = None
    for node, args, made in calls[1:]:
        results = (made,) if type(made) is Pending else made
        if results[0]._value is not None or (failed and any(map(lacks, args))):
            continue
        try:
            found = node.called.at_once(args)
        except Exception as error:
            failed = failed or error
            continue
        if type(found) is Array:
            results[0]._value = found
        else:
            values = jax.tree.leaves(found)
            if Pending in map(type, values):
                hand_over(results, values)
            else:  # in one call of C, so that a signal finds all results, or none
                any(map(set_value, results, values))
        if node.unmade or not node.signature.ready:
            node.signature.ready = True
            node.unmade = False
            if node.signature.is_long():
                node.waits = False
            if node.work > longest():
                node.ends = node.ends or WORK
    if failed is not None:
        try:
            raise failed
        finally:
            del failed  # its traceback holds this frame
    return False


def hand_over(results: Sequence[Pending], values: Sequence[Any]) -> None:
    """Give results their values, of which some are still to be cut."""
    for made, value in zip(results, values, strict=True):
        if is_uncut(value):
            value._call.give_to(made)
        else:
            made._value = settled(value)


def lacks(value: Any) -> bool:
    """Whether an argument is a result that is not there."""
    return type(value) is Pending and value._value is None and not is_uncut(value)


def held() -> int:
    """How many references a result has that only the segment and `run` see."""
    made = pended(None, None, 0)  # type: ignore[arg-type]
    calls: list[Any] = [None, (None, (), made)]
    del made
    results = [c[2] for c in calls[1:]]
    return next(map(references, results))


HELD = held()


def alone() -> int:
    """How many references an array has, in `Made.may_take`, that only the segment and `run` see."""
    calls = [(None, (object(),), None)]
    outside = [calls[0][1][0]]
    arrays = [outside[0]]
    return next(map(references, arrays))


ALONE = alone()
