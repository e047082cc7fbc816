"""Neural networks: modules, their functional forms, initial values and utilities, under PyTorch's names."""

# Public names are imported `as` themselves, which is how type checkers know them for public.
# ruff: noqa: I001

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import (
    attention as attention,
    common_types as common_types,
    functional as functional,
    grad as grad,
    init as init,
    modules as modules,
    parallel as parallel,
    parameter as parameter,
    utils as utils,
)
from .modules import *
from .modules.module import Module as Module
from .parallel import DataParallel as DataParallel
from .parameter import (
    Buffer as Buffer,
    Parameter as Parameter,
    UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter,
)

if TYPE_CHECKING:  # mypy follows no `*` through two packages that import each other
    from .modules.activation import *
    from .modules.adaptive import *
    from .modules.attention import *
    from .modules.batchnorm import *
    from .modules.container import *
    from .modules.conv import *
    from .modules.distance import *
    from .modules.dropout import *
    from .modules.flatten import *
    from .modules.fold import *
    from .modules.fractional_pooling import *
    from .modules.instancenorm import *
    from .modules.lazy import *
    from .modules.loss import *
    from .modules.normalization import *
    from .modules.padding import *
    from .modules.pixelshuffle import *
    from .modules.pooling import *
    from .modules.rnn import *
    from .modules.rnncell import *
    from .modules.sequence_loss import *
    from .modules.sparse import *
    from .modules.transformer import *
    from .modules.upsampling import *
    from .modules.linear import Bilinear as Bilinear, Identity as Identity, Linear as Linear


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
