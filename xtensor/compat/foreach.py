"""`torch._foreach_*`: an operator on each tensor of a list. A private interface of PyTorch's that public programs use."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..linalg import vector_norm
from ..tensor import Tensor

__all__ = ["named"]

PREFIX = "_foreach_"


def _norm(x: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
    return vector_norm(x, ord, dtype=dtype)


def _powsum(x: Tensor, ord: Any, dtype: Any = None) -> Tensor:
    return (x if dtype is None else x.to(dtype)).abs().pow(ord).sum()


def _least(x: Tensor, other: Any) -> Tensor:
    return x.minimum(other) if isinstance(other, Tensor) else x.clamp(max=other)


def _most(x: Tensor, other: Any) -> Tensor:
    return x.maximum(other) if isinstance(other, Tensor) else x.clamp(min=other)


def _pow(x: Any, exponent: Any) -> Tensor:
    return x**exponent


SPECIAL: dict[str, Callable[..., Any]] = {
    "clamp_max": _least,
    "clamp_min": _most,
    "maximum": _most,
    "minimum": _least,
    "norm": _norm,
    "pow": _pow,
    "powsum": _powsum,
}
KNOWN = frozenset(
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone cos cosh div erf erfc exp expm1 floor frac lerp "
    "lgamma log log10 log1p log2 max maximum minimum mm mul neg norm pow powsum reciprocal round rsqrt sigmoid sign sin sinh "
    "sqrt sub tan tanh trunc".split()
)
WRITING = (KNOWN - {"clone", "max", "mm", "norm", "powsum"}) | {"copy", "zero"}


def _listed(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A tensor of scalars for addcdiv and addcmul as a list of them."""
    if name in ("addcdiv", "addcmul") and len(args) == 4 and isinstance(args[3], Tensor):
        return *args[:3], args[3].tolist()
    return args


def _rows(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    """The arguments of each call: lists give one each, others all the same."""
    lists = [a for a in args if isinstance(a, (list, tuple))]
    if not lists:
        raise TypeError("expected a list of tensors")
    count = len(lists[0])
    if count == 0:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists[1:]:
        if len(other) != count:
            if not any(isinstance(x, Tensor) for x in other):
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {count} and {len(other)}"
            )

    def one(value: Any, i: int) -> Any:
        return value[i] if isinstance(value, (list, tuple)) else value

    return [([one(a, i) for a in args], {k: one(v, i) for k, v in kwargs.items()}) for i in range(count)]


def _scaled(name: str, row: list[Any], options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """A fourth argument of addcdiv and addcmul is `value`; scalars of add and sub may bring no alpha."""
    if name in ("addcdiv", "addcmul") and len(row) == 4:
        return row[:3], options | {"value": row[3]}
    return row, {key: value for key, value in options.items() if key != "scalars"} | (
        {"value": options["scalars"]} if "scalars" in options else {}
    )


def _run(name: str, *args: Any, **kwargs: Any) -> list[Any]:
    function = SPECIAL.get(name) or getattr(Tensor, name)
    calls = [_scaled(name, row, options) for row, options in _rows(_listed(name, args), kwargs)]
    return [function(*row, **options) for row, options in calls]


def _write(name: str, *args: Any, **kwargs: Any) -> Any:
    if name in SPECIAL:
        for target, made in zip(args[0], _run(name, *args, **kwargs), strict=True):
            target.copy_(made)
        return args[0]
    for row, options in _rows(_listed(name, args), kwargs):
        positional, named_options = _scaled(name, row, options)
        getattr(positional[0], f"{name}_")(*positional[1:], **named_options)
    return args[0]


def named(name: str) -> Callable[..., Any]:
    """The function of that name; AttributeError where there is none."""
    operation = name.removeprefix(PREFIX)
    if operation.endswith("_") and operation[:-1] in WRITING:
        made: Any = functools.partial(_write, operation[:-1])
    elif operation in KNOWN:
        made = functools.partial(_run, operation)
    else:
        raise AttributeError(f"module 'torch' has no attribute {name!r}", name=name)
    made.__name__ = name
    return made
