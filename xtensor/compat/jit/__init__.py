"""`torch.jit`: decorators leave functions as they are, since Python runs as it is; compiled programs are not made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from ...nn.modules.module import Module

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "unused",
    "wait",
]

T = TypeVar("T")
_isinstance = isinstance


class ScriptModule(Module):
    """A base for modules that were written to be scripted: they run as Python, and no other module is one."""


class ScriptFunction:
    """A compiled function: none is ever made, so nothing is an instance."""


def script(obj: T, *args: Any, **options: Any) -> T:
    """The function, class or module itself: it behaves as its Python text says, which is what TorchScript promises."""
    return obj


def script_if_tracing(fn: T) -> T:
    """The function itself."""
    return fn


script_method = _script_if_tracing = script_if_tracing


def _overload_method(fn: T) -> T:
    """The function itself."""
    return fn


_overload = _overload_method


class Attribute:
    """A value with the type that TorchScript would give it; the value itself is kept."""

    def __new__(cls, value: Any, type: Any) -> Any:
        return value


class Error(RuntimeError):
    """What TorchScript raises; never raised here."""


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call at once, and keep the result for `wait`."""
    made = Future()
    made.set_result(func(*args, **kwargs))
    return made


def wait(future: Future) -> Any:
    """The result of what `fork` called."""
    return future.result()


def freeze(mod: T, *args: Any, **options: Any) -> T:
    """The module itself."""
    return mod


optimize_for_inference = freeze


def set_fusion_strategy(strategy: Any) -> Any:
    """Nothing is set: XLA fuses as it does."""
    return strategy


enable_onednn_fusion = set_fusion_strategy


def onednn_fusion_enabled() -> bool:
    """False: XLA fuses."""
    return False


def interface(obj: T) -> T:
    """The class itself."""
    return obj


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which TorchScript would optimise, or not; nothing changes."""
    yield


strict_fusion = contextlib.nullcontext


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
