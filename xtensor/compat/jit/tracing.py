"""`torch.jit.trace`: what a call computes with these examples, as an exported program behind TorchScript's interface."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from ... import checks, trees
from ...export import ExportedProgram, export
from ...export import save as save_program
from ...export.dims import AUTO
from ...export.program import program_with_weights
from ...export.tracing import trace as traced_call
from ...nn.modules.module import Module
from ...tensor import Tensor
from ...testing import assert_close

__all__ = [
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "TracingCheckError",
    "is_tracing",
    "program_of",
    "trace",
    "trace_module",
]

CONSTANT = (
    "torch.tensor results are registered as constants in the trace. You can safely ignore this warning if you use this function to "
    "create tensors out of constant variables that would be the same every time you call this function. In any other case, this "
    "might cause the trace to be incorrect."
)
_state = threading.local()


class TracerWarning(Warning):
    """A trace depends on a value that it has taken as it was."""


class TracingCheckError(Exception):
    """A trace gives something else than what was traced."""


def is_tracing() -> bool:
    """Whether a trace is being made."""
    return bool(getattr(_state, "depth", 0))


@contextmanager
def tracing() -> Iterator[None]:
    """A block in which `is_tracing` says so."""
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1


def read(kind: str) -> None:
    """Warn of a value that Python has asked for."""
    text = CONSTANT
    if kind != "constant":
        text = (
            f"Converting a tensor to {kind} might cause the trace to be incorrect. We can't record the data flow of Python values, so "
            "this value will be treated as a constant in the future. This means that the trace might not generalize to other "
            "inputs!"
        )
    checks.warn(text, TracerWarning)


class ScriptModule(Module):
    """A base for modules that were written to be scripted, and what traces and loaded files are."""

    _programs: Any = None

    @property
    def original_name(self) -> str:
        """The name of the class that it was."""
        return type(self).__name__

    def save(self, f: str | os.PathLike[str] | IO[bytes], _extra_files: Any = None) -> None:
        """Write the program to a file, which `torch.jit.load` and `xtensor.export.load` read."""
        save_program(program_of(self), f, extra_files=_extra_files)


class Called(Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        return self.function(*args, **kwargs)


class Programs:
    """The traces of a module, by the sizes, dtypes and values of arguments."""

    def __init__(self, module: Module, strict: bool) -> None:
        self.module = module
        self.strict = strict
        self.by_form: dict[Any, ExportedProgram] = {}
        self.first: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        # A trace is of the mode in which its module was, whatever that does later.
        self.modes = {part: part.training for part in module.modules()}

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """A block in which the module is in the mode in which it was first traced."""
        present = {part: part.training for part in self.modes}
        try:
            for part, mode in self.modes.items():
                part.training = mode
            yield
        finally:
            for part, mode in present.items():
                part.training = mode

    def form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What of arguments a trace depends on."""
        leaves, structure = trees.tree_flatten((args, kwargs))
        told = [(tuple(v.shape), v.dtype) if isinstance(v, Tensor) else (type(v), repr(v)) for v in leaves]
        return tuple(told), str(structure)

    def program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedProgram:
        """The trace for such arguments, made where there is none yet."""
        key = self.form(args, kwargs)
        found = self.by_form.get(key)
        if found is None:
            sizes = [tuple(v.shape) for v in trees.tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
            with tracing(), self.as_it_was():
                made = traced_call(self.module, args, kwargs, sizes, {}, reading=read)
            check_result(made.result, self.strict)
            found = self.by_form[key] = program_with_weights(self.module, made, {}, (args, kwargs))
            self.first = self.first or (args, kwargs)
        return found

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of a call, by its trace."""
        program = self.program(args, kwargs)
        inputs = program._inputs
        tensors = inputs.tensors(inputs.flat(args, kwargs))
        own: dict[str, Any] = {**program.constants, **dict(self.module.named_buffers())}
        own |= dict(self.module.named_parameters())
        return program._run(own, tensors, {})

    def general(self) -> ExportedProgram:
        """A program for a file: with all sizes open where the code allows it, else the first trace."""
        if self.first is None:
            raise RuntimeError("torch.jit.save: nothing has been traced yet")
        args, kwargs = self.first
        first = self.by_form[self.form(args, kwargs)]
        try:
            with self.as_it_was():
                return export(self.module, args, kwargs, dynamic_shapes=all_open(args, kwargs))
        except Exception:  # it reads values, which the trace has as they were
            return first


def all_open(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Dim.AUTO` for every dimension of every tensor."""

    def one(value: Any) -> Any:
        return tuple([AUTO] * value.dim()) if isinstance(value, Tensor) else None

    return tuple([trees.tree_map(one, a) for a in (*args, *kwargs.values())])


def check_result(result: Any, strict: bool) -> None:
    """RuntimeError for results that a trace cannot have."""
    if isinstance(result, dict) and strict:
        raise RuntimeError(
            "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if the "
            "container structure does not change based on the module's inputs. Consider using a constant container instead (e.g. "
            "for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the "
            "side effects, pass strict=False to trace() to allow this behavior."
        )
    if any(isinstance(leaf, (str, int, float)) for leaf in trees.tree_leaves(result)):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
        )


