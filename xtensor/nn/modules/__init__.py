"""The modules, one file per family, under the names that PyTorch gives the files."""

from ...ops.network.linear_losses import LinearCrossEntropyOptions
from . import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    fractional_pooling,
    instancenorm,
    lazy,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    rnncell,
    sequence_loss,
    sparse,
    transformer,
    upsampling,
)
from .activation import *
from .adaptive import *
from .attention import *
from .batchnorm import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .fractional_pooling import *
from .instancenorm import *
from .lazy import *
from .linear import Bilinear, Identity, Linear
from .loss import *
from .module import Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .rnncell import *
from .sequence_loss import *
from .sparse import *
from .transformer import *
from .upsampling import *

__all__ = ["Bilinear", "Identity", "Linear", "LinearCrossEntropyOptions", "Module"]
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
__all__ += adaptive.__all__
__all__ += attention.__all__
__all__ += fold.__all__
__all__ += fractional_pooling.__all__
__all__ += lazy.__all__
__all__ += pixelshuffle.__all__
__all__ += sequence_loss.__all__
__all__ += transformer.__all__
__all__ += upsampling.__all__
