"""Process-wide settings that programs make: threads, determinism, warnings, the default tensor type."""

from __future__ import annotations

import os
from typing import Any

from .. import checks, devices, dtypes
from ..checks import argument_error
from ..ops.create.creation import Uninitialized
from ..ops.tensor.conversion import typed_name
from ..ops.tensor.queries import TensorType
from ..xla import segments as waiting_calls

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "use_deterministic_algorithms",
]


class _Settings:
    threads: int | None = None
    between: int | None = None
    warn_only = False


def processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def get_num_threads() -> int:
    """What `set_num_threads` was told, or how many processors XLA's own pool has."""
    return _Settings.threads or processors()


def set_num_threads(num_threads: int) -> None:
    """Remembered for `get_num_threads`.

    Differs from PyTorch: XLA sizes its pool when it starts, by the processors that the process may use (`taskset`).
    """
    _Settings.threads = _positive("set_num_threads", num_threads)


def segments(on: bool | None = None) -> bool:
    """Whether calls of small arrays wait and run together from now on, where `on` is given; gives whether they did.

    Raises: nothing of its own. Values, errors and gradients are the same either way.

    Differs from PyTorch: it has nothing like it.

    >>> before = xtensor.settings.segments(False)
    >>> xtensor.settings.segments(before)
    False
    """
    before = waiting_calls.allowed()
    if on is not None:
        waiting_calls.enable(on)
    return before


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was told, or how many processors there are."""
    return _Settings.between or processors()


def set_num_interop_threads(num_threads: int) -> None:
    """Remembered for `get_num_interop_threads`."""
    _Settings.between = _positive("set_num_interop_threads", num_threads)


def _positive(function: str, count: Any) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{function} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    return count


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered: on a CPU and a TPU operators are deterministic anyway.

    Differs from PyTorch: on a GPU, `XLA_FLAGS=--xla_gpu_deterministic_ops=true` in the environment chooses.
    """
    if not isinstance(mode, bool):
        raise argument_error("_set_deterministic_algorithms", "mode", 1, "bool", mode)
    if not isinstance(warn_only, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not {type(warn_only).__name__}"
        )
    _Settings.warn_only = warn_only
    Uninitialized.deterministic = mode


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was told."""
    return Uninitialized.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was told only to warn."""
    return _Settings.warn_only


MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The three levels of `use_deterministic_algorithms`: off, "warn", "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                + debug_mode
            )
        debug_mode = MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """The level as a number from 0 to 2."""
    return 0 if not Uninitialized.deterministic else 1 if _Settings.warn_only else 2


def set_warn_always(mode: bool) -> None:
    """Remembered: every warning here goes through `warnings`, whose filters decide how often it shows."""
    checks.Always.on = bool(mode)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was told."""
    return checks.Always.on


def set_flush_denormal(mode: bool) -> bool:
    """False: XLA decides what becomes of denormal numbers."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """The dtype and the device of new tensors by a type's name, such as `torch.cuda.HalfTensor`; deprecated."""
    checks.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
    )
    place, dtype = ("cpu", t.dtype) if isinstance(t, TensorType) else typed_name(str(t))
    dtypes.set_default_dtype(dtype)
    if str(place) != "cpu":
        devices.set_default_device(place)
