"""`torch.ao.nn.qat.dynamic`: the same for layers that will quantise their inputs as they come."""

from .modules import *
