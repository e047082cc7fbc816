"""What goes wrong between processes, by PyTorch's names."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Something between processes went wrong."""


class DistBackendError(DistError):
    """A backend failed. XLA's own errors are those of JAX."""


class DistNetworkError(DistError):
    """Another process is not reached."""


class DistStoreError(DistError):
    """A key did not come in time."""


class QueueEmptyError(DistStoreError):
    """A store's queue has nothing. Stores have no queues here."""
