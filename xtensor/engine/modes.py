"""Per-thread modes: one integer of flags that every operator reads once, and the context managers that set it."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeVar, cast, overload

from .. import checks
from ..xla.signals import from_start
from ..xla.threads import OWN, Token

__all__ = [
    "ANOMALY",
    "AUTOCAST",
    "DEVICE_CONTEXT",
    "DISPATCH_MODE",
    "FUNCTION_MODE",
    "INFERENCE",
    "NO_GRAD",
    "PROFILING",
    "SAVED_HOOKS",
    "DecoratorContext",
    "enable_grad",
    "flag",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "restore",
    "set_flag",
    "set_grad_enabled",
    "snapshot",
    "state",
]

NO_GRAD = 1
INFERENCE = 2
SAVED_HOOKS = 4
PROFILING = 8
ANOMALY = 16
AUTOCAST = 32
DEVICE_CONTEXT = 64
FUNCTION_MODE = 128
DISPATCH_MODE = 256
GRADS = NO_GRAD | INFERENCE

F = TypeVar("F", bound=Callable[..., Any])


class _State(threading.local):
    """A thread's modes; the operators' fast path is taken when `mode <= 1` (only NO_GRAD may be set).

    Other layers may keep per-mode data here too (the autocast dtype, the default device, ...): whatever is stored
    travels with the modes to the engine's worker threads.
    """

    mode: int = 0
    saved_hooks_disabled: str | None = None
    # `__torch_function__`: 1 where arguments are not asked, 2 where modes are not either; and the modes, the innermost last.
    overrides_off: int = 0
    # Whether the next question is left out.
    overrides_skip: bool = False
    function_modes: tuple[Any, ...] = ()
    # `__torch_dispatch__`: the modes, the innermost last.
    dispatch_modes: tuple[Any, ...] = ()
    # Whether classes are left out.
    dispatch_off: bool = False
    # The flags outside of who answers now; None where nobody does.
    above_dispatch: int | None = None
    check_nan: bool = True
    mutation: Any = None  # what `allow_mutation_on_saved_tensors` keeps, inside its block
    # Autocast: the kinds of devices it is on for, their dtypes, and the casts of parameters made since it was entered.
    autocast_enabled: frozenset[str] = frozenset()
    autocast_dtypes: Mapping[str, Any] = MappingProxyType({})
    autocast_nesting: int = 0
    autocast_caching: bool = True
    autocast_cache: dict[Any, Any] | None = None
    # The function transforms that are running, the outermost first.
    transforms: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.token = Token()
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []


# Made by a thread of the package's own: whoever imports it need not be one that runs operators.
_maker = threading.Thread(target=lambda: _made.append(_State()), name=f"{OWN}import")
_made: list[_State] = []
_maker.start()
_maker.join()
(state,) = _made


def snapshot() -> dict[str, Any]:
    """Return a copy of this thread's modes, to be given to `restore` in another thread."""
    modes = state.__dict__.items()
    return {n: value[:] if type(value) is list else value for n, value in modes if n != "token"}


def restore(saved: dict[str, Any]) -> None:
    """Make this thread's modes those of a `snapshot`."""
    own = state.__dict__
    token = state.token
    own.clear()
    own["token"] = token
    own["mode"] = 0
    for name, value in saved.items():
        own[name] = value[:] if type(value) is list else value


def set_flag(bit: int, on: bool) -> bool:
    """Set or clear one flag of this thread and return what it was."""
    before = state.mode
    state.mode = before | bit if on else before & ~bit
    return bool(before & bit)


class flag:
    """Hold one flag on (or off) for the length of a `with` block; instances nest and can be used again."""

    __slots__ = ("_before", "bit", "on")

    def __init__(self, bit: int, on: bool = True) -> None:
        self.bit = bit
        self.on = on
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(set_flag(self.bit, self.on))

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self._before  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            state.mode = state.mode | self.bit if self._before[-1] else state.mode & ~self.bit
            self._before.pop()


