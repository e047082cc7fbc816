"""What lies beneath a tensor inside of a transform, and functions whose results are their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..engine.modes import state
from ..operators.levels.crossing import lift, lower, running
from ..tensor import Tensor, array_of, wrap
from ..trees import tree_map
from ..xla.levels import Leveled, tracing
from ..xla.signals import from_start
from .tracking import tensors

__all__ = ["debug_unwrap", "functionalize"]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor beneath one that a transform has made: of a batch all samples, of a value with its tangent the value.

    recurse: through all levels. For looking at values only: a derivative through it is wrong.

    >>> xtensor.vmap(xtensor.func.debug_unwrap, out_dims=None)(xtensor.ones(2))
    tensor([1., 1.])
    """
    array = array_of(tensor)
    if not isinstance(array, Leveled):
        return tensor
    array = array.inner
    while recurse and isinstance(array, Leveled):
        array = array.inner
    return wrap(array)


class Marked:
    """A block in which a transform runs that makes no level."""

    __slots__ = ("before", "born", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.born = 0

    def __enter__(self) -> None:
        self.before = before = state.transforms
        state.transforms = (*before, self)

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self.before  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            state.transforms = self.before


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function with results of their own: what it writes to its arguments shows there, and no result is a written argument.

    remove: with "mutations_and_views" no result shares memory with an argument either. In the graph of `make_fx` no operator
    writes but the `copy_` of written arguments, and then no operator gives a view. Else nothing need be rewritten: arrays are
    never written here.

    >>> x = xtensor.zeros(2)
    >>> found = xtensor.func.functionalize(lambda x: x.add_(1))(x)
    >>> found, x, found is x
    (tensor([1., 1.]), tensor([1., 1.]), False)
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their "
            "out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced with "
            "their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if tracing.recorder is not None:
            return recorded(func, remove, args, kwargs)
        given = {id(t._xt_storage): (t, t._version) for t in tensors((args, kwargs))}
        with Marked("functionalize"):
            found = func(*args, **kwargs)

        def apart(value: Any) -> Any:
            known = given.get(id(value._xt_storage)) if isinstance(value, Tensor) else None
            if known is None:
                return value
            tensor, version = known
            shared = remove == "mutations_and_views" and value is not tensor
            return value.clone() if shared or tensor._version != version else value

        return tree_map(apart, found)

    return wrapped


def recorded(func: Callable[..., Any], remove: str, args: Any, kwargs: Any) -> Any:
    """`functionalize` while a graph is recorded: at a level of its own, so that all is recorded beneath it, where nothing is written."""
    entered: dict[int, tuple[Tensor, Tensor]] = {}
    with running(f"functionalize({remove})", 1, "same") as level:

        def given(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            made = lift(value, level)
            entered[id(made)] = made, value
            return made

        memories = tree_map(given, (args, kwargs))
        found = func(*memories[0], **memories[1])
        written = {key: inner for key, (inner, _) in entered.items() if inner._xt_storage.version}

        def shown(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            known = entered.get(id(value))
            return lower(value, level) if known is None or id(value) in written else known[1]

        results = tree_map(shown, found)
        values = {key: lower(inner, level) for key, inner in written.items()}
    for key, value in values.items():
        entered[key][1].copy_(value)
    return results
