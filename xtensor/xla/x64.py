"""64-bit types for xtensor's own calls, with the user's JAX left as it was.

JAX reads `jax_enable_x64` while tracing, lowering and matching signatures, so a whole call must run under it.
Swapping the thread-local value costs 0.3 us; entering `jax.enable_x64(True)` as a context costs 0.8 us. A program
that `jit` makes needs neither where all its arguments are JAX arrays: it turns the types on to trace and compile only.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer

from .compile_cache import compiling
from .compiles import watched
from .jax_internals import jitting
from .memory import LARGE, check, needed
from .sizes import Families, Sized

KEYS = tuple(
    f"{place}_{part}"
    for place in ("in_shardings", "out_shardings", "in_layouts", "out_layouts")
    for part in ("treedef", "leaves")
) + ("donate_argnums", "donate_argnames", "device", "backend", "compiler_options_kvs")

__all__ = ["call", "jit", "restore", "swap", "x64"]

swap: Callable[[bool], Any] = jax.enable_x64.swap_local
restore: Callable[[Any], None] = jax.enable_x64.set_local


def x64() -> Any:
    """A context in which JAX keeps 64-bit types."""
    return jax.enable_x64(True)


def call(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` with 64-bit types on."""
    previous = swap(True)
    try:
        return function(*args)
    finally:
        restore(previous)


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit(function, **options)` whose calls with arrays alone have 64-bit types, whatever the caller's JAX is set to.

    Python and NumPy numbers need `call`: JAX would narrow them on their way in. Compiled programs are kept on disk.
    """
    if jitting is not None:
        with contextlib.suppress(AttributeError, TypeError):  # a JAX in which the names mean something else
            return _with_own_miss(jax.jit(function, **options), bool(options))
    # Without a miss of our own nothing is given up: an interrupt in its midst would lose it.
    jitted: Any = jax.jit(function, **{n: o for n, o in options.items() if not n.startswith("donate")})

    @functools.wraps(function)
    def swapped(*args: Any) -> Any:
        return call(jitted, *args)

    return swapped


def copied(array: Any) -> Any:
    """An array in memory of its own; what is no array is as it is."""
    if isinstance(array, jax.Array) and not isinstance(array, Tracer):
        return jax.device_put(array, array.sharding, may_alias=False)
    return array


def sizes_of(function: Callable[..., Any], optioned: bool) -> Sized | None:
    """What is known of a function's sizes: its own, or one it is given by who made it; None where each size is compiled."""
    found = None if optioned else getattr(function, "sized", None)
    if optioned or found is False:
        return None
    return found or Sized(Families(jit), (), None)


def _with_own_miss(jitted: Any, optioned: bool) -> Callable[..., Any]:
    """The same compiled call, whose way into Python on a signature not seen before has 64-bit types on.

    JAX's own cache of signatures serves it: a call from a thread with other settings is another signature.
    """
    info = jitted._jit_info
    miss = jitted._cache_miss
    donated = frozenset(info.donate_argnums)
    name = jitted.__name__
    sized = sizes_of(jitted._fun, optioned)

    def cache_miss(*args: Any, **kwargs: Any) -> Any:
        if donated:
            # Python runs between this call and the storing of its results: what an interrupt loses there are copies.
            args = tuple([jax.tree.map(copied, a) if i in donated else a for i, a in enumerate(args)])
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(args))
        if sized is not None and not (traced or kwargs):
            found, came = call(lambda: sized.answer(jitted._fun, args))
            if found is not None:
                return found, None, False
            if came:  # JAX's cache says of its signature that it comes by here
                built._clear_cache()
        with watched(name), compiling():
            if traced:
                return call(lambda: miss(*args, **kwargs))
            size = needed(call(lambda: jitted.trace(*args, **kwargs)).jaxpr.jaxpr)
            check(size)
            found = call(lambda: miss(*args, **kwargs))
        if size <= LARGE:
            return found
        # What is made is there before the free memory is asked for next. Without what its fast path needs, a large program comes by here
        # at every call.
        return (jax.block_until_ready(found[0]), None, *found[2:])

    key = jitting.keys(**{name: getattr(info, name) for name in KEYS})
    built = jitting.make(
        jitted.__name__,
        jitted._fun,
        cache_miss,
        info.static_argnums,
        info.static_argnames,
        key,
        jitting.registry,
        jitting.shard,
        jitting.signatures(key.contains_explicit_attributes),
    )
    made: Any = functools.wraps(jitted._fun)(built)
    made._fun, made._jit_info = (
        jitted._fun,
        info,
    )  # what `lower` and the like, which all such objects have, look for
    made.sized = sized
    return made
