"""`torch.utils.tensorboard`: SummaryWriter, over the tensorboard package."""

from ...devices.extras import missing

try:
    from .writer import FileWriter, SummaryWriter
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in (
        "google",
        "tensorboard",
    ):  # protobuf, which tensorboard brings
        raise
    raise missing("SummaryWriter", "tensorboard", "tensorboard") from error

__all__ = ["FileWriter", "SummaryWriter"]
