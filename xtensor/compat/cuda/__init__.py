"""What programs ask of `torch.cuda`, answered from what JAX finds: the GPU platform, or the device it is redirected to.

Differs from PyTorch: XLA orders what runs on a device by itself, so streams and events only mark places in the program.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ... import devices, dtypes
from ...memory.holders import memory_snapshot as held
from ...memory.holders import memory_summary as held_by
from ...operators.generator import default_generator_of
from ...ops.tensor.queries import typed
from ...tensor import Tensor
from ...xla.memory import OutOfMemoryError
from . import amp as amp

if TYPE_CHECKING:
    from . import nvtx

__all__ = [
    "Event",
    "OutOfMemoryError",
    "Stream",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


class _State:
    current = 0


def _redirected() -> devices.device | None:
    return devices.redirected("cuda")


def _place(device: Any = None) -> devices.device:
    """The device meant by an index, a name or None (the current one)."""
    if isinstance(device, devices.device) and device.type != "cuda" and device is not _redirected():
        raise ValueError(f"Expected a cuda device, but got: {device}")
    if device is None or isinstance(device, int):
        return devices.device("cuda", _State.current if device is None or device < 0 else device)
    found = devices.device(device)
    return devices.device("cuda", _State.current) if found.type == "cuda" and found.index is None else found


def is_available() -> bool:
    """Whether requests for CUDA devices reach an accelerator: a GPU, or another that they are redirected to."""
    return device_count() > 0


def device_count() -> int:
    """How many such devices there are."""
    place = _redirected()
    if place is not None:
        return int(place.type != "cpu")
    return devices.count("cuda")


def init() -> None:
    """Nothing: JAX starts a device when it is first used."""


def is_initialized() -> bool:
    """Whether there is a device: JAX starts it when it is first used."""
    return is_available()


def current_device() -> int:
    """The index of the device that `cuda` without an index means here."""
    return _State.current


def set_device(device: Any) -> None:
    """Let this module's functions mean that device when they are given none."""
    if not isinstance(device, int) or device >= 0:
        _State.current = _place(device).index or 0


class device:
    """A context in which this module's functions, and new tensors on no named device, mean one device."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _place(device).index or 0

    def __enter__(self) -> device:
        self._before = _State.current
        if self.idx >= 0:
            _State.current = self.idx
        return self

    def __exit__(self, *exc: object) -> None:
        _State.current = self._before


class device_of(device):
    """The device of a tensor, as a context."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else None)


def get_device_name(device: Any = None) -> str:
    """Its maker's name."""
    return devices.properties(_place(device)).name


