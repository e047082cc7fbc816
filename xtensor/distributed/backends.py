"""Backends, all of which are XLA, by their names: which there are, and what this build has."""

from __future__ import annotations

import enum
import os
from typing import Any

from .. import devices

__all__ = [
    "Backend",
    "DebugLevel",
    "checked_backend",
    "get_debug_level",
    "get_default_backend_for_device",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "supports_complex",
]


class Backend(str):
    """The name of a backend. All of them are XLA: its collectives use gloo on CPUs and NCCL on GPUs."""

    GLOO, NCCL, XLA, MPI, UCC, XCCL, UNDEFINED = "gloo", "nccl", "xla", "mpi", "ucc", "xccl", "undefined"
    backend_list = (UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, XLA)

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


KNOWN = ("gloo", "nccl", "xla", "undefined")


def checked_backend(name: Any) -> Backend:
    """A backend's name, of one or for several devices (`cpu:gloo,cuda:nccl`); ValueError for one that is not there."""
    found = Backend(name or "undefined")
    for part in found.split(","):
        if part.rpartition(":")[2] not in KNOWN:
            raise ValueError(
                f"Unknown c10d backend type {found.upper()}: gloo, nccl and xla are here, and all are XLA"
            )
    return found


def is_available() -> bool:
    """True."""
    return True


def is_torchelastic_launched() -> bool:
    """Whether a launcher (`python -m xtensor.distributed.run`) has started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_nccl_available() -> bool:
    """True: XLA uses it where there are GPUs."""
    return True


def is_gloo_available() -> bool:
    """True: XLA uses it on CPUs."""
    return True


def is_mpi_available() -> bool:
    """False."""
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_backend_available(backend: str) -> bool:
    """Whether a backend's name is taken: gloo, nccl or xla."""
    return backend.lower() in KNOWN[:3]


def get_default_backend_for_device(device: Any) -> str:
    """The name of the backend that serves a device: "gloo" for CPUs, "nccl" for NVIDIA's GPUs, "xla" for others."""
    kind = devices.device(device).type
    return {"cpu": "gloo", "cuda": "nccl"}.get(kind, "xla")


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction takes complex numbers: those that order or mask do not."""
    return getattr(reduceOp, "name", reduceOp) not in ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")


class DebugLevel(enum.Enum):
    """How much is checked: TORCH_DISTRIBUTED_DEBUG of the environment, which changes nothing here."""

    OFF, INFO, DETAIL = 0, 1, 2


def get_debug_level() -> DebugLevel:
    """What TORCH_DISTRIBUTED_DEBUG says; ValueError where that is no level."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise ValueError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL: {name}")
    return DebugLevel[name]
