"""What is set once per process, when xtensor is imported: XLA's code generation for the CPU, malloc, and how often Python collects garbage.

`XTENSOR_TUNE_HOST=0` in the environment leaves all as they are. What the user has set in `XLA_FLAGS`, or of malloc by
`MALLOC_*` variables, stays; so do flags that XLA read before, where JAX ran a program before xtensor was imported.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import sys

import jaxlib.version

from .jax_internals import read_flags

__all__ = ["FLAGS", "THRESHOLDS", "prepare"]

FLAGS: dict[str, str] = {
    # Its tiled loops store halves of a vector and load it whole, which stalls: a + a of 4 MiB took 307 us, now 92 us.
    "xla_backend_extra_options": "xla_cpu_disable_tiled_emitter",
    # Its newer convolutions are slower than Eigen's: 3x3 of [16, 32, 28, 28] 1.79 ms, now 1.15 ms; a step of a CNN 0.77 of the time.
    "xla_cpu_experimental_ynn_fusion_type": "-LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION",
}
"""XLA's flags for x86 processors, with the figures that chose them (2 cores with AVX-512, jaxlib 0.10.2).

A flag that changes code can change results: `python -m tests.flags` runs every operator with each and without.
"""

KNOWN = ((0, 10), (0, 13))
"""From which jaxlib on and before which these flags are known: one that XLA does not know ends the process."""

THRESHOLDS: dict[int, int] = {
    -1: 128 << 20,  # M_TRIM_THRESHOLD: free memory at the end of the heap that is kept
    -3: 32 << 20,  # M_MMAP_THRESHOLD: the size from which an allocation is a mapping of its own
}
"""glibc's settings: by its own ones an array of a megabyte is given back and its pages are made anew at every call."""

YOUNG = (700, 2_000)
"""After how many new objects Python looks for garbage among them, by its own settings (before 3.13 and since)."""


def prepare() -> None:
    """Set what is not set yet."""
    if os.environ.get("XTENSOR_TUNE_HOST", "1") == "0":
        return
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    if x86 and KNOWN[0] <= jaxlib.version.__version_info__[:2] < KNOWN[1]:
        set_flags(FLAGS)
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        set_thresholds(THRESHOLDS)
    collect_less(10)


def set_flags(flags: dict[str, str]) -> None:
    """Have XLA read these with its own flags; the environment stays as it was, for what this process starts."""
    if read_flags is None:
        return
    before = os.environ.get("XLA_FLAGS")
    given = before or ""
    added = [f"--{name}={value}" for name, value in flags.items() if name not in given]
    os.environ["XLA_FLAGS"] = " ".join([given, *added]).strip()
    try:
        read_flags()
    finally:
        if before is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = before


def set_thresholds(thresholds: dict[int, int]) -> None:
    """Call glibc's `mallopt`; another C library is left alone."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for parameter, value in thresholds.items():
        mallopt(parameter, value)


def collect_less(times: int) -> None:
    """Have the collector look so many times less often, if it does as Python sets it: a call makes ten objects and more that it follows, a
    call of PyTorch one.
    """
    young, *older = gc.get_threshold()
    if young in YOUNG:
        gc.set_threshold(times * young, *older)
