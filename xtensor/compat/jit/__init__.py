"""`torch.jit`: traces are exported programs behind TorchScript's interface; what is scripted keeps running as Python."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from ...export import ExportedModule, ExportedProgram
from ...export import load as load_program
from ...export import save as save_program
from ...nn.modules.module import Module
from ...serialization.errors import FileFormatError
from ..futures import Future
from .tracing import (
    Programs,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracerWarning,
    TracingCheckError,
    is_tracing,
    program_of,
    trace,
    trace_module,
)

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "TracingCheckError",
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
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
_isinstance = isinstance


def script(
    obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> T:
    """The function, class or module itself, which behaves as its Python text says.

    Differs from PyTorch: no TorchScript is made, and Python keeps running. With `example_inputs`, a list of tuples of arguments, a
    module can be given to `torch.jit.save`.
    """
    if example_inputs is not None and _isinstance(obj, Module):
        programs = Programs(obj, strict=False)
        first = next(iter(example_inputs.values() if _isinstance(example_inputs, dict) else example_inputs))
        programs.program(tuple(first), {})
        obj.__dict__["_programs"] = programs
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
    return future.wait()


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """The module itself, which must be in evaluation: a trace has nothing else in it. RuntimeError for one in training."""
    if _isinstance(mod, Module) and mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """The module itself: XLA optimises what runs."""
    return mod


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


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a traced module or function to a file, a path or a stream: an exported program, see `xtensor.export.save`.

    Differs from PyTorch: the file is no TorchScript archive; plain JAX and `xtensor.export.load` read it too. RuntimeError for a module
    that was neither traced nor scripted with examples.
    """
    save_program(program_of(m), f, extra_files=_extra_files)


class RecursiveScriptModule(ScriptModule):
    """A program from a file, as a module; the mode that it was saved in stays."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        inner = ExportedModule(program)
        for members in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[members] = inner.__dict__[members]
        self.__dict__["_program"], self.__dict__["_inner"] = program, inner

    @property
    def graph(self) -> Any:
        """The operators that a call runs."""
        return self._program.graph

    @property
    def code(self) -> str:
        """The operators as Python text."""
        return self.graph.python_code()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives."""
        return self._inner(*args, **kwargs)


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> ScriptModule:
    """A module from a file that `torch.jit.save` or `xtensor.export.save` has written here.

    Differs from PyTorch: TorchScript archives of PyTorch's are refused, since they hold code in a language of its own.
    """
    if _isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    try:
        program = load_program(f, extra_files=_extra_files)
    except FileFormatError as error:
        raise FileFormatError(
            f"torch.jit.load: {error}. A TorchScript archive of PyTorch's cannot be run here: in PyTorch, save the module's state_dict "
            "with torch.save, and load it here into a module of the same class."
        ) from error
    made = RecursiveScriptModule(program)
    return made if map_location is None else made.to(map_location)
