"""Who answers a call below autograd: classes and modes that define `__torch_dispatch__`, asked about the operator as declared.

The complete path asks once arguments are checked, with an operator object (`aten.py`); what comes back gets its place in the graph
from the operator's own rules. Plain tensors pay nothing: a mode is a bit that no inline path takes, and tensors of a class that
dispatches are seen through a view that none takes either (`overriding.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ...engine.modes import DISPATCH_MODE, NO_GRAD, state
from ...geometry import contiguous_strides
from ...storage import WrapperArray, WrapperStorage
from ...tensor import Tensor, make_view, tensor_over
from ...xla.cache import bounded
from ...xla.signals import from_start

__all__ = [
    "DISABLED_DISPATCH",
    "Asked",
    "Declined",
    "DispatchPushed",
    "asked_about",
    "below",
    "dispatched",
    "dispatches",
    "dispatching",
    "flat",
    "parts",
    "reentrant",
    "slots_of",
    "twin",
    "undispatched",
    "without_modes",
    "wrapper",
]

dispatching: list[type] = []
"""The classes that dispatch: empty as long as there are none."""


class Declined(TypeError):
    """Nobody who was asked made anything of a call."""


def disabled(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a class has as `__torch_dispatch__` whose tensors are not asked."""
    with undispatched():
        made = func(*args, **(kwargs or {}))
    return made


DISABLED_DISPATCH = staticmethod(disabled)


NESTED = 64
"""Lists within lists, as deep as any argument's: one that holds itself has no end."""


def flat(values: Iterable[Any], depth: int = NESTED) -> Iterator[Any]:
    """Arguments, and what lies in their lists and tuples."""
    for value in values:
        if not isinstance(value, (tuple, list)):
            yield value
        elif depth and value is not values:
            yield from flat(value, depth - 1)


@bounded(4096)
def dispatches(kind: type) -> bool:
    """Whether tensors of a type are asked below autograd."""
    found = getattr(kind, "__torch_dispatch__", None)
    return found is not None and found is not disabled


def asked_about(values: Iterable[Any]) -> list[Any] | None:
    """The tensors that are asked about a call, one of a type; None where neither they nor a mode are."""
    found: list[Any] = []
    if dispatching and not state.dispatch_off:
        for value in flat(values):
            kind = type(value)
            if isinstance(value, Tensor) and dispatches(kind):
                if all(type(other) is not kind for other in found):
                    at = [i for i, other in enumerate(found) if issubclass(kind, type(other))]
                    found.insert(at[0] if at else len(found), value)
    return found if found or state.mode & DISPATCH_MODE else None


