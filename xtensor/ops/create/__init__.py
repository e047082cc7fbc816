"""Tensors from values, rules and random numbers."""
