"""`torch.nn.parallel`: `DataParallel`, which passes everything through, and the module of several processes, imported when asked for."""

from importlib import import_module
from typing import Any

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]

LIBRARY = __name__.partition(".")[0]
LATER = {"DistributedDataParallel": "distributed.data_parallel"}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = globals()[name] = getattr(import_module(f"{LIBRARY}.{LATER[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER})
