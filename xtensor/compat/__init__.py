"""Modules that spell PyTorch's names: `xtensor.hub`, `xtensor.cuda`, ..., reached through the one table here.

`HOMES` says which, and where each stands; a finder gives it under its public path, the same module by either name, when it
is first asked for.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["HOMES", "Finder", "public_path"]

HOMES: dict[str, str] = dict.fromkeys(
    "__future__ accelerator ao assertions backends cpu cuda foreach functional futures hub jit legacy mps multiprocessing onnx "
    "overrides package quasirandom random settings symbolic torch_version types version vision xpu".split(),
    "compat",
)
HOMES["compile_cache"] = "xla"
HOMES["quantization"] = "compat.ao"
BELOW: dict[str, str] = dict.fromkeys(
    ("nn.intrinsic", "nn.qat", "nn.quantizable", "nn.quantized"), "compat.ao"
)
"""The same for modules within packages that stand elsewhere."""
LIBRARY = __name__.partition(".")[0]


def public_path(name: str) -> str:
    """The name under which users find a module: `xtensor.hub` for `xtensor.compat.hub`."""
    library, _, rest = name.partition(".")
    home, _, below = rest.partition(".")
    return f"{library}.{below}" if HOMES.get(below.partition(".")[0]) == home else name


class Finder(importlib.abc.MetaPathFinder):
    """Finds `xtensor.hub` as `xtensor.compat.hub`, and what lies in such a package below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module of the table; None for every other."""
        library, _, rest = fullname.partition(".")
        home = HOMES.get(rest.partition(".")[0]) or BELOW.get(".".join(rest.split(".")[:2]))
        if library != LIBRARY or home is None:
            return None
        home = f"{LIBRARY}.{home}.{rest}"
        found = importlib.util.find_spec(home)
        if found is None:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, Alias(home), is_package=found.submodule_search_locations is not None
        )


class Alias(importlib.abc.Loader):
    """Loads a module of the table: what is imported is the module that stands in `compat`."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module itself, imported by its own name."""
        module = importlib.import_module(self.home)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give back the module's own spec, which the import system has just replaced."""
        module.__spec__ = self.spec


sys.meta_path.insert(0, Finder())
