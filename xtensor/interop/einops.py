"""einops over our tensors: `einops.rearrange(tensor, ...)` works whichever of the two is imported first.

einops knows the libraries it supports by subclasses of its backend class and offers no other way in. The subclass is
made when einops is imported, by whom ever: xtensor itself never imports it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from ..ops.create.ingest import from_numpy
from ..ops.create.ranges import arange
from ..ops.linalg.einsum import einsum
from ..ops.shape.joining import cat, stack
from ..ops.tensor.export import numpy
from ..tensor import Tensor

__all__ = ["follow", "register"]

BACKENDS = "einops._backends"


def register(module: ModuleType) -> None:
    """Make the backend in einops' module of backends, if it is the einops that is known here."""
    base = getattr(module, "AbstractBackend", None)
    if not isinstance(base, type) or any(c.framework_name == "xtensor" for c in base.__subclasses__()):
        return

    class XtensorBackend(base):
        framework_name = "xtensor"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            return from_numpy(x)

        def to_numpy(self, x: Tensor) -> Any:
            return numpy(x, force=True)

        def arange(self, start: int, stop: int) -> Tensor:
            return arange(start, stop)

        def reduce(self, x: Tensor, operation: str, axes: Any) -> Tensor:
            if operation in ("min", "max"):
                return getattr(x, f"a{operation}")(dim=tuple(axes))
            if operation in ("sum", "mean"):
                return getattr(x, operation)(dim=tuple(axes))
            if operation not in ("prod", "any", "all"):
                raise NotImplementedError("Unknown reduction ", operation)
            for axis in sorted(axes, reverse=True):
                x = getattr(x, operation)(dim=axis)
            return x

        def transpose(self, x: Tensor, axes: Any) -> Tensor:
            return x.permute(tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
            return stack(tensors)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
            repeats = [-1] * n_axes
            for position, length in pos2len.items():
                x = self.add_axis(x, position)
                repeats[position] = length
            return x.expand(repeats)

        def tile(self, x: Tensor, repeats: Any) -> Tensor:
            return x.repeat(tuple(repeats))

        def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
            return cat(tensors, dim=axis)

        def add_axis(self, x: Tensor, new_position: int) -> Tensor:
            return x.unsqueeze(new_position)

        def is_float_type(self, x: Tensor) -> bool:
            return x.dtype.is_floating_point

        def einsum(self, pattern: str, *x: Tensor) -> Tensor:
            return einsum(pattern, *x)

    # einops finds it among its base's subclasses, which are held weakly.
    module.__dict__["XtensorBackend"] = XtensorBackend


class Follower(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Sees the import of einops' backends once, and registers ours after it."""

    loader: Any

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != BACKENDS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        register(module)


def follow() -> None:
    """Register with einops now if it is there, else when it is imported."""
    module = sys.modules.get(BACKENDS)
    if module is not None:
        register(module)
    elif not any(isinstance(finder, Follower) for finder in sys.meta_path):
        sys.meta_path.insert(0, Follower())


follow()
