"""`torch.ao.nn.qat`: layers whose weights are rounded in training as they will be once the model is quantised."""

from . import dynamic
from .modules import *
