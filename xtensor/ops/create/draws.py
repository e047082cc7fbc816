"""Random numbers inside a kernel: pure functions of a seed, the number of the draw, and a shape.

Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): every element is a
function of its own index, so that no state is passed on and nothing depends on how the work is divided. Seed and draw
are runtime operands (64-bit integers, negative ones wrapped round), and a kernel that is given them again draws the
same numbers again. The stream is not PyTorch's.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from ...xla.levels import tracing
from ...xla.symbolic import at_most, is_open

__all__ = [
    "at_once",
    "below",
    "bits32",
    "bits64",
    "bits_below",
    "exponential",
    "normal",
    "permutation",
    "threefry",
    "uniform",
]

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry(key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """The block cipher: two 32-bit words from a key of two words and a counter of two words (or arrays of them)."""
    keys = (*key, key[0] ^ key[1] ^ np.uint32(PARITY))
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for block in range(5):
        for turn in ROTATIONS[block % 2]:
            x = x + y
            y = (y << np.uint32(turn)) | (y >> np.uint32(32 - turn))
            y = x ^ y
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x, y


def halves(value: Any) -> tuple[Any, Any]:
    """The high and the low word of a 64-bit integer."""
    wide = lax.convert_element_type(value, np.uint64)
    return (
        lax.convert_element_type(wide >> np.uint64(32), np.uint32),
        lax.convert_element_type(wide, np.uint32),
    )


def draw_key(seed: Any, draw: Any) -> tuple[Any, Any]:
    """The key of one draw."""
    return threefry(halves(seed), halves(draw))


def counters(index: Any, stream: int) -> tuple[Any, Any]:
    """Counters for indices (of at most 2**48 elements), apart for each of the streams that one draw takes."""
    if index.dtype == np.uint32:
        return jnp.full(index.shape, stream << 16, np.uint32), index
    high, low = halves(index)
    return high + lax.convert_element_type(stream << 16, np.uint32), low


class _Start(threading.local):
    first: Any = None


_start = _Start()


@contextlib.contextmanager
def starting_at(first: Any) -> Iterator[None]:
    """While a kernel is traced: the index of its first element, where it draws a part of a longer row."""
    before, _start.first = _start.first, first
    try:
        yield
    finally:
        _start.first = before


def indices(count: int) -> Any:
    """The elements' own indices."""
    found = lax.iota(np.uint32 if at_most(count, 2**32 - 1) else np.uint64, count)
    return found if _start.first is None else found + lax.convert_element_type(_start.first, found.dtype)


def bits32(seed: Any, draw: Any, shape: tuple[int, ...], stream: int = 0) -> Any:
    """32 random bits per element, two elements from each block."""
    return _drawn(_bits32, tuple(shape))(seed, draw, np.uint32(stream) if isinstance(stream, int) else stream)


def bits64(seed: Any, draw: Any, shape: tuple[int, ...], stream: int = 0) -> Any:
    """64 random bits per element."""
    return _drawn(_bits64, tuple(shape))(seed, draw, np.uint32(stream) if isinstance(stream, int) else stream)


def _drawn(kernel: Any, shape: tuple[int, ...]) -> Any:
    """The kernel for a shape; where the number of the draw is a batch, the numbers of one draw for the whole batch."""
    plain = functools.partial(kernel, shape=shape)
    if not tracing.batches:
        return plain
    found: Any = custom_vmap(plain)

    @found.def_vmap
    def whole(size: int, batched: Any, seed: Any, draw: Any, stream: Any) -> Any:
        if not batched[1]:
            axes = [0 if b else None for b in batched]
            return jax.vmap(plain, axes)(seed, draw, stream), True
        # In a loop over a batch, those of its samples that go on are at the same turn, which is the last.
        turn = jnp.max(stream) if batched[2] else stream
        return _drawn(kernel, (size, *shape))(seed, draw[0], turn), True

    return found


def at_once(kernel: Any) -> Any:
    """A kernel of a seed, the number of a draw and arrays, which for a batch of draws makes one draw over all samples."""
    found: Any = custom_vmap(kernel)

    @functools.wraps(kernel)
    def run(*args: Any) -> Any:
        return found(*args) if tracing.batches else kernel(*args)

    @found.def_vmap
    def whole(size: int, batched: Any, seed: Any, draw: Any, *arrays: Any) -> Any:
        if not batched[1]:  # the same numbers for all samples
            return jax.vmap(kernel, [0 if b else None for b in batched])(seed, draw, *arrays), True
        spread = [
            a if b else jnp.broadcast_to(a, (size, *a.shape))
            for a, b in zip(arrays, batched[2:], strict=True)
        ]
        return found(seed, draw[0], *spread), True

    return run


def _bits32(seed: Any, draw: Any, stream: Any, shape: tuple[int, ...]) -> Any:
    index = indices(math.prod(shape))
    one = index.dtype.type(1)
    x, y = threefry(draw_key(seed, draw), counters(index >> one, stream))
    return jnp.where((index & one).astype(bool), y, x).reshape(shape)


def _bits64(seed: Any, draw: Any, stream: Any, shape: tuple[int, ...]) -> Any:
    x, y = threefry(draw_key(seed, draw), counters(indices(math.prod(shape)), stream))
    wide = (lax.convert_element_type(x, np.uint64) << np.uint64(32)) | lax.convert_element_type(y, np.uint64)
    return wide.reshape(shape)


