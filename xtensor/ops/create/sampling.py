"""How random tensors are drawn: kernels compiled for a shape, dtype and device, run with a generator's next draw."""

from __future__ import annotations

import contextlib
import math
import os
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import capture, checks, devices, dtypes
from ...host.numbers import HOME, stays
from ...operators.generator import Generator, pick_generator
from ...operators.options import check_layout, finish, into_out, pick_device, pick_dtype, storing
from ...operators.write import write_out
from ...storage import HostValues, MetaArray
from ...tensor import Tensor, wrap
from ...xla import segments
from ...xla.cache import BoundedCache, bounded
from ...xla.executables import form_named
from ...xla.pending import Pending, Work, workers
from ...xla.placing import from_host
from ...xla.sizes import count_host, enabled
from ...xla.sizes.spans import Late
from ...xla.symbolic import is_open
from ...xla.threads import others
from ...xla.x64 import call, jit, prepare
from . import draws

__all__ = ["drawn", "drawn_again", "integer_range", "keep_ahead", "make"]


def precise(number: Any, dtype: Any) -> Any:
    """A runtime number in the precision in which a distribution of `dtype` is computed."""
    wide = np.dtype(dtype) in (np.float64, np.complex128)
    return lax.convert_element_type(number, np.float64 if wide else np.float32)


