"""Functions written in Python for which PyTorch has several signatures: a call that fits none gets the error that lists them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from ... import checks
from ...tensor import Tensor

__all__ = ["AXES", "Unfit", "not_a_tensor", "numpy_names", "of_tensors", "overloads", "unfit_call"]

F = TypeVar("F", bound=Callable[..., Any])

AXES = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names and PyTorch's."""

OPTIONS = "dtype dtype = None, layout layout = None, device device = None, bool pin_memory = False, bool requires_grad = False"
SPELLED = re.compile(r"\b(dtype|layout|device|memory_format|Generator|Storage)(?= \w)")


class Unfit(TypeError):
    """Raised by a function whose arguments Python binds, and none of its signatures takes together."""


def overloads(*signatures: str) -> Callable[[F], F]:
    """A decorator that names the signatures, as PyTorch prints them; `{options}` stands for those of a factory.

    The error is made where Python could not bind the arguments, the function found them Unfit, or one that should be a tensor is none: a call
    that fits pays for one more function (70 ns).
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
            except AttributeError:
                if not_a_tensor(function, "", args, kwargs) is None:
                    raise
                raise unfit_call(function.__name__, args, kwargs, signatures) from None

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


def of_tensors(name: str = "") -> Callable[[F], F]:
    """A decorator for functions of tensors that are written in Python: about an argument that is none PyTorch's error, not what Python says of its attributes.

    name: PyTorch's for the function, where it is another. It comes outermost: what looks for NumPy's names looks for errors of its own function.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def bound(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except AttributeError:
                error = not_a_tensor(function, name or function.__name__, args, kwargs)
                if error is None:
                    raise
                raise error from None

        return bound  # pyright: ignore[reportReturnType]

    return decorate


def not_a_tensor(
    function: Any, title: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TypeError | None:
    """The error about the first argument that should be a tensor and is none."""
    for place, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        if parameter.kind is parameter.VAR_POSITIONAL and "Tensor" in str(parameter.annotation):
            several = args[place:]
            several = several[0] if len(several) == 1 and isinstance(several[0], list | tuple) else several
            wrong = next((i for i, each in enumerate(several) if not isinstance(each, Tensor)), None)
            if wrong is not None:
                got = checks.type_name(several[wrong])
                return TypeError(f"expected Tensor as element {wrong} in argument 0, but got {got}")
        kinds = {"Tensor": Tensor, "Tensor | None": Tensor | None}.get(str(parameter.annotation))
        value = args[place] if place < len(args) else kwargs.get(name)
        given = place < len(args) or name in kwargs
        if kinds is not None and given and not isinstance(value, kinds):
            return checks.argument_error(
                title, name, place + 1 if place < len(args) else None, "Tensor", value
            )
    return None


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
