"""`torch.nn.attention`: which attention kernel to take: XLA's of the formula, or cuDNN's fused one on an NVIDIA GPU."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...ops.network.attention import fused_allowed

__all__ = ["SDPBackend", "sdp_kernel", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels by name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


FUSED = frozenset({SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION})


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Allow kernels of attention: with a fused one (FLASH_ATTENTION, CUDNN_ATTENTION), cuDNN's is taken where it can be.

    That is on an NVIDIA GPU, for float16 and bfloat16, without a mask, causal or not, heads of at most 128 in eights.
    Raises: AssertionError for what is no SDPBackend.
    Differs from PyTorch: what no allowed kernel computes is computed by the formula.
    """
    chosen = backends if isinstance(backends, (list, tuple)) else [backends]
    if not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    token = fused_allowed.set(bool(FUSED.intersection(chosen)))
    try:
        yield
    finally:
        fused_allowed.reset(token)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, **others: bool
) -> Iterator[None]:
    """The older spelling of `sdpa_kernel`."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION if enable_flash else SDPBackend.MATH):
        yield
