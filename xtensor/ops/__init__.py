"""Operators: declared once, one file per family."""

from __future__ import annotations

from . import (
    arithmetic,
    bounds,
    comparison,
    conversion,
    creation,
    display,
    elementwise,
    export,
    extrema,
    ingest,
    joining,
    matmul,
    powers,
    precision,
    reductions,
    shapes,
    view_scatter,
)
from .attach import attach
from .explain import explain, source

attach(
    {
        **arithmetic.METHODS,
        **comparison.METHODS,
        **powers.METHODS,
        **shapes.METHODS,
        **view_scatter.METHODS,
        **reductions.METHODS,
        **extrema.METHODS,
        **matmul.METHODS,
        **joining.METHODS,
        **conversion.METHODS,
        **creation.METHODS,
        **ingest.METHODS,
        **export.METHODS,
        **display.METHODS,
    }
)
__all__ = [
    "arithmetic",
    "bounds",
    "comparison",
    "conversion",
    "creation",
    "display",
    "export",
    "ingest",
    "elementwise",
    "extrema",
    "joining",
    "matmul",
    "powers",
    "precision",
    "reductions",
    "shapes",
    "view_scatter",
    "explain",
    "source",
]
