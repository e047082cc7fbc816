"""`xtensor.array_api`: the Python array API standard, version 2024.12.

Its functions take Tensors and return Arrays: Tensors whose operators follow the standard where PyTorch's differ. What the standard
leaves open raises TypeError: integers with floats, functions of dtypes that they are not for.
"""

from __future__ import annotations

import sys
from math import e, inf, nan, pi
from types import ModuleType

from ..dtypes import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from . import fft, linalg, operators
from .array import Array
from .creation import *
from .data_types import *
from .elementwise import *
from .info import __array_namespace_info__
from .manipulation import *
from .matrices import *
from .searching import *
from .statistics import *

newaxis = None
__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def namespace(api_version: str | None = None) -> ModuleType:
    """The namespace itself, for a version of the standard that it has; ValueError for another."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"unsupported array API version: {api_version!r}")
    return sys.modules[__name__]
