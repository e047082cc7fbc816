"""Which operators a Python function calls, read from its source: the path from `nn.Conv2d` to `conv2d`."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..tensor import Tensor
from .catalog import entry_for, location_of

__all__ = ["Call", "calls_in"]

DEPTH = 8
# What lies below an operator is not on the way to one.
MACHINERY = frozenset(
    f"xtensor.{name}"
    for name in (
        "checks devices dtypes engine geometry gradients lowering printing storage tensor x64 ops.attach ops.catalog "
        "ops.codegen ops.declare ops.derivatives ops.dispatch ops.inplace ops.promotion ops.saved ops.schema ops.views "
        "ops.write"
    ).split()
)


@dataclass(frozen=True)
class Call:
    """A function on the path, `depth` calls below what was asked about, and where it is declared."""

    depth: int
    name: str
    file: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.name}  [{self.kind}]  {self.file}:{self.line}"


def calls_in(function: Callable[..., Any], cls: type | None = None) -> Iterator[Call]:
    """The calls from a function (a method of `cls`) down to operators, in the order of the source, each once."""
    title = (
        f"{cls.__module__.removeprefix('xtensor.')}.{cls.__qualname__}.{function.__name__}" if cls else None
    )
    file, line = location_of(function)
    name = title or public_name(function)
    yield Call(0, name, file, line, "method" if cls is not None else "function")
    yield from below(function, cls, 1, {function})


def public_name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}".removeprefix("xtensor.")


def below(function: Callable[..., Any], cls: type | None, depth: int, seen: set[Any]) -> list[Call]:
    found: list[Call] = []
    for callee in callees(function, cls):
        if callee in seen or depth > DEPTH:
            continue
        seen.add(callee)
        op = getattr(callee, "operator", None)
        if op is not None:
            entry = entry_for(op)
            found.append(Call(depth, f"ops.{entry.family}.{callee.__name__}", *entry.location, op.kind))
            continue
        if callee.__module__ in MACHINERY or not callee.__module__.startswith("xtensor"):
            continue
        inner = below(callee, cls if "." in callee.__qualname__ else None, depth + 1, seen)
        if inner:
            found += [Call(depth, public_name(callee), *location_of(callee), "function"), *inner]
    return found


def callees(function: Callable[..., Any], cls: type | None) -> Iterator[Any]:
    """The functions that a function's source calls, as far as names tell."""
    function = inspect.unwrap(function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    names = dict(inspect.getclosurevars(function).globals) | dict(inspect.getclosurevars(function).nonlocals)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found = target_of(node.func, names, cls)
            found = getattr(found, "__func__", found)
            if inspect.isfunction(found):
                yield found


def target_of(node: ast.expr, names: dict[str, Any], cls: type | None) -> Any:
    """The object that a called expression names: a function, a method of `self`, or a method of some tensor."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name) and node.value.id == "self" and cls is not None:
        return getattr(cls, node.attr, None)
    owner = owner_of(node.value, names)
    if owner is not None:
        return getattr(owner, node.attr, None)
    method = getattr(Tensor, node.attr, None)
    return method if getattr(method, "operator", None) is not None else None


def owner_of(node: ast.expr, names: dict[str, Any]) -> Any:
    """The module or class that an expression like `nn.functional` names."""
    if isinstance(node, ast.Name):
        found = names.get(node.id)
    elif isinstance(node, ast.Attribute):
        owner = owner_of(node.value, names)
        found = getattr(owner, node.attr, None) if owner is not None else None
    else:
        return None
    return found if inspect.ismodule(found) or inspect.isclass(found) else None
