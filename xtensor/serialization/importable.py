"""What a file may name once its user said that it is trusted: classes that can be imported, and NumPy's arrays and numbers."""

from __future__ import annotations

import builtins
import copyreg
import importlib
import types
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from ..interop.alias import meaning
from .allowed import blocked
from .pickles import Global

__all__ = ["importable"]

# Modules whose classes do things when they are made: load libraries, start processes, run code.
NEVER = frozenset(
    "_ctypes asyncio builtins code codeop concurrent ctypes importlib multiprocessing pdb pickle pty pydoc runpy shutil "
    "socket threading timeit webbrowser".split()
)
# Functions that rebuild values and run nothing.
REBUILDING: dict[str, Callable[..., Any]] = {
    "copy_reg._reconstructor": copyreg._reconstructor,  # type: ignore[attr-defined]
    "copyreg._reconstructor": copyreg._reconstructor,  # type: ignore[attr-defined]
}
_numpy = {
    "multiarray._reconstruct": np.zeros(1).__reduce__()[0],
    "multiarray.scalar": np.float64(0).__reduce__()[0],
    "numeric._frombuffer": np.zeros(1).__reduce_ex__(5)[0],
}
for _name, _function in _numpy.items():
    REBUILDING |= {f"numpy.core.{_name}": _function, f"numpy._core.{_name}": _function}  # type: ignore[dict-item]
# Of Python's own classes, those without an effect beyond themselves.
PLAIN = frozenset(
    "bool bytes complex dict float int list memoryview object range slice str tuple NotImplemented Ellipsis".split()
)


def importable(name: str, where: Callable[[], str]) -> Global:
    """What a dotted name stands for: a class that may be made, or a function that is kept and not called.

    Names of `torch` are ours. UnpicklingError for what cannot be imported and for what is never made.
    """
    if name in REBUILDING:
        return Global(REBUILDING[name], REBUILDING[name])
    top, _, rest = name.partition(".")
    if top in ("builtins", "__builtin__") and rest in PLAIN:
        value: Any = getattr(builtins, rest)
        return Global(value, value if isinstance(value, type) else None)
    if blocked(name) or top in NEVER:
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {name} is not loaded with weights_only=False either: it could run what the file "
            f"says ({where()}). Nothing was loaded."
        )
    value = meaning(rest) if top == "torch" else _found(name.split("."))
    if value is None:
        raise UnpicklingError(f"GLOBAL {name} cannot be imported here ({where()}). Nothing was loaded.")
    if isinstance(value, type) and value.__module__.partition(".")[0] not in NEVER:
        return Global(value, value)
    if isinstance(value, types.FunctionType) or top == "torch":
        return Global(value)
    raise UnpicklingError(f"Unsupported global: GLOBAL {name} is neither a class nor a function ({where()}).")


def _found(path: list[str]) -> Any:
    for count in range(len(path) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(path[:count]))
        except ImportError:
            continue
        for part in path[count:]:
            value = getattr(value, part, None)
        return value
    return None
