"""`import torch` gives xtensor: a finder for `torch` and its submodules, and errors that name what is missing.

`torch` is a module of its own with xtensor's names (its `__version__` is the PyTorch version whose interface this is);
its submodules are xtensor's own. What a program sets on `torch` or on `xtensor` shows on both.
"""

from __future__ import annotations

import dis
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import checks, compat, devices, dtypes
from ..nn.parameter import Parameter
from ..ops.linalg.decompositions import LinAlgError
from ..tensor import Size, Tensor
from ..xla.identity import homes
from . import metadata, names, placeholders
from .absent import sentence

__all__ = ["install", "installed", "is_installed", "uninstall"]

LIBRARY = __name__.partition(".")[0]
HEADS = ("torch", "functorch")
IMPORT_FROM = dis.opmap["IMPORT_FROM"]
# Modules of PyTorch's that are called otherwise here: public packages import some private ones.
ELSEWHERE = {
    "_C": "",
    "_C._nn": "nn.functional",
    "_custom_ops": "library",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.memory": "cuda",
    "cuda.graphs": "cuda",
    "cuda.random": "cuda",
    "cuda.streams": "cuda",
    "distributed._composable.fsdp": "distributed.fsdp",
    "distributed._tensor": "distributed.tensor",
    "distributed._tensor.api": "distributed.tensor",
    "distributed._tensor.device_mesh": "distributed.device_mesh",
    "distributed._tensor.experimental": "distributed.tensor.experimental",
    "distributed._tensor.placement_types": "distributed.tensor.placement_types",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "distributed.algorithms.checkpoint_wrapper",
    "distributed.checkpoint.filesystem": "distributed.checkpoint",
    "distributed.distributed_c10d": "distributed",
    "distributed.fsdp._fully_shard": "distributed.fsdp",
    "distributed.fsdp.api": "distributed.fsdp",
    "distributed.fsdp.fully_sharded_data_parallel": "distributed.fsdp",
    "distributed.fsdp.sharded_grad_scaler": "distributed.fsdp",
    "distributed.tensor.device_mesh": "distributed.device_mesh",
    "distributions.constraint_registry": "distributions.registry",
    "distributions.transforms": "distributions.transform",
    "nn.parallel.distributed": "nn.parallel",
    "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data.collate",
}
# Classes whose module or name packages read: `type(x).__module__` tells them which library a tensor is of.
SPELLED: tuple[tuple[type, str, str], ...] = (
    (Tensor, "torch", "Tensor"),
    (Size, "torch", "Size"),
    (Parameter, "torch.nn.parameter", "Parameter"),
    (devices.device, "torch", "device"),
    (dtypes.dtype, "torch", "dtype"),
    (LinAlgError, "torch._C", "_LinAlgError"),
)
# Modules of ours that PyTorch calls otherwise: errors name them so.
CALLED = {
    "distributions.registry": "distributions.constraint_registry",
    "distributions.transform": "distributions.transforms",
    "utils.data.collate": "utils.data._utils.collate",
}
# What `torch` has of its own: `ops` is the operators that programs add.
OWN = frozenset(
    ("__name__", "__doc__", "__loader__", "__spec__", "__path__", "__file__", "__package__", "__version__")
    + ("__getattr__", "__dir__", "__builtins__", "__cached__", "__all__", "__annotations__", "ops")
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


class _Parent(types.ModuleType):
    """A module while the alias is installed: importing a submodule leaves a function of the same name where it is.

    `torch.autograd.gradcheck` is a function whatever is imported; so is it where PyTorch is, which binds it last.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        present = vars(self).get(name)
        taken = present is not None and not isinstance(present, types.ModuleType)
        if taken and isinstance(value, types.ModuleType) and _imports(sys._getframe(1)):
            return
        super().__setattr__(name, value)


def _imports(frame: types.FrameType) -> bool:
    return frame.f_globals.get("__name__") == "importlib._bootstrap"


class _State:
    top: types.ModuleType | None = None
    stashed: dict[str, Any] = {}
    stand_ins: dict[str, Any] = {}
    spelled: list[tuple[type, str, str]] = []
    adopted: list[tuple[types.ModuleType, Any]] = []


_state = _State()


class Missing:
    """The `__getattr__` of an aliased module: what the module's own finds, or an error naming symbol, file and line.

    What PyTorch has under that name and xtensor under another path is found; what it has and xtensor lacks is an object that
    says so when it is used.
    """

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
                    adopt(found, called(found.__name__))
                return found
        if attribute == "torch" and _state.top is not None:  # PyTorch's modules have imported it
            return _state.top
        if not attribute.startswith("__") or attribute == "__config__":
            found = elsewhere(self.name.partition(".")[2], attribute)
            if found is not ABSENT:
                return found
        elif attribute == "__path__" and names.has_modules(self.name.partition(".")[2]):
            return []
        frame = sys._getframe(1)
        text = f"{sentence(f'{self.name}.{attribute}')} ({frame.f_code.co_filename}, line {frame.f_lineno})"
        if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
            raise ImportError(text, name=self.name)
        raise AttributeError(text, name=attribute, obj=sys.modules.get(self.name))


ABSENT = object()


def elsewhere(module: str, name: str) -> Any:
    """What stands for `torch.<module>.<name>`, which the module itself lacks; ABSENT where PyTorch lacks it too."""
    private = importlib.import_module(f"{LIBRARY}.interop.private").NAMES
    path = f"{module}.{name}".lstrip(".")
    if path in private:
        return private[path]
    if path in _state.stand_ins:
        return _state.stand_ins[path]
    known = names.described(module, name)
    if known is None and module in ELSEWHERE and (found := real(ELSEWHERE[module], name)) is not ABSENT:
        return found
    if known is None:
        return importlib.import_module(f"torch.{path}") if names.is_module(path) else ABSENT
    if known.kind == "from":
        home = importlib.import_module(f"torch.{known.home}")
        found = getattr(home, name, ABSENT)
    else:
        found = ABSENT
        homes = [ELSEWHERE[module]] if module in ELSEWHERE else []
        for other in homes + names.reexporters(module, name):
            found = real(other, name)
            if found is not ABSENT:
                break
        else:
            found = placeholders.stand_in(module, name, known)
    if found is not ABSENT:
        _state.stand_ins[path] = found
    return found


def real(module: str, name: str) -> Any:
    """What xtensor itself has as `<module>.<name>`."""
    try:
        place = importlib.import_module(f"{LIBRARY}.{module}".rstrip("."))
    except ModuleNotFoundError:
        return ABSENT
    if name in vars(place):
        return vars(place)[name]
    own = vars(place).get("__getattr__")
    own = own.own if isinstance(own, Missing) else own
    try:
        return ABSENT if own is None else own(name)
    except AttributeError:
        return ABSENT


def meaning(path: str) -> Any:
    """What `torch.<path>`, as files name it, is here, whether the alias is installed or not; None for nothing."""
    module, _, name = path.rpartition(".")
    homes = [module, *([ELSEWHERE[module]] if module in ELSEWHERE else []), *names.reexporters(module, name)]
    return next((found for home in homes if (found := real(home, name)) is not ABSENT), None)


def attribute(name: str) -> Any:
    """An attribute of `torch` that is first asked for now."""
    if name == "ops":
        return importlib.import_module(f"{LIBRARY}.library").ops
    if name == "torch":
        return _state.top
    return getattr(library(), name)


def called(name: str) -> str:
    """What programs call a module of ours: `torch.hub` for `xtensor.compat.hub`."""
    path = compat.public_path(name).partition(".")[2]
    return f"torch.{CALLED.get(path, path)}"


def adopt(module: types.ModuleType, name: str) -> None:
    """Let missing attributes of a module, and of the modules that it holds, be named as `name`'s."""
    own = vars(module).get("__getattr__")
    if not isinstance(own, Missing):
        _state.adopted.append((module, own))
        vars(module)["__getattr__"] = Missing(name, own)
        if type(module) is types.ModuleType:
            module.__class__ = _Parent
        for child in tuple(vars(module).values()):
            if isinstance(child, types.ModuleType) and child.__name__.startswith(f"{module.__name__}."):
                adopt(child, called(child.__name__))


def _user_frame() -> tuple[Any, bool]:
    """The frame that a module is looked for in; whether it only asks (`importlib.util.find_spec`), and imports nothing."""
    frame, asked = sys._getframe(1), False
    while frame.f_back is not None and (
        frame.f_globals.get("__name__") == __name__ or "importlib" in frame.f_code.co_filename
    ):
        asked = asked or frame.f_globals.get("__name__") == importlib.util.__name__
        frame = frame.f_back
    return frame, asked


class _Loader(importlib.abc.Loader):
    """Gives a module that exists already, and leaves it as it was."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module = module
        self.own = {name: getattr(module, name, None) for name in ("__spec__", "__loader__", "__package__")}

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self.module

    def exec_module(self, module: types.ModuleType) -> None:
        if (
            module.__name__.partition(".")[0] == "torch"
        ):  # the alias's own: what it was loaded by now is right
            return
        for name, value in self.own.items():
            vars(module)[name] = value


class _Finder(importlib.abc.MetaPathFinder):
    """Serves `torch` and `torch.*`, first of all finders: a PyTorch that is installed is not looked at."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        head, _, rest = fullname.partition(".")
        if head == "functorch":  # the package that `torch.func` was before
            try:
                module = importlib.import_module(f"{LIBRARY}.compat.{fullname}")
            except ModuleNotFoundError:
                return None
            return importlib.machinery.ModuleSpec(fullname, _Loader(module), is_package=not rest)
        if head != "torch":
            return None
        module = _state.top if not rest else self.submodule(fullname, rest)
        if module is None:
            frame, asked = _user_frame()
            if asked:
                return None
            raise ModuleNotFoundError(
                f"{sentence(fullname)} ({frame.f_code.co_filename}, line {frame.f_lineno})", name=fullname
            )
        return importlib.machinery.ModuleSpec(
            fullname, _Loader(module), is_package=hasattr(module, "__path__")
        )

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """What `importlib.metadata` knows of the package `torch`."""
        if context is None or context.name is None or context.name.lower() == "torch":
            yield metadata.Torch()

    def submodule(self, fullname: str, rest: str) -> types.ModuleType | None:
        parent, _, child = fullname.rpartition(".")
        found = vars(sys.modules[parent]).get(child) if parent in sys.modules else None
        private = importlib.import_module(f"{LIBRARY}.interop.private").NAMES
        if rest in private:
            found = private[rest]
        elif rest == "ops":
            found = attribute(rest)
        if not isinstance(found, types.ModuleType):
            name = f"{LIBRARY}.{rest}"
            try:
                found = importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                    raise
                if rest not in ELSEWHERE and not names.is_module(rest):
                    return None
                found = placeholders.AbsentModule(rest)
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
    for name in [n for n in sys.modules if n in HEADS or n.startswith("torch.")]:
        _state.stashed[name] = sys.modules.pop(name)
    top = _Shared("torch", ours.__doc__)
    top.__dict__.update({name: value for name, value in vars(ours).items() if name not in OWN})
    top.__dict__.update(__version__=version, __path__=[], __file__=ours.__file__, __dir__=lambda: dir(ours))
    top.__dict__["__getattr__"] = Missing("torch", attribute)
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{LIBRARY}.") and isinstance(module, types.ModuleType):
            adopt(module, called(name))
    for kind, home, name in SPELLED:
        _state.spelled.append((kind, kind.__module__, kind.__qualname__))
        homes[kind] = kind.__module__
        respell(kind, home, name)
    ours.__class__ = _Shared
    _state.top = top
    sys.meta_path.insert(0, _finder)
    checks.spell_as("torch")
    if device is not None:
        _redirect(device)
    return importlib.import_module(top.__name__)


def respell(kind: type, home: str, name: str) -> None:
    """Let a class say that it is of that module, by that name."""
    kind.__module__, kind.__name__, kind.__qualname__ = home, name, name


def _redirect(device: devices.DeviceLike) -> None:
    place = devices.resolve(device)
    devices.redirect(("cuda", "cpu"), place)
    devices.set_default_device(place)


def uninstall() -> None:
    """Give `torch` back to PyTorch, or to nobody; the device redirection ends as well."""
    if _state.top is None:
        return
    sys.meta_path.remove(_finder)
    leaving = {n: m for n, m in sys.modules.items() if n in HEADS or n.startswith("torch.")}
    for name, module in leaving.items():
        if isinstance(module, placeholders.AbsentModule):  # a name of the alias's that importing it bound
            parent, _, child = name.rpartition(".")
            home = library() if parent == "torch" else leaving.get(parent)
            vars(home).pop(child, None)
        del sys.modules[name]
    sys.modules.update(_state.stashed)
    _state.stashed.clear()
    for module, own in _state.adopted:
        vars(module).pop("__getattr__", None)
        if own is not None:
            vars(module)["__getattr__"] = own
        if type(module) is _Parent:
            setattr(module, "__class__", types.ModuleType)  # noqa: B010
    _state.adopted.clear()
    _state.stand_ins.clear()
    for kind, home, name in _state.spelled:
        respell(kind, home, name)
        homes.pop(kind, None)
    _state.spelled.clear()
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
