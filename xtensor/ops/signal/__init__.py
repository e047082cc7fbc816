"""Signals and images: Fourier transforms, windows, frames, folds and pads."""