class _Properties:
    """The names that programs read off a device's properties."""

    def __init__(self, place: devices.device) -> None:
        found = devices.properties(place)
        self.name = found.name
        self.total_memory = found.total_memory or 0
        self.multi_processor_count = found.cores or 0
        self.major, self.minor = get_device_capability(place)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device: Any = None) -> Any:
    """Name, memory and cores of a device, under PyTorch's names."""
    return _Properties(_place(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability; (0, 0) for what is no CUDA device."""
    found = getattr(devices.jax_device(_place(device)), "compute_capability", "0.0")
    major, _, minor = str(found).partition(".")
    return int(major), int(minor or 0)


def get_arch_list() -> list[str]:
    """XLA compiles for the device at hand: its own architecture."""
    if not is_available():
        return []
    major, minor = get_device_capability()
    return [f"sm_{major}{minor}"]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 works on the device, and without emulation if that does not count."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the device has TF32."""
    return is_available() and get_device_capability()[0] >= 8


def synchronize(device: Any = None) -> None:
    """Wait until everything asked of the device is computed."""
    devices.synchronize(_place(device))


def empty_cache() -> None:
    """Nothing: XLA's allocator keeps its pool."""


def ipc_collect() -> None:
    """Nothing: tensors are not shared between processes."""


# -- memory


def memory_allocated(device: Any = None) -> int:
    """The bytes that arrays hold on the device; 0 without one."""
    return devices.memory(_place(device)).allocated if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes held so far, where XLA counts them; otherwise what is held now."""
    if not is_available():
        return 0
    found = devices.memory(_place(device))
    return found.allocated if found.peak is None else found.peak


def memory_reserved(device: Any = None) -> int:
    """The bytes of XLA's pool, where it tells; otherwise those of arrays."""
    if not is_available():
        return 0
    found = devices.memory(_place(device))
    return found.reserved or found.allocated


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes of XLA's pool so far, where it tells."""
    return max(memory_reserved(device), max_memory_allocated(device))


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes, of what XLA may take."""
    found = devices.memory(_place(device))
    total = found.limit or devices.properties(_place(device)).total_memory or 0
    return max(total - found.allocated, 0), total


def memory_stats(device: Any = None) -> dict[str, int]:
    """The counts that XLA keeps, under PyTorch's names."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The same counts as text, and who holds what (`xtensor.memory_summary`) unless it is abbreviated."""
    counts = "\n".join(f"{name}: {count:,}" for name, count in memory_stats(device).items())
    return counts if abbreviated or not is_available() else f"{counts}\n\n{held_by(_place(device))}"


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """The arrays on the device, each with who holds it; empty without a device.

    Differs from PyTorch: arrays, not an allocator's segments (`xtensor.memory_snapshot`).
    """
    return held(_place(device)).as_dicts() if is_available() else []


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing: XLA's peak is that of the process."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Refused: XLA takes its share when it starts, as XLA_PYTHON_CLIENT_MEM_FRACTION says."""
    raise RuntimeError(
        "the share of memory is chosen before Python starts: set XLA_PYTHON_CLIENT_MEM_FRACTION in the environment"
    )


# -- random numbers


def _generators() -> list[Any]:
    return [default_generator_of(_place(i)) for i in range(device_count())]


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; nothing without one."""
    if is_available():
        default_generator_of(_place()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed every device's generator."""
    for generator in _generators():
        generator.manual_seed(seed)


def seed() -> None:
    """Seed the current device's generator with a number from the operating system."""
    if is_available():
        default_generator_of(_place()).seed()


def seed_all() -> None:
    """Seed every device's generator with a number from the operating system."""
    for generator in _generators():
        generator.seed()


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return default_generator_of(_place()).initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of a device's generator."""
    return default_generator_of(_place(device)).get_state()


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators."""
    return [generator.get_state() for generator in _generators()]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Put a device's generator into a state."""
    default_generator_of(_place(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Put all devices' generators into states."""
    for generator, state in zip(_generators(), new_states, strict=False):
        generator.set_state(state)


# -- streams and events


class Stream:
    """A place to run things in order: XLA has one per device, which this names."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = _place(device)
        self.priority = priority

    def synchronize(self) -> None:
        """Wait for the device."""
        devices.synchronize(self.device)

    def query(self) -> bool:
        """Whether everything is computed: it is, once waited for."""
        self.synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Nothing: there is one order."""

    def wait_event(self, event: Any) -> None:
        """Nothing: there is one order."""

    def record_event(self, event: Any = None) -> Any:
        """An event recorded now."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class Event:
    """A point in time: recording one waits for the device, so that times between two are those of the work."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Note the time, once everything asked of the device so far is computed."""
        if is_available():
            synchronize()
        self._at = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another."""
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1000

    def synchronize(self) -> None:
        """Nothing: recording waited."""

    def query(self) -> bool:
        """Whether what came before the event is computed: recording has waited for it."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Nothing: there is one order."""


def current_stream(device: Any = None) -> Stream:
    """The one stream of a device."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Stream) -> None:
    """Nothing: there is one order."""


def stream(stream: Stream | None) -> Any:
    """A context that changes nothing: there is one order."""
    return Stream() if stream is None else stream


def is_current_stream_capturing() -> bool:
    """False: there are no CUDA graphs."""
    return False


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """False: XLA moves what one device needs of another."""
    return False


_lazy_init = init
_TYPES = {
    f"{dtype.scalar_name}Tensor": dtype
    for dtype in (
        *(dtypes.bfloat16, dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.float64, dtypes.float32),
        *(dtypes.float16, dtypes.int32, dtypes.int64, dtypes.int16),
    )
}


def __getattr__(name: str) -> Any:
    """Typed constructors, `torch.cuda.FloatTensor` and the like, `nvtx`, and what follows the devices that there are."""
    if name in _TYPES:
        found = globals()[name] = typed(_TYPES[name], "cuda", __name__)
        return found
    if name == "default_generators":
        return tuple(_generators())
    if name == "_initialized":
        return is_initialized()
    if name == "nvtx":
        return import_module(f"{__name__}.nvtx")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
