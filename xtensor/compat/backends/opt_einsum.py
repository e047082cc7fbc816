"""`torch.backends.opt_einsum`: in which order `einsum` contracts; JAX brings opt_einsum with it."""

from __future__ import annotations

from .switches import flags_of

__all__ = ["flags", "is_available"]

enabled = True
strategy = "auto"
flags = flags_of(__name__, enabled="enabled", strategy="strategy")


def is_available() -> bool:
    """True: JAX depends on it."""
    return True