def _wrap_generator(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Hold the context only while the generator's own code runs, never while its caller's does."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume: Callable[..., Any] = generator.send
        message: tuple[Any, ...] = (None,)
        while True:
            try:
                with make():
                    item = resume(*message)
            except StopIteration as stop:
                return stop.value
            try:
                resume, message = generator.send, ((yield item),)
            except GeneratorExit:
                with make():
                    generator.close()
                raise
            except BaseException:
                resume, message = generator.throw, (sys.exc_info()[1],)

    return wrapped


class DecoratorContext:
    """Base of the mode context managers, which also decorate functions and generators."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a fresh manager for one call of a decorated function."""
        return self.__class__()

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            checks.warn(
                "Decorating classes is deprecated and will be disabled in future versions. "
                "You should only decorate functions or methods. To preserve the current behavior of class "
                "decoration, you can directly decorate the `__init__` method and nothing else.",
                FutureWarning,
            )
            function.__init__ = self(function.__init__)  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
            return cast(F, function)
        if inspect.isgeneratorfunction(function):
            return cast(F, _wrap_generator(self.clone, function))
        clone = self.clone

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            before = state.mode
            try:
                with clone():
                    return function(*args, **kwargs)
            finally:
                state.mode = state.mode & ~GRADS | before & GRADS

        return cast(F, wrapped)


class _GradMode(DecoratorContext):
    """Shared body of `no_grad` and `enable_grad`, which may stand as decorators without parentheses."""

    _bits: int

    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...
    def __new__(cls, function: Any = None) -> Any:
        return object.__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> None:
        before = state.mode
        self._before.append(before)
        state.mode = before & ~NO_GRAD | self._bits

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self._before  # noqa: B018
        finally:
            state.mode = state.mode & ~NO_GRAD | self._before[-1] & NO_GRAD
            self._before.pop()


class no_grad(_GradMode):
    """Record no graph in this thread inside the block, or in the decorated function.

    Raises: TypeError for arguments, but one function.

    >>> x = xtensor.ones(1, requires_grad=True)
    >>> with xtensor.no_grad():
    ...     print((x * 2).requires_grad)
    False
    """

    _bits = NO_GRAD


class enable_grad(_GradMode):
    """Record the graph in this thread inside the block, or in the decorated function, even within `no_grad`.

    Raises: TypeError for arguments, but one function.

    >>> with xtensor.no_grad(), xtensor.enable_grad():
    ...     print(xtensor.ones(1, requires_grad=True).exp().requires_grad)
    True
    """

    _bits = 0


class set_grad_enabled(DecoratorContext):
    """Switch recording on or off: at once when called, for the block as a context manager, or per decorated call.

    Raises: TypeError for what is no bool.

    >>> with xtensor.set_grad_enabled(False):
    ...     print(xtensor.is_grad_enabled())
    False
    """

    def __init__(self, mode: bool) -> None:
        if type(mode) is not bool:
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.mode = mode
        self.prev = not set_flag(NO_GRAD, not mode)

    def __call__(self, function: F) -> F:
        set_flag(NO_GRAD, not self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        set_flag(NO_GRAD, not self.mode)

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self.prev  # noqa: B018
        finally:
            state.mode = state.mode & ~NO_GRAD | (0 if self.prev else NO_GRAD)

    def clone(self) -> set_grad_enabled:
        return self.__class__(self.mode)

    def __repr__(self) -> str:
        return f"xtensor.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode(DecoratorContext):
    """Record nothing and keep no versions: results are inference tensors, unusable in a later recorded graph.

    `inference_mode(False)` leaves the mode, and switches recording on, as in PyTorch.

    Raises: nothing of its own.

    >>> with xtensor.inference_mode():
    ...     print(xtensor.ones(1).is_inference())
    True
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...
    def __new__(cls, mode: Any = True) -> Any:
        return object.__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[int] = []

    def __enter__(self) -> None:
        before = state.mode
        self._before.append(before)
        state.mode = before | GRADS if self.mode else before & ~GRADS

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self._before  # noqa: B018
        finally:
            state.mode = state.mode & ~GRADS | self._before[-1] & GRADS
            self._before.pop()

    def clone(self) -> inference_mode:
        return self.__class__(self.mode)


def is_grad_enabled() -> bool:
    """Whether operators of this thread record the graph.

    Raises: nothing of its own.

    >>> with xtensor.no_grad():
    ...     print(xtensor.is_grad_enabled())
    False
    """
    return not state.mode & NO_GRAD


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return bool(state.mode & INFERENCE)