def uniform(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.uniform(seed, draw, shape, dtype)


def between(seed: Any, draw: Any, shape: Any, dtype: Any, low: Any, high: Any) -> Any:
    low, high = precise(low, dtype), precise(high, dtype)
    if dtype.kind == "c":
        # Both parts are of the interval.
        return (draws.uniform(seed, draw, shape, dtype) * (high - low) + lax.complex(low, low)).astype(dtype)
    u = draws.uniform(seed, draw, shape, low.dtype)
    # Rounding may reach the upper bound, which the interval does not have: the number below it stands for that.
    value = (u * (high - low) + low).astype(dtype)
    top = high.astype(dtype)
    return jnp.where((value >= top) & (low.astype(dtype) < top), lax.nextafter(top, low.astype(dtype)), value)


def standard_normal(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.normal(seed, draw, shape, dtype)


def shifted_normal(seed: Any, draw: Any, shape: Any, dtype: Any, mean: Any, std: Any) -> Any:
    kind = precise(0, dtype).dtype
    if dtype.kind == "c":
        # Both parts have this mean.
        mean, std = precise(mean, dtype), precise(std, dtype)
        return (draws.normal(seed, draw, shape, dtype) * std + lax.complex(mean, mean)).astype(dtype)
    return (draws.normal(seed, draw, shape, kind) * std.astype(kind) + mean.astype(kind)).astype(dtype)


def log_normal(seed: Any, draw: Any, shape: Any, dtype: Any, mean: Any, std: Any) -> Any:
    mean, std = precise(mean, dtype), precise(std, dtype)
    return jnp.exp(draws.normal(seed, draw, shape, mean.dtype) * std + mean).astype(dtype)


def exponential(seed: Any, draw: Any, shape: Any, dtype: Any, rate: Any) -> Any:
    return (draws.exponential(seed, draw, shape, dtype) / precise(rate, dtype)).astype(dtype)


def cauchy(seed: Any, draw: Any, shape: Any, dtype: Any, median: Any, sigma: Any) -> Any:
    u = draws.inner(seed, draw, shape, dtype)
    return (precise(median, dtype) + precise(sigma, dtype) * jnp.tan((u - 0.5) * math.pi)).astype(dtype)


def geometric(seed: Any, draw: Any, shape: Any, dtype: Any, p: Any) -> Any:
    wide = np.float64 if np.dtype(dtype).itemsize == 8 else np.float32
    u = draws.inner(seed, draw, shape, wide)
    trials = jnp.ceil(jnp.log(u) / jnp.log1p(-lax.convert_element_type(p, np.float64))).astype(wide)
    return jnp.maximum(trials, 1).astype(dtype)


def words(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.words(seed, draw, shape, dtype)


def coins(seed: Any, draw: Any, shape: Any, dtype: Any, p: Any) -> Any:
    return draws.below(seed, draw, shape, p, dtype).astype(dtype)


def integers(seed: Any, draw: Any, shape: Any, dtype: Any, low: Any, span: Any) -> Any:
    return _shifted(draws.bits_below(seed, draw, shape, span, False), low, dtype)


def wide_integers(seed: Any, draw: Any, shape: Any, dtype: Any, low: Any, span: Any) -> Any:
    return _shifted(draws.bits_below(seed, draw, shape, span, True), low, dtype)


def _shifted(words: Any, low: Any, dtype: Any) -> Any:
    return (
        lax.convert_element_type(words, np.int64)
        .__add__(lax.convert_element_type(low, np.int64))
        .astype(dtype)
    )


def permutation(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.permutation(seed, draw, shape[0]).astype(dtype)


Kernel = Callable[..., Any]


MANY = 1 << 22
"""Numbers of a shape that are drawn in pieces."""
OFTEN = 16
"""How often."""


class Draws:
    """How a shape's numbers are drawn: in pieces at first, since weights are drawn once, each of a shape of its own.

    ahead: how many draws are made at once then; 0 where each is made by itself. served: how many the last such program was for. poor: how
    often in a row one was for few.
    """

    __slots__ = ("ahead", "left", "poor", "served")

    def __init__(self, few: bool, ahead: int) -> None:
        self.left = OFTEN if few else 0
        self.ahead = ahead
        self.served, self.poor = ENOUGH, 0

    def serves(self) -> bool:
        """Whether the next draw is one of those."""
        if not self.left or not enabled():
            return False
        self.left -= 1
        return True

    def pays(self) -> bool:
        """Whether draws are made at once another time; not where a generator is seeded for every few."""
        self.poor = 0 if self.served >= ENOUGH else self.poor + 1
        self.served = 0
        if self.poor >= ENOUGH:
            self.ahead = 0
        return self.ahead > 0


ENOUGH = 8
"""Draws that one program has to be for, since a thread is woken for it; and how often it may be for fewer."""
AT_ONCE = 512
"""Numbers that are drawn at once."""


def numbers_of(
    kernel: Kernel, shape: tuple[int, ...], dtype: dtypes.dtype, seed: Any, draw: Any, *numbers: Any
) -> Any:
    """What a kernel makes of its numbers as arrays, within a program."""
    values = [lax.convert_element_type(n, np.result_type(n)) for n in numbers]
    return kernel(seed, draw, shape, dtype.numpy, *values)


@bounded(2048)
def program(kernel: Kernel, shape: tuple[int, ...], dtype: dtypes.dtype, place: devices.device) -> Any:
    """A kernel for one shape, dtype and device as a jitted function of seed, draw and numbers."""

    def run(seed: Any, draw: Any, *numbers: Any) -> Any:
        return numbers_of(kernel, shape, dtype, seed, draw, *numbers)

    run.__name__ = kernel.__name__.strip("_")
    made: Any = jit(run, out_shardings=devices.sharding_of(place))
    one = place.type == "cpu" and place.sharding is None and not any(map(is_open, shape))
    count = math.prod(shape) if one else 0
    ahead = AT_ONCE // count if count and kernel in EXACT and place is HOME else 0
    made.sized = Draws(1 < count <= MANY, ahead if ahead >= ENOUGH else 0)
    return made


def drawn(
    kernel: Kernel,
    shape: tuple[int, ...],
    dtype: dtypes.dtype,
    place: devices.device,
    generator: Generator,
    *numbers: Any,
    later: bool = False,
) -> Any:
    """An array of random numbers. later: whether it may be pending."""
    if place.type == "meta":
        return MetaArray(shape, dtype.numpy)
    seed, draw = generator.next_draw(each=kernel is permutation)
    made = program(kernel, shape, dtype, place)
    plain = type(draw) is int and not (capture.watchers and capture.running())
    sized = made.sized
    if plain and sized.left and sized.serves():
        if kernel is permutation:
            return call(shuffled, shape[0], dtype, place, seed, draw)
        drawing = Drawing(kernel, shape, dtype, place, seed, draw, *numbers)
        if later and workers.count > 1 and segments.allowed() and not others and not drawing.begun().done:
            made = drawing.pending(form_named(shape, dtype.numpy.name, False))
            waiting.add(made)
            return made
        return call(drawing.drawn)
    if plain and later and sized.ahead and stays(place):
        found = drawn_ahead(sized, kernel, shape, dtype, seed, draw, numbers)
        if found is not None:
            return found
    return call(made, seed, draw, *numbers)


EXACT = frozenset((uniform, integers, wide_integers))
"""Kernels that give the same bits in whatever program they are."""


@bounded(256)
def several(kernel: Kernel, shape: tuple[int, ...], dtype: dtypes.dtype, count: int) -> Any:
    """A kernel for some draws one after the other, as a jitted function of seed, first draw and numbers."""

    def run(seed: Any, draw: Any, *numbers: Any) -> Any:
        draws = lax.iota(np.int64, count) + lax.convert_element_type(draw, np.int64)
        return jax.vmap(lambda d: numbers_of(kernel, shape, dtype, seed, d, *numbers))(draws)

    run.__name__ = kernel.__name__.strip("_")
    return jit(run, out_shardings=devices.sharding_of(HOME))


_ahead: BoundedCache[tuple[Any, ...], tuple[int, np.ndarray[Any, Any]]] = BoundedCache(256)


def drawn_ahead(
    draws: Draws,
    kernel: Kernel,
    shape: tuple[int, ...],
    dtype: dtypes.dtype,
    seed: int,
    draw: int,
    numbers: tuple[int, ...],
) -> HostValues | None:
    """The numbers of a draw in the host's memory, made with those of the draws that come next; None where each is made by itself."""
    key = kernel, shape, dtype, seed, numbers
    found = _ahead.get(key)
    first, memory = (0, ()) if found is None else found
    at = draw - first
    if not 0 <= at < len(memory):
        if not draws.pays():
            return None
        program = several(kernel, shape, dtype, draws.ahead)
        memory = np.asarray(call(program, seed, draw, *numbers))
        _ahead[key] = draw, memory
        at = 0
    draws.served += 1
    return HostValues(memory[at], HOME)


class Ahead(NamedTuple):
    """Numbers that a call's next draws will give: how they are drawn, the generator with its seed, the first draw, and the numbers of each."""

    draws: Draws
    generator: Generator
    seed: Any
    first: int
    memory: Any


_calls: BoundedCache[tuple[Any, ...], Ahead] = BoundedCache(256)


def drawn_again(call: tuple[Any, ...]) -> Tensor | None:
    """What a function and its arguments, which `keep_ahead` was told of, give now; None where that is not made yet."""
    found = _calls.get(call)
    if found is None or not stays(HOME) or devices.current() is not HOME:
        return None
    generator = found.generator
    with generator._lock:
        at = generator.draws - found.first
        if not 0 <= at < len(found.memory) or generator._seed is not found.seed:
            return None
        generator.draws += 1
    found.draws.served += 1
    return wrap(HostValues(found.memory[at], HOME))


def keep_ahead(call: tuple[Any, ...], kernel: Kernel, made: Tensor, numbers: tuple[int, ...]) -> None:
    """Remember that a call of the default generator's made a tensor so, where its next draws are there already."""
    raw = made._xt_storage.raw
    if type(raw) is not HostValues:
        return
    generator = pick_generator(call[0], None, HOME)
    dtype, sizes = dtypes.FROM_NUMPY[raw.dtype], tuple(raw.shape)
    seed, draw = generator.operands()
    found = _ahead.get((kernel, sizes, dtype, seed, numbers))
    if found is not None and 0 <= draw - found[0] < len(found[1]):
        drawing = program(kernel, sizes, dtype, HOME).sized
        _calls[call] = Ahead(drawing, generator, generator._seed, *found)


SHORT, LONG = 1 << 13, 1 << 19
"""The lengths of pieces that numbers are drawn in: two programs serve all shapes."""
FEW = 32
"""Short pieces that are drawn before long ones are."""


@bounded(256)
def piece(kernel: Kernel, length: int, dtype: dtypes.dtype, place: devices.device) -> Any:
    """A kernel for some numbers of a row, as a jitted function of the first one's index, seed, draw and numbers."""

    def run(first: Any, *args: Any) -> Any:
        with draws.starting_at(first):
            return numbers_of(kernel, (length,), dtype, *args)

    run.__name__ = kernel.__name__.strip("_")
    return jit(run, out_shardings=devices.sharding_of(place))


@bounded(256)
def making(
    kernel: Kernel, length: int, dtype: dtypes.dtype, place: devices.device, kinds: tuple[type, ...]
) -> Work:
    """What compiles a kernel for some numbers of a row, beside the program. kinds: of its seed, draw and numbers."""
    program = piece(kernel, length, dtype, place)
    made = Work(lambda: prepare(program, np.uint32(0), *[kind(0) for kind in kinds]))
    workers.submit(made)
    return made


class Drawing(Late):
    """The numbers for a shape in pieces of a longer row of them, since each depends on its own index alone.

    8,000 numbers too many take 0.1 ms, a program for them 70 or more. While that is compiled they are not drawn unless somebody asks: weights
    are made one after the other, and often others are put in their place.
    """

    __slots__ = ("args", "kind", "length", "shape")

    def __init__(
        self, kernel: Kernel, shape: tuple[int, ...], dtype: dtypes.dtype, place: devices.device, *args: Any
    ) -> None:
        super().__init__(devices.sharding_of(place), True)
        self.shape = shape
        self.length = SHORT if math.prod(shape) <= FEW * SHORT else LONG
        self.kind = kernel, self.length, dtype, place
        self.args = args

    def begun(self) -> Work:
        """What compiles the program."""
        return making(*self.kind, tuple(map(type, self.args)))

    def drawn(self) -> Any:
        """The numbers as an array."""
        return from_host(np.array(self.numbers()), self.sharding, self.committed)

    def values(self) -> Any:
        with contextlib.suppress(Exception):  # what fails is made here, and fails here
            self.begun().result()
        return self.numbers()

    def numbers(self) -> Any:
        """The numbers, in NumPy's memory."""
        count = math.prod(self.shape)
        count_host()
        draw = piece(*self.kind)
        found = [np.asarray(call(draw, np.uint32(i), *self.args)) for i in range(0, count, self.length)]
        return (found[0] if len(found) == 1 else np.concatenate(found))[:count].reshape(self.shape)

    def drop(self) -> None:
        """Numbers hold nothing."""


waiting: weakref.WeakSet[Pending] = weakref.WeakSet()
"""Numbers that wait for their program."""


def draw_before_fork() -> None:
    """Draw what waits: a process that is forked has none of the threads that compile."""
    for made in list(waiting):
        made.value()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=draw_before_fork)


@bounded(64)
def shuffle(length: int, dtype: dtypes.dtype, place: devices.device) -> Any:
    """The first integers in random order and then the others, as a jitted function of how many, seed and draw."""

    def permuted(count: Any, seed: Any, draw: Any) -> Any:
        return draws.permutation(seed, draw, length, count).astype(dtype.numpy)

    return jit(permuted, out_shardings=devices.sharding_of(place))


def shuffled(count: int, dtype: dtypes.dtype, place: devices.device, seed: Any, draw: Any) -> Any:
    """A permutation of any length by a program for longer ones, each four times as long as the next shorter one."""
    count_host()
    length = 256 << (2 * max(0, -(-((count - 1).bit_length() - 8) // 2)))
    found = shuffle(length, dtype, place)(np.int64(count), seed, draw)
    return from_host(np.array(np.asarray(found)[:count]), found.sharding, found.committed)


def check_float(name: str, dtype: dtypes.dtype) -> None:
    if not (dtype.is_floating_point or dtype.is_complex) or dtype in dtypes.FLOAT8:
        raise checks.not_implemented_for(name, dtype)


def make(
    function: str,
    kernel: Kernel,
    sizes: tuple[int, ...],
    generator: Any,
    out: Tensor | None,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
    *numbers: Any,
) -> Tensor:
    """The body of the functions that take sizes."""
    if layout is not None:
        check_layout(function, layout)
    if out is not None:
        dtype, device = into_out(function, out, dtype, device)
    chosen, place = pick_dtype(function, dtype), pick_device(function, device)
    check_drawable(kernel, chosen)
    source = pick_generator(function, generator, place)
    if chosen is dtypes.complex32:
        made = storing.converted(
            wrap(drawn(kernel, sizes, dtypes.complex64, place, source, *numbers)), chosen
        )
    else:
        made = wrap(drawn(kernel, sizes, chosen, place, source, *numbers, later=True))
    if out is not None:
        write_out(function, out, made, [])
        made = out
    return made if requires_grad is False else finish(function, made, requires_grad)


# What PyTorch says of dtypes in which these are not drawn.
FLOATS_ONLY: dict[Kernel, str] = {
    uniform: "check_uniform_bounds",
    standard_normal: "normal_kernel_cpu",
    shifted_normal: "normal_kernel_cpu",
}


def check_drawable(kernel: Kernel, dtype: dtypes.dtype) -> None:
    """Refuse a dtype in which a kernel does not draw."""
    if kernel in FLOATS_ONLY:
        check_float(FLOATS_ONLY[kernel], dtype)


# ---- integers ------------------------------------------------------------------------------------------------------


@bounded(256)
def integer_range(low: int, high: int, dtype: dtypes.dtype) -> tuple[Kernel, int, int]:
    """The kernel for integers in [low, high) of a dtype, and its operands; RuntimeError where there are none."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if dtype.is_floating_point:
        least, most = -(2**63), 2**63
    elif dtype is dtypes.bool:
        least, most = 0, 1
    else:
        limits = dtypes.iinfo(dtype)
        least, most = limits.min, limits.max
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {dtypes.c_name(dtype)}")
    span = high - low
    return (wide_integers if span > 2**32 else integers), signed(low), signed(span)


def signed(value: int) -> int:
    """A 64-bit integer as a signed one."""
    value %= 2**64
    return value - 2**64 if value >= 2**63 else value
