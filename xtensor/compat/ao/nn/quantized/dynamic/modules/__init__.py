"""Layers over real numbers that quantise their inputs as they come."""

from .conv import *
from .linear import *
from .rnn import *
