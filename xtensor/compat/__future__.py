"""`torch.__future__`: how modules convert their parameters, in `Module.to` and the like."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite: bool = False
_swap: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether conversions put new Parameters in place of the old ones, which keep their values; off at first."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions put new Parameters in place of the old ones."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether a Parameter stays the same object in every conversion, between meta and real devices too; off at first."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether a Parameter stays the same object in every conversion."""
    return _swap
