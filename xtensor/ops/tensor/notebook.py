"""Tensors as notebooks show them: a line on what the tensor is, and its values in tables, shaded by size.

Values are rounded and left out as `set_printoptions` says; only those that are shown come to the host.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import printing
from ...operators.attach import attach_methods
from ...tensor import Tensor
from .display import grad_fn_name, shown_values

__all__: list[str] = []

NUMBERED = "text-align:right;padding:1px 6px;opacity:.5;font-weight:normal"
CELL = "text-align:right;padding:1px 6px"
LINE = "font-family:monospace;opacity:.7"
POSITIVE, NEGATIVE = "31,119,180", "214,39,40"


def html_of(tensor: Tensor) -> str:
    """A tensor as HTML."""
    shape = tuple(tensor.shape)
    title = f"<div style='{LINE}'>{html.escape(title_of(tensor))}</div>"
    if tensor.is_meta or 0 in shape:
        return title
    indices = shown_indices(shape)
    values = shown_values(tensor, indices)
    texts = np.array([html.escape(text) for text in printing.cells(values)], object).reshape(values.shape)
    return title + "".join(tables(texts, shades(values), indices))


def title_of(tensor: Tensor) -> str:
    """What a tensor is: `tensor 2 × 3 · float32 · cpu · grad_fn=<MulBackward0>`."""
    kind = "tensor" if type(tensor) is Tensor else type(tensor).__name__
    sizes = " × ".join(map(str, tensor.shape)) or "of no dimensions"
    parts = [f"{kind} {sizes}", str(tensor.dtype).rpartition(".")[2], str(tensor.device)]
    node = grad_fn_name(tensor)
    if node is not None:
        parts.append(f"grad_fn=<{node}>")
    elif tensor.requires_grad:
        parts.append("requires_grad")
    return " · ".join(parts)


def shown_indices(shape: Sequence[int]) -> tuple[np.ndarray[Any, Any], ...]:
    """Which indices of each dimension are shown: those that printing shows, and few of the dimensions before two."""
    edge = max(printing.get_printoptions()["edgeitems"], 1)
    long = printing.summary_indices(shape) is not None
    return tuple(
        [
            np.r_[0:edge, size - edge : size]
            if size > 2 * edge and (long or d < len(shape) - 2)
            else np.arange(size)
            for d, size in enumerate(shape)
        ]
    )


def shades(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From -1 to 1, how large each value is among those shown; zeros where values have no sign."""
    if values.dtype.kind == "c":
        return np.zeros(values.shape)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        sizes = values.astype(np.float64)
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    return sizes / (np.abs(sizes).max() or 1.0)


def tables(
    texts: np.ndarray[Any, Any], shade: np.ndarray[Any, Any], indices: Sequence[np.ndarray[Any, Any]]
) -> Iterator[str]:
    """One table for every index of the dimensions before the last two."""
    lead = max(len(indices) - 2, 0)
    for place in itertools.product(*[range(len(numbers)) for numbers in indices[:lead]]):
        if lead:
            where = ", ".join(str(numbers[at]) for numbers, at in zip(indices, place, strict=False))
            yield f"<div style='{LINE}'>[{where}]</div>"
        yield table(np.atleast_2d(texts[place]), np.atleast_2d(shade[place]), indices[lead:])


def table(
    texts: np.ndarray[Any, Any], shade: np.ndarray[Any, Any], indices: Sequence[np.ndarray[Any, Any]]
) -> str:
    """The rows and columns of one matrix under their numbers; dots stand where some are left out."""
    columns = indices[-1].tolist() if indices else []
    rows = indices[0].tolist() if len(indices) == 2 else []
    body = []
    for i, row in enumerate(texts):
        cells = [f"<th style='{NUMBERED}'>{rows[i]}</th>"] if rows else []
        drawn = [cell(text, size) for text, size in zip(row, shade[i], strict=True)]
        body.append(cells + spliced(drawn, columns, f"<td style='{CELL}'>…</td>"))
    body = spliced(body, rows, [f"<td style='{CELL}'>⋮</td>"])
    if columns:
        heads = [f"<th style='{NUMBERED}'>{number}</th>" for number in columns]
        body.insert(0, ["<th></th>"] * bool(rows) + spliced(heads, columns, "<th></th>"))
    lines = "".join(f"<tr>{''.join(cells)}</tr>" for cells in body)
    return f"<table style='border-collapse:collapse;font-family:monospace'>{lines}</table>"


def spliced(items: list[Any], numbers: Sequence[int], gap: Any) -> list[Any]:
    """The items with `gap` where their numbers jump."""
    at = next((k for k in range(1, len(numbers)) if numbers[k] != numbers[k - 1] + 1), None)
    return items if at is None else [*items[:at], gap, *items[at:]]


def cell(text: str, size: float) -> str:
    """One value, the darker the larger it is."""
    tint = f";background:rgba({POSITIVE if size > 0 else NEGATIVE},{abs(size) * 0.4:.2f})" if size else ""
    return f"<td style='{CELL}{tint}'>{text}</td>"


attach_methods(_repr_html_=html_of)
