"""A trace's equations, run; equal stretches of them, such as the passes of a Python loop leave, run as one loop of XLA's.

A stretch is rolled up where every pass has the same equations over the same forms, takes from the pass before what that one made, and
else only what all passes share, what the pass itself makes, small values, or what another loop made pass by pass. So a recurrence over 64 steps
is compiled once and not 64 times. Nothing is computed that the trace does not compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from .sums import Term, Variable, inlined, is_literal, sums_of

__all__ = ["Loop", "evaluate", "rolled"]

PASSES = 8
"""How many equal passes are worth a loop."""
SMALL = 1024
"""Elements that a value has at most which each pass has of its own, since these are stacked for the loop."""
LONG = 1000
"""Equations in a stretch that is rolled up even if no pass multiplies matrices: XLA fuses a shorter one to a few kernels."""
HEAVY = frozenset(("dot_general", "conv_general_dilated"))


class At(NamedTuple):
    """A value as it lies among those of all passes of a loop."""

    stack: Any
    number: int


class Loop(NamedTuple):
    """Equal passes as a loop.

    body: the equations of a pass. carried: for each value that goes from pass to pass, its variables before the loop, at a pass's begin and at its
    end. each: values that every pass has of its own: at a pass's begin, and outside. made: those that are used outside: at a pass's end, and
    outside. last: the same of the last pass alone, by their numbers in `carried`. sums: what every pass adds to a value, apart from the
    body, with the value's variables before the loop and after it.
    """

    body: list[Any]
    passes: int
    carried: list[tuple[Any, Any, Any]]
    each: list[tuple[Any, list[Any]]]
    made: list[tuple[Any, list[Any]]]
    last: list[tuple[int, Any]]
    sums: list[tuple[list[Term], Any, Any]]

    def run(self, values: dict[Any, Any]) -> None:
        """Put what is used outside of the loop among the values."""
        before = [numbers_before(variables, values) for _, variables in self.each]
        # Backwards over what another loop made forwards, without turning it round.
        steps = {numbers.step for stack, numbers in before if stack is not None}
        reverse = -1 in steps and 1 not in steps
        order = slice(None, None, -1 if reverse else 1)
        given: list[Any] = []
        for (stack, _), (_, variables) in zip(before, self.each, strict=True):
            given.append(
                jnp.stack([value_of(v, values) for v in variables[order]]) if stack is None else None
            )
        starts = [value_of(first, values) for first, _, _ in self.carried]
        operands = dict.fromkeys([o.variable for terms, _, _ in self.sums for t in terms for o in t.operands])
        own_of_each = {begin for begin, _ in self.each}
        kept = [end for end, _ in self.made]
        kept += [v for v in operands if v not in own_of_each and v not in kept]

        def body(carry: Any, now: tuple[Any, Any]) -> Any:
            counter, each = now
            own = dict(values)
            own.update(zip([begin for _, begin, _ in self.carried], carry, strict=True))
            for value, (stack, numbers), (begin, _) in zip(each, before, self.each, strict=True):
                if stack is not None:
                    # Read where it lies: the loop needs no copy of the part that it goes over.
                    there = numbers[order]
                    number = there[0] + counter if there.step == 1 else there[0] - counter
                    value = lax.dynamic_index_in_dim(stack, number, keepdims=False)
                own[begin] = value
            found = evaluate(self.body, own, [*[end for _, _, end in self.carried], *kept])
            return found[: len(self.carried)], found[len(self.carried) :]

        counters = np.arange(self.passes, dtype=np.int32)
        ends, made = lax.scan(body, starts, (counters, given), length=self.passes, reverse=reverse)
        known = dict(zip(kept, made, strict=True))
        for (begin, _), stacked, (stack, numbers) in zip(self.each, given, before, strict=True):
            if begin in operands:
                known[begin] = stacked if stack is None else part_of(stack, numbers[order])
        for terms, first, after in self.sums:
            total = value_of(first, values)
            for term in terms:
                total = lax.add(total, term.over([known[o.variable] for o in term.operands]))
            values[after] = total
        for stack, (_, variables) in zip(made, self.made, strict=False):
            for number, variable in enumerate(variables):
                values[variable] = At(stack, self.passes - 1 - number if reverse else number)
        values.update((variable, ends[number]) for number, variable in self.last)


NONE = range(0)


def numbers_before(variables: Sequence[Any], values: dict[Any, Any]) -> tuple[Any, range]:
    """What holds the values of the variables as a loop made them, and their places in it; None where no loop did, in one direction."""
    found: list[Any] = [None if is_literal(v) else values.get(v) for v in variables]
    if any(type(f) is not At or f.stack is not found[0].stack for f in found):
        return None, NONE
    numbers = [f.number for f in found]
    step = numbers[1] - numbers[0]
    if step not in (1, -1):
        return None, NONE
    places = range(numbers[0], numbers[0] + step * len(numbers), step)
    return (found[0].stack, places) if numbers == list(places) else (None, NONE)


def part_of(stack: Any, numbers: range) -> Any:
    """The values of a stack at some places, in their order."""
    part = lax.slice_in_dim(stack, min(numbers), max(numbers) + 1)
    return part if numbers.step == 1 else lax.rev(part, (0,))


def value_of(var: Any, values: dict[Any, Any]) -> Any:
    if is_literal(var):
        return var.val
    value = values[var]
    if type(value) is At:
        # It stays where it lies, too: a loop that takes it with the others reads them there.
        place = (id(value.stack), value.number)
        if place not in values:
            values[place] = lax.index_in_dim(value.stack, value.number, keepdims=False)
        value = values[place]
    return value


def evaluate(equations: Sequence[Any], values: dict[Any, Any], wanted: Sequence[Any]) -> list[Any]:
    """The wanted variables' values, by equations and loops over those that are known."""
    for equation in equations:
        if type(equation) is Loop:
            equation.run(values)
            continue
        params: Any = equation.primitive.get_bind_params(equation.params)
        functions: Any = ()
        if isinstance(params, tuple):  # earlier JAX
            functions, params = params
        given = [value_of(v, values) for v in equation.invars]
        with equation.ctx.manager:
            found: Any = equation.primitive.bind(*functions, *given, **params)
        results = found if equation.primitive.multiple_results else [found]
        values.update(zip(equation.outvars, results, strict=True))
    return [value_of(var, values) for var in wanted]


