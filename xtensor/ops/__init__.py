"""Operators: declared once, one file per family."""

from __future__ import annotations

from . import (
    arithmetic,
    comparison,
    conversion,
    creation,
    display,
    elementwise,
    export,
    extrema,
    indexing,
    ingest,
    joining,
    masks,
    matmul,
    metadata,
    powers,
    precision,
    ranges,
    reductions,
    reinterpret,
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
        **reinterpret.METHODS,
        **metadata.METHODS,
        **view_scatter.METHODS,
        **reductions.METHODS,
        **extrema.METHODS,
        **matmul.METHODS,
        **indexing.METHODS,
        **joining.METHODS,
        **masks.METHODS,
        **conversion.METHODS,
        **creation.METHODS,
        **ingest.METHODS,
        **export.METHODS,
        **display.METHODS,
    }
)
__all__ = [
    "arithmetic",
    "comparison",
    "conversion",
    "creation",
    "display",
    "elementwise",
    "explain",
    "export",
    "extrema",
    "indexing",
    "ingest",
    "joining",
    "masks",
    "matmul",
    "metadata",
    "powers",
    "precision",
    "ranges",
    "reductions",
    "reinterpret",
    "shapes",
    "source",
    "view_scatter",
]
