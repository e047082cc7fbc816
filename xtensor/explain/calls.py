"""Which operators a Python function calls, read from its source: the path from `nn.Conv2d` to `conv2d`."""

from __future__ import annotations

import ast
import inspect
import pathlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from ..tensor import Tensor
from .catalog import PACKAGE, entry_for, location_of
from .programs import Program

__all__ = ["Call", "calls_in", "calls_of"]

DEPTH = 8
# What lies below an operator is not on the way to one.
MACHINERY = frozenset(
    f"xtensor.{name}"
    for name in (
        "checks devices dtypes engine explain geometry gradients lowering nn.calls nn.modules.module operators "
        "ops.tensor.scalars plans printing storage tensor xla"
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
            found += operator_calls(op, depth)
            continue
        if is_machinery(callee.__module__) or not callee.__module__.startswith("xtensor"):
            continue
        inner = below(callee, cls if "." in callee.__qualname__ else None, depth + 1, seen)
        if inner:
            found += [Call(depth, public_name(callee), *location_of(callee), "function"), *inner]
    return found


def operator_calls(op: Any, depth: int) -> list[Call]:
    """The last steps of a path: the operator under the name that `nn.functional` gives it, if it does, and itself."""
    entry = entry_for(op)
    functional = sys.modules.get("xtensor.nn.functional")
    found = []
    if functional is not None and getattr(functional, op.name, None) is op.function:
        found.append(Call(depth, f"nn.functional.{op.name}", *entry.location, "function"))
    found.append(Call(depth + len(found), f"{entry.module}.{op.name}", *entry.location, op.kind))
    return found


def calls_of(programs: Sequence[Program], cls: type | None = None) -> Iterator[Call]:
    """The calls that led to programs which ran, as one tree in their order; the first is a method of `cls`."""
    shown: list[Any] = []
    for program in programs:
        codes = [code for code in program.stack if on_the_way(code)]
        kept = 0
        while kept < min(len(codes), len(shown)) and shown[kept] is codes[kept]:
            kept += 1
        for depth in range(kept, len(codes)):
            yield call_of(codes[depth], depth, cls)
        yield from operator_calls(program.declaration, len(codes))
        shown = codes


def on_the_way(code: CodeType) -> bool:
    """Whether a running function is a step that a reader wants to see: of the package, and none of its machinery."""
    path = pathlib.Path(code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return False
    module = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
    return not is_machinery(module) and not code.co_name.startswith("<")


def is_machinery(module: str) -> bool:
    """Whether a module, or the package that it is in, lies below operators."""
    return any(module == m or module.startswith(f"{m}.") for m in MACHINERY)


def call_of(code: CodeType, depth: int, cls: type | None) -> Call:
    path = pathlib.Path(code.co_filename)
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    name = f"{module}.{code.co_qualname}"
    if depth == 0 and cls is not None:
        name = f"{cls.__module__.removeprefix('xtensor.')}.{cls.__qualname__}.{code.co_name}"
    kind = "method" if "." in code.co_qualname else "function"
    return Call(depth, name, path.relative_to(PACKAGE.parent).as_posix(), code.co_firstlineno, kind)


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
    if cls is not None and ast.unparse(node.value) in ("self", "type(self)", "cls"):
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
