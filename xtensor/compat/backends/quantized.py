"""`torch.backends.quantized`: which engine multiplies integers is a setting that programs make; XLA does, whichever it is.

>>> xtensor.backends.quantized.engine
'x86'
"""

from __future__ import annotations

import sys
import types
from typing import Any

__all__ = ["ENGINES", "Settings"]

ENGINES = ["qnnpack", "onednn", "x86", "fbgemm"]
NAMES = ("none", "fbgemm", "qnnpack", "onednn", "x86")
chosen = {"engine": "x86"}


class Settings(types.ModuleType):
    """The module, whose engine can be set: RuntimeError for one that there is not."""

    @property
    def engine(self) -> str:
        """The engine that was chosen."""
        return chosen["engine"]

    @engine.setter
    def engine(self, name: str) -> None:
        if name not in NAMES:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        if name == "none":
            raise RuntimeError("quantized engine NoQEngine is not supported")
        chosen["engine"] = name

    @property
    def supported_engines(self) -> list[str]:
        """The engines that can be chosen."""
        return list(ENGINES)

    @supported_engines.setter
    def supported_engines(self, value: Any) -> None:
        raise RuntimeError("Assignment not supported")


sys.modules[__name__].__class__ = Settings
