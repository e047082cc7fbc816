"""`xtensor.device`, the default device, and the way between device names and JAX's devices."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.extend.backend import clear_backends

from .. import capture, checks
from ..xla import jax_internals
from ..xla.jax_internals import PLATFORM_LOG
from ..xla.levels import ground
from ..xla.memory import LARGE, check_sizes
from ..xla.placing import from_host
from ..xla.signals import from_start
from ..xla.x64 import call
from .extras import command

__all__ = [
    "DeviceLike",
    "current",
    "default",
    "device",
    "jax_device",
    "meeting",
    "mesh_again",
    "move",
    "of_array",
    "of_mesh",
    "put",
    "redirect",
    "redirected",
    "replicating",
    "resolve",
    "sharding_of",
    "spread",
    "use",
]

# Our name for a platform -> JAX's platform names, in the order tried.
PLATFORMS: dict[str, tuple[str, ...]] = {
    "cpu": ("cpu",),
    "cuda": ("cuda",),
    "rocm": ("rocm",),
    "tpu": ("tpu",),
    "meta": (),
}
# Devices of PyTorch's that JAX does not reach: programs name them, and compare with them; nothing can be put there.
ELSEWHERE = frozenset(
    "fpga hip hpu ideep ipu lazy maia mkldnn mps mtia opencl opengl privateuseone ve vulkan xla xpu".split()
)
# What JAX devices call their platform -> our name.
_FROM_JAX = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "rocm", "tpu": "tpu"}
_EXTRAS = {"cuda": "cuda", "rocm": "rocm", "tpu": "tpu"}


class device:
    """A device's name: a type and an index, as in `device("cuda", 0)`, `device("cpu:1")`.

    `gpu` stands for the GPU platform that JAX found (cuda or rocm). A `meta` device holds shapes and no values.
    Used as a context, it is where new tensors are made. A mesh of devices is a device too: `sharding` says how arrays
    without a placement of their own lie on it (whole, on each of its devices), and is None of a single device.
    """

    __slots__ = ("_contexts", "index", "sharding", "type")
    type: str
    index: int | None
    sharding: Any

    def __new__(cls, type: str | device | int, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        if isinstance(type, int):
            checks.check(type >= 0, "Device index must not be negative")
            return _make(_accelerator_name(), type)
        if not isinstance(type, str):
            raise checks.argument_error("device", "type", 1, "str", type)
        if index is not None:
            if not isinstance(index, int):
                raise checks.argument_error("device", "index", 2, "int", index)
            checks.check(index >= 0, "Device index must not be negative")
        checks.check(type, "Device string must not be empty")
        name, _, number = type.partition(":")
        checks.check(name, lambda: f"Invalid device string: '{type}'")
        if number:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        elif ":" in type:
            raise RuntimeError(f"Invalid device string: '{type}'")
        checks.check(name.replace("_", "").isalpha(), lambda: f"Invalid device string: '{type}'")
        if name == "gpu":
            name = _gpu_name()
        if name in _redirected:
            return _redirected[name]
        if name not in PLATFORMS and name not in ELSEWHERE:
            known = ", ".join((*PLATFORMS, "gpu"))
            raise RuntimeError(f"Expected one of {known} device type at start of device string: {name}")
        return _make(name, index)

    def __repr__(self) -> str:
        if self.sharding is not None:
            return f"device(type='{self.type}', mesh='{mesh_name(self.sharding.mesh)}')"
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        if self.sharding is not None:
            return f"{self.type} mesh({mesh_name(self.sharding.mesh)})"
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> Any:
        if self.sharding is not None:
            mesh = self.sharding.mesh
            return (mesh_again, (self.type, mesh.axis_names, mesh.devices.shape, ids_of(mesh)))
        return (device, (self.type, self.index))

    def __enter__(self) -> device:
        _contexts.stack = (*_contexts.stack, self)
        return self

    @from_start
    def __exit__(self, *_: object) -> None:
        try:
            self.type  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            _contexts.stack = _contexts.stack[:-1]


DeviceLike = device | str | int | None

_redirected: dict[str, device] = {}


def redirect(names: Iterable[str], place: DeviceLike = None) -> None:
    """Let requests for devices of these kinds mean `place`; None takes that back.

    `device("cuda:1")` then is `place` too: programs written for one machine run on another.
    """
    names = tuple(names)
    for name in names:
        _redirected.pop(name, None)
    if place is not None:
        chosen = resolve(place)
        _redirected.update(dict.fromkeys(names, chosen))


def redirected(name: str) -> device | None:
    """The device that a kind of device stands for, or None where it is itself."""
    return _redirected.get(name)


_made: dict[tuple[str, int | None], device] = {}


def _make(name: str, index: int | None) -> device:
    made = _made.get((name, index))
    if made is None:
        made = object.__new__(device)
        made.type, made.index, made.sharding = name, index, None
        made = _made.setdefault((name, index), made)
    return made


def _accelerator_name() -> str:
    """The kind of device that a bare number means: the default's, else the accelerator that there is, else cuda."""
    if default().type in _EXTRAS:
        return default().type
    return next((name for name in _EXTRAS if has_devices(name)), "cuda")


