"""What the modules of `backends` are made of: contexts that set a module's attributes, and the precision switch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...operators.precision import (
    convolutions_are_exact,
    get_float32_matmul_precision,
    make_convolutions_exact,
    set_float32_matmul_precision,
)

__all__ = ["ConvolutionPrecision", "Precision", "flags_of"]


def flags_of(module: str, **names: str) -> Any:
    """`flags(...)`: a context in which attributes of a module have other values; `names` map arguments to them."""

    @contextmanager
    def flags(*values: Any, **given: Any) -> Iterator[None]:
        chosen = {**dict(zip(names, values, strict=False)), **given}
        target = sys.modules[module]
        before = {names[n]: getattr(target, names[n]) for n in chosen if n in names}
        try:
            for n, value in chosen.items():
                if n in names and value is not None:
                    setattr(target, names[n], value)
            yield
        finally:
            for name, value in before.items():
                setattr(target, name, value)

    return flags


class Precision:
    """`matmul.allow_tf32` and its newer spelling `fp32_precision`: the precision of float32 matrix products."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        set_float32_matmul_precision("high" if allowed else "highest")

    @property
    def fp32_precision(self) -> str:
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        set_float32_matmul_precision("high" if precision in ("tf32", "bf16") else "highest")


class ConvolutionPrecision:
    """`cudnn.conv.fp32_precision`: whether convolutions of float32 may use TF32 on a GPU."""

    @property
    def fp32_precision(self) -> str:
        return "ieee" if convolutions_are_exact() else "tf32"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        make_convolutions_exact(precision not in ("tf32", "bf16"))
