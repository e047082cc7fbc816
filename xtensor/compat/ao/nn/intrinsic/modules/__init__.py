"""Layers that are one where a model is quantised, still real."""

from .fused import *
