"""Convolution weights in another memory format."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert(module: Any, memory_format: Any, kinds: tuple[type, ...]) -> Any:
    for inner in module.modules():
        if isinstance(inner, kinds):
            inner.weight.data = inner.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the weights of all 2-d convolutions in a module this memory format."""
    return convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the weights of all 3-d convolutions in a module this memory format."""
    return convert(module, memory_format, (Conv3d, ConvTranspose3d))
