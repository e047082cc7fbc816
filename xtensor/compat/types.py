"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from ..devices import DeviceLike, device
from ..dtypes import dtype
from ..operators.generator import Generator
from ..tensor import Size, Tensor

__all__ = ["Device", "FileLike", "Number"]

Device: TypeAlias = DeviceLike
FileLike: TypeAlias = Any
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
PySymType: TypeAlias = builtins.int | builtins.float | builtins.bool
_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_dtype, _device, _size = dtype, device, Size | Sequence[builtins.int]
_Number: TypeAlias = builtins.int | builtins.float | builtins.bool
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_PathLike: TypeAlias = str | os.PathLike[str]
_Generator = Generator
