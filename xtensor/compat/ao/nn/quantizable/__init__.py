"""`torch.ao.nn.quantizable`: layers of several layers, in parts that can be seen and quantised."""

from .modules import *
