"""The user's code that runs in one function, and what stands for it in a capture.

The first call runs as it is, and the code objects of the user's that run in it are noted. For a capture they are replaced by ones
that tell a recorder of every attribute, item and call (`rewrite`).
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..nn.calls import Calls
from ..tensor import Tensor
from .reads import Read
from .recorder import CALLED, LIBRARY, OURS, REWRITTEN, USER, Recorder, root_of
from .rewrite import Unfollowable, rewritten
from .watch import Trace

__all__ = ["Follower"]

STANDARD = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep
PACKAGES = tuple([os.path.join("site-packages", name, "") for name in OURS])


CALLS = (Calls.__call__.__code__, Calls._call_impl.__code__)


def is_library(code: types.CodeType, names: dict[str, Any]) -> bool:
    """Whether code is xtensor's, of what it stands on, or Python's own."""
    file = code.co_filename
    if root_of(names.get("__name__")) in OURS or file.startswith("<frozen"):
        return True
    if file.startswith("<"):
        if str(names.get("__name__")).startswith("namedtuple_"):
            return True
        return getattr(code, "co_qualname", "").startswith("__create_fn__") or "<attrs" in file
    file = os.path.realpath(file)
    if file.startswith(HERE) or any(part in file for part in PACKAGES):
        return True
    return file.startswith(STANDARD) and "site-packages" not in file


def is_whole(function: types.FunctionType) -> bool:
    """Whether a function can be called: a collector of garbage on another thread may have taken its closure from it already."""
    return len(function.__closure__ or ()) == len(function.__code__.co_freevars)


class Follower:
    """The code objects that run in one function, and what stands for them in a capture."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.codes: dict[int, types.CodeType] = {}
        self.verdicts: dict[int, int] = {}
        self.kept: dict[int, Any] = {}
        self.originals: dict[int, types.CodeType] = {}
        self.functions: dict[int, list[Any]] = {}
        self.unfollowable: dict[int, str] = {}

    def arguments(self, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The objects among arguments that are neither tensors nor containers, with a name."""
        stack = [("an argument", v) for v in (*args, *kwargs.values())]
        function = self.function
        while isinstance(function, functools.partial):
            stack += [("an argument", v) for v in (*function.args, *function.keywords.values())]
            function = function.func
        stack.append(("the function", getattr(function, "__self__", function)))
        while stack:
            name, value = stack.pop()
            if isinstance(value, dict):
                stack += [(name, v) for v in value.values()]
            elif isinstance(value, (list, tuple)):
                stack += [(name, v) for v in value]
            elif not isinstance(value, Tensor):
                yield name, value

    def recorder(self, trace: Trace, operands: dict[Any, Read]) -> Recorder:
        """The recorder of one capture; operands: the reads that are values of the program."""
        return Recorder(trace, self, operands)

    def verdict(self, code: types.CodeType, names: dict[str, Any]) -> int:
        """Whose code it is."""
        if code in CALLS:
            found = CALLED
        else:
            found = LIBRARY if is_library(code, names) else USER
        self.verdicts[id(code)] = found
        self.kept[id(code)] = code
        return found

    def note(self, code: types.CodeType) -> None:
        """Code of the user's has run."""
        self.codes.setdefault(id(code), code)

    @contextmanager
    def discovering(self) -> Iterator[None]:
        """Note the user's code that runs within the block."""
        before = sys.getprofile()

        def look(frame: Any, event: str, argument: Any) -> None:
            if event == "call":
                code = frame.f_code
                known = self.verdicts.get(id(code))
                if known is None:
                    known = self.verdict(code, frame.f_globals)
                if known == USER:
                    self.note(code)

        sys.setprofile(look)
        try:
            yield
        finally:
            sys.setprofile(before)

    @contextmanager
    def replaced(self, recorder: Recorder) -> Iterator[None]:
        """Have the user's functions run their rewritten code within the block."""
        self.originals.clear()
        self.functions.clear()
        made: dict[int, types.CodeType] = {}
        for key, code in self.codes.items():
            if key in self.unfollowable:
                continue
            try:
                new = made[key] = rewritten(code, recorder, recorder.operands.names)
            except Unfollowable as error:
                self.unfollowable[key] = str(error)
                continue
            self.originals[id(new)] = code
            stack = [new]
            while stack:
                each = stack.pop()
                self.verdicts[id(each)] = REWRITTEN
                stack += [c for c in each.co_consts if isinstance(c, types.CodeType)]
        old = [self.codes[key] for key in made]
        found = [f for f in gc.get_referrers(*old) if isinstance(f, types.FunctionType)] if old else []
        found = [f for f in found if id(f.__code__) in made and is_whole(f)]
        codes = [f.__code__ for f in found]
        for function in found:
            self.functions.setdefault(id(function.__code__), []).append(function)
        try:
            for function in found:
                function.__code__ = made[id(function.__code__)]
            yield
        finally:
            for function, code in zip(found, codes):
                function.__code__ = code
            for new in made.values():
                stack = [new]
                while stack:
                    each = stack.pop()
                    self.verdicts.pop(id(each), None)
                    stack += [c for c in each.co_consts if isinstance(c, types.CodeType)]
