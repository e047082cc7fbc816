"""What the namespace can do: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any

from .. import devices, dtypes
from ..dtypes import dtype
from .promotion import KINDS

__all__ = ["Info", "__array_namespace_info__"]


class Info:
    """What `__array_namespace_info__()` returns.

    >>> xtensor.array_api.__array_namespace_info__().capabilities()
    {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 64}
    """

    def capabilities(self) -> dict[str, Any]:
        """What not every library can do, and how many dimensions arrays may have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> devices.device:
        """Where arrays are made that are told no device."""
        return devices.current()

    def devices(self) -> list[devices.device]:
        """The devices that arrays can be on."""
        return list(devices.list())

    def default_dtypes(self, *, device: devices.DeviceLike = None) -> dict[str, dtype]:
        """The dtypes of arrays made of Python numbers, and of indices."""
        return {
            "real floating": dtypes.get_default_dtype(),
            "complex floating": dtypes.get_default_complex_dtype(),
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(
        self, *, device: devices.DeviceLike = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, dtype]:
        """The standard's dtypes of a kind, or of several, by their names; ValueError for an unknown kind."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for k in kinds:
            if k not in KINDS:
                raise ValueError(f"unrecognized data type kind: {k!r}")
        return {d.name: d for k in kinds for d in KINDS[k]}


def __array_namespace_info__() -> Info:
    """What the namespace can do."""
    return Info()
