"""`torch.torch_version`: the type of `torch.__version__`."""

from .version import TorchVersion, __version__

__all__ = ["TorchVersion", "__version__"]
