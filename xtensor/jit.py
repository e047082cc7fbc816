"""`torch.jit`: decorators leave functions as they are, since Python runs as it is; compiled programs are not made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from .nn.modules.module import Module

__all__ = [
    "Final",
    "ScriptModule",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "unused",
]

T = TypeVar("T")
_isinstance = isinstance
ScriptModule = Module


def script(obj: T, *args: Any, **options: Any) -> T:
    """The function, class or module itself: it behaves as its Python text says, which is what TorchScript promises."""
    return obj


def script_if_tracing(fn: T) -> T:
    """The function itself."""
    return fn


script_method = script_if_tracing


def export(fn: T) -> T:
    """The function itself."""
    return fn


def ignore(drop: Any = False, **options: Any) -> Any:
    """A decorator that changes nothing, with or without parentheses."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: T) -> T:
    """The function itself."""
    return fn


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's `isinstance`, by the class that a generic type stands for."""
    return _isinstance(obj, getattr(target_type, "__origin__", target_type))


def is_scripting() -> bool:
    """False: Python runs as it is."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def trace(func: Callable[..., Any] | Module, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """Refused: a trace would freeze what the Python text decides by values, and this library makes none."""
    raise RuntimeError("torch.jit.trace is not in xtensor: there is no TorchScript; call the function itself")


def save(m: Any, f: Any, *args: Any) -> None:
    """Refused: there is no TorchScript to save."""
    raise RuntimeError(
        "torch.jit.save is not in xtensor: there is no TorchScript; save the module's state_dict with torch.save"
    )


def load(f: Any, *args: Any, **options: Any) -> Any:
    """Refused: there is no TorchScript to run."""
    raise RuntimeError("torch.jit.load is not in xtensor: there is no TorchScript")
