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

from .. import checks, compat, devices
from .absent import reason

__all__ = ["install", "installed", "is_installed", "uninstall"]

LIBRARY = __name__.partition(".")[0]
IMPORT_FROM = dis.opmap["IMPORT_FROM"]
# Modules of PyTorch's that are called otherwise here: public packages import some private ones.
ELSEWHERE = {
    "_custom_ops": "library",
    "autograd.profiler": "engine.profiler",
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.common": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.memory": "cuda",
    "cuda.random": "cuda",
    "distributions.constraint_registry": "distributions.registry",
    "nn.modules.channelshuffle": "nn",
    "nn.parallel.distributed": "nn.parallel",
    "nn.parallel.parallel_apply": "nn.parallel",
    "nn.parallel.replicate": "nn.parallel",
    "nn.parallel.scatter_gather": "nn.parallel",
    "utils.data._utils": "utils.data",
    "utils.data._utils.collate": "utils.data.collate",
}
# Packages of PyTorch's with a module for each class: here the classes share modules, and the package has them all.
DISTRIBUTIONS = frozenset(
    "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exp_family exponential fishersnedecor "
    "gamma generalized_pareto geometric gumbel half_cauchy half_normal independent inverse_gamma kumaraswamy laplace "
    "lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal mixture_same_family multinomial "
    "multivariate_normal negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli "
    "relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart".split()
)
BY_CLASS = frozenset(("distributions", "nn.modules", "optim"))
PRIVATE = frozenset(
    "__config__ _C _dynamo _functorch _inductor _jit_internal _logging _tensor _utils".split()
)
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
                    adopt(found, f"torch.{compat.public_path(found.__name__).partition('.')[2]}")
                return found
        package = self.name.removeprefix("torch.").rpartition(".")[0]
        if package in BY_CLASS:
            home = importlib.import_module(f"{LIBRARY}.{package.partition('.')[0]}")
            found = vars(home).get(attribute)
            if isinstance(found, type):
                return found
        # Python's import machinery asks every module for `__path__`, also while those that this one imports are being made.
        special = attribute.startswith("__")
        names = {} if special else importlib.import_module(f"{LIBRARY}.interop.private").NAMES
        path = f"{self.name}.{attribute}".removeprefix("torch.")
        if path in names:
            return names[path]
        frame = sys._getframe(1)
        text = f"{sentence(f'{self.name}.{attribute}')} ({frame.f_code.co_filename}, line {frame.f_lineno})"
        if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
            raise ImportError(text, name=self.name)
        raise AttributeError(text, name=attribute, obj=sys.modules.get(self.name))


def sentence(symbol: str) -> str:
    """That a symbol, `torch.x.y`, is not here, and why where there is a reason."""
    why = reason(symbol.removeprefix("torch."))
    return f"{symbol} is not in xtensor{f': {why}' if why else ''}"


def attribute(name: str) -> Any:
    """An attribute of `torch` that is first asked for now."""
    if name == "ops":
        return importlib.import_module(f"{LIBRARY}.library").ops
    if name in PRIVATE:
        return importlib.import_module(f"{LIBRARY}.interop.private").MODULES[name]
    return getattr(library(), name)


def adopt(module: types.ModuleType, name: str) -> None:
    """Let a module's missing attributes be named as `name`'s."""
    own = vars(module).get("__getattr__")
    if not isinstance(own, Missing):
        _state.adopted.append((module, own))
        vars(module)["__getattr__"] = Missing(name, own)
        if type(module) is types.ModuleType:
            module.__class__ = _Parent


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
        if rest in PRIVATE or rest == "ops":
            found = attribute(rest)
        if not isinstance(found, types.ModuleType):
            package = rest.rpartition(".")[0]
            name = f"{LIBRARY}.{ELSEWHERE.get(rest, rest)}"
            if package == "distributions" and child in DISTRIBUTIONS:
                name = f"{LIBRARY}.{package}"
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
    top.__dict__["__getattr__"] = Missing("torch", attribute)
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{LIBRARY}.") and isinstance(module, types.ModuleType):
            adopt(module, f"torch.{compat.public_path(name).partition('.')[2]}")
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
        if type(module) is _Parent:
            setattr(module, "__class__", types.ModuleType)  # noqa: B010
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
