"""`torch.backends.cpu`: what the processor can do."""

from __future__ import annotations

import numpy as np

__all__ = ["get_cpu_capability"]

AVX512 = ("AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL")


def get_cpu_capability() -> str:
    """The widest vector instructions of an x86 processor: "AVX512" or "AVX2"; else "DEFAULT".

    Packages go by it: torchvision resizes images of bytes as they are where there is one of them, and by way of floats elsewhere.

    >>> xtensor.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    True
    """
    found = getattr(getattr(np, "_core", None), "_multiarray_umath", None)
    features = getattr(found, "__cpu_features__", {})
    if all(features.get(name) for name in AVX512):
        return "AVX512"
    return "AVX2" if features.get("AVX2") and features.get("FMA3") else "DEFAULT"
