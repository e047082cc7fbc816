"""What a program or a copy may take: more than there is is refused before XLA is asked, which would end the process.

The sizes of a program's values are known when its signature is first seen; what of them XLA keeps beside the results, its executable tells.
Small programs are never looked at again; one that takes more than `LARGE` bytes looks at the free memory at every call. Programs for
another platform than the CPU are not looked at: there XLA raises by itself.
"""

from __future__ import annotations

import collections
import contextlib
import math
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import jax

from .cache import BoundedCache
from .symbolic import at_most

try:
    import resource
except ImportError:  # Windows
    resource = None

__all__ = [
    "ASKED",
    "LARGE",
    "SMALL",
    "OutOfMemoryError",
    "available",
    "check",
    "check_sizes",
    "has_room",
    "needed",
    "out_of_memory",
    "sizes",
    "temporaries",
]


class OutOfMemoryError(RuntimeError):
    """A device other than the CPU has no memory for what was asked; programs catch it and try smaller batches."""


SMALL = 1 << 18
"""Bytes below which buffers are not given up where calls may wait for each other. Whether they did shows in reference counts, and programs
would be compiled one way in a first start and another way in the second.
"""
LARGE = 64 << 20
"""Bytes from which what a program takes is compared with the free memory."""
ASKED = LARGE >> 3
"""Bytes of values within a program from which its executable is asked for its temporaries: XLA makes some that the program has not."""
OVERFLOW = 1 << 63
CGROUP = pathlib.Path("/sys/fs/cgroup")
MEMINFO = pathlib.Path("/proc/meminfo")
# A group's limit and use, in its second version and in its first.
GROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def available() -> int:
    """The bytes that this process can still take on the host, as far as the system says: free memory, and what its group may use."""
    free = OVERFLOW
    with contextlib.suppress(OSError):
        found = re.search(rb"MemAvailable: *(\d+)", MEMINFO.read_bytes())
        free = int(found[1]) << 10 if found else free
    for limit, use in GROUPS:
        with contextlib.suppress(OSError, ValueError):
            free = min(free, int((CGROUP / limit).read_text()) - int((CGROUP / use).read_text()))
    return min(free, address_space())


def address_space() -> int:
    """What the process's own limit (`ulimit -v`) leaves."""
    if resource is None:
        return OVERFLOW
    with contextlib.suppress(OSError, ValueError):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
            return limit - pages * os.sysconf("SC_PAGE_SIZE")
    return OVERFLOW


def check(nbytes: int) -> None:
    """RuntimeError for more bytes than there are."""
    if nbytes > LARGE and nbytes > (free := available()):
        raise RuntimeError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes, and {max(free, 0)} are free. "
            "Error code 12 (Cannot allocate memory)"
        )


ASKED_OF_XLA = re.compile(r"[Oo]ut of memory while trying to allocate ([\d.]+) ?(\w+)")


def out_of_memory(error: BaseException | str) -> OutOfMemoryError | None:
    """The error that one of XLA's about a device's memory becomes; None for any other."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" not in text or (kind := jax.default_backend()) == "cpu":
        return None
    found = ASKED_OF_XLA.search(text)
    kind = "CUDA" if kind in ("gpu", "cuda") else kind.upper()
    tried = f" Tried to allocate {found[1]} {found[2]}." if found else ""
    return OutOfMemoryError(f"{kind} out of memory.{tried} {text.splitlines()[0]}")


def has_room(nbytes: int) -> bool:
    """Whether there are so many bytes."""
    return nbytes <= LARGE or nbytes <= available()


def check_sizes(sizes: Any, itemsize: int) -> None:
    """RuntimeError for an array of these sizes that no memory could hold, or this machine's cannot."""
    nbytes = math.prod(sizes) * itemsize
    if nbytes >= OVERFLOW:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
    check(nbytes)


def nbytes_of(aval: Any) -> int:
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    return 0 if shape is None or dtype is None else math.prod(shape) * dtype.itemsize


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those within it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                found = getattr(inner, "jaxpr", inner)
                if hasattr(found, "eqns"):
                    yield from equations(found)


def within(jaxpr: Any) -> int:
    """The bytes of all values of a program; RuntimeError where one has more than 64 bits can count."""
    total = 0
    for equation in equations(jaxpr):
        for variable in equation.outvars:
            nbytes = nbytes_of(variable.aval)
            if at_most(OVERFLOW, nbytes):
                sizes = list(variable.aval.shape)
                raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")
            total += nbytes
    return total


def sizes(traced: Any) -> tuple[int, int]:
    """The bytes that a traced program's results take, and those of all its values; RuntimeError where one has more than 64 bits can count.

    A result that takes over the buffer of an argument given up (one of its shape and dtype, by JAX's rule) takes none of its own.
    """
    jaxpr = traced.jaxpr.jaxpr
    total = within(jaxpr)
    given_up = collections.Counter(
        [(a.shape, a.dtype) for a in jax.tree.leaves(traced.args_info) if a.donated]
    )
    taken = 0
    for variable in jaxpr.outvars:
        aval = variable.aval
        form = getattr(aval, "shape", None), getattr(aval, "dtype", None)
        if given_up[form] > 0:
            given_up[form] -= 1
        else:
            taken += nbytes_of(aval)
    return taken, total


def temporaries(compiled: Any) -> int:
    """The bytes that a compiled program's code for the CPU takes beside arguments and results; elsewhere XLA itself raises."""
    with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError):
        if compiled.runtime_executable().local_devices()[0].platform == "cpu":
            return compiled.memory_analysis().temp_size_in_bytes
    return 0


_large: BoundedCache[Any, int] = BoundedCache(256)


def needed(traced: Any) -> int:
    """The bytes of a traced program's results and temporaries; RuntimeError for more than there are."""
    jaxpr = traced.jaxpr.jaxpr
    key = jaxpr, traced.donate_argnums
    size = _large.get(key)
    if size is None:
        size, within = sizes(traced)
        check(size)
        if within > ASKED:
            # The executable is the one that the call will find.
            size += temporaries(traced.lower().compile())
        if size > LARGE:
            _large[key] = size
    check(size)
    return size
