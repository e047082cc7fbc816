"""`torch.backends.mkldnn`: not here; XLA has kernels of its own."""

from __future__ import annotations

from .switches import Precision, flags_of

__all__ = ["flags", "is_available"]

enabled = True
deterministic = False
allow_tf32 = True
matmul = Precision()
conv = Precision()
rnn = Precision()
flags = flags_of(__name__, enabled="enabled", deterministic="deterministic", allow_tf32="allow_tf32")


def is_available() -> bool:
    """False: XLA does without oneDNN."""
    return False
