"""What the functions made of a declaration say of themselves, where the declaration has no words for it."""

from __future__ import annotations

from ..operator import Operator
from ..schema import ARRAY, OPERAND

__all__ = ["in_place_doc"]


def in_place_doc(op: Operator) -> str:
    """The docstring of an operator's in-place form; of an operator of elements with an example."""
    told = f"In-place version of `{op.name}`.\n\nShape: that of the tensor itself, which stays."
    others = [p for p in op.schema.parameters[1:] if p.required or p.kind == OPERAND]
    if op.kind != "pointwise" or not op.is_method or any(p.kind not in (ARRAY, OPERAND) for p in others):
        return told
    integers = op.name.startswith("bitwise_") or op.name in ("gcd", "lcm")
    ones = "xtensor.ones(2, dtype=xtensor.int64)" if integers else "xtensor.ones(2)"
    return f"{told}\n\n>>> x = {ones}\n>>> x.{op.name}_({', '.join('x' for _ in others)}) is x\nTrue"
