"""What rewritten code tells, while a function is captured: reads become guards, and what a program could not do again ends the capture.

Numbers, strings, objects and containers that were there before are compared at every call. Appending to a list that was there before, setting
an attribute, drawing numbers of Python's, reading the clock or a file are refused.
"""

from __future__ import annotations

import gc
import io
import os
import random
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from ..amp.grad_scaler import GradScaler
from ..autograd.function import FunctionCtx
from ..nn.modules.module import Module
from ..operators.generator import Generator
from ..optim.lr_scheduler.scheduler import LRScheduler
from ..optim.optimizer import Optimizer
from ..tensor import Tensor
from .effects import print_later, scaler_call, scheduler_call
from .numbers import Number, Operands
from .reads import EMPTY, Read, comparison, contents
from .rewrite import names_read
from .watch import Break, Trace

__all__ = ["CALLED", "LIBRARY", "OURS", "REWRITTEN", "USER", "Recorder", "root_of"]

SIMPLE = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
CONTAINERS = (list, dict, set, OrderedDict, defaultdict, deque, bytearray)
OURS = ("xtensor", "jax", "jaxlib", "numpy", "ml_dtypes", "opt_einsum", "etils", "scipy")
PURE = (
    "math cmath operator itertools functools contextlib collections typing numbers enum dataclasses copy abc string re "
    "warnings types textwrap heapq bisect fractions decimal statistics inspect einops packaging"
).split()
LARGEST = 4096
"""How many elements a container may have to be compared at every call."""
LIBRARY, REWRITTEN, USER, CALLED = 0, 1, 2, 3
"""Whose code runs; the last is a call of a module."""
READING = frozenset(
    (
        "get keys values items copy count index __len__ __contains__ __getitem__ __iter__ union intersection difference "
        "symmetric_difference issubset issuperset isdisjoint"
    ).split()
)
FORBIDDEN = frozenset(
    "open input exec eval globals locals vars delattr __import__ breakpoint compile exit quit".split()
)
KEPT = (Optimizer, LRScheduler, GradScaler, Generator, *CONTAINERS)
"""Objects whose attributes have a meaning to a capture."""
OWN_DICTS = frozenset(("_parameters", "_buffers", "_modules"))


def root_of(name: Any) -> str:
    """The first part of a dotted name."""
    return str(name or "").partition(".")[0]


