"""Layers of several layers, in parts that can be seen and quantised."""

from .activation import *
from .rnn import *

__all__ = ["LSTM", "LSTMCell", "MultiheadAttention"]
