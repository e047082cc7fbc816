"""ChannelShuffle, where PyTorch has it."""

from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
