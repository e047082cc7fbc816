"""Signatures of what graphs call, and arguments put in their order."""

from __future__ import annotations

import builtins
import inspect
import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .. import checks
from ..nn.modules.module import Module
from ..operators.below.aten import OpOverload
from ..tensor import Tensor
from .names import UNKNOWN

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """Positional arguments, and arguments by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(
    op: Callable[..., Any], return_schemas: bool = False
) -> list[inspect.Signature] | tuple[list[inspect.Signature], None] | None:
    """The one signature of a function, in a list; None of builtin ones. Differs from PyTorch: a function has one signature."""
    if isinstance(op, OpOverload):
        op = op.op
    try:
        signature = (
            None if op in vars(builtins).values() or op in vars(operator).values() else inspect.signature(op)
        )
    except (TypeError, ValueError):
        signature = None
    if signature is not None and (unknown := UNKNOWN & signature.parameters.keys()):
        kept = [p for name, p in signature.parameters.items() if name not in unknown]
        signature = signature.replace(parameters=kept)
    found = None if signature is None else [signature]
    return (found, None) if return_schemas else found  # pyright: ignore[reportReturnType]


def check_for_mutable_operation(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """RuntimeError for a call that writes to its argument."""
    name = getattr(target, "__name__", "")
    if name.endswith("_") and not name.endswith("__") and name not in ("and_", "or_", "not_", "is_"):
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so operations that mutate operands "
            "in-place (e.g. via `out` arguments) are not supported"
        )
    if kwargs.get("out") is not None:
        raise RuntimeError(
            f"Tried to trace mutable operation {name}. FX only supports functional code, so operations that mutate operands "
            "in-place (e.g. via `out` arguments) are not supported"
        )


def create_type_hint(x: Any) -> Any:
    """The type of a list's or tuple's elements, as `list[T]` or `tuple[T, ...]`; anything else is given back."""
    if not isinstance(x, (list, tuple)):
        return x

    def hint(kind: Any) -> Any:
        return list[kind] if isinstance(x, list) else tuple[kind, ...]

    if not x:
        return hint(Any)
    base = x[0]
    for other in x:
        if issubclass(other, base):
            continue
        if issubclass(base, other):
            base = other
        else:
            checks.warn(
                f"We were not able to successfully create type hint from the type {x}",
            )
            return hint(Any)
    return hint(base)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument's type may stand for a parameter's."""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type:
        return True
    if origin is typing.Union and signature_type != argument_type:
        return any(type_matches(part, argument_type) for part in typing.get_args(signature_type))
    if signature_type == list[int] and argument_type is int:
        return True
    if origin in (list, tuple, Sequence):
        inner = typing.get_args(signature_type)[0]
        if not isinstance(inner, type):
            return False
        outer = typing.get_origin(argument_type)
        return outer in (list, tuple) and issubclass(typing.get_args(argument_type)[0], inner)
    if not isinstance(signature_type, type) or not isinstance(argument_type, type):
        return False
    return issubclass(argument_type, signature_type) or (
        argument_type is int and signature_type in (float, Tensor)
    )


def bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
    """A call's arguments with defaults filled in; None where the signature takes any number of them."""
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
        return None
    given = signature.bind(*args, **kwargs)
    given.apply_defaults()
    placed: list[Any] = []
    named: dict[str, Any] = {}
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        value = given.arguments[name]
        if not by_name and parameter.kind is not parameter.KEYWORD_ONLY and position < len(args):
            placed.append(value)
        else:
            named[name] = value
    return ArgsKwargsPair(tuple(placed), named)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A function call's arguments with defaults filled in; None where it has no one signature or does not take them.

    normalize_to_only_use_kwargs: all of them by name.
    """
    found = get_signature_for_torch_op(target)
    if not found:
        return None
    try:
        return bound(found[0], args, kwargs or {}, normalize_to_only_use_kwargs)  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """A module call's arguments with defaults filled in; None where its `forward` takes any number of them."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    return bound(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)
