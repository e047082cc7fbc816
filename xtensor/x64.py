"""64-bit types for xtensor's own calls, with the user's JAX left as it was.

JAX reads `jax_enable_x64` while tracing, lowering and matching signatures, so a whole call must run under it.
Swapping the thread-local value costs 0.3 us; entering `jax.enable_x64(True)` as a context costs 0.8 us. A program
that `jit` makes needs neither where all its arguments are JAX arrays: it turns the types on to trace and compile only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax

try:  # How `jax.jit` itself makes its compiled call: private, and used nowhere else.
    from jax._src.interpreters.pxla import JitGlobalCppCacheKeys, cc_shard_arg
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]
    from jax._src.pjit import _get_cpp_global_cache
    from jax._src.tree_util import dispatch_registry
except ImportError:
    _known_jax = False
else:
    _known_jax = True

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


def jit(function: Callable[..., Any], donate_argnums: int | tuple[int, ...] = ()) -> Callable[..., Any]:
    """`jax.jit(function)` for calls with arrays alone: with 64-bit types, whatever the caller's JAX is set to.

    Not for Python or NumPy numbers unless the caller has 64-bit types on: JAX would narrow them on their way in.
    """
    jitted: Any = jax.jit(function, donate_argnums=donate_argnums)
    if _known_jax:
        with contextlib.suppress(AttributeError, TypeError):  # a JAX in which these names mean something else
            return _with_own_miss(jitted)

    @functools.wraps(function)
    def swapped(*args: Any) -> Any:
        return call(jitted, *args)

    return swapped


def _with_own_miss(jitted: Any) -> Callable[..., Any]:
    """The same compiled call, whose way into Python on a signature not seen before has 64-bit types on.

    JAX's own cache of signatures serves it: a call from a thread with other settings is another signature.
    """
    info = jitted._jit_info
    miss = jitted._cache_miss

    def cache_miss(*args: Any, **kwargs: Any) -> Any:
        return call(lambda: miss(*args, **kwargs))

    # Every field as JAX sets it: keys are compared with those of other functions, and a treedef refuses None.
    fields = [field.name for field in dataclasses.fields(JitGlobalCppCacheKeys)]  # pyright: ignore[reportPossiblyUnboundVariable]
    key: Any = JitGlobalCppCacheKeys(**{name: getattr(info, name) for name in fields})  # pyright: ignore[reportPossiblyUnboundVariable]
    made: Any = _jax.pjit(  # pyright: ignore[reportPossiblyUnboundVariable, reportAttributeAccessIssue]
        jitted.__name__,
        jitted._fun,
        cache_miss,
        info.static_argnums,
        info.static_argnames,
        key,
        dispatch_registry,  # pyright: ignore[reportPossiblyUnboundVariable]
        cc_shard_arg,  # pyright: ignore[reportPossiblyUnboundVariable]
        _get_cpp_global_cache(key.contains_explicit_attributes),  # pyright: ignore[reportPossiblyUnboundVariable]
    )
    made = functools.wraps(jitted._fun)(made)
    made._fun, made._jit_info = (
        jitted._fun,
        info,
    )  # what `lower` and the like, which all such objects have, look for
    return made
