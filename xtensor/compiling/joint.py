"""A trace's equations, put together anew as functions: all of them, or those for the results apart from those for gradients."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.core import Tracer

from .equations import Loop, evaluate, rolled
from .sums import is_literal
from .watch import read

__all__ = ["Parts", "parts_of"]

SMALL = 16
"""Elements that a constant written into a program has at most."""


class Parts(NamedTuple):
    """Functions of flat arrays.

    forward: `(*inputs, *constants) -> (*outs, *kept)`. reads: the numbers of the inputs that it takes. constants: arrays that the trace met which are no
    inputs. backward: `(*sent, *kept) -> gradients`, None without. kept: of each value that backward needs, the number of the input that
    it is, or None. equations: how many there are. loops: the passes of each loop that equal stretches of them became.
    """

    forward: Callable[..., Any]
    reads: tuple[int, ...]
    constants: tuple[Any, ...]
    backward: Callable[..., Any] | None
    kept: tuple[int | None, ...]
    equations: int
    loops: tuple[int, ...]


class Section:
    """Some equations of a trace as a function of flat arrays. told: what tells it apart in any process."""

    _xt_identity = ("told",)

    def __init__(
        self,
        told: Any,
        equations: Sequence[Any],
        known: dict[Any, Any],
        given: Sequence[Any],
        wanted: Sequence[Any],
    ) -> None:
        self.equations = rolled(equations, wanted)
        self.loops = [loop.passes for loop in self.equations if type(loop) is Loop]
        self.told = (*told, *self.loops)
        self.known = known
        self.given = given
        self.wanted = wanted

    def __call__(self, *args: Any) -> list[Any]:
        values = dict(self.known)
        values.update(zip(self.given, args, strict=True))
        return evaluate(self.equations, values, self.wanted)


def text_of(closed: Any) -> Any:
    """A digest of a closed trace; an object that is like no other where its text does not tell all."""
    text = str(closed.jaxpr)
    found = hashlib.blake2b(text.encode(), digest_size=20)
    stack = [closed]
    while stack:
        each = stack.pop()
        for const in getattr(each, "consts", ()):
            if isinstance(const, Tracer) or not hasattr(const, "dtype"):
                return object()
            found.update(repr((const.shape, const.dtype)).encode())
            if const.size <= SMALL:
                found.update(np.asarray(const).tobytes())
            elif each is not closed:
                return object()
        for equation in getattr(each, "jaxpr", each).eqns:
            for value in equation.params.values():
                for part in value if isinstance(value, (tuple, list)) else (value,):
                    if hasattr(part, "eqns"):
                        stack.append(part)
    return object() if " at 0x" in text else found.hexdigest()


def needed(equations: Sequence[Any], wanted: Sequence[Any]) -> tuple[list[Any], set[Any]]:
    """The equations that the wanted variables come from, and all variables that these take."""
    want = {var for var in wanted if not is_literal(var)}
    found = []
    for equation in reversed(equations):
        if equation.effects or any(var in want for var in equation.outvars):
            found.append(equation)
            want.update(var for var in equation.invars if not is_literal(var))
    return found[::-1], want


def parts_of(closed: Any, sent: Sequence[int], outs: int) -> Parts:
    """The parts of a closed trace, whose first `outs` results are the call's, the others gradients.

    sent: the numbers of the inputs that are gradients of results.
    """
    jaxpr = closed.jaxpr
    inputs: dict[Any, int] = {}
    rest = []
    for equation in jaxpr.eqns:
        if equation.primitive is read:
            inputs[equation.outvars[0]] = equation.params["number"]
        else:
            rest.append(equation)
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    ahead, behind = jaxpr.outvars[:outs], jaxpr.outvars[outs:]
    forward, want = needed(rest, ahead)
    arrived = {var for var, number in inputs.items() if number in sent}
    backward: list[Any] = []
    crossing: list[Any] = []
    if behind:
        done = {id(e) for e in forward}
        backward, wanted = needed([e for e in rest if id(e) not in done], behind)
        made = {var for e in backward for var in e.outvars}
        crossing = [var for var in wanted if var not in made and var not in arrived]
        crossing += [v for v in behind if not is_literal(v) and v not in made | arrived | set(crossing)]
        want.update(var for var in crossing if var in constants)
    order = [var for var in inputs if var in want and var not in arrived]
    large = [var for var in constants if var in want and is_operand(constants[var])]
    small = {var: constants[var] for var in constants if var not in large}
    computed = [var for var in crossing if var not in inputs and var not in small]
    as_given = [var for var in crossing if var in inputs]

    told = text_of(closed), outs, tuple(sent)
    run = Section((*told, "forward"), forward, small, [*order, *large], [*ahead, *computed])
    kept = (*[None] * len(computed), *[inputs[var] for var in as_given])
    by_number = {number: var for var, number in inputs.items()}
    # What arrives and is not used still stands among the arguments.
    arriving = [by_number.get(n, object()) for n in sent]
    pull = Section((*told, "backward"), backward, small, [*arriving, *computed, *as_given], behind)

    return Parts(
        run,
        tuple([inputs[var] for var in order]),
        tuple([constants[var] for var in large]),
        pull if behind else None,
        kept,
        len(forward) + len(backward),
        (*run.loops, *pull.loops),
    )


def is_operand(value: Any) -> bool:
    """Whether a constant is better handed to a program than written into it."""
    return isinstance(value, (jax.Array, np.ndarray)) and not isinstance(value, Tracer) and value.size > SMALL
