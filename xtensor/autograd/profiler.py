"""`torch.autograd.profiler`: the engine's profiler, with the arguments of its older interface."""

from ..engine.profiler import *  # noqa: F403
from ..engine.profiler import __all__  # noqa: F401
from . import profiler_legacy

profile = profiler_legacy.profile
