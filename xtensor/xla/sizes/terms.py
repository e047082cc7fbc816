"""Sizes as terms: which sizes of signatures vary together, found from a few of them, and as JAX's symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jax import export

from ..cache import BoundedCache

__all__ = [
    "ALIKE",
    "Span",
    "Term",
    "Vector",
    "alike",
    "count_of",
    "span_of",
    "symbols",
    "terms_of",
    "values_of",
    "varied",
]

ALIKE = 2
"""Signatures that differ from a new one in the same sizes, after which these are taken to vary."""
VARIABLES = 3
Vector = tuple[int, ...]
varied: BoundedCache[int, None] = BoundedCache(1024)
"""Sizes of dimensions that vary."""


class Term(NamedTuple):
    """A size: `factor * variable + rest`."""

    variable: int
    factor: int
    rest: int


def alike(
    full: Vector, here: int, seen: Sequence[tuple[int, Vector]], anywhere: bool = False
) -> tuple[Term | int, ...] | None:
    """The sizes of a signature as terms, where `ALIKE` earlier ones differ from it in the same sizes; None where none do.

    They must have come from the same place in the program, lest widths of layers be taken for sizes that vary, or be sizes
    that are known to vary; or from anywhere. Of several groups the one that differs in the fewest sizes is taken.
    """
    groups: dict[tuple[int, ...], list[tuple[int, Vector]]] = {}
    for there, other in seen:
        where = tuple([i for i, (a, b) in enumerate(zip(full, other, strict=True)) if a != b])
        if where and all(other[i] > 1 and full[i] > 1 for i in where):
            groups.setdefault(where, []).append((there, other))
    for where in sorted(groups, key=len):
        group = groups[where]
        same_place = [vector for there, vector in group if there == here != 0]
        others = same_place if len(same_place) >= ALIKE else [vector for _, vector in group]
        if len(others) < ALIKE:
            continue
        terms = terms_of([*others[-ALIKE:], full], where)
        if terms is None:
            continue
        if (
            anywhere
            or others is same_place
            or all(
                v[i] in varied
                for i, t in enumerate(terms)
                if isinstance(t, Term) and t.factor == 1 and not t.rest
                for v in (*others[-ALIKE:], full)
            )
        ):
            return terms
    return None


def terms_of(vectors: Sequence[Vector], where: Sequence[int]) -> tuple[Term | int, ...] | None:
    """Sizes that vary as terms of as few variables as explain them; None where a size does not differ each time, or too many vary."""
    columns = {i: tuple([v[i] for v in vectors]) for i in where}
    if any(len(set(c)) != len(c) for c in columns.values()):
        return None
    bases: list[tuple[int, ...]] = []
    found: list[Term | int] = list(vectors[-1])
    for i in sorted(where, key=lambda i: columns[i]):
        column = columns[i]
        for at, base in enumerate(bases):
            factor, left = divmod(column[1] - column[0], base[1] - base[0])
            rest = column[0] - factor * base[0]
            if (
                not left
                and factor >= 1
                and rest >= 0
                and all(c == factor * b + rest for b, c in zip(base, column, strict=True))
            ):
                found[i] = Term(at, factor, rest)
                break
        else:
            if len(bases) == VARIABLES:
                return None
            bases.append(column)
            found[i] = Term(len(bases) - 1, 1, 0)
    return tuple(found)


def values_of(terms: Sequence[Term | int], full: Vector) -> tuple[int, ...] | None:
    """The variables' values with which terms give these sizes; None where none do."""
    values = [0] * count_of(terms)
    for term, size in zip(terms, full, strict=True):
        if isinstance(term, int):
            if term != size:
                return None
        elif not values[term.variable]:
            if (
                term.factor != 1 or term.rest or size < 2
            ):  # a variable by itself comes before sizes that hang on it, or elsewhere
                continue
            values[term.variable] = size
    if 0 in values:
        return None
    for term, size in zip(terms, full, strict=True):
        if isinstance(term, Term) and term.factor * values[term.variable] + term.rest != size:
            return None
    return tuple(values)


def count_of(terms: Sequence[Term | int]) -> int:
    """How many variables there are."""
    return 1 + max([t.variable for t in terms if isinstance(t, Term)])


class Span(NamedTuple):
    """Values of a variable that one program is for: from `low` to before `end`, which is the power of two that arrays are made for."""

    low: int
    end: int


def span_of(value: int, floor: int) -> Span:
    """The span of a value: all below `floor`, else from one power of two to the next."""
    end = 1 << value.bit_length()
    return Span(2, floor) if end <= floor else Span(end // 2, end)


def symbols(terms: Sequence[Term | int], spans: Sequence[Span]) -> list[Any]:
    """Terms as JAX's symbolic sizes, whose variables are at least 2: a size of 1 is broadcast."""
    names = [f"n{i}" for i in range(len(spans))]
    lowest = [f"{n} >= {s.low}" for n, s in zip(names, spans, strict=True)]
    highest = [f"{n} <= {s.end - 1}" for n, s in zip(names, spans, strict=True)]
    variables = export.symbolic_shape(", ".join(names), constraints=[*lowest, *highest])
    return [t if isinstance(t, int) else t.factor * variables[t.variable] + t.rest for t in terms]
