"""DLPack, under the names of `torch.utils.dlpack`."""

from ..ops.tensor.export import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