def _gpu_name() -> str:
    return next((name for name in ("cuda", "rocm") if has_devices(name)), "cuda")


class _Quiet(logging.Filter):
    """Drops JAX's note, at INFO, of each platform that this machine does not have."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or "Unable to initialize backend" not in record.getMessage()


_quiet = _Quiet()


def local_devices(platform: str) -> list[Any]:
    """JAX's devices of a platform; RuntimeError where JAX has none. The first call starts every backend there is."""
    log = logging.getLogger(PLATFORM_LOG)
    log.addFilter(_quiet)
    try:
        return jax.local_devices(backend=platform)
    except (AssertionError, AttributeError):  # what JAX says where nothing that JAX_PLATFORMS names is there
        raise RuntimeError("JAX finds no such device") from None
    finally:
        log.removeFilter(_quiet)


def _allowed() -> str:
    """The platforms that the user lets JAX start, as JAX_PLATFORMS or its configuration names them; empty for all."""
    allowed: Any = jax.config.jax_platforms  # pyright: ignore[reportAttributeAccessIssue]
    return allowed or ""


def start_again() -> bool:
    """Let JAX start its backends anew when they are next asked for, where nothing was done yet but to ask; whether that is so."""
    if not (jax_internals.started and jax_internals.started_clients and jax_internals.started()):
        return False
    clients = jax_internals.started_clients().values()
    if any(client.live_arrays() or client.live_executables() for client in clients):
        return False
    clear_backends()
    for known in (_jax_devices, _shardings, _places, _by_sharding, _meshes):
        known.clear()
    return True


def has_devices(name: str) -> bool:
    """Whether JAX has a device of this platform."""
    try:
        return bool(local_devices(name))
    except RuntimeError:
        return False


_jax_devices: dict[device, Any] = {}
_shardings: dict[device, Any] = {}


def jax_device(place: device) -> Any:
    """JAX's device of that name, or a mesh's sharding; RuntimeError says what is missing."""
    found = _jax_devices.get(place)
    if found is None:
        found = _jax_devices[place] = _find(place) if place.sharding is None else place.sharding
    return found


def sharding_of(place: device) -> Any:
    """Where arrays of a device lie, as JAX's programs are told."""
    found = _shardings.get(place)
    if found is None:
        device = jax_device(place)
        found = device if place.sharding is not None else jax.sharding.SingleDeviceSharding(device)
        _shardings[place] = found
    return found


def _find(place: device) -> Any:
    reason = ""
    if place.type in ELSEWHERE:
        raise RuntimeError(f"xtensor has no {place.type} backend: JAX reaches {', '.join(PLATFORMS)}")
    for platform in PLATFORMS[place.type]:
        try:
            present = local_devices(platform)
        except RuntimeError as error:
            # Why a backend that is installed does not start is worth telling; that one is not installed is not.
            text = str(error)
            started = "failed to initialize" in text and "Failed to open libtpu.so" not in text
            reason = f" ({text})" if started else ""
            continue
        index = place.index or 0
        if index >= len(present):
            raise RuntimeError(
                f"device {place} does not exist: {len(present)} {place.type} device(s) present"
                + (
                    f"; start Python with JAX_NUM_CPU_DEVICES={index + 1} in its environment for more"
                    if place.type == "cpu"
                    else ""
                )
            )
        return present[index]
    _refuse_what_is_left_out(place)
    extra = _EXTRAS.get(place.type, place.type)
    raise RuntimeError(
        f"xtensor has no {place.type} backend here: JAX finds no {place.type} device. "
        f"Install it with: {command(extra)}{reason}"
    )


