"""`torch.func.rearrange`: dimensions moved, split and merged as a pattern says."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..ops.shape.joining import stack
from ..tensor import Tensor
from ..xla.cache import bounded

__all__ = ["rearrange"]

REST = "..."
PART = re.compile(r"\.\.\.|[()]|[^\s()]+?(?=\.\.\.|[\s()]|$)")
DOTS = "Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor "


class Side(NamedTuple):
    """One side of a pattern: the names of each dimension, none of one of size 1; bare: the place of `...` outside of brackets."""

    groups: tuple[tuple[str, ...], ...]
    bare: int

    @property
    def names(self) -> list[str]:
        return [name for group in self.groups for name in group]


def side_of(text: str) -> Side:
    """One side of a pattern, read; ValueError where it is none."""
    if text.count(".") != 3 * text.count(REST) or text.count(REST) > 1:
        raise ValueError(DOTS)
    groups: list[tuple[str, ...]] = []
    bare = -1
    inside: list[str] | None = None
    seen: set[str] = set()
    for part in PART.findall(text):
        if part == "(":
            if inside is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = []
        elif part == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            groups.append(tuple(inside))
            inside = None
        else:
            found = named(part, seen)
            if inside is None:
                bare = len(groups) if part == REST else bare
                groups.append(found)
            else:
                inside += found
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return Side(tuple(groups), bare)


def named(part: str, seen: set[str]) -> tuple[str, ...]:
    """The names that one word of a pattern stands for."""
    if part == "1":
        return ()
    if part.isdecimal():
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if part != REST and (not part.isidentifier() or part.startswith("_") or part.endswith("_")):
        what = (
            "axis name should should not start or end with underscore"
            if part.isidentifier()
            else "not a valid python identifier"
        )
        raise ValueError(f"Invalid axis identifier: {part}\n{what}")
    if part in seen:
        raise ValueError(f"Indexing expression contains duplicate dimension '{part}'")
    seen.add(part)
    return (part,)


@bounded(1024)
def sides_of(pattern: str) -> tuple[Side, Side]:
    """Both sides of a pattern, read and compared."""
    try:
        left, right = pattern.split("->")
    except ValueError:
        raise ValueError("Pattern must contain a single '->' separator") from None
    if REST in right and REST not in left:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    sides = side_of(left), side_of(right)
    alone = set(sides[0].names) ^ set(sides[1].names)
    if alone:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {alone}")
    return sides


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """The tensor with its dimensions as the right side of a pattern has them that the left side names.

    tensor: several are stacked along a first dimension. axes_lengths: sizes of dimensions that others are split into. ValueError
    for a pattern that does not fit.

    >>> x = xtensor.arange(6)
    >>> xtensor.func.rearrange(x, "(a b) -> b a", a=2).shape
    xtensor.Size([3, 2])
    """
    whole = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    left, right = sides_of(pattern)
    unknown = set(axes_lengths) - set(left.names)
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    rest = whole.dim() - len(left.groups) + (left.bare >= 0)
    if rest < 0 or (rest and left.bare < 0):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left.groups)}) must be equal to the number of dimensions in the tensor "
            f"({whole.dim()})"
        )
    sizes, at = {}, 0
    for place, group in enumerate(left.groups):
        if place == left.bare:
            sizes[REST] = tuple(whole.shape[at : at + rest])
            at += rest
        else:
            sizes.update(split(group, whole.shape[at], axes_lengths))
            at += 1
    names = left.names
    flat = whole.reshape([n for name in names for n in _sizes(sizes, name)])
    places, start = {}, 0
    for name in names:
        count = len(_sizes(sizes, name))
        places[name] = range(start, start + count)
        start += count
    moved = flat.permute([d for name in right.names for d in places[name]])
    shape: list[int] = []
    for place, group in enumerate(right.groups):
        own = [n for name in group for n in _sizes(sizes, name)]
        shape += own if place == right.bare else [math.prod(own)]
    return moved.reshape(shape)


def _sizes(sizes: dict[str, Any], name: str) -> Sequence[int]:
    found = sizes[name]
    return found if isinstance(found, tuple) else (found,)


def split(group: tuple[str, ...], size: int, known: dict[str, int]) -> dict[str, Any]:
    """The size of each dimension that one is split into, of which one may be unknown."""
    unknown = [name for name in group if name not in known]
    product = math.prod([known[name] for name in group if name in known])
    if len(unknown) > 1:
        raise ValueError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
    if size % product if unknown else size != product:
        parts = tuple([known.get(name, "?") for name in group])
        raise ValueError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {parts}")
    return {name: known.get(name, size // max(product, 1)) for name in group}
