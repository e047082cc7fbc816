"""How exactly float32 products are computed where the device offers faster, coarser ones.

Matrix products are exact to float32 by default and convolutions may use TF32 on a GPU, which are PyTorch's defaults.
"""

from __future__ import annotations

from typing import Any

from jax import lax

from .. import checks
from ..xla.cache import clear_all, settings_read

__all__ = ["get_float32_matmul_precision", "set_float32_matmul_precision"]

LEVELS = {"highest": lax.Precision.HIGHEST, "high": lax.Precision.HIGH, "medium": lax.Precision.DEFAULT}
_level = "highest"

_convolutions_exact = False


def matmul_precision() -> lax.Precision:
    """The precision of matrix products, read while a program is traced."""
    return LEVELS[_level]


def convolution_precision() -> lax.Precision:
    """The precision of convolutions, read while a program is traced.

    XLA reads HIGH as TF32 on a GPU and as three bfloat16 passes on a TPU; a CPU computes in float32 whatever it says.
    """
    return lax.Precision.HIGHEST if _convolutions_exact else lax.Precision.HIGH


def convolutions_are_exact() -> bool:
    """Whether convolutions are computed in float32 everywhere."""
    return _convolutions_exact


def make_convolutions_exact(exact: bool) -> None:
    """Compute convolutions in float32 everywhere, or in TF32 where a device has it."""
    global _convolutions_exact
    if exact != _convolutions_exact:
        _convolutions_exact = exact
        clear_all()


def get_float32_matmul_precision() -> str:
    """The precision of float32 matrix products: "highest", "high" or "medium"."""
    return _level


settings_read += [get_float32_matmul_precision, convolutions_are_exact]


def set_float32_matmul_precision(precision: str) -> None:
    """Choose the precision of float32 matrix products: "highest" (float32), "high" (TF32) or "medium" (bfloat16)."""
    global _level
    if precision not in LEVELS:
        checks.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "setFloat32MatmulPrecision call has no effect.",
            UserWarning,
        )
        return
    if precision != _level:
        _level = precision
        clear_all()


def accumulation(dtype: Any) -> Any:
    """The element type in which products of `dtype` accumulate: float32 for the short floats, else None (its own)."""
    return "float32" if dtype.itemsize == 2 and dtype.kind not in "iu" else None