# --- finding loops -------------------------------------------------------------------------------------------------


def rolled(equations: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """The equations with loops in the places of equal passes. wanted: variables that are used behind them."""
    if len(equations) < PASSES:
        return list(equations)
    forms: dict[Any, int] = {}
    ids = np.array([forms.setdefault(form_of(e), len(forms)) for e in equations])
    finder = Finder(equations, wanted)
    found: list[Any] = []
    done = 0
    for start, period, length in stretches(ids):
        if start < done:
            continue
        # A pass may begin anywhere; one pass later, what the first makes for all is from before.
        for begin in range(start, start + period + 1):
            passes = (start + length - begin) // period
            loop = finder.loop(begin, period, passes) if passes >= PASSES else None
            if loop is not None:
                found += [*equations[done:begin], loop]
                done = begin + period * passes
                break
    return [*found, *equations[done:]]


def form_of(equation: Any) -> Any:
    """What two equations share that do the same to variables of the same forms; of one with effects, nothing."""
    if equation.effects:
        return object()
    params = []
    for name, value in sorted(equation.params.items()):
        try:
            hash(value)
        except TypeError:
            value = id(value)
        params.append((name, value))
    given = tuple([(v.aval, repr(v.val) if is_literal(v) else None) for v in equation.invars])
    made = tuple([v.aval for v in equation.outvars])
    return equation.primitive, tuple(params), equation.ctx, given, made


def stretches(ids: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """Where equal passes may lie: the first equation, how many are a pass, and how many there are. In order, short passes first at one place."""
    found = []
    for period in range(1, len(ids) // PASSES + 1):
        same = np.concatenate(([False], ids[period:] == ids[:-period], [False]))
        edges = np.flatnonzero(same[1:] != same[:-1])
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            length = int(end - begin) + period
            if length >= PASSES * period:
                found.append((int(begin), period, length))
    return sorted(found)


class Finder:
    """Finds loops among equations. wanted: variables that are used behind all of them."""

    def __init__(self, equations: Sequence[Any], wanted: Sequence[Any]) -> None:
        self.equations = equations
        self.made = {v: (at, out) for at, e in enumerate(equations) for out, v in enumerate(e.outvars)}
        # The last equation that uses a variable.
        self.used: dict[Any, int] = {v: len(equations) for v in wanted if not is_literal(v)}
        for at in reversed(range(len(equations))):
            for var in equations[at].invars:
                if not is_literal(var):
                    self.used.setdefault(var, at)
        self.looped: set[Any] = set()

    def loop(self, begin: int, period: int, passes: int) -> Loop | None:
        """The stretch as a loop; None where it is none, or not worth one."""
        equations = self.equations
        first = equations[begin : begin + period]
        end = begin + period * passes
        if period * passes < LONG and not any(map(is_heavy, first)):
            return None
        carried: dict[Any, tuple[Any, Any, Any]] = {}
        each: dict[Any, tuple[Any, list[Any]]] = {}
        body: list[Any] = []
        for at, equation in enumerate(first):
            own: list[Any] = []
            for place, var in enumerate(equation.invars):
                across = [equations[begin + k * period + at].invars[place] for k in range(passes)]
                homes = [self._home(v, begin, end, period) for v in across]
                made_at = None if homes[1] is None else homes[1][1]
                if is_literal(var) or (homes[0] is None and all(v is var for v in across)):
                    own.append(var)
                elif all(h is None for h in homes):
                    # Each pass has a value of its own, from outside.
                    if var.aval.size > SMALL and not self.looped.issuperset(across):
                        return None
                    own.append(each.setdefault(tuple(across), (Variable(var.aval), across))[0])
                elif homes == [(k, made_at) for k in range(passes)]:
                    own.append(var)
                elif made_at is not None and homes == [None, *[(k, made_at) for k in range(passes - 1)]]:
                    last = first[made_at[0]].outvars[made_at[1]]
                    own.append(carried.setdefault((var, made_at), (var, Variable(var.aval), last))[1])
                else:
                    return None
            body.append(equation.replace(invars=own))
        order = list(carried.values())
        made: list[tuple[Any, list[Any]]] = []
        ends: list[tuple[int, Any]] = []
        for at, equation in enumerate(first):
            for out, var in enumerate(equation.outvars):
                variables = [equations[begin + k * period + at].outvars[out] for k in range(passes)]
                used = [self.used.get(v, -1) >= end for v in variables]
                number = next((n for n, c in enumerate(order) if c[2] is var), None)
                if used[-1] and not any(used[:-1]) and number is not None:
                    ends.append((number, variables[-1]))
                elif any(used):
                    made.append((var, variables))
                    self.looped.update(variables)
        return without_sums(Loop(body, passes, order, list(each.values()), made, ends, []))

    def _home(self, var: Any, begin: int, end: int, period: int) -> tuple[int, tuple[int, int]] | None:
        """Where a variable is made within the stretch: the pass, and the place in it."""
        if is_literal(var):
            return None
        at, out = self.made.get(var, (-1, 0))
        if not begin <= at < end:
            return None
        passed, place = divmod(at - begin, period)
        return passed, (place, out)


def without_sums(loop: Loop) -> Loop:
    """A loop with the sums over its passes apart, where these are worth it."""
    known: dict[Any, Any] = {}
    body = inlined(loop.body, known)
    carried = [(first, begin, known.get(end, end)) for first, begin, end in loop.carried]
    made = [(known.get(end, end), variables) for end, variables in loop.made]
    sums = sums_of(body, carried, [begin for begin, _ in loop.each], [end for end, _ in made])
    if not sums:
        return loop
    gone = {s.number for s in sums}
    places = {n: i for i, n in enumerate(n for n in range(len(carried)) if n not in gone)}
    after = dict(loop.last)
    kept = [c for n, c in enumerate(carried) if n not in gone]
    wanted = {v for v in (*[end for _, _, end in kept], *[end for end, _ in made]) if not is_literal(v)}
    wanted |= {o.variable for s in sums for t in s.terms for o in t.operands}
    return loop._replace(
        body=needed(body, wanted),
        carried=kept,
        made=made,
        last=[(places[n], variable) for n, variable in loop.last if n in places],
        sums=[(s.terms, carried[s.number][0], after[s.number]) for s in sums if s.number in after],
    )


def needed(equations: Sequence[Any], wanted: set[Any]) -> list[Any]:
    """The equations that wanted variables need. wanted: filled with what these need."""
    found = []
    for equation in reversed(equations):
        if not wanted.isdisjoint(equation.outvars):
            wanted.update([v for v in equation.invars if not is_literal(v)])
            found.append(equation)
    return found[::-1]


def is_heavy(equation: Any) -> bool:
    """Whether an equation, or one within it, is a product of matrices or a convolution."""
    if equation.primitive.name in HEAVY:
        return True
    for value in equation.params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            inner = getattr(part, "jaxpr", part)
            if any(map(is_heavy, getattr(inner, "eqns", ()))):
                return True
    return False
