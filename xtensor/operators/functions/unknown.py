"""Keywords that an operator does not have: the error lists the signatures, as PyTorch's does for what has several.

Python itself refuses them for every other operator, at no cost; the functions in `SEVERAL` pay some 10 ns a call to collect them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import checks
from ..operator import Operator
from ..schema import EMPTY, Parameter

__all__ = ["SEVERAL", "unknown_error"]

SEVERAL = frozenset({"all", "any", "count_nonzero", "mean", "prod", "sum"})
"""Operators that PyTorch reduces over everything or along `dim`, each by a signature of its own."""
KINDS = {"Array": "Tensor", "Operand": "Tensor", "Number": "Number", "Arrays": "tuple of Tensors"}


def unknown_error(op: Operator, values: Sequence[Any], keywords: dict[str, Any]) -> TypeError:
    """The error for keywords that are unknown; `values`, one for each parameter, may be defaults."""
    parameters = op.schema.parameters
    given = [v for p, v in zip(parameters, values, strict=True) if p.required or v is not p.default]
    along = [p for p in parameters if p.name == "dim"]
    whole = [p for p in parameters if p.name not in ("dim", "keepdim")]
    signatures = [listed(op, whole)]
    if along:
        signatures.append(listed(op, parameters, "dim"))
    return checks.combination_error(op.name, given, keywords, signatures)


def listed(op: Operator, parameters: Sequence[Parameter], needed: str = "") -> str:
    """One signature, in which the parameter `needed` has no default."""
    parts: list[str] = []
    for p in parameters:
        if (p.keyword_only or p.name == "dtype") and "*" not in parts:
            parts.append("*")
        default = "" if p.default is EMPTY or p.name == needed else f" = {p.default}"
        parts.append(f"{kind_of(p)} {p.name}{default}")
    if op.takes_out:
        parts += [*([] if "*" in parts else ["*"]), "Tensor out = None"]
    return ", ".join(parts)


def kind_of(parameter: Parameter) -> str:
    """The type of a parameter as PyTorch's errors print it."""
    if parameter.runtime:
        return KINDS[parameter.kind]
    first = parameter.annotation.partition(" |")[0]
    if "Sequence[int]" in parameter.annotation or "tuple[int" in parameter.annotation:
        return "tuple of ints"
    return checks.spelled("dtype") if first.endswith("dtype") else first
