"""Transforms of functions: batches, derivatives in either direction, and what follows values through them."""
