"""Operators: declared once, one file per family."""

from __future__ import annotations

from . import arithmetic, shapes
from .attach import attach

attach({})
__all__ = ["arithmetic", "shapes"]
