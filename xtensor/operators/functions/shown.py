"""What the functions made of a declaration say of themselves, where the declaration has no words for it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from ..operator import Operator
from ..schema import ARRAY, OPERAND

__all__ = ["in_place_doc", "with_raises"]

RAISES = "Raises: "
OTHER_KINDS = "TypeError for arguments of other kinds"
OTHER_SIZES = "RuntimeError where sizes do not fit"
NO_SUCH_DIM = "IndexError where `dim` is out of range"
A_LEAF = "RuntimeError for a leaf that requires grad"


def with_raises(op: Any, names: Iterable[str]) -> str:
    """The docstring of an operator or a view with the errors that its declaration implies before those it tells."""
    clauses = [OTHER_KINDS]
    if op.kind == "pointwise" and sum(p.kind in (ARRAY, OPERAND) for p in op.runtime) > 1:
        clauses.append(OTHER_SIZES)
    if "dim" in names:
        clauses.append(NO_SUCH_DIM)
    return raising(op.doc, clauses)


def raising(doc: str, clauses: list[str]) -> str:
    """A docstring with more errors: in the paragraph of those that it has, after its shapes, or before its example."""
    paragraphs = doc.split("\n\n")
    starts = [p.partition(" ")[0] for p in paragraphs]
    if "Raises:" in starts:
        place = starts.index("Raises:")
        told = paragraphs.pop(place).removeprefix(RAISES).replace("\n", " ").rstrip(".").split("; ")
        clauses = clauses + [clause for clause in told if clause not in clauses]
    elif "Shape:" in starts:
        place = starts.index("Shape:") + 1
    else:
        place = starts.index(">>>") if ">>>" in starts else len(paragraphs)
    text = f"{RAISES}{'; '.join(clauses)}."
    paragraphs.insert(place, text if len(text) <= 104 else textwrap.fill(text, 104))
    return "\n\n".join(paragraphs)


def in_place_doc(op: Operator) -> str:
    """The docstring of an operator's in-place form; of an operator of elements with an example."""
    told = f"In-place version of `{op.name}`.\n\nShape: that of the tensor itself, which stays.\n\n{RAISES}{A_LEAF}; else as `{op.name}`."
    others = [p for p in op.schema.parameters[1:] if p.required or p.kind == OPERAND]
    if op.kind != "pointwise" or not op.is_method or any(p.kind not in (ARRAY, OPERAND) for p in others):
        return told
    integers = op.name.startswith("bitwise_") or op.name in ("gcd", "lcm")
    ones = "xtensor.ones(2, dtype=xtensor.int64)" if integers else "xtensor.ones(2)"
    return f"{told}\n\n>>> x = {ones}\n>>> x.{op.name}_({', '.join('x' for _ in others)}) is x\nTrue"