def _refuse_what_is_left_out(place: device) -> None:
    """RuntimeError where it is JAX_PLATFORMS that keeps a device away."""
    allowed = _allowed()
    names = set(allowed.replace("gpu", "cuda,rocm").split(","))
    started = [name for name in PLATFORMS if has_devices(name)]
    if not allowed or (started and place.type in names):
        return
    if started:
        raise RuntimeError(
            f"JAX_PLATFORMS={allowed} leaves out the device {place}; available with it: {', '.join(started)}. "
            f"Unset it, or name {place.type} too: JAX_PLATFORMS={allowed},{place.type}"
            + (f" (with {command(place.type)})" if place.type in _EXTRAS else "")
        )
    try:
        local_devices("cpu")
        reason = ""
    except RuntimeError as error:
        reason = str(error)
    raise RuntimeError(
        f"JAX_PLATFORMS={allowed} names no platform that this machine has ({reason}), and lets no other start. "
        "Available without it: cpu. Unset it, or set JAX_PLATFORMS=cpu"
    )


_places: dict[Any, device] = {}


def of_jax_device(found: Any) -> device:
    """Our name for one of JAX's devices."""
    place = _places.get(found)
    if place is None:
        name = _FROM_JAX.get(found.platform, found.platform)
        index = found.local_hardware_id if name != "cpu" else local_devices("cpu").index(found)
        place = _places[found] = _make(str(name), None if name == "cpu" and index == 0 else index or 0)
    return place


def of_array(array: Any) -> device:
    """Where an array lies; one over several devices answers with their mesh, a traced one with the current device."""
    if isinstance(array, Tracer):  # inside a traced function: where it will run
        watcher = capture.running()
        return current() if watcher is None or watcher.place is None else watcher.place
    try:
        return _by_sharding[id(array.sharding)][1]
    except Exception:  # one not seen before, or no array of JAX's
        return _look_up(array)


_by_sharding: dict[int, tuple[Any, device]] = {}
"""By identity, since hashing a sharding costs more than looking its device up; programs share theirs between calls."""


def _look_up(array: Any) -> device:
    beneath = ground(array)
    if beneath is not array:
        return of_array(beneath)
    try:
        where = array.devices()
    except AttributeError:
        return _make("meta", None)
    if len(_by_sharding) >= 4096:
        _by_sharding.clear()
    sharding = array.sharding
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None and (len(where) > 1 or mesh in _meshes):
        place = of_mesh(mesh)
    elif len(where) > 1 and (known := [p for m, p in _meshes.items() if {*m.devices.flat} == where]):
        place = known[-1]  # of a program whose results lie as no placement says
    else:
        place = of_jax_device(min(where, key=lambda d: d.id))
    _by_sharding[id(sharding)] = sharding, place
    return place


_meshes: dict[Any, device] = {}


def of_mesh(mesh: Any) -> device:
    """The device that a `jax.sharding.Mesh` is."""
    place = _meshes.get(mesh)
    if place is None:
        place = object.__new__(device)
        platform = mesh.devices.flat[0].platform
        place.type, place.index = _FROM_JAX.get(platform, str(platform)), None
        place.sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        place = _meshes.setdefault(mesh, place)
    return place


def mesh_name(mesh: Any) -> str:
    """The dimensions of a mesh: `data=4, model=2`."""
    return ", ".join(f"{n}={s}" for n, s in zip(mesh.axis_names, mesh.devices.shape, strict=True))


def ids_of(mesh: Any) -> tuple[int, ...]:
    """JAX's numbers of a mesh's devices."""
    return tuple([d.id for d in mesh.devices.flat])


def mesh_again(kind: str, names: tuple[str, ...], shape: tuple[int, ...], ids: tuple[int, ...]) -> device:
    """The device that a mesh of these devices is, in this process; RuntimeError where it lacks some."""
    there: dict[int, Any] = {}
    for platform in PLATFORMS[kind]:
        with suppress(RuntimeError):
            there |= {d.id: d for d in jax.devices(platform)}
    missing = [i for i in ids if i not in there]
    if missing:
        raise RuntimeError(
            f"a mesh of {len(ids)} {kind} devices needs device {missing[0]}, which is not here"
        )
    found = np.empty(len(ids), object)
    found[:] = [there[i] for i in ids]
    axes = (jax.sharding.AxisType.Auto,) * len(shape)
    return of_mesh(jax.sharding.Mesh(found.reshape(shape), names, axis_types=axes))


