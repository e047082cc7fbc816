"""The modules, one file per family, under the names that PyTorch gives the files."""

from __future__ import annotations

from . import (
    activation,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    instancenorm,
    linear,
    loss,
    module,
    normalization,
    padding,
    pooling,
    rnn,
    rnncell,
    sparse,
)
from .activation import *
from .batchnorm import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .instancenorm import *
from .linear import Bilinear, Identity, Linear
from .loss import *
from .module import Module
from .normalization import *
from .padding import *
from .pooling import *
from .rnn import *
from .rnncell import *
from .sparse import *

__all__ = ["Bilinear", "Identity", "Linear", "Module"]
__all__ += activation.__all__
__all__ += batchnorm.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += flatten.__all__
__all__ += instancenorm.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += pooling.__all__
__all__ += rnn.__all__
__all__ += rnncell.__all__
__all__ += sparse.__all__