class Recorder:
    """What the rewritten code tells of; it acts on the capture's thread only."""

    on = False

    def __init__(self, trace: Trace, follower: Any, operands: dict[Any, Read]) -> None:
        self.trace = trace
        self.follower = follower
        self.operands = Operands(trace, operands)
        self.thread = trace.thread
        self.looking = False
        self.made: dict[int, Any] = {}
        self.making: list[type] = []
        self.found_modules: dict[int, Module] = {}
        self.checks: dict[Any, Read] = {}
        self.lazy: dict[int, Any] = {}
        self.deep: dict[int, Any] = {}
        self.entered: set[Any] = set()
        self.read_names: set[tuple[int, str]] = set()

    def active(self) -> bool:
        return self.on and threading.get_ident() == self.thread

    def refuse(self, reason: str) -> None:
        self.trace.refuse(reason)

    # -- what rewritten code calls

    def new(self, value: Any) -> Any:
        """A container that the code has made."""
        if self.active():
            self.made[id(value)] = value
        return value

    def slice(self, *parts: Any) -> slice:
        """A slice."""
        return slice(*parts)

    def caught(self) -> None:
        """A handler of the user's has caught something."""
        if not self.active():
            return
        error = sys.exc_info()[1]
        if self.trace.broken is not None:
            raise self.trace.broken
        if root_of(type(error).__module__) in ("jax", "jaxlib") or isinstance(error, jax.errors.JAXTypeError):
            self.refuse("it catches an error that a value not known in a capture raised")

    def grow(self, value: Any) -> None:
        """A name is augmented: a container in place."""
        if self.active() and isinstance(value, (*CONTAINERS, np.ndarray)) and id(value) not in self.made:
            self.refuse(f"it changes a {type(value).__name__} that was there before")

    def grown(self, value: Any, name: str) -> Any:
        """An object whose attribute is augmented: read, and written."""
        found = self.attr(value, name)
        return value if isinstance(found, Tensor) else self.own(value, name)

    def own(self, value: Any, name: str | None) -> Any:
        """An object whose attribute `name`, or one of whose items, is about to be written."""
        if not self.active() or id(value) in self.made:
            return value
        if isinstance(value, Tensor):
            if name is None or name in ("grad", "data", "requires_grad"):
                return value
        elif isinstance(value, FunctionCtx) or id(value) in self.trace.modules:
            return value
        elif any(isinstance(value, kind) for kind in self.making):
            self.made[id(value)] = value
            return value
        elif name is not None and (id(value), name) in self.trace.sets:
            return value
        elif name is not None and not isinstance(value, (type, types.ModuleType, *KEPT)):
            read = (id(value), name) in self.read_names or ("attr", id(value), name) in self.checks
            if not read and self.trace.set_later(value, name):
                return value
        what = f"the attribute {name}" if name is not None else "an item"
        self.refuse(f"it sets {what} of a {type(value).__name__} that was there before")
        return value

    def attr(self, value: Any, name: str) -> Any:
        """`value.name`."""
        found = getattr(value, name)
        if self.active() and not isinstance(value, Tensor) and id(value) not in self.made:
            if (number := self.operands.at("attr", value, name)) is not None:
                if isinstance(value, Module):
                    self.found_modules[id(value)] = value
                return number
            if (id(value), name) not in self.trace.sets and id(value) not in self.trace.modules:
                self._read_attribute(value, name, found)
        return found

    def item(self, value: Any, index: Any) -> Any:
        """`value[index]`."""
        found = value[index]
        if self.active() and not isinstance(value, Tensor) and id(value) not in self.made:
            if id(value) in self.lazy:
                if isinstance(found, list):
                    self.lazy[id(found)] = found
                    self.shallow(found)
                elif isinstance(found, dict):
                    self.lazy[id(found)] = found
                else:
                    self.check("item", (value, index), found)
            elif value is os.environ:
                self.refuse("it reads the environment")
        return found

    def named(self, name: str, value: Any) -> Any:
        """A global, or a variable of a function around it."""
        return self.operands.named(name, value) if self.active() else value

    def operand(self, value: Any) -> Any:
        """What a name or an attribute is augmented by."""
        return value.known() if type(value) is Number else value

    def call(self, function: Any) -> Any:
        """What is to be called in the place of `function`."""
        if not self.active() or self.looking:
            return function
        # To ask what something is may run a class's own `__getattribute__`, which is not the user's call.
        self.looking = True
        try:
            return self._called(function)
        finally:
            self.looking = False

    def _called(self, function: Any) -> Any:
        if self.trace.numbered and function in (isinstance, type):
            return self._knowing(function)
        kind = type(function)
        if kind is types.FunctionType:
            home = root_of(function.__module__)
            if home in sys.stdlib_module_names and home not in PURE and home != "__main__":
                self.refuse(f"it calls {function.__module__}.{function.__qualname__}")
            return function
        if kind is types.MethodType:
            return self._method(function)
        if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
            return self._builtin(function)
        if isinstance(function, type):
            return self._class(function)
        if isinstance(function, Module):
            self.found_modules[id(function)] = function
            return function
        if kind in (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType):
            if function.__objclass__ in CONTAINERS and kind is not types.ClassMethodDescriptorType:
                # As the container's own method: `set.union(a, b)` is `a.union(b)`.
                return lambda owner, *args, **kwargs: self.call(function.__get__(owner))(*args, **kwargs)
            return function
        home = root_of(kind.__module__)
        if home in sys.stdlib_module_names and home not in PURE and home not in ("builtins", "__main__"):
            self.refuse(f"it calls a {kind.__module__}.{kind.__qualname__}")
        return function

    # -- calls

    def _method(self, function: Any) -> Any:
        owner, name = function.__self__, function.__name__
        if isinstance(owner, LRScheduler):
            return scheduler_call(self.trace, owner, function)
        if isinstance(owner, GradScaler):
            for option in ("_enabled", "_growth_factor", "_backoff_factor", "_growth_interval"):
                self.check("attr", (owner, option), getattr(owner, option))
            return scaler_call(self.trace, owner, name)
        if isinstance(owner, Generator) and name != "next_draw":
            self.refuse(f"it calls Generator.{name}")
        if isinstance(owner, Optimizer) and name not in ("step", "zero_grad"):
            self.refuse(f"it calls {type(owner).__name__}.{name}")
        if isinstance(owner, Module):
            self.found_modules[id(owner)] = owner
        home = root_of(type(owner).__module__)
        known = home in (*OURS, *PURE, "builtins", "__main__") or home not in sys.stdlib_module_names
        if not known or "random" in type(owner).__module__.split(".") or isinstance(owner, random.Random):
            self.refuse(f"it calls {type(owner).__name__}.{name}")
        return function

    def _builtin(self, function: Any) -> Any:
        owner: Any = function.__self__
        name = function.__name__
        if isinstance(owner, types.ModuleType) or owner is None:
            home = root_of(getattr(owner, "__name__", None) or function.__module__).lstrip("_")
            if home == "builtins":
                return self._of_python(function, name)
            if home not in PURE and home not in OURS:
                self.refuse(f"it calls {home}.{name}")
            if "random" in str(getattr(owner, "__name__", "")):
                self.refuse(f"it calls {home}.{name}")
            return function
        if isinstance(owner, type) and root_of(owner.__module__) not in (*OURS, *PURE, "builtins"):
            self.refuse(f"it calls {owner.__name__}.{name}")
        if isinstance(owner, (type, SIMPLE, tuple, range, slice)):
            return self._making_lists(function)
        if isinstance(owner, CONTAINERS):
            if id(owner) in self.made:
                return function
            if id(owner) in self.lazy:
                self.deeply(owner)
            if name in READING:
                return self._making_lists(function) if name == "copy" else function
            self.refuse(f"it calls {type(owner).__name__}.{name} on one that was there before")
        home = root_of(type(owner).__module__)
        if home in OURS or home in PURE or home in ("builtins",):
            if isinstance(owner, np.random.Generator) or "random" in type(owner).__module__:
                self.refuse("it draws random numbers of NumPy's")
            if isinstance(owner, io.IOBase):
                self.refuse("it writes or reads a file")
            return function
        self.refuse(f"it calls {type(owner).__name__}.{name}")
        return function

    @staticmethod
    def _knowing(function: Any) -> Any:
        """A function that tells classes apart: of a number that is not known it may not."""

        def run(*args: Any) -> Any:
            for value in args:
                if type(value) is Number:
                    value.known()
            return function(*args)

        return run

    def _making_lists(self, function: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            found = function(*args, **kwargs)
            return self.new(found) if isinstance(found, CONTAINERS) else found

        return run

    def _of_python(self, function: Any, name: str) -> Any:
        if name == "getattr":

            def reading(value: Any, wish: str, *default: Any) -> Any:
                try:
                    return self.attr(value, wish)
                except AttributeError:
                    if not default:
                        raise
                    self.check("missing", (value, wish), None)
                    return default[0]

            return reading
        if name == "hasattr":

            def asking(value: Any, wish: str) -> bool:
                if hasattr(value, wish):
                    self.attr(value, wish)
                    return True
                self.check("missing", (value, wish), None)
                return False

            return asking
        if name == "setattr":
            return lambda value, wish, to: setattr(self.own(value, wish), wish, to)
        if name == "print":
            return print_later(self.trace)
        if name in ("sorted", "dir"):
            return self._making_lists(function)
        if name in FORBIDDEN:
            self.refuse(f"it calls {name}")
        return function

    def _class(self, function: Any) -> Any:
        home = root_of(function.__module__)
        if function in CONTAINERS or home == "builtins":
            return self._making_lists(function) if function in CONTAINERS else function
        if home in sys.stdlib_module_names and home not in PURE and home != "__main__":
            self.refuse(f"it makes a {function.__module__}.{function.__qualname__}")
        if home in OURS:
            if issubclass(function, (Generator, Optimizer, LRScheduler, GradScaler)):
                self.refuse(f"it makes a {function.__name__}")
            return function

        def make(*args: Any, **kwargs: Any) -> Any:
            self.making.append(function)
            try:
                found = function(*args, **kwargs)
            finally:
                self.making.pop()
            if not isinstance(found, (Tensor, *SIMPLE)):
                self.made[id(found)] = found
            return found

        return make

    # -- reads

    def check(self, kind: str, where: tuple[Any, ...], value: Any) -> None:
        """Have a read checked at every call. The first reading counts: what is changed later in the function is refused."""
        key = (kind, *[id(w) if not isinstance(w, (str, int)) else w for w in where])
        self.checks.setdefault(key, (kind, where, value))

    def load(self, value: Any, what: str) -> None:
        """A value from outside: what can be read of it without being told is compared, what changes by reading is refused."""
        kind = type(value)
        if kind in SIMPLE or id(value) in self.made:
            return
        if isinstance(value, Module):
            self.found_modules[id(value)] = value
        elif isinstance(value, Optimizer):
            self.trace.known_optimizers[id(value)] = value
        elif isinstance(value, CONTAINERS) or kind is tuple:
            if id(value) not in self.lazy:
                self.deeply(value)
        elif isinstance(value, np.ndarray):
            self.refuse(f"it reads an array of NumPy's ({what})")
        elif isinstance(value, (io.IOBase, np.random.Generator, np.random.RandomState)):
            self.refuse(f"it reads {what}, a {kind.__name__}")
        elif hasattr(kind, "__next__"):
            self.refuse(f"it goes on with an iterator that was there before ({what})")

    def shallow(self, value: Any) -> None:
        """Have the elements of a container compared at every call, as they are."""
        if len(value) > LARGEST:
            self.refuse(f"it reads a {type(value).__name__} of {len(value)} elements")
        if isinstance(value, dict):
            self.check("dict", (value,), (list(value), list(value.values())))
        elif isinstance(value, (set, frozenset, bytearray)):
            self.check("set", (value,), value.copy())
        elif not isinstance(value, tuple):
            self.check("list", (value,), list(value))

    def deeply(self, value: Any) -> None:
        """Have a container compared at every call, and those within it."""
        if id(value) in self.deep:
            return
        self.deep[id(value)] = value
        self.shallow(value)
        for each in list(value.values()) if isinstance(value, dict) else list(value):
            self.load(each, "an element of a container")

    def _read_attribute(self, value: Any, name: str, found: Any) -> None:
        if isinstance(value, Module):
            self.found_modules[id(value)] = value
            self.read_names.add((id(value), name))
            if name not in OWN_DICTS and name in value.__dict__:
                self.load(found, name)
            return
        if isinstance(value, types.ModuleType):
            home = root_of(value.__name__)
            if home in OURS or (home in sys.stdlib_module_names and home != "__main__") or home == "torch":
                return
            self.check("attr", (value, name), found)
            self.load(found, name)
            return
        if isinstance(value, Optimizer):
            if name == "param_groups":
                self.lazy[id(found)] = found
                self.shallow(found)
                for group in found:
                    self.lazy[id(group)] = group
            elif name in value.__dict__ and name not in ("step", "state", "defaults"):
                self.refuse(f"it reads {type(value).__name__}.{name}")
            return
        if isinstance(value, (LRScheduler, GradScaler, Generator)):
            if not callable(found):
                self.refuse(f"it reads {type(value).__name__}.{name}")
            return
        if isinstance(value, type):
            if root_of(value.__module__) not in OURS and not callable(found):
                self.check("attr", (value, name), found)
                self.load(found, name)
            return
        home = root_of(type(value).__module__)
        if home in OURS or home == "builtins":
            return
        own = getattr(value, "__dict__", None)
        if (isinstance(own, dict) and name in own) or not callable(found):
            if not isinstance(getattr(type(value), name, None), property):
                self.check("attr", (value, name), found)
            self.load(found, name)

    # -- frames

    def enter(self, frame: Any) -> None:
        """A rewritten function begins: its globals and the variables of functions around it are read."""
        code = frame.f_code
        original = self.follower.originals[id(code)]
        functions = self.follower.functions.get(id(original), [])
        key = (id(code), id(frame.f_globals))
        if key not in self.entered:
            self.entered.add(key)
            for name in sorted(names_read(original)):
                if name in frame.f_globals and not self.operands.has("global", frame.f_globals, name):
                    value = frame.f_globals[name]
                    self.check("global", (frame.f_globals, name), value)
                    self.load(value, name)
        if not original.co_freevars:
            return
        for function in functions:
            if id(function) in self.entered or function.__closure__ is None:
                continue
            cells = dict(zip(original.co_freevars, function.__closure__))
            values = [contents(c) for c in cells.values()]
            if len(functions) > 1 and any(
                frame.f_locals.get(n) is not v for n, v in zip(cells, values) if v is not EMPTY
            ):
                continue
            self.entered.add(id(function))
            for name, cell in cells.items():
                value = contents(cell)
                if value is not EMPTY and name != "__class__" and not self.operands.has("cell", cell, name):
                    self.check("cell", (cell, name), value)
                    self.load(value, name)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Have the user's code rewritten, within the block, and any other refused."""
        with self.follower.replaced(self):
            before = sys.getprofile()
            self.on = True
            sys.setprofile(self._profile)
            try:
                yield
            finally:
                sys.setprofile(before)
                self.on = False

    def _profile(self, frame: Any, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        known = self.follower.verdicts.get(id(code))
        if known is None:
            known = self.follower.verdict(code, frame.f_globals)
        if known == LIBRARY:
            return
        if known == CALLED:
            module = frame.f_locals["self"]
            self.found_modules[id(module)] = module
            return
        if known == REWRITTEN:
            if id(code) in self.follower.originals:
                self.enter(frame)
            return
        if any(getattr(c, "__code__", None) is code for c in gc.callbacks):
            return  # it runs whenever Python collects garbage
        self.follower.note(code)
        reason = self.follower.unfollowable.get(id(code))
        name = getattr(code, "co_qualname", code.co_name)
        # Raised before its first instruction has run.
        line = f"{code.co_filename}:{code.co_firstlineno}"
        self.trace.broken = Break(f"{name} cannot be followed: {reason or 'it had not run before'}", line)
        raise self.trace.broken

    def finish(self) -> None:
        """The function has returned."""
        self.made.clear()
        self.deep.clear()
        self.lazy.clear()
        if self.trace.broken is not None:
            raise self.trace.broken

    # -- what is left for guards

    def modules(self) -> list[Module]:
        """The modules that were there before and were read or called."""
        return [m for k, m in self.found_modules.items() if k not in self.trace.modules]

    def valid(self) -> Callable[[], bool]:
        """A function that says whether all that was read is as it was."""
        self.entered.clear()
        return comparison([*self.checks.values(), *self.operands.checks()])

    def numbers(self) -> list[Read]:
        """The reads by name."""
        return [check for check in self.checks.values() if check[0] in ("global", "cell", "attr")]

    def told(self) -> list[str]:
        """What was read, in words."""
        names: list[Any] = [(kind, list(where)) for kind, where, _ in self.checks.values()]
        return [f"{k} {w[1] if len(w) > 1 else type(w[0]).__name__}" for k, w in names]
