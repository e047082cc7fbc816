"""What tells a program's function apart, in this process and in the next: a digest over all that its trace can depend on.

A function is its module, its name, its code, and the values in its closure and defaults, each told apart likewise. What runs
below it in xtensor, JAX and NumPy is told by their sources and versions (`sources`). What cannot be told, such as a
function of the user's, is `Unknown`: programs of it are compiled in every process.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray

from .cache import bounded

__all__ = ["Unknown", "digest_of", "homes", "sources"]

PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
OURS = __name__.partition(".")[0]
KNOWN = (
    OURS,
    "jax",
    "numpy",
    "ml_dtypes",
    "builtins",
    "operator",
    "functools",
    "inspect",
    "math",
    "itertools",
)
"""Packages whose functions are told by their names and code, since `sources` covers the rest of them."""


homes: dict[type, str] = {}
"""The modules of classes that name others for now."""


class Unknown(Exception):
    """Something that cannot be told apart from others of its kind in another process."""


def digest_of(value: Any) -> bytes:
    """A digest of a value, 20 bytes; `Unknown` where there is none."""
    return hashlib.blake2b(repr(_Teller().tell(value)).encode(), key=sources(), digest_size=20).digest()


@bounded(1)
def sources() -> bytes:
    """A digest of the code that kernels are made of: xtensor's files, and the versions of what they call."""
    found = hashlib.blake2b(digest_size=32)
    root = pathlib.Path(__file__).parents[1]
    for file in sorted(root.rglob("*.py")):
        found.update(f"{file.relative_to(root)}\0".encode())
        found.update(hashlib.blake2b(file.read_bytes()).digest())
    for name in ("jax", "jaxlib", "numpy", "ml_dtypes"):
        found.update(f"{name} {importlib.metadata.version(name)}\0".encode())
    found.update(sys.version.encode())
    return found.digest()


@bounded(4096)
def _code(code: types.CodeType) -> str:
    """A digest of what a function does, wherever its file lies."""
    return hashlib.blake2b(repr(_stripped(code)).encode(), digest_size=12).hexdigest()


def _stripped(code: types.CodeType) -> tuple[Any, ...]:
    consts = tuple(
        [
            _stripped(c)
            if isinstance(c, types.CodeType)
            else sorted(map(repr, c))
            if isinstance(c, frozenset)
            else (type(c).__name__, repr(c))
            for c in code.co_consts
        ]
    )
    names = code.co_names, code.co_varnames, code.co_freevars
    return code.co_code, consts, *names, code.co_flags, code.co_argcount, code.co_kwonlyargcount


