"""Neural networks: modules, their functional forms, initial values and utilities, under PyTorch's names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import attention, common_types, functional, grad, init, modules, parallel, parameter, utils
from .modules import *
from .modules.module import Module
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """The arguments `device`, `dtype` and `memory_format` of a constructor, also from its `factory_kwargs`."""
    if kwargs is None:
        return {}
    known = ("device", "dtype", "memory_format")
    unknown = set(kwargs) - {*known, "factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in known:
        if name in kwargs:
            if name in found:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = kwargs[name]
    return found


# The layers of quantised models, which are imported when they are first asked for.
_QUANTISED = ("intrinsic", "qat", "quantizable", "quantized")


def __getattr__(name: str) -> Any:
    if name in _QUANTISED:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_QUANTISED})
