"""Sums over the passes of a loop, taken out of it: gradients of weights that all passes share.

A pass that adds a product of matrices to what came before reads and writes the whole sum, once a pass. Where the factors of one pass are
smaller than that, the loop keeps those of all passes, and one product after it sums over passes as well: the same terms, in another order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ..lowering.row_products import over_rows

__all__ = ["Sum", "Variable", "inlined", "is_literal", "sums_of"]


class Variable:
    """A variable of a loop's body that the trace does not have."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval


class Operand(NamedTuple):
    """What is kept of every pass, and how its dimensions are then permuted."""

    variable: Any
    order: tuple[int, ...]


class Term(NamedTuple):
    """What is added once a pass: a product of matrices or a sum over dimensions, and the dtype it is converted to."""

    equation: Any
    operands: list[Operand]
    dtype: Any

    def over(self, stacks: Sequence[Any]) -> Any:
        """The sum over all passes, from its operands of all passes."""
        params = self.equation.params
        # The dimensions of the stacks in the order of the equation's operands.
        orders = [(0, *[i + 1 for i in o.order]) for o in self.operands]
        with self.equation.ctx.manager:
            if len(stacks) == 1:
                (stack,), (order,) = stacks, orders
                axes = (0, *[order[i + 1] for i in params["axes"]])
                found: Any = jnp.sum(stack, axis=axes, dtype=stack.dtype)
                found = lax.transpose(found, ranks([i for i in order if i not in axes]))
            else:
                (a, free_a), (b, free_b) = map(rows_of, stacks, orders, params["dimension_numbers"][0])
                precision, wide = params["precision"], params["preferred_element_type"]
                options = dict(precision=precision, preferred_element_type=wide)
                product = partial(lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ())), **options)
                found = over_rows(a, b, product).reshape(*free_a, *free_b)
        return found if self.dtype is None else lax.convert_element_type(found, self.dtype)


def ranks(numbers: Sequence[int]) -> tuple[int, ...]:
    """The place of each number among all in order."""
    return tuple([sorted(numbers).index(i) for i in numbers])


def rows_of(stack: Any, order: Sequence[int], along: Sequence[int]) -> tuple[Any, tuple[int, ...]]:
    """An operand of all passes as a matrix whose rows are summed over, and the sizes of the other dimensions."""
    summed = [0, *[order[i + 1] for i in along]]
    free = [i for i in order if i not in summed]
    rows, sizes = math.prod(stack.shape[i] for i in summed), tuple([stack.shape[i] for i in free])
    return lax.transpose(stack, (*summed, *free)).reshape(rows, math.prod(sizes)), sizes


class Sum(NamedTuple):
    """A carried value to which every pass only adds. number: its place among the carried ones."""

    number: int
    terms: list[Term]


def is_literal(var: Any) -> bool:
    """Whether a variable is a number written into the trace."""
    return hasattr(var, "val")


def inlined(equations: Sequence[Any], known: dict[Any, Any]) -> list[Any]:
    """The equations with those of jitted functions in the functions' places.

    known: what stands for a variable; filled with those that a function gives without making them.
    """
    found: list[Any] = []
    for equation in equations:
        given = [v if is_literal(v) else known.get(v, v) for v in equation.invars]
        inner = equation.params.get("jaxpr") if equation.primitive.name in ("jit", "pjit") else None
        if inner is None or inner.consts or equation.effects:
            made = [known.get(v, v) for v in equation.outvars]
            found.append(equation.replace(invars=given, outvars=made))
            continue
        own = dict(zip(inner.jaxpr.invars, given, strict=True))
        own.update((v, Variable(v.aval)) for e in inner.jaxpr.eqns for v in e.outvars)
        found += inlined(inner.jaxpr.eqns, own)
        for outside, inside in zip(equation.outvars, inner.jaxpr.outvars, strict=True):
            known[outside] = inside if is_literal(inside) else own[inside]
    return found


def sums_of(
    body: Sequence[Any], carried: Sequence[tuple[Any, Any, Any]], each: Sequence[Any], made: Sequence[Any]
) -> list[Sum]:
    """The carried values whose sums are worth to be taken out of a loop. each, made: the variables of passes' own values and of what is used outside."""
    makers = {v: e for e in body for v in e.outvars}
    uses = Counter([v for e in body for v in e.invars if not is_literal(v)])
    uses.update([v for v in (*made, *[end for _, _, end in carried]) if not is_literal(v)])
    own = {*makers, *each, *[begin for _, begin, _ in carried]}
    found = []
    for number, (_, begin, end) in enumerate(carried):
        terms = terms_of(begin, end, makers, uses, own)
        if terms:
            found.append(Sum(number, terms))
    # What the passes have of their own need not be kept for this, nor what is kept for another sum.
    kept = {*each, *made}
    sizes = [begin.aval.size for _, begin, _ in carried]
    worth: list[Sum] = []
    while True:
        more = []
        for entry in found:
            new = {o.variable for term in entry.terms for o in term.operands} - kept
            if entry not in worth and sum(v.aval.size for v in new) <= sizes[entry.number]:
                more.append(entry)
                kept |= new
        if not more:
            return worth
        worth += more


def terms_of(begin: Any, end: Any, makers: dict[Any, Any], uses: Counter[Any], own: set[Any]) -> list[Term]:
    """What a pass adds to a carried value; nothing where it does anything else with it."""
    terms: list[Term] = []
    begins = 0
    parts = [end]
    while parts:
        part = parts.pop()
        maker = None if is_literal(part) else makers.get(part)
        if part is begin:
            begins += 1
        elif maker is not None and maker.primitive.name in ("add", "add_any") and uses[part] == 1:
            parts += maker.invars
        else:
            term = None if is_literal(part) else term_of(part, makers, uses, own)
            if term is None:
                return []
            terms.append(term)
    return terms if begins == uses[begin] == 1 else []


def term_of(var: Any, makers: dict[Any, Any], uses: Counter[Any], own: set[Any]) -> Term | None:
    """What makes a variable as a term of a sum over passes; None where that is neither a product of matrices nor a sum."""
    maker, dtype = makers.get(var), None
    if maker is not None and maker.primitive.name == "convert_element_type" and uses[var] == 1:
        dtype = maker.params["new_dtype"]
        (var,) = maker.invars
        maker = None if is_literal(var) else makers.get(var)
    if maker is None or uses[var] != 1:
        return None
    name, params = maker.primitive.name, maker.params
    if name == "dot_general":
        if any(params["dimension_numbers"][1]) or params.get("out_sharding") is not None:
            return None
    elif name != "reduce_sum" or params.get("out_sharding") is not None:
        return None
    operands = []
    for operand in maker.invars:
        order = tuple(range(len(operand.aval.shape)))
        while not is_literal(operand) and operand in makers and makers[operand].primitive.name == "transpose":
            permutation = makers[operand].params["permutation"]
            order = tuple([permutation[i] for i in order])
            (operand,) = makers[operand].invars
        if is_literal(operand) or operand not in own:
            return None
        operands.append(Operand(operand, order))
    return Term(maker, operands, dtype)
