"""Generators: a seed and how many draws were made from it. Neither lives on a device."""

from __future__ import annotations

import math
import secrets
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import capture, checks, devices, dtypes
from ..engine import modes
from ..tensor import Tensor, array_of
from ..xla.levels import OLDER_VMAP, Batched, Level
from ..xla.x64 import call
from .options import placed

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

STATE = struct.Struct("<QQ")


class Generator:
    """A source of random numbers: each draw is a function of the seed and of how many draws came before it.

    The same seed gives the same numbers on every device. Differs from PyTorch: the numbers are not PyTorch's.
    """

    __slots__ = ("__weakref__", "_device", "_lock", "_seed", "draws")

    draws: Any

    def __init__(self, device: devices.DeviceLike = "cpu") -> None:
        place = devices.resolve(device)
        if place.type == "meta" or place.type in devices.ELSEWHERE:
            raise RuntimeError(f"{place.type.upper()} device type not an accelerator.")
        self._device = place
        self._lock = threading.Lock()
        self._seed: Any = DEFAULT_SEED
        self.draws = 0

    @property
    def device(self) -> devices.device:
        """The kind of device whose tensors it may fill."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start over from a seed; a negative one counts from 2**64 down."""
        capture.refuse("it seeds a generator")
        self._seed, self.draws = checked_seed(seed), 0
        return self

    def seed(self) -> int:
        """Start over from a seed that the operating system gives, which is returned."""
        self.manual_seed(secrets.randbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """The seed it was last given."""
        capture.refuse("it asks for a generator's seed")
        return self._seed

    def next_draw(self, each: bool = False) -> tuple[Any, Any]:
        """Seed and number of the next draw, as signed 64-bit operands of a kernel; the draw counts as made.

        each: whether every sample of a batch whose numbers differ makes a draw, and not all of them one together.
        """
        apart = levels_apart() if modes.state.transforms else ()
        count = math.prod([level.size or 0 for level in apart]) if each else 1
        watcher = capture.running()
        if watcher is not None:
            seed, draw = watcher.draw(self)
            for _ in range(count - 1):
                watcher.draw(self)
            return seed, draw_of_each(apart, draw) if apart else draw
        with self._lock:
            draw = self.draws
            self.draws = draw + count
        if apart:
            draw = draw_of_each(apart, draw)
        seed = self._seed
        if type(seed) is int and seed >= 2**63:
            seed -= 2**64
        return seed, draw

    def operands(self) -> tuple[Any, Any]:
        """Seed and number of the next draw, which is not made."""
        seed = self._seed
        return (seed - 2**64 if type(seed) is int and seed >= 2**63 else seed), self.draws

    def get_state(self) -> Tensor:
        """Seed and number of draws as a tensor of bytes."""
        capture.refuse("it asks for a generator's state")
        raw = np.frombuffer(STATE.pack(self._seed, int(self.draws)), np.uint8)
        return placed(raw.copy(), devices.device("cpu"))

    def set_state(self, new_state: Tensor) -> Generator:
        """Go back to a state that `get_state` gave."""
        capture.refuse("it sets a generator's state")
        if not isinstance(new_state, Tensor) or new_state.dtype is not dtypes.uint8:
            raise TypeError("RNG state must be a xtensor.ByteTensor")
        raw = np.asarray(array_of(new_state)).tobytes()
        if len(raw) != STATE.size:
            raise RuntimeError(
                f"Expected a GeneratorState of size {STATE.size} but found the input RNG state size to be {len(raw)}"
            )
        self._seed, self.draws = STATE.unpack(raw)
        return self

    def clone_state(self) -> Generator:
        """Another generator at the same point of the same stream."""
        twin = Generator(self._device)
        twin._seed, twin.draws = self._seed, self.draws
        return twin

    def __repr__(self) -> str:
        return f"<xtensor.Generator device={self._device} seed={self._seed} draws={self.draws}>"

    def __reduce__(self) -> Any:
        return _rebuild, (str(self._device), self._seed, int(self.draws))


def draw_of_each(apart: Sequence[Level], draw: Any) -> Any:
    """The number of a draw and those after it, as a batch. Kernels read the first, and draw for all samples together."""
    sizes = [level.size or 0 for level in apart]
    numbers: Any = call(jnp.add, np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes), draw)
    for level in apart:
        numbers = Batched(level, numbers)
    return numbers


def levels_apart() -> list[Level]:
    """The batches whose samples are to have different random numbers; RuntimeError where one is to have none."""
    levels = [t for t in modes.state.transforms if isinstance(t, Level) and t.size is not None]
    for level in levels:
        if level.randomness == "error":
            if level.name == OLDER_VMAP:
                raise RuntimeError(
                    "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations "
                    "outside of vmap as a workaround"
                )
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
    return [level for level in levels if level.randomness == "different"]


