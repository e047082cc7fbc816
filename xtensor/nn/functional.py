"""Layers as functions: `xtensor.nn.functional`. The operators themselves are declared under `ops`."""

from __future__ import annotations

from ..ops.class_losses import *
from ..ops.convolution import *
from ..ops.embedding import *
from ..ops.losses import *
from ..ops.matmul import bilinear, linear
from ..ops.normalization import *
from ..ops.pooling import *
