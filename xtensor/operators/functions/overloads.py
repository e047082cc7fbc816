"""Functions written in Python for which PyTorch has several signatures: a call that fits none gets the error that lists them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

from ... import checks

__all__ = ["AXES", "Unfit", "numpy_names", "overloads", "unfit_call"]

F = TypeVar("F", bound=Callable[..., Any])

AXES = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names and PyTorch's."""

OPTIONS = "dtype dtype = None, layout layout = None, device device = None, bool pin_memory = False, bool requires_grad = False"
SPELLED = re.compile(r"\b(dtype|layout|device|memory_format|Generator|Storage)(?= \w)")


class Unfit(TypeError):
    """Raised by a function whose arguments Python binds, and none of its signatures takes together."""


def overloads(*signatures: str) -> Callable[[F], F]:
    """A decorator that names the signatures, as PyTorch prints them; `{options}` stands for those of a factory.

    The error is made where Python could not bind the arguments, or the function found them Unfit: a call that fits pays for one more function (70 ns).
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def bound(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                trace: Any = error.__traceback__
                if trace.tb_next is None or type(error) is Unfit:
                    if not AXES.keys().isdisjoint(kwargs):
                        return bound(*args, **renamed(kwargs))
                    raise unfit_call(function.__name__, args, kwargs, signatures) from None
                raise

        return bound  # pyright: ignore[reportReturnType]

    return decorate


def numpy_names(function: F) -> F:
    """A decorator for functions of dimensions: NumPy's names, `axis` and `keepdims`, stand for PyTorch's.

    Looked for where Python could not bind the arguments, as `overloads` does.
    """

    @functools.wraps(function)
    def bound(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            trace: Any = error.__traceback__
            if trace.tb_next is None and not AXES.keys().isdisjoint(kwargs):
                return function(*args, **renamed(kwargs))
            raise

    return bound  # pyright: ignore[reportReturnType]


def renamed(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments under PyTorch's names."""
    return {AXES.get(name, name): value for name, value in keywords.items()}


def unfit_call(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], signatures: tuple[str, ...]
) -> TypeError:
    """The error of a call that fits none of the signatures."""
    listed = [
        SPELLED.sub(lambda found: checks.spelled(found[1]), s.replace("{options}", OPTIONS))
        for s in signatures
    ]
    return checks.combination_error(name, args, kwargs, listed)
