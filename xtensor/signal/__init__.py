"""Signal processing: `xtensor.signal`."""

from . import windows

__all__ = ["windows"]