def _rebuild(device: str, seed: int, draws: int) -> Generator:
    made = Generator(device)
    made._seed, made.draws = seed, draws
    return made


def checked_seed(seed: Any) -> int:
    """A seed as an integer from 0 to 2**64 - 1."""
    if isinstance(seed, Tensor) or (not isinstance(seed, int) and hasattr(seed, "__index__")):
        seed = int(seed)
    if not isinstance(seed, int):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return int(seed) % 2**64


DEFAULT_SEED = 67280421310721

_defaults: dict[tuple[str, int], Generator] = {}
_first_seed: int | None = None


def default_generator_of(place: devices.device) -> Generator:
    """The generator that functions use for a device when they are given none."""
    key = (place.type, place.index or 0)
    found = _defaults.get(key)
    if found is None:
        if place.type == "meta":
            return Generator("cpu")
        made = Generator(place)
        made._seed = checked_seed(first_seed())  # also within a capture, which nobody seeds anew
        found = _defaults.setdefault(key, made)
    return found


def first_seed() -> int:
    """The seed of this process: what `manual_seed` said, else the operating system's choice."""
    global _first_seed
    if _first_seed is None:
        _first_seed = secrets.randbits(63)
    return _first_seed


class _Default:
    """`xtensor.default_generator`: the CPU's, made when first asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(default_generator_of(devices.device("cpu")), name)


def pick_generator(function: str, generator: Any, place: devices.device) -> Generator:
    """The generator argument, checked, or the device's own."""
    if generator is None:
        return default_generator_of(place)
    if isinstance(generator, _Default):
        generator = default_generator_of(devices.device("cpu"))
    if not isinstance(generator, Generator):
        raise checks.argument_error(function, "generator", None, "xtensor.Generator", generator)
    if place.type not in (generator.device.type, "meta"):
        raise RuntimeError(
            f"Expected a '{place.type}' device type for generator but found '{generator.device.type}'"
        )
    return generator


default_generator: Any = _Default()


def manual_seed(seed: int) -> Generator:
    """Start the default generators of all devices over from a seed, and return the CPU's.

    Raises: TypeError for what is no number.

    >>> _ = xtensor.manual_seed(0)
    >>> first = xtensor.rand(2)
    >>> _ = xtensor.manual_seed(0)
    >>> xtensor.equal(first, xtensor.rand(2))
    True
    """
    global _first_seed
    _first_seed = checked_seed(int(seed))
    for generator in _defaults.values():
        generator.manual_seed(_first_seed)
    return default_generator_of(devices.device("cpu"))


def seed() -> int:
    """Start the default generators over from a seed that the operating system gives, which is returned."""
    chosen = secrets.randbits(63)
    manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """The seed of the CPU's default generator."""
    return default_generator_of(devices.device("cpu")).initial_seed()


def get_rng_state(device: devices.DeviceLike = "cpu") -> Tensor:
    """The state of a device's default generator."""
    return default_generator_of(devices.resolve(device)).get_state()


def set_rng_state(new_state: Tensor, device: devices.DeviceLike = "cpu") -> None:
    """Put a device's default generator into a state that `get_rng_state` gave."""
    default_generator_of(devices.resolve(device)).set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str | None = None
) -> Iterator[None]:
    """Put the default generators back, at the end of the block, to where they were at its start.

    `devices` names those whose generators are kept besides the CPU's; all in use, where it is None.
    """
    if not enabled:
        yield
        return
    default_generator_of(_device("cpu"))
    wanted = None if devices is None else {("cpu", 0), *(_key(d, device_type) for d in devices)}
    before = {
        key: (generator._seed, generator.draws)
        for key, generator in _defaults.items()
        if wanted is None or key in wanted
    }
    try:
        yield
    finally:
        for key, (held, draws) in before.items():
            _defaults[key]._seed, _defaults[key].draws = held, draws


_device = devices.device


def _key(place: Any, device_type: str | None) -> tuple[str, int]:
    found = _device(device_type or "cuda", place) if isinstance(place, int) else _device(place)
    return found.type, found.index or 0


def kept_state(place: devices.device) -> tuple[Generator, Any, Any]:
    """A device's default generator, its seed and its number of draws, to be put back by `put_back`."""
    generator = default_generator_of(place)
    return generator, generator._seed, generator.draws


def put_back(state: tuple[Generator, Any, Any]) -> None:
    """Put a generator back to where it was."""
    generator = state[0]
    generator._seed, generator.draws = state[1:]
