"""What `compile` gives for a module: a module around it whose calls are compiled, as PyTorch's `OptimizedModule`."""

from __future__ import annotations

from typing import Any

from .. import capture
from ..nn.modules.module import Module

__all__ = ["OptimizedModule"]

ORIGINAL = "_orig_mod"
OWN = frozenset((ORIGINAL, "_how", "_call"))


class OptimizedModule(Module):
    """A module whose calls are compiled; what it has, and what is set on it, is the original's, which stays as it is.

    Its parameters' names begin with `_orig_mod.`, also in `state_dict()`.

    >>> layer = xtensor.nn.Linear(2, 3)
    >>> xtensor.compile(layer)._orig_mod is layer
    True
    """

    _orig_mod: Module

    def __init__(
        self,
        module: Module,
        eager: bool = False,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        recompile_limit: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._orig_mod = module
        self._how = None if eager else (fullgraph, dynamic, recompile_limit, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the original."""
        return self.compiled()(*args, **kwargs)

    def compiled(self) -> Any:
        """The original's calls, compiled; made when they are first asked for."""
        found = self.__dict__.get("_call")
        if found is None:
            call = self._orig_mod._call_impl
            found = call if self._how is None else capture.compiler[0](call, *self._how)
            self._call = found
        return found

    @property
    def training(self) -> bool:
        """The original's."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        if ORIGINAL in self.__dict__.get("_modules", ()):
            self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules")
        if modules is None or ORIGINAL not in modules:
            return super().__getattr__(name)
        return modules[ORIGINAL] if name == ORIGINAL else getattr(modules[ORIGINAL], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN or hasattr(type(self), name) or ORIGINAL not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in OWN or hasattr(type(self), name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_call", None)
        return state
