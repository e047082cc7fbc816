"""What programs ask of `torch.cpu`, so that they can treat it as any other device."""

from __future__ import annotations

import os
import pathlib
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ... import devices
from ...xla.cache import bounded
from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "get_capabilities", "is_available", "synchronize"]

# PyTorch's names of instructions, and what the system calls them where that is something else.
INSTRUCTIONS = dict.fromkeys(
    "sse sse2 sse4_1 sse4_2 sse4a ssse3 avx avx2 avx_vnni fma4 f16c bmi2 popcnt aes clflush clflushopt clwb amx_bf16 amx_int8 amx_tile "
    "amx_fp16 avx512_bf16 avx512_fp16 avx512_bitalg avx512_vnni avx512_vpopcntdq avx512_vbmi2 avx512_vp2intersect".split()
)
INSTRUCTIONS |= {
    "sha": "sha_ni", "sse3": "pni", "fma3": "fma", "lzcnt": "abm", "bmi": "bmi1", "avx512_f": "avx512f", "avx512_cd": "avx512cd", "avx512_dq": "avx512dq",
    "avx512_bw": "avx512bw", "avx512_vl": "avx512vl", "avx512_ifma": "avx512ifma", "avx512_vbmi": "avx512vbmi",
}  # fmt: skip


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1, as in PyTorch."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Wait until everything is computed, as it always is in PyTorch, where this does nothing: who takes the time asks here."""
    devices.synchronize("cpu")


@bounded(1)
def get_capabilities() -> Mapping[str, Any]:
    """What the processor is and can do: its `architecture`, `cpu_name`, `num_logical_cores`, `num_physical_cores`, and of each kind of instruction
    whether it has it, by PyTorch's names; False for all where the system does not tell.

    Differs from PyTorch: sizes of caches and kinds of instructions beyond x86's are not told.

    >>> xtensor.cpu.get_capabilities()["num_logical_cores"] > 0
    True
    """
    told: dict[str, str] = {}
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            told[name.strip()] = value.strip()
    except OSError:
        pass
    flags = set(told.get("flags", "").split())
    logical = os.cpu_count() or 1
    siblings, cores = int(told.get("siblings", 0)), int(told.get("cpu cores", 0))
    found: dict[str, Any] = {name: (own or name) in flags for name, own in INSTRUCTIONS.items()}
    found |= {
        "architecture": platform.machine(),
        "cpu_name": told.get("model name", platform.processor()),
        "num_logical_cores": logical,
        "num_physical_cores": logical * cores // siblings if siblings and cores else logical,
    }
    return MappingProxyType(found)
