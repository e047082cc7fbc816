"""`torch.nn.attention`: which attention kernel to take; here attention is one formula, which XLA compiles."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SDPBackend", "sdp_kernel", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels by name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A choice of kernels that changes nothing: all of them compute the same."""
    chosen = backends if isinstance(backends, (list, tuple)) else [backends]
    if not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, **others: bool
) -> Iterator[None]:
    """The older spelling of `sdpa_kernel`; it changes nothing."""
    yield
