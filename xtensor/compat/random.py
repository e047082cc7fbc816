"""The state of random numbers: seeds, and what was drawn so far."""

from ..operators.generator import *  # noqa: F403
from ..operators.generator import __all__  # noqa: F401