def dispatched(
    func: Any, relevant: Sequence[Any], args: Any, kwargs: dict[str, Any], *, called: Any = None
) -> Any:
    """What the innermost mode, or the first tensor that is asked, makes of a call; TypeError where none makes anything.

    called: what the error calls the operator, where not by its own name.
    """
    kinds = tuple([type(value) for value in relevant])
    refused: list[str] = []
    if state.mode & DISPATCH_MODE:
        with below(state.dispatch_modes[:-1]) as before:
            asked = before[-1].__torch_dispatch__
            if getattr(asked, "__self__", before[-1]) is type(before[-1]):
                raise RuntimeError(
                    "Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method"
                )
            made = asked(func, kinds, args, kwargs)
        if made is not NotImplemented:
            return made
        refused.append(f"mode object {before[-1]!r}")
    for value in relevant:
        with below(state.dispatch_modes):
            made = type(value).__torch_dispatch__(func, kinds, args, kwargs)
        if made is not NotImplemented:
            return made
        refused.append(f"tensor subclass {type(value)!r}")
    if not refused:
        return func(*args, **kwargs)
    listed = "".join(f"\n  - {one}" for one in refused)
    raise Declined(
        f"Multiple dispatch failed for '{called or func}'; all __torch_dispatch__ handlers returned NotImplemented:\n{listed}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


# ---- blocks --------------------------------------------------------------------------------------------------------


class Asked:
    """A block in which these modes are asked below autograd, the last one first. Instances nest."""

    BITS = 0
    OFF = False

    def __init__(self, modes: tuple[Any, ...]) -> None:
        self.modes = modes
        self.before: list[tuple[tuple[Any, ...], int, bool, int | None]] = []

    def flags(self) -> int:
        """The mode within the block, modes aside."""
        return state.mode | self.BITS

    def above(self) -> int | None:
        """What `state.above_dispatch` is within the block."""
        return state.above_dispatch

    def __enter__(self) -> Any:
        before, off, above = state.dispatch_modes, state.dispatch_off, self.above()
        flags = self.flags() & ~DISPATCH_MODE | (DISPATCH_MODE if self.modes else 0)
        self.before.append((before, state.mode, off, state.above_dispatch))
        # Assignments alone from here on: an interrupt comes before the block or within it.
        state.above_dispatch, state.dispatch_modes = above, self.modes
        state.mode, state.dispatch_off = flags, off or self.OFF
        return before

    @from_start
    def __exit__(self, *error: object) -> None:
        try:
            self.before  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            bits = DISPATCH_MODE | self.BITS
            state.dispatch_modes = self.before[-1][0]
            state.mode = state.mode & ~bits | self.before[-1][1] & bits
            state.dispatch_off, state.above_dispatch = self.before[-1][2:]
            self.before.pop()


class without_modes(Asked):
    """A block in which no mode is asked below autograd."""

    def __init__(self) -> None:
        super().__init__(())


class undispatched(without_modes):
    """A block in which neither modes nor classes are asked below autograd: operators run on the tensors' own values."""

    OFF = True


class below(Asked):
    """A block below autograd: nothing is recorded, and these modes are asked."""

    BITS = NO_GRAD

    def above(self) -> int | None:
        return state.mode


class reentrant(Asked):
    """A block, of who answers below autograd, in which operators are recorded as they were above it."""

    BITS = NO_GRAD

    def __init__(self) -> None:
        super().__init__(state.dispatch_modes)

    def flags(self) -> int:
        above = state.above_dispatch
        return state.mode & ~NO_GRAD | (state.mode if above is None else above) & NO_GRAD


class DispatchPushed:
    """A block in which this object is asked before all modes, below autograd."""

    _before: list[tuple[tuple[Any, ...], int]]

    def prepare(self) -> None:
        """What is to be ready before the block begins."""

    def __enter__(self) -> Any:
        self.prepare()
        before = self.__dict__.setdefault("_before", [])
        before.append((state.dispatch_modes, state.mode & DISPATCH_MODE))
        modes, flags = (*state.dispatch_modes, self), state.mode | DISPATCH_MODE
        # Assignments alone from here on: an interrupt comes before the block or within it.
        state.dispatch_modes, state.mode = modes, flags
        return self

    @from_start
    def __exit__(self, *error: object) -> None:
        try:
            self._before  # noqa: B018
        finally:
            state.dispatch_modes = self._before[-1][0]
            state.mode = state.mode & ~DISPATCH_MODE | self._before[-1][1]
            self._before.pop()


# ---- results -------------------------------------------------------------------------------------------------------


def parts(made: Any, args: Iterable[Any] = ()) -> list[Tensor]:
    """The tensors of what was made, each without a history: another object where it has one, or is an argument."""
    given = {id(a) for a in flat(args)}
    found: list[Tensor] = []
    for part in flat(made if isinstance(made, (tuple, list)) else (made,)):
        if not isinstance(part, Tensor):
            raise RuntimeError(f"Unable to cast {part} to Tensor")
        found.append(twin(part) if part._xt_edge is not None or id(part) in given else part)
    return found


def twin(tensor: Tensor) -> Any:
    """Another object of the same class, memory and attributes, unknown to autograd."""
    kind = type(tensor)
    made = tensor_over(tensor._xt_storage, tensor._xt_view, kind=kind)
    made.__dict__.update(tensor.__dict__)
    for name in slots_of(kind):
        if hasattr(tensor, name):
            setattr(made, name, getattr(tensor, name))
    return made


@bounded(512)
def slots_of(kind: type[Tensor]) -> tuple[str, ...]:
    """The slots that a class of tensors adds."""
    found = [cls.__dict__.get("__slots__", ()) for cls in kind.__mro__ if not issubclass(Tensor, cls)]
    names = [name for slots in found for name in ((slots,) if isinstance(slots, str) else slots)]
    return tuple([name for name in names if name not in ("__dict__", "__weakref__")])


def wrapper(
    cls: type[Tensor],
    sizes: tuple[int, ...],
    strides: tuple[int, ...] | None,
    offset: int,
    dtype: Any,
    place: Any,
) -> Any:
    """A tensor of a class that keeps its values elsewhere."""
    storage = WrapperStorage(WrapperArray(sizes, dtype.numpy), place)
    view = make_view(storage, storage, dtype, sizes, strides or contiguous_strides(sizes), offset)
    made = tensor_over(storage, None, kind=cls)
    made._xt_view = view
    return made
