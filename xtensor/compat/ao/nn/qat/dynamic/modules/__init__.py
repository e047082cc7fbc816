"""Layers whose weights are rounded in training, and whose inputs will be quantised as they come."""

from .linear import *
