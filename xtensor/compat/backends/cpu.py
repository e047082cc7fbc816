"""`torch.backends.cpu`: what the processor can do, which XLA finds out for itself."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """PyTorch's name for no special instructions: its own kernels are not here."""
    return "DEFAULT"
