"""Functions written by hand, seen by the profiler: while one records, each runs stand-in code that opens an event for it.

Declared operators open theirs on their slow path. A function over them, or over programs of its own, has no such path, and pays
nothing for being seen while nobody looks: the object that users hold stays the same, its code is put back as the profile ends.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from ..engine import profiler
from ..engine.modes import PROFILING, state
from ..operators.calls import shapes_of
from ..tensor import Tensor
from .catalog import about_tensors, exported, families, root

__all__ = ["show", "written_by_hand"]

RESULTS = re.compile(r"\b(Tensor|Any|ndarray|return_types)\b")
FACTS = frozenset({"size", "stride", "type", "is_tensor"})
"""What a tensor tells of itself is no work, though no annotation says so."""

PREFIXES = {
    "nn.functional": "",
    "nn.utils.clip_grad": "",
    "linalg": "linalg_",
    "fft": "fft_",
    "special": "special_",
    "signal.windows": "",
}
"""Public modules of functions, with what the names of their events begin with: an operator's is `linalg_inv` too."""

RUN = "what runs a function that is shown"


def _stand_in(*args: Any, **kwargs: Any) -> Any:
    return "what runs a function that is shown".__call__(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]


def written_by_hand() -> Iterator[tuple[str, Any]]:
    """The functions of tensors and methods that are no declared operator's, each once, under its name."""
    found: set[int] = set()
    public = [(n, getattr(family, n)) for family in families().values() for n in family.__all__]
    for namespace, prefix in PREFIXES.items():
        public += [(prefix + n, f) for n, f in exported(attrgetter(namespace)(root())).items()]
    for name, value in (*public, *vars(Tensor).items()):
        if not inspect.isfunction(value) or hasattr(value, "operator") or id(value) in found:
            continue
        method = vars(Tensor).get(name) is value
        if name in FACTS or (name.startswith("_") if method else not about_tensors(value)):
            continue
        if name.endswith("_") or RESULTS.search(str(inspect.unwrap(value).__annotations__.get("return"))):
            found.add(id(value))
            yield name, value


_shown: list[tuple[Any, Any, bool]] = []
"""Functions in stand-in code, their own, and whether they got a `__wrapped__`: an interrupt leaves none behind for good."""


def show() -> Callable[[], None]:
    """Put the stand-in code in place; what is returned puts the functions' own back."""
    hide()
    for name, function in written_by_hand():
        _show(name, function)
    return hide


def hide() -> None:
    """Put back the code of every function that is shown."""
    while _shown:
        function, code, wraps = _shown[-1]
        function.__code__ = code
        if wraps:
            function.__dict__.pop("__wrapped__", None)
        _shown.pop()


def _show(name: str, function: Any) -> None:
    """Make a function run through `begin` and `end`, with the signature that it has."""
    code = function.__code__
    plain = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__qualname__ = function.__qualname__
    plain.__annotations__ = function.__annotations__

    def run(*args: Any, **kwargs: Any) -> Any:
        if not state.mode & PROFILING:
            return plain(*args, **kwargs)
        token = profiler.begin(name, shapes_of((*args, *kwargs.values())), "function")
        nbytes = 0
        try:
            result = plain(*args, **kwargs)
            if isinstance(result, Tensor) and token is not None and not token.memory:
                nbytes = owned(result, args)
            return result
        finally:
            profiler.end(token, nbytes)

    wraps = not hasattr(function, "__wrapped__")
    _shown.append((function, code, wraps))
    function.__code__ = _stand_in.__code__.replace(
        co_consts=tuple([run if c == RUN else c for c in _stand_in.__code__.co_consts]),
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_freevars=code.co_freevars,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    if wraps:
        function.__wrapped__ = plain


def owned(result: Tensor, args: tuple[Any, ...]) -> int:
    """The bytes of a result whose memory is none of the arguments'."""
    storage = result._xt_storage
    if any(isinstance(a, Tensor) and a._xt_storage is storage for a in args):
        return 0
    return storage.nbytes()
