"""Fourier transforms: `xtensor.fft`, the names of `torch.fft`."""

# ruff: noqa: F401  # a public face: everything is imported to be found here

from .operators.functions.deferred import settle
from .ops.signal.fourier import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

settle(__name__, globals())
