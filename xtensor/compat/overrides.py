"""`torch.overrides`: classes and modes that answer calls in an operator's place, and questions about them.

How they are asked says `operators/overriding.py`.
"""

from __future__ import annotations

import collections
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import checks
from ..engine.modes import state
from ..operators import overriding
from ..operators.below.aten import OpOverload, OpOverloadPacket
from ..operators.below.dispatching import reentrant
from ..operators.overriding import Pushed, SubclassesOff, is_property
from ..tensor import Tensor
from ..xla.cache import bounded

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


class DisableTorchFunctionSubclass(SubclassesOff):
    """A block in which arguments are not asked: what a `__torch_function__` opens around the call that it lets happen.

    >>> class Named(xtensor.Tensor): ...
    >>> x = xtensor.ones(2).as_subclass(Named)
    >>> with xtensor.overrides.DisableTorchFunctionSubclass():
    ...     type(x + 1) is xtensor.Tensor
    True
    """


class DisableTorchFunction(SubclassesOff):
    """A block in which neither arguments nor modes are asked."""

    LEVEL = 2


class TorchFunctionMode(Pushed):
    """A block whose calls are answered by `__torch_function__(func, types, args, kwargs)`; to be subclassed.

    While it answers, only the modes around it are asked. `func` is the function as it was called: `xtensor.add` for
    `x + y` and for `x.add(y)`, which are one function here. Differs from PyTorch: properties of plain tensors are not asked.

    >>> class Loud(xtensor.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Loud():
    ...     total = xtensor.ones(2).sum()
    ones
    sum
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, to be entered; an older spelling."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call happen."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def enable_reentrant_dispatch() -> reentrant:
    """A block, of a `__torch_dispatch__`, in which what it calls is recorded for autograd as it is outside of it."""
    return reentrant()


def redispatch_function(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """A call that asks nobody about the function itself: what it calls is asked about.

    >>> class Named(xtensor.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return xtensor.overrides.redispatch_function(func, types, args, kwargs)
    >>> y = xtensor.nn.functional.softmin(xtensor.ones(2).as_subclass(Named), dim=0)
    softmin
    neg
    """
    state.overrides_skip = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        state.overrides_skip = False


def _get_current_function_mode() -> Any:
    return state.function_modes[-1] if state.function_modes else None


def _get_current_function_mode_stack() -> list[Any]:
    return list(state.function_modes)


def _len_torch_function_stack() -> int:
    return len(state.function_modes)


# ---- questions -----------------------------------------------------------------------------------------------------


def is_tensor_like(inp: Any) -> bool:
    """Whether this is a Tensor, or an object that could stand for one."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument, or a mode, is to be asked about a call with these."""
    if not isinstance(relevant_args, Iterable):
        raise TypeError("expected a sequence")
    return overriding.claimed(relevant_args) is not None


def has_torch_function_unary(tensor: Any) -> bool:
    """`has_torch_function` of one object."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several objects."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the innermost mode, or the first argument that is asked, makes of a call; TypeError if none makes anything."""
    found = [] if state.overrides_off else overriding.overloaded(relevant_args)
    return overriding.answer(public_api, found, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Any], Any]:
    """A decorator: the function asks the arguments that `dispatcher(*args, **kwargs)` gives."""

    def wrap(function: Any) -> Any:
        @functools.wraps(function)
        def asked(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(asked, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return asked

    return wrap


# ---- what can be overridden ----------------------------------------------------------------------------------------


def get_default_nowrap_functions() -> set[Any]:
    """Getters whose values stay of the class they are, when a subclass is asked for them."""
    return set(overriding.nowrap())


@bounded(1)
def _functions() -> dict[Any, dict[str, Any]]:
    """The functions that can be overridden, by the module or class that has them, with their names."""
    library = __name__.partition(".")[0]
    found: dict[Any, dict[str, Any]] = {}
    for below in overriding.NAMESPACES:
        module = importlib.import_module(f"{library}.{below}".rstrip("."))
        found[module] = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, types.FunctionType)
            and not name.startswith("_")
            and name not in overriding.FACTORIES
            and name not in overriding.SPARSE
            and value.__module__.partition(".")[0] == library
            and value.__module__ != Tensor.__module__
            and overriding.takes_tensors(value)
        }
    methods: dict[str, Any] = {
        name: value
        for name, value in vars(Tensor).items()
        if name not in overriding.KEPT
        and (not name.startswith("_") or name.endswith("__"))
        and isinstance(value, types.FunctionType)
    }
    for name, value in overriding.properties().items():
        methods[f"{name}.__get__"] = value.__get__
    found[Tensor] = methods
    return found


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """All functions that `__torch_function__` can answer for, by the module or class that has them."""
    found: dict[Any, list[Callable[..., Any]]] = collections.defaultdict(list)
    for owner, functions in _functions().items():
        found[owner] += functions.values()
    return found


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that `__torch_function__` is never asked about."""
    library = importlib.import_module(__name__.partition(".")[0])
    known = {id(f) for functions in _functions().values() for f in functions.values()}
    methods = {getattr(Tensor, name) for name in overriding.KEPT if hasattr(Tensor, name)}
    return {
        value
        for name, value in vars(library).items()
        if isinstance(value, types.FunctionType) and not name.startswith("_") and id(value) not in known
    } | methods


@bounded(1)
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one of the same signature that gives -1."""
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for functions in _functions().values():
        for name, function in functions.items():
            found.setdefault(function, _dummy(name, function))
    return found


def _dummy(name: str, function: Any) -> Any:
    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    dummy.__name__ = name
    if not is_property(function):
        dummy.__signature__ = inspect.signature(function)  # pyright: ignore[reportFunctionMemberAccess]
    return dummy


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is one of Tensor's methods and no function of a module, or the getter of one of its properties."""
    if getattr(func, "__name__", "") == "__get__":
        return True
    return next((owner for owner, held in _functions().items() if func in held.values()), None) is Tensor


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public name of a function that can be overridden, `torch.add` or `torch.Tensor.shape.__get__`; None for others."""
    library = checks.spelled("").rstrip(".")
    for owner, functions in _functions().items():
        for name, function in functions.items():
            if function is f or (is_property(f) and function == f):
                below = "Tensor" if owner is Tensor else owner.__name__.partition(".")[2]
                return ".".join(part for part in (library, below, name) if part)
    return str(f) if isinstance(f, (OpOverloadPacket, OpOverload)) else None