class _Teller:
    """Values as trees of plain tuples, each object that can be met again told once."""

    def __init__(self) -> None:
        # The objects are held: while one is being told, no other may have its address.
        self._met: dict[int, tuple[int, Any]] = {}

    def tell(self, x: Any) -> Any:
        kind = type(x)
        if kind in PLAIN:
            return kind.__name__, repr(x)
        if kind is tuple or kind is list:
            return kind.__name__, *[self.tell(v) for v in x]
        again = self._met.get(id(x))
        if again is not None:
            return "again", again[0]
        self._met[id(x)] = len(self._met), x
        for kinds, teller in TELLERS:
            if isinstance(x, kinds):
                return teller(self, x)
        return self._object(x)

    def _dict(self, x: Any) -> Any:
        return "dict", *[(self.tell(k), self.tell(v)) for k, v in x.items()]

    def _set(self, x: Any) -> Any:
        if not all(type(v) in PLAIN for v in x):
            raise Unknown("a set of objects")
        return "set", *sorted([(type(v).__name__, repr(v)) for v in x])

    def _function(self, f: Any) -> Any:
        if (f.__module__ or "").partition(".")[0] not in KNOWN:
            raise Unknown(f"function {f.__module__}.{f.__qualname__}")
        cells = []
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try:
                cells.append((name, self.tell(cell.cell_contents)))
            except ValueError:  # not set yet
                cells.append((name, None))
        defaults = self.tell(f.__defaults__), self.tell(f.__kwdefaults__)
        return "function", f.__module__, f.__qualname__, _code(f.__code__), tuple(cells), defaults

    def _builtin(self, f: Any) -> Any:
        owner = f.__self__
        if isinstance(owner, types.ModuleType) or owner is None:
            return "builtin", f.__module__, f.__qualname__
        return "builtin", f.__qualname__, self.tell(owner)

    def _partial(self, f: Any) -> Any:
        return "partial", self.tell(f.func), self.tell(f.args), self.tell(f.keywords)

    def _method(self, f: Any) -> Any:
        return "method", self.tell(f.__func__), self.tell(f.__self__)

    def _type(self, x: Any) -> Any:
        if x in PLAIN:
            return "type", x.__name__
        home = homes.get(x) or str(x.__module__)
        found: Any = sys.modules.get(home)
        for part in x.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is x and home.partition(".")[0] in KNOWN:
            return "type", home, x.__qualname__
        told = getattr(x, "_xt_identity", None)
        if told is None:
            raise Unknown(f"class {home}.{x.__qualname__}")
        return "class", x.__qualname__, *[self.tell(getattr(x, n)) for n in told]

    def _form(self, x: Any) -> Any:
        if getattr(x, "sharding", None) is not None and x.sharding.num_devices > 1:
            raise Unknown("a sharded form")
        return "form", tuple(x.shape), str(x.dtype), x.weak_type

    def _object(self, x: Any) -> Any:
        kind = type(x)
        if hasattr(x, "_fun") and hasattr(x, "_jit_info"):
            program = getattr(x, "_xt_program", None)
            if program is not None:  # told once, in however many others it stands
                if program.digest is None:
                    raise Unknown(f"program {x.__name__}")
                return "program", program.digest.hex()
            info = x._jit_info
            options = info.donate_argnums, info.static_argnums, info.static_argnames
            return "jitted", self.tell(x._fun), *map(repr, options)
        if isinstance(x, tuple):
            return self.tell(kind), *[self.tell(v) for v in x]
        ours = kind.__module__.partition(".")[0] == OURS
        names = getattr(kind, "_xt_identity", None)
        if names is None and ours and dataclasses.is_dataclass(x):
            names = [field.name for field in dataclasses.fields(x)]
        if names is None and ours and not hasattr(x, "__dict__") and not any(map(_slots, kind.__mro__)):
            names = ()
        if names is None:
            raise Unknown(f"{kind.__module__}.{kind.__qualname__}")
        return self.tell(kind), *[self.tell(getattr(x, name)) for name in names]


def _slots(kind: type) -> Any:
    return kind.__dict__.get("__slots__")


TELLERS: tuple[tuple[Any, Callable[[_Teller, Any], Any]], ...] = (
    (types.FunctionType, _Teller._function),
    (type, _Teller._type),
    (dict, _Teller._dict),
    ((set, frozenset), _Teller._set),
    (types.BuiltinFunctionType, _Teller._builtin),
    (functools.partial, _Teller._partial),
    (types.MethodType, _Teller._method),
    (types.ModuleType, lambda _, x: ("module", x.__name__)),
    (np.dtype, lambda _, x: ("dtype", x.str, x.name)),
    (np.generic, lambda _, x: ("number", x.dtype.name, x.tobytes())),
    (np.ufunc, lambda _, x: ("ufunc", x.__name__)),
    ((ShapedArray, jax.ShapeDtypeStruct), _Teller._form),
    (jax.tree_util.PyTreeDef, lambda _, x: ("tree", str(x))),
    (enum.Enum, lambda teller, x: (teller.tell(type(x)), x.name)),
    (slice, lambda teller, x: ("slice", teller.tell((x.start, x.stop, x.step)))),
    ((jax.custom_jvp, jax.custom_vjp), lambda teller, x: ("custom", teller.tell(x.fun))),
)