_default: device | None = None


class _Contexts(threading.local):
    stack: tuple[device, ...] = ()
    replicates = 0


_contexts = _Contexts()


@contextmanager
def replicating() -> Iterator[None]:
    """A block in which tensors of a single device may meet those of a mesh: they are copied to each of its devices."""
    replicate(1)
    try:
        yield
    finally:
        replicate(-1)


def replicate(more: int) -> None:
    """Enter so many blocks of `replicating`, or leave them."""
    _contexts.replicates += more


def meeting(places: Iterable[device]) -> device | None:
    """The mesh on which tensors of these devices come together within `replicating`; None where they may not."""
    meshes = {p for p in places if p.sharding is not None}
    return meshes.pop() if _contexts.replicates and len(meshes) == 1 else None


def default() -> device:
    """Where new tensors are made when nothing else is said: CPU, or XTENSOR_DEVICE, or `set_default_device`."""
    global _default
    if _default is None:
        _default = device(os.environ.get("XTENSOR_DEVICE", "cpu"))
    return _default


def current() -> device:
    """The innermost `with device:` of this thread, else the default."""
    stack = _contexts.stack
    return stack[-1] if stack else default()


def set_default_device(device: DeviceLike) -> None:
    """Make new tensors on `device` from now on; None goes back to the CPU."""
    global _default
    _default = resolve("cpu" if device is None else device)


def resolve(place: DeviceLike) -> device:
    """The device meant by a name, an index or None (the current one)."""
    if place is None:
        return current()
    return place if isinstance(place, device) else device(place)


def same(place: device, other: device) -> bool:
    """Whether two names mean one device: `cuda` is the current one of `cuda:0` and its like."""
    if place is other or place == other:
        return True
    if place.type != other.type or place.type in ("cpu", "meta") or None not in (place.index, other.index):
        return False
    return place.sharding is other.sharding is None and jax_device(place) is jax_device(other)


@contextmanager
def use(place: DeviceLike) -> Iterator[device]:
    """New tensors are made on `place` inside."""
    with resolve(place) as chosen:
        yield chosen


def put(data: Any, place: device, copy: bool = True) -> Any:
    """A committed array on `place` holding a copy of `data` (a NumPy array or a JAX array).

    Without `copy` it may be `data`'s own memory, which nobody may write to any more.
    """
    checks.check(place.type != "meta", "cannot place values on a meta device")
    if place.type == "cpu" and data.nbytes > LARGE:
        check_sizes(data.shape, data.dtype.itemsize)
    if copy and isinstance(data, np.ndarray):
        # device_put may alias NumPy's memory, and its owner may write to it later.
        data = np.array(data, copy=True)
    if place.sharding is not None:
        return spread(data, place.sharding)
    if type(data) is np.ndarray:
        # Values inside a traced function too: what keeps them may outlive the trace.
        return call(from_host, data, sharding_of(place))
    return call(jax.device_put, data, jax_device(place))


def spread(data: Any, sharding: Any) -> Any:
    """An array over several devices, in memory of its own; values of the host's every process must have."""
    if isinstance(data, Tracer):
        return call(jax.lax.with_sharding_constraint, data, sharding)
    if not getattr(data, "is_fully_addressable", True):
        return call(jax.device_put, data, sharding)
    if sharding.is_fully_addressable:
        return call(lambda: jax.device_put(data, sharding, may_alias=False))
    # `device_put` would have all processes compare their values.
    values = np.asarray(data)
    return call(lambda: jax.make_array_from_callback(values.shape, sharding, lambda at: values[at]))


def move(array: Any, place: device) -> Any:
    """An array on another device; RuntimeError for one of which other processes hold a part."""
    if place.sharding is not None:
        return spread(array, place.sharding)
    if not getattr(array, "is_fully_addressable", True):
        if not array.is_fully_replicated:
            raise RuntimeError(
                f"a tensor on {of_array(array)} has parts in other processes: use full_tensor(), or to_local() for the part here"
            )
        array = array.addressable_data(0)
    return call(jax.device_put, array, jax_device(place))
