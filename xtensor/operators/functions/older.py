"""Deprecated spellings of calls, such as `add(input, alpha, other)`: understood, with a warning, as PyTorch does.

A declaration lists them as tuples of argument names. The generated function collects the surplus positional arguments
and comes here only if there are any.
"""

from __future__ import annotations

from typing import Any

from ... import checks
from ...tensor import Tensor
from ..inplace import run_inplace
from ..operator import Operator
from ..schema import EMPTY
from .unknown import unfit

__all__ = ["call_older"]


def call_older(
    op: Operator, given: tuple[Any, ...], keywords: dict[str, Any], out: Any, inplace: bool
) -> Any:
    """Call `op` with positional arguments in one of its deprecated orders; TypeError if they fit none."""
    spelling = next((s for s in op.deprecated if fits(op, s, given)), None)
    if spelling is None or any(keywords.values()):
        parameters = op.schema.parameters
        most = sum(not p.keyword_only for p in parameters)
        values = [*given[:most], *[p.default for p in parameters[most:]]]
        raise unfit(op, values, {}, given[most:], inplace)
    warn(op, spelling, inplace)
    values = dict(zip(spelling, given, strict=True))
    everything = tuple(
        values.get(p.name, None if p.default is EMPTY else p.default) for p in op.schema.parameters
    )
    return run_inplace(op, everything) if inplace else op.call(everything, out)


def fits(op: Operator, spelling: tuple[str, ...], given: tuple[Any, ...]) -> bool:
    """Whether the arguments are tensors and numbers where the spelling has them; a 0-d tensor may be a number."""
    kinds = {p.name: p.kind for p in op.schema.parameters}
    return len(spelling) == len(given) and all(
        {"Array": isinstance(value, Tensor), "Number": not isinstance(value, Tensor) or value.dim() == 0}.get(
            kinds[name], True
        )
        for name, value in zip(spelling, given, strict=True)
    )


def warn(op: Operator, spelling: tuple[str, ...], inplace: bool) -> None:
    """PyTorch's warning, the first time that an operator is called so."""
    name = f"{op.name}_" if inplace else op.name
    if not checks.is_news(f"This overload of {name} is deprecated"):
        return
    parameters = {p.name: p for p in op.schema.parameters}
    own = op.schema.parameters[0].name
    # A method's text leaves out the tensor itself. Where both begin with it, a method looks like the function.
    method = inplace or (spelling[0] == own and any(s[0] != own for s in op.deprecated))

    def shown(name: str) -> str:
        return f"{'Number' if parameters[name].kind == 'Number' else 'Tensor'} {name}"

    def listed(parts: list[str], options: list[str]) -> str:
        return f"{name}({', '.join([*parts, *(['*', *options] if options else [])])})"

    out = ["Tensor out = None"] if op.takes_out and not method else []
    options = [f"{shown(p.name)} = {p.default}" for p in op.schema.parameters if p.keyword_only]
    new = [p.name for p in op.schema.parameters if not p.keyword_only]
    old, new = ([shown(n) for n in names if n != own or not method] for names in (spelling, new))
    checks.warn(
        f"This overload of {name} is deprecated:\n\t{listed(old, out)}\n"
        f"Consider using one of the following signatures instead:\n\t{listed(new, [*options, *out])}",
        UserWarning,
    )