class TopLevelTracedModule(ScriptModule):
    """A traced module. Its parameters, buffers and modules are those of the module that was traced."""

    def __init__(self, module: Module, programs: Programs) -> None:
        super().__init__()
        for members in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[members] = module.__dict__[members]
        self.__dict__["training"] = module.training
        self.__dict__["_programs"] = programs
        self.__dict__["_name"] = getattr(module, "original_name", type(module).__name__)

    @property
    def original_name(self) -> str:
        """The name of the class that was traced."""
        return self.__dict__["_name"]

    @property
    def graph(self) -> Any:
        """The operators of the first trace."""
        return program_of(self, general=False).graph

    @property
    def code(self) -> str:
        """The operators of the first trace as Python text."""
        return self.graph.python_code()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the traced operators give."""
        return self._programs.run(args, kwargs)

    def extra_repr(self) -> str:
        """The class that was traced."""
        return f"original_name={self.original_name}"


class ScriptFunction:
    """A traced function."""

    def __init__(self, function: Callable[..., Any], programs: Programs) -> None:
        self.name = self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._programs = programs
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._programs.run(args, kwargs)

    @property
    def graph(self) -> Any:
        """The operators of the first trace."""
        return program_of(self, general=False).graph

    @property
    def code(self) -> str:
        """The operators of the first trace as Python text."""
        return self.graph.python_code()

    def save(self, f: str | os.PathLike[str] | IO[bytes], _extra_files: Any = None) -> None:
        """Write the program to a file."""
        save_program(program_of(self), f, extra_files=_extra_files)


def program_of(traced: Any, general: bool = True) -> ExportedProgram:
    """The exported program of what was traced, scripted with examples, or loaded; RuntimeError where there is none."""
    program = getattr(traced, "_program", None)
    if isinstance(program, ExportedProgram):
        return program
    programs = traced.__dict__.get("_programs")
    if programs is None:
        raise RuntimeError(
            "torch.jit.save: a program is made from examples, and this module has none. Save torch.jit.trace(module, example_inputs) or "
            "torch.jit.script(module, example_inputs=[...]), or the module's state_dict with torch.save."
        )
    if not general:
        return next(iter(programs.by_form.values()))
    return programs.general()


def trace(
    func: Callable[..., Any] | Module,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """A function or module as the operators that a call with examples runs: a `ScriptFunction`, or a `TopLevelTracedModule`.

    Values that Python asks for are as they were, and a TracerWarning says so; the trace is run again and compared with the function.
    Differs from PyTorch: a call with other sizes, dtypes or numbers is traced anew, and the program that `save` writes has all sizes
    open where the code allows it.

    >>> double = xtensor.jit.trace(lambda x: x * 2, (xtensor.ones(2),))
    >>> double(xtensor.ones(3))
    tensor([2., 2., 2.])
    """
    if isinstance(func, (TopLevelTracedModule, ScriptFunction)):
        return func
    if not callable(func):
        raise TypeError(f"torch.jit.trace: a function or module is expected, got {type(func).__name__}")
    kwargs = dict(example_kwarg_inputs or {})
    if example_inputs is None:
        args: tuple[Any, ...] = ()
    elif isinstance(example_inputs, (Tensor, dict)):
        args = (example_inputs,)
    else:
        args = tuple(example_inputs)
    is_module = isinstance(func, Module)
    programs = Programs(func if isinstance(func, Module) else Called(func), strict)
    programs.program(args, kwargs)
    made: Any = (
        TopLevelTracedModule(func, programs) if isinstance(func, Module) else ScriptFunction(func, programs)
    )
    if check_trace:
        for more in [(args, kwargs), *[(as_arguments(c), {}) for c in check_inputs or ()]]:
            check(programs.module if is_module else func, programs, more[0], more[1], check_tolerance)
    return made


def as_arguments(value: Any) -> tuple[Any, ...]:
    """Examples as positional arguments."""
    return (value,) if isinstance(value, (Tensor, dict)) else tuple(value)


def check(
    func: Any, programs: Programs, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: float
) -> None:
    """Compare a trace with what was traced, and warn where they part."""

    def copied() -> tuple[Any, Any]:
        return trees.tree_map(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, (args, kwargs))

    state = {n: b.clone() for n, b in programs.module.named_buffers()}

    def run(what: Any) -> list[Tensor]:
        more, options = copied()
        made = what(*more, **options)
        for name, buffer in programs.module.named_buffers():
            if name in state and isinstance(buffer, Tensor):
                buffer.data = state[name].clone()
        return [v for v in trees.tree_leaves(made) if isinstance(v, Tensor)]

    found = run(lambda *a, **k: programs.run(a, k))
    expected = run(func)
    for number, (one, other) in enumerate(zip(found, expected, strict=False), 1):
        try:
            assert_close(one.detach(), other.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            checks.warn(
                f"Output nr {number}. of the traced function does not match the corresponding output of the Python function. Detailed "
                f"error:\n{error}",
                TracerWarning,
            )
            return


class Method(Module):
    """A method of a module, seen as the module's forward."""

    def __init__(self, module: Module, name: str) -> None:
        super().__init__()
        for members in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[members] = module.__dict__[members]
        self.__dict__["training"] = module.training
        self.__dict__["_owner"], self.__dict__["_method"] = module, name

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the method gives."""
        return getattr(self._owner, self._method)(*args, **kwargs)


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    **options: Any,
) -> Any:
    """A module with several of its methods traced, each with the examples under its name."""
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    main = Programs(mod, strict)
    made = TopLevelTracedModule(mod, main)
    for name, given in inputs.items():
        programs = main if name == "forward" else Programs(Method(mod, name), strict)
        args = as_arguments(given)
        programs.program(args, {})
        if check_trace:
            check(getattr(mod, name), programs, args, {}, check_tolerance)
        if name != "forward":
            made.__dict__[name] = ScriptFunction(getattr(mod, name), programs)
    return made
