"""`functorch.einops`: `rearrange` without the package einops."""

from ...transforms.rearranging import rearrange

__all__ = ["rearrange"]
