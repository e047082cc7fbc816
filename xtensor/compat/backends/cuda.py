"""`torch.backends.cuda`: precision of matrix products, and the choice of attention kernels, which XLA makes."""

from __future__ import annotations

from typing import Any

from ... import devices
from ...nn.attention import sdp_kernel as sdp_kernel
from .switches import Precision

__all__ = [
    "SDPAParams",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
]

matmul = Precision()
_sdp = {"flash": False, "mem_efficient": False, "math": True, "cudnn": False}


def is_built() -> bool:
    """Whether JAX finds a CUDA device: there is no build that could do without."""
    return devices.is_available("cuda")


def is_flash_attention_available() -> bool:
    """False: the kernel is not here."""
    return False


class SDPAParams:
    """What an attention is asked for, as the questions below take it."""

    __slots__ = ("attn_mask", "dropout", "enable_gqa", "is_causal", "key", "query", "value")

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout: float,
        is_causal: bool,
        enable_gqa: bool,
    ) -> None:
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False: attention is one formula here, and no such kernel is chosen."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False; see `can_use_flash_attention`."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """False; see `can_use_flash_attention`."""
    return False


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` was told."""
    return _sdp["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` was told."""
    return _sdp["mem_efficient"]


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` was told."""
    return _sdp["math"]


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` was told."""
    return _sdp["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Remembered; attention is one formula that XLA fuses as it sees fit."""
    _sdp["flash"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Remembered; see `enable_flash_sdp`."""
    _sdp["mem_efficient"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Remembered; see `enable_flash_sdp`."""
    _sdp["math"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Remembered; see `enable_flash_sdp`."""
    _sdp["cudnn"] = bool(enabled)


def preferred_blas_library(backend: str | None = None) -> str:
    """XLA's, whatever is preferred."""
    return "default"


def preferred_linalg_library(backend: str | None = None) -> str:
    """XLA's, whatever is preferred."""
    return "default"
