"""Neural networks: modules, their functional forms, initial values and utilities, under PyTorch's names."""

from __future__ import annotations

from . import functional, init, modules, parameter, utils
from .modules import *
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
