"""Functions whose source is generated and compiled when first called, so that importing costs next to nothing.

Compiling takes about a millisecond each, and there are hundreds. Until then a function runs shared stand-in code, which
puts the compiled code in its own place: the object that users hold, in modules, classes and tables, stays the same.
"""

from __future__ import annotations

import inspect
import linecache
import types
from collections.abc import Callable
from typing import Any

from ...checks import GENERATED, METHOD
from ..schema import EMPTY, MISSING

__all__ = ["as_method", "deferred", "materialized", "settle", "source_of"]

Make = Callable[[], tuple[str, dict[str, Any]]]


def _stand_in(*args: Any, **kwargs: Any) -> Any:
    return _materialize()(*args, **kwargs)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def _stand_in_method(*args: Any, **kwargs: Any) -> Any:
    return _materialize_method()(*args, **kwargs)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


class _Unmade:
    """What `inspect.signature` finds behind a function that has not been called yet: the signature it will have."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(materialized(self._function))


def settle(module: str, names: dict[str, Any]) -> None:
    """Says of the generated functions among a module's names that they are found there: pickle goes by that.

    A function `special_airy_ai` is `airy_ai` of the module `special`; `matmul` stays where `xtensor` itself has it.
    All functions and classes that the module has imported, but this one, become its `__all__`.
    """
    found = {n for n, v in names.items() if isinstance(v, (type, types.FunctionType)) and v is not settle}
    names["__all__"] = sorted(found)
    prefix = module.rpartition(".")[2]
    for name, value in names.items():
        if getattr(value, "__module__", None) == "xtensor" and value.__name__ == f"{prefix}_{name}":
            value.__module__, value.__qualname__ = module, name


def deferred(name: str, filename: str, make: Make, like: Callable[..., Any]) -> Any:
    """A function `name` whose source and globals `make()` gives, with the docstring of `like`."""
    namespace: dict[str, Any] = {}
    function = types.FunctionType(_stand_in.__code__, namespace, name)
    function.__module__ = "xtensor"
    function.__qualname__ = name
    function.__doc__ = like.__doc__
    function.__wrapped__ = _Unmade(function)  # pyright: ignore[reportFunctionMemberAccess]

    def materialize() -> Callable[..., Any]:
        text, names = make()
        namespace.update(names)
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        made: dict[str, Any] = {}
        exec(compile(text, filename, "exec"), namespace, made)
        function.__dict__.pop("__wrapped__", None)
        function.__defaults__ = made[name].__defaults__
        function.__kwdefaults__ = made[name].__kwdefaults__
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if any(d is MISSING for d in defaults):
            function.__signature__ = told(inspect.signature(made[name]))
        function.__code__ = made[name].__code__
        return function

    namespace["_materialize"] = materialize
    return function


def as_method(function: Any) -> Any:
    """What a function of `deferred`'s is as a method of Tensor: the same code under a name by which errors count without the tensor."""
    namespace, name = function.__globals__, function.__name__
    method = types.FunctionType(_stand_in_method.__code__, namespace, name)
    method.__module__ = "xtensor"
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = function.__doc__
    method.__wrapped__ = _Unmade(method)  # pyright: ignore[reportFunctionMemberAccess]
    method.operator = function.operator  # pyright: ignore[reportFunctionMemberAccess]

    def materialize() -> Callable[..., Any]:
        code = materialized(function).__code__
        filename = METHOD + code.co_filename.removeprefix(GENERATED)
        linecache.cache[filename] = linecache.cache[code.co_filename]
        method.__dict__.pop("__wrapped__", None)
        method.__defaults__, method.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        if hasattr(function, "__signature__"):
            method.__signature__ = function.__signature__
        method.__code__ = code.replace(co_filename=filename)
        return method

    namespace["_materialize_method"] = materialize
    return method


def told(signature: inspect.Signature) -> inspect.Signature:
    """A signature without what is collected to be refused, and without defaults of what is required."""
    known = [p for p in signature.parameters.values() if p.name != "rest" and p.kind is not p.VAR_KEYWORD]
    instead = {p.KEYWORD_ONLY: None for p in known}
    return signature.replace(
        parameters=[
            p.replace(default=instead.get(p.kind, EMPTY)) if p.default is MISSING else p for p in known
        ]
    )


def materialized(function: Any) -> Any:
    """The function with its own code in place."""
    if function.__code__ is _stand_in.__code__:
        function.__globals__["_materialize"]()
    elif function.__code__ is _stand_in_method.__code__:
        function.__globals__["_materialize_method"]()
    return function


def source_of(function: Any) -> str:
    """The generated source of a function that `deferred` made."""
    code = materialized(function).__code__
    return "".join(linecache.cache[code.co_filename][2])  # pyright: ignore[reportGeneralTypeIssues, reportArgumentType, reportCallIssue]
