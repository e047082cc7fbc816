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

__all__ = ["Loop", "evaluate", "is_literal", "rolled"]

PASSES = 8
"""How many equal passes are worth a loop."""
SMALL = 1024
"""Elements that a value has at most which each pass has of its own, since these are stacked for the loop."""
LONG = 1000
"""Equations in a stretch that is rolled up even if no pass multiplies matrices: XLA fuses a shorter one to a few kernels."""
HEAVY = frozenset(("dot_general", "conv_general_dilated"))


class Slot:
    """A variable of a loop's body that the trace does not have."""

    __slots__ = ()


class At(NamedTuple):
    """A value as it lies among those of all passes of a loop."""

    stack: Any
    number: int


class Loop(NamedTuple):
    """Equal passes as a loop.

    body: the equations of a pass. carried: for each value that goes from pass to pass, its variables before the loop, at a pass's begin and at its
    end. each: values that every pass has of its own: at a pass's begin, and outside. made: those that are used outside: at a pass's end, and
    outside. last: the same of the last pass alone, by their numbers in `carried`.
    """

    body: list[Any]
    passes: int
    carried: list[tuple[Any, Any, Any]]
    each: list[tuple[Any, list[Any]]]
    made: list[tuple[Any, list[Any]]]
    last: list[tuple[int, Any]]

    def run(self, values: dict[Any, Any]) -> None:
        """Put what is used outside of the loop among the values."""
        stacks = [stacked_before(variables, values) for _, variables in self.each]
        # Backwards over what another loop made forwards, without turning it round.
        steps = {step for _, step in stacks}
        reverse = -1 in steps and 1 not in steps
        given: list[Any] = []
        for (found, step), (_, variables) in zip(stacks, self.each, strict=True):
            if found is None:
                found = jnp.stack(
                    [value_of(v, values) for v in (reversed(variables) if reverse else variables)]
                )
            elif step == -1 and not reverse:
                found = lax.rev(found, (0,))
            given.append(found)
        starts = [value_of(first, values) for first, _, _ in self.carried]

        def body(carry: Any, each: Any) -> Any:
            own = dict(values)
            own.update(zip([begin for _, begin, _ in self.carried], carry, strict=True))
            own.update(zip([begin for begin, _ in self.each], each, strict=True))
            ends = [end for _, _, end in self.carried] + [end for end, _ in self.made]
            found = evaluate(self.body, own, ends)
            return found[: len(self.carried)], found[len(self.carried) :]

        ends, made = lax.scan(body, starts, given, length=self.passes, reverse=reverse)
        for stack, (_, variables) in zip(made, self.made, strict=True):
            for number, variable in enumerate(variables):
                values[variable] = At(stack, self.passes - 1 - number if reverse else number)
        values.update((variable, ends[number]) for number, variable in self.last)


def stacked_before(variables: Sequence[Any], values: dict[Any, Any]) -> tuple[Any, int]:
    """The values of the variables as a loop made them, in its order, with the direction in which the variables follow; (None, 0) where none did."""
    found: list[Any] = [None if is_literal(v) else values.get(v) for v in variables]
    if any(type(f) is not At or f.stack is not found[0].stack for f in found):
        return None, 0
    numbers = [f.number for f in found]
    step = numbers[1] - numbers[0]
    if step not in (1, -1) or numbers != list(range(numbers[0], numbers[0] + step * len(numbers), step)):
        return None, 0
    low = min(numbers)
    return lax.slice_in_dim(found[0].stack, low, low + len(numbers)), step


def is_literal(var: Any) -> bool:
    """Whether a variable is a number written into the trace."""
    return hasattr(var, "val")


def value_of(var: Any, values: dict[Any, Any]) -> Any:
    if is_literal(var):
        return var.val
    value = values[var]
    if type(value) is At:
        value = values[var] = lax.index_in_dim(value.stack, value.number, keepdims=False)
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
                    own.append(each.setdefault(tuple(across), (Slot(), across))[0])
                elif homes == [(k, made_at) for k in range(passes)]:
                    own.append(var)
                elif made_at is not None and homes == [None, *[(k, made_at) for k in range(passes - 1)]]:
                    last = first[made_at[0]].outvars[made_at[1]]
                    own.append(carried.setdefault((var, made_at), (var, Slot(), last))[1])
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
        return Loop(body, passes, order, list(each.values()), made, ends)

    def _home(self, var: Any, begin: int, end: int, period: int) -> tuple[int, tuple[int, int]] | None:
        """Where a variable is made within the stretch: the pass, and the place in it."""
        if is_literal(var):
            return None
        at, out = self.made.get(var, (-1, 0))
        if not begin <= at < end:
            return None
        passed, place = divmod(at - begin, period)
        return passed, (place, out)


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
