"""`torch.ao.nn.intrinsic`: layers that are one where a model is quantised, in the order in which they run."""

from .modules import *
