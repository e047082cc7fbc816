"""Operators on every element: arithmetic, comparisons, elementary and special functions, activations."""
