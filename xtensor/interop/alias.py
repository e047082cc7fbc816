"""`import torch` gives xtensor: a finder for `torch` and its submodules, and errors that name what is missing.

`torch` is a module of its own with xtensor's names (its `__version__` is the PyTorch version whose interface this is);
its submodules are xtensor's own. What a program sets on `torch` or on `xtensor` shows on both.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import checks, devices
from .absent import reason

__all__ = ["install", "installed", "is_installed", "uninstall"]

LIBRARY = __name__.partition(".")[0]
IMPORT_FROM = dis.opmap["IMPORT_FROM"]
# What `torch` has of its own.
OWN = frozenset(
    ("__name__", "__doc__", "__loader__", "__spec__", "__path__", "__file__", "__package__", "__version__")
    + ("__getattr__", "__dir__", "__builtins__", "__cached__", "__all__", "__annotations__")
)


def library() -> types.ModuleType:
    return sys.modules[LIBRARY]


class _Shared(types.ModuleType):
    """The top modules while the alias is installed: each passes what is set or deleted on to the other."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name not in OWN:
            for other in _pair():
                vars(other)[name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name not in OWN:
            for other in _pair():
                vars(other).pop(name, None)


def _pair() -> Iterator[types.ModuleType]:
    yield library()
    if _state.top is not None:
        yield _state.top


class _State:
    top: types.ModuleType | None = None
    stashed: dict[str, Any] = {}
    adopted: list[tuple[types.ModuleType, Any]] = []


_state = _State()


class Missing:
    """The `__getattr__` of an aliased module: what the module's own finds, or an error naming symbol, file and line."""

    def __init__(self, name: str, own: Any) -> None:
        self.name = name
        self.own = own

    def __call__(self, attribute: str) -> Any:
        if self.own is not None:
            try:
                found = self.own(attribute)
            except AttributeError:
                pass
            else:
                if isinstance(found, types.ModuleType) and found.__name__.startswith(f"{LIBRARY}."):
                    adopt(found, f"torch.{found.__name__.partition('.')[2]}")
                return found
        frame = sys._getframe(1)
        text = f"{sentence(f'{self.name}.{attribute}')} ({frame.f_code.co_filename}, line {frame.f_lineno})"
        if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
            raise ImportError(text, name=self.name)
        raise AttributeError(text, name=attribute, obj=sys.modules.get(self.name))


def sentence(symbol: str) -> str:
    """That a symbol, `torch.x.y`, is not here, and why where there is a reason."""
    why = reason(symbol.removeprefix("torch."))
    return f"{symbol} is not in xtensor{f': {why}' if why else ''}"


def adopt(module: types.ModuleType, name: str) -> None:
    """Let a module's missing attributes be named as `name`'s."""
    own = vars(module).get("__getattr__")
    if not isinstance(own, Missing):
        _state.adopted.append((module, own))
        vars(module)["__getattr__"] = Missing(name, own)


def _user_frame() -> Any:
    """The frame of the import statement that is being served."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_globals.get("__name__") == __name__ or "importlib" in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return frame


class _Loader(importlib.abc.Loader):
    """Gives a module that exists already, and leaves it as it was."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.own = {name: getattr(module, name, None) for name in ("__spec__", "__loader__", "__package__")}

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        for name, value in self.own.items():
            vars(module)[name] = value


class _Finder(importlib.abc.MetaPathFinder):
    """Serves `torch` and `torch.*`, first of all finders: a PyTorch that is installed is not looked at."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        head, _, rest = fullname.partition(".")
        if head != "torch":
            return None
        module = _state.top if not rest else self.submodule(fullname, rest)
        if module is None:
            frame = _user_frame()
            raise ModuleNotFoundError(
                f"{sentence(fullname)} ({frame.f_code.co_filename}, line {frame.f_lineno})", name=fullname
            )
        return importlib.machinery.ModuleSpec(
            fullname, _Loader(module), is_package=hasattr(module, "__path__")
        )

    def submodule(self, fullname: str, rest: str) -> types.ModuleType | None:
        parent, _, child = fullname.rpartition(".")
        found = vars(sys.modules[parent]).get(child) if parent in sys.modules else None
        if not isinstance(found, types.ModuleType):
            name = f"{LIBRARY}.{rest}"
            try:
                found = importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                    raise
                return None
        adopt(found, fullname)
        return found


_finder = _Finder()


def is_installed() -> bool:
    """Whether `import torch` gives xtensor now."""
    return _state.top is not None


def install(device: devices.DeviceLike = None) -> types.ModuleType:
    """Let `import torch` give xtensor from now on, and return that module; `device` is where its programs run.

    With a device, requests for `cuda` and `cpu` mean that one, and new tensors are made there. A PyTorch that was
    imported before is put aside until `uninstall`; modules that hold it keep it.
    """
    if _state.top is not None:
        if device is not None:
            _redirect(device)
        return _state.top
    ours = library()
    version = importlib.import_module(f"{LIBRARY}.version").__version__
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        _state.stashed[name] = sys.modules.pop(name)
    top = _Shared("torch", ours.__doc__)
    top.__dict__.update({name: value for name, value in vars(ours).items() if name not in OWN})
    top.__dict__.update(__version__=version, __path__=[], __file__=ours.__file__, __dir__=lambda: dir(ours))
    top.__dict__["__getattr__"] = Missing("torch", lambda name: getattr(ours, name))
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{LIBRARY}.") and isinstance(module, types.ModuleType):
            adopt(module, f"torch.{name.partition('.')[2]}")
    ours.__class__ = _Shared
    _state.top = top
    sys.meta_path.insert(0, _finder)
    checks.spell_as("torch")
    if device is not None:
        _redirect(device)
    return importlib.import_module(top.__name__)


def _redirect(device: devices.DeviceLike) -> None:
    place = devices.resolve(device)
    devices.redirect(("cuda", "cpu"), place)
    devices.set_default_device(place)


def uninstall() -> None:
    """Give `torch` back to PyTorch, or to nobody; the device redirection ends as well."""
    if _state.top is None:
        return
    sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
        del sys.modules[name]
    sys.modules.update(_state.stashed)
    _state.stashed.clear()
    for module, own in _state.adopted:
        vars(module).pop("__getattr__", None)
        if own is not None:
            vars(module)["__getattr__"] = own
    _state.adopted.clear()
    library().__class__ = types.ModuleType
    _state.top = None
    checks.spell_as(LIBRARY)
    if devices.redirected("cuda") is not None:
        devices.redirect(("cuda", "cpu"))
        devices.set_default_device(None)


@contextmanager
def installed(device: devices.DeviceLike = None) -> Iterator[types.ModuleType]:
    """`import torch` gives xtensor inside the block."""
    before = is_installed()
    module = install(device)
    try:
        yield module
    finally:
        if not before:
            uninstall()
