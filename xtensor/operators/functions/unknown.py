"""Calls that fit no signature: the error lists those that there are, as PyTorch's does for what has several.

What is missing, and what is too much, is looked at where a call leaves the inline path. Unknown keywords are Python's own to
refuse, in the words of PyTorch's functions of one signature; operators of several collect them (`**unknown`, 12 ns a call by name).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ... import checks
from ...errors import noted
from ..operator import Operator
from ..schema import EMPTY, MISSING, Parameter

__all__ = ["is_strict", "unfit"]

KINDS = {"Array": "Tensor", "Operand": "Tensor", "Number": "Number", "Arrays": "tuple of Tensors"}


def is_strict(op: Operator) -> bool:
    """Whether PyTorch has several signatures for an operator, deprecated ones included."""
    return op.several or bool(op.deprecated)


def unfit(
    op: Operator,
    values: Sequence[Any],
    keywords: dict[str, Any],
    rest: Sequence[Any] = (),
    inplace: bool = False,
) -> TypeError:
    """The error; `values`, one for each parameter, may be defaults or missing, `rest` is what came after the positional ones."""
    parameters = op.schema.parameters
    pairs = zip(parameters, values, strict=True)
    given = [v for p, v in pairs if v is not MISSING and (p.required or v is not p.default)]
    name = f"{op.name}_" if inplace else op.name
    if not is_strict(op):
        lacks = [f'"{p.name}"' for p, v in zip(parameters, values, strict=True) if v is MISSING]
        return noted(
            TypeError(f"{name}() missing {len(lacks)} required positional arguments: {', '.join(lacks)}")
        )
    return checks.combination_error(name, [*given, *rest], keywords, signatures(op, inplace))


def signatures(op: Operator, inplace: bool) -> list[str]:
    """Every signature that an operator has: with and without `dim`, or with a tensor and with a number."""
    parameters = op.schema.parameters
    out = op.takes_out and not inplace
    if op.kind == "reduction" and any(p.name == "dim" for p in parameters):
        whole = [p for p in parameters if p.name not in ("dim", "keepdim")]
        return [listed(whole, out), listed(parameters, out, "dim")]
    numbers = {p.name for p in parameters[1:] if p.kind == "Operand"} if op.several else set()
    return [listed(parameters, out), *([listed(parameters, out, numbers=numbers)] if numbers else [])]


def listed(parameters: Sequence[Parameter], out: bool, needed: str = "", numbers: Container[str] = ()) -> str:
    """One signature, in which the parameter `needed` has no default, and those in `numbers` are numbers."""
    parts: list[str] = []
    for p in parameters:
        if (p.keyword_only or p.name == "dtype") and "*" not in parts:
            parts.append("*")
        default = "" if p.default is EMPTY or p.name == needed else f" = {p.default}"
        parts.append(f"{'Number' if p.name in numbers else kind_of(p)} {p.name}{default}")
    if out:
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
