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
    "DispatchPushed",
    "asked_about",
    "below",
    "dispatched",
    "dispatches",
    "dispatching",
    "flat",
    "parts",
    "twin",
    "without_modes",
    "wrapper",
]

dispatching: list[type] = []
"""The classes that dispatch: empty as long as there are none."""


def disabled(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a class has as `__torch_dispatch__` whose tensors are not asked."""
    return func(*args, **(kwargs or {}))


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
    if dispatching:
        for value in flat(values):
            kind = type(value)
            if isinstance(value, Tensor) and dispatches(kind):
                if all(type(other) is not kind for other in found):
                    at = [i for i, other in enumerate(found) if issubclass(kind, type(other))]
                    found.insert(at[0] if at else len(found), value)
    return found if found or state.mode & DISPATCH_MODE else None


def dispatched(func: Any, relevant: Sequence[Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What the innermost mode, or the first tensor that is asked, makes of a call; TypeError where none makes anything."""
    kinds = tuple([type(value) for value in relevant])
    refused: list[str] = []
    if state.mode & DISPATCH_MODE:
        with below(state.dispatch_modes[:-1]) as before:
            made = before[-1].__torch_dispatch__(func, kinds, args, kwargs)
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
    raise TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n{listed}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


# ---- blocks --------------------------------------------------------------------------------------------------------


class Asked:
    """A block in which these modes are asked below autograd, the last one first. Instances nest."""

    BITS = 0

    def __init__(self, modes: tuple[Any, ...]) -> None:
        self.modes = modes
        self.before: list[tuple[tuple[Any, ...], int]] = []

    def __enter__(self) -> Any:
        before = state.dispatch_modes
        self.before.append((before, state.mode))
        flags = state.mode & ~DISPATCH_MODE | (DISPATCH_MODE if self.modes else 0) | self.BITS
        state.dispatch_modes, state.mode = self.modes, flags
        return before

    @from_start
    def __exit__(self, *error: object) -> None:
        try:
            self.before  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            bits = DISPATCH_MODE | self.BITS
            state.dispatch_modes = self.before[-1][0]
            state.mode = state.mode & ~bits | self.before[-1][1] & bits
            self.before.pop()


class without_modes(Asked):
    """A block in which no mode is asked below autograd."""

    def __init__(self) -> None:
        super().__init__(())


class below(Asked):
    """A block below autograd: nothing is recorded, and these modes are asked."""

    BITS = NO_GRAD


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
            raise TypeError(
                f"unable to convert python type <{type(part).__name__}> to the tensor that the operator's schema says it gives"
            )
        found.append(twin(part) if part._xt_edge is not None or id(part) in given else part)
    return found


def twin(tensor: Tensor) -> Any:
    """Another object of the same class, memory and attributes, unknown to autograd."""
    kind = type(tensor)
    made = tensor_over(tensor._xt_storage, tensor._xt_view, kind=kind)
    for name, value in tensor.__dict__.items():
        made.__dict__[name] = value
    for cls in kind.__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in () if issubclass(Tensor, cls) else (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(tensor, name):
                setattr(made, name, getattr(tensor, name))
    return made


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
