"""Who holds a device's memory: tensors, gradients, what backward saved, caches and programs, as a table, as data and over time."""

from __future__ import annotations

from .holders import Held, Snapshot, memory_snapshot, memory_summary
from .recording import Record, record_memory

__all__ = ["Held", "Record", "Snapshot", "memory_snapshot", "memory_summary", "record_memory"]
