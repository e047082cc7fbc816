"""Where the storages of a file go: their location tags, and `map_location`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import devices
from ..storage import UntypedStorage

__all__ = ["MapLocation", "default_restore_location", "location_tag", "place_of", "restored", "tag_of"]

MapLocation = (
    str | devices.device | Mapping[str, str] | Callable[[UntypedStorage, str], UntypedStorage | None] | None
)


def location_tag(storage: UntypedStorage) -> str:
    """How files name the device of a storage."""
    return tag_of(storage.device)


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage on the device that a file's location names, for use in a `map_location` function."""
    return storage.to(place_of(location))


def tag_of(place: devices.device) -> str:
    """How files name a device: PyTorch's names where it has one."""
    if place.type in ("cpu", "meta"):
        return place.type
    kind = "cuda" if place.type == "rocm" else place.type
    return f"{kind}:{place.index or 0}"


def place_of(location: str) -> devices.device:
    """The device of a location tag; RuntimeError says what to do where there is none."""
    kind, _, index = location.partition(":")
    elsewhere = devices.redirected(kind)
    if elsewhere is not None:
        return elsewhere
    if kind == "cuda":
        kind = devices.device("gpu").type
    elif kind not in ("cpu", "meta", "tpu", "rocm", "gpu"):
        raise RuntimeError(
            "don't know how to restore data location of xtensor.storage.UntypedStorage (tagged with "
            f"{location}); map_location says where to load it instead"
        )
    place = devices.device(f"{kind}:{index}" if index else kind)
    if place.type in ("cpu", "meta"):
        return place
    present = devices.count(place.type)
    name = "CUDA" if place.type in ("cuda", "rocm") else place.type.upper()
    if present == 0:
        raise RuntimeError(
            f"Attempting to deserialize object on a {name} device but xtensor.devices.is_available({place.type!r}) is "
            "False. If you are running on a CPU-only machine, please use xtensor.load with "
            "map_location=xtensor.device('cpu') to map your storages to the CPU."
        )
    if (place.index or 0) >= present:
        raise RuntimeError(
            f"Attempting to deserialize object on {name} device {place.index} but xtensor.devices.count() is "
            f"{present}. Please use xtensor.load with map_location to map your storages to an existing device."
        )
    return place


def restored(map_location: MapLocation, location: str, storage: Callable[[], UntypedStorage]) -> Any:
    """The device that a storage goes to, or the storage that a callable `map_location` gave for it."""
    if map_location is None:
        return place_of(location)
    if isinstance(map_location, Mapping):
        target = map_location.get(location, location)
        return target if isinstance(target, devices.device) else place_of(target)
    if isinstance(map_location, str):
        return place_of(map_location)
    if isinstance(map_location, devices.device):
        return place_of(str(map_location))
    if not callable(map_location):
        raise TypeError(
            "map_location must be a string, a device, a dict or a callable, but got "
            f"{type(map_location).__name__}"
        )
    given = map_location(storage(), location)
    if given is None:
        return place_of(location)
    if not isinstance(given, UntypedStorage):
        raise TypeError(f"map_location must return a storage or None, but got {type(given).__name__}")
    return given