# How many bits of a uniform number each dtype takes: all that its mantissa holds.
MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def uniform(seed: Any, draw: Any, shape: tuple[int, ...], dtype: Any, stream: int = 0) -> Any:
    """Uniform numbers in [0, 1), multiples of the dtype's last place; a complex number has two parts of its own."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return lax.complex(
            uniform(seed, draw, shape, part, 2 * stream), uniform(seed, draw, shape, part, 2 * stream + 1)
        )
    keep = MANTISSA[dtype.name]
    if dtype.itemsize == 8:
        words = bits64(seed, draw, shape, stream) >> np.uint64(64 - keep)
        return lax.convert_element_type(words, np.float64) * 2.0**-keep
    words = bits32(seed, draw, shape, stream) >> np.uint32(32 - keep)
    return lax.convert_element_type(
        lax.convert_element_type(words, np.float32) * np.float32(2.0**-keep), dtype
    )


def inner(seed: Any, draw: Any, shape: tuple[int, ...], dtype: Any, stream: int = 0) -> Any:
    """Uniform numbers strictly between 0 and 1, symmetric about the middle: float64, else float32."""
    if np.dtype(dtype) == np.float64:
        words = lax.convert_element_type(bits64(seed, draw, shape, stream) >> np.uint64(12), np.float64)
        return (words + 0.5) * 2.0**-52
    words = lax.convert_element_type(bits32(seed, draw, shape, stream) >> np.uint32(9), np.float32)
    return (words + np.float32(0.5)) * np.float32(2.0**-23)


def normal(seed: Any, draw: Any, shape: tuple[int, ...], dtype: Any, stream: int = 0) -> Any:
    """Standard normal numbers; of complex ones both parts have variance 1/2."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        scale = part.type(math.sqrt(0.5))
        return lax.complex(
            normal(seed, draw, shape, part, 2 * stream) * scale,
            normal(seed, draw, shape, part, 2 * stream + 1) * scale,
        )
    u = inner(seed, draw, shape, dtype, stream)
    kind = u.dtype.type
    return lax.convert_element_type(lax.erf_inv(u * kind(2) - kind(1)) * kind(math.sqrt(2)), dtype)


def exponential(seed: Any, draw: Any, shape: tuple[int, ...], dtype: Any, stream: int = 0) -> Any:
    """Standard exponential numbers, never 0: float64, else float32."""
    return -jnp.log(inner(seed, draw, shape, dtype, stream))


def words(seed: Any, draw: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """What `under` compares with probabilities: uniform numbers for those of float64, else all 32 bits."""
    wide = np.dtype(dtype) == np.float64
    return uniform(seed, draw, shape, np.float64) if wide else bits32(seed, draw, shape)


def under(words: Any, p: Any) -> Any:
    """Where the numbers that `words` gives are below `p` (an array of any float dtype, or a number)."""
    if words.dtype == np.float64:
        return words < lax.convert_element_type(p, np.float64)
    # All 32 bits: with a float's 24, a probability of 1e-6 would be 1.3 % too large.
    p = lax.convert_element_type(p, np.float32)
    limit = lax.convert_element_type(jnp.ceil(jnp.clip(p, 0, 0.75) * np.float32(2.0**32)), np.uint32)
    return jnp.where(p < 0.75, words < limit, words >> np.uint32(8) < p * np.float32(2.0**24))


def below(seed: Any, draw: Any, shape: tuple[int, ...], p: Any, dtype: Any = np.float32) -> Any:
    """Where a uniform number is below `p` (an array of any float dtype, or a number)."""
    return under(words(seed, draw, shape, dtype), p)


def bits_below(seed: Any, draw: Any, shape: tuple[int, ...], span: Any, wide: bool) -> Any:
    """Integers in [0, span) as uint64; `wide` says that span (a 64-bit integer, 0 for 2**64) is above 2**32."""
    span = lax.convert_element_type(span, np.uint64)
    words = bits64(seed, draw, shape)
    if wide:
        return jnp.where(span == 0, words, words % jnp.maximum(span, np.uint64(1)))
    # The high part of a 64-bit fraction times span: no division, and a bias of at most span / 2**64.
    high, low = (words >> np.uint64(32)) * span, (words & np.uint64(0xFFFFFFFF)) * span
    return (high + (low >> np.uint64(32))) >> np.uint64(32)


def permutation(seed: Any, draw: Any, count: int, true: Any = None) -> Any:
    """The integers below `count` in random order, as int64.

    true: below how many they are to be; those from there on come last.
    """
    keys = _bits64(
        seed, draw, np.uint32(0), (count,)
    )  # of a batch each sample has a draw of its own, as in PyTorch
    places = lax.iota(np.int64, count)
    if true is not None:
        keys = jnp.where(places < true, keys, np.uint64(2**64 - 1))
    if not is_open(count) and count <= SHORT:
        # One number of key and place sorts five times as fast as a pair, and 44 bits of the key leave no bias.
        low = np.uint64(SHORT - 1)
        return lax.convert_element_type(lax.sort((keys & ~low) | places.astype(np.uint64)) & low, np.int64)
    _, order = lax.sort((keys, places), num_keys=1)
    return order


SHORT = 1 << 20
"""Of how many a permutation's keys and places have room in one number."""
