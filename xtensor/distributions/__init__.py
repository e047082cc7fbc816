"""Random variables: samples, probabilities, entropies and divergences, under PyTorch's names."""

from . import constraints, utils
from .composed import *
from .continuous import *
from .counts import *
from .discrete import *
from .distribution import Distribution, ExponentialFamily, Independent
from .gammas import *
from .kl import *
from .mapped import *
from .registry import biject_to, transform_to
from .transformed import *
from .transforms import *

__all__ = ["Distribution", "ExponentialFamily", "Independent", "biject_to", "constraints", "kl"]
__all__ += ["transform_to", "transforms", "utils"]
__all__ += composed.__all__
__all__ += continuous.__all__
__all__ += counts.__all__
__all__ += discrete.__all__
__all__ += gammas.__all__
__all__ += kl.__all__
__all__ += mapped.__all__
__all__ += transformed.__all__
__all__ += transforms.__all__
