"""A directed graph as SVG without Graphviz: boxes in rows, inputs below, arrows upwards."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence

__all__ = ["Arrows", "Boxes", "dot_text", "in_rows"]

Boxes = Mapping[str, Mapping[str, str]]
"""By name: what a box says and looks like, in Graphviz's attributes."""
Arrows = Sequence[tuple[str, str, str]]
"""Start, end and label."""

LINE, LETTER, PAD = 13, 6.2, 7  # the height of a line, the width of a letter, the space around a label
ACROSS, UP = 18, 30  # the space between boxes of a row, and between rows


def dot_text(boxes: Boxes, arrows: Arrows) -> str:
    """The graph in Graphviz's language."""
    lines = ["digraph {", "  rankdir=BT;"]
    for name, style in boxes.items():
        attributes = ", ".join(f"{key}={json.dumps(value)}" for key, value in style.items())
        lines.append(f"  {name} [{attributes}];")
    lines += [f"  {a} -> {b}{f' [label={json.dumps(label)}]' if label else ''};" for a, b, label in arrows]
    return "\n".join([*lines, "}", ""])


def heights(boxes: Boxes, arrows: Arrows) -> dict[str, int]:
    """The row of each box: one above the highest of those that lead to it."""
    into: dict[str, list[str]] = {name: [] for name in boxes}
    out: dict[str, list[str]] = {name: [] for name in boxes}
    for start, end, _ in arrows:
        into[end].append(start)
        out[start].append(end)
    left = {name: len(starts) for name, starts in into.items()}
    ready = [name for name, count in left.items() if not count]
    row = dict.fromkeys(boxes, 0)
    while ready:
        name = ready.pop()
        for end in out[name]:
            row[end] = max(row[end], row[name] + 1)
            left[end] -= 1
            if not left[end]:
                ready.append(end)
    # An input stands right below the lowest box that it leads to.
    for name in boxes:
        if not into[name] and out[name]:
            row[name] = min(row[end] for end in out[name]) - 1
    return row


def ordered(boxes: Boxes, arrows: Arrows) -> list[list[str]]:
    """The rows from the lowest up, each sorted by the middle of its neighbours, a few times up and down."""
    row = heights(boxes, arrows)
    rows: list[list[str]] = [[] for _ in range(max(row.values(), default=0) + 1)]
    for name in boxes:
        rows[row[name]].append(name)
    near: dict[str, list[str]] = {name: [] for name in boxes}
    for start, end, _ in arrows:
        near[start].append(end)
        near[end].append(start)
    for turn in range(8):
        at = {name: (i + 0.5) / len(names) for names in rows for i, name in enumerate(names)}
        for names in rows if turn % 2 else reversed(rows):
            means = {n: sum(at[m] for m in near[n]) / len(near[n]) if near[n] else at[n] for n in names}
            names.sort(key=means.__getitem__)
            at |= {name: (i + 0.5) / len(names) for i, name in enumerate(names)}
    return [names for names in rows if names]


def in_rows(boxes: Boxes, arrows: Arrows) -> str:
    """The graph as SVG, on a light ground so that it reads on a dark page, too."""
    lines = {name: style["label"].split("\n") for name, style in boxes.items()}
    wide = {name: max(map(len, said)) * LETTER + 2 * PAD for name, said in lines.items()}
    tall = {name: len(said) * LINE + 2 * PAD for name, said in lines.items()}
    rows = ordered(boxes, arrows)
    spans = [sum(wide[name] for name in names) + ACROSS * (len(names) - 1) for names in rows]
    width = max(spans, default=0) + 2 * ACROSS
    height = sum(max(tall[n] for n in names) for names in rows) + UP * (len(rows) + 1)
    place: dict[str, tuple[float, float]] = {}
    y = height - UP
    for names, span in zip(rows, spans, strict=True):
        x = (width - span) / 2
        high = max(tall[name] for name in names)
        for name in names:
            place[name] = x + wide[name] / 2, y - high / 2
            x += wide[name] + ACROSS
        y -= high + UP
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = '<marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial" font-size="10" text-anchor="middle">',
        f'<defs>{head}<path d="M0,0 L8,3 L0,6 z"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for start, end, label in arrows:
        (x1, y1), (x2, y2) = place[start], place[end]
        y1, y2 = y1 - tall[start] / 2, y2 + tall[end] / 2
        middle = (y1 + y2) / 2
        parts.append(
            f'<path d="M{x1:.1f},{y1:.1f} C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}" fill="none" '
            'stroke="black" marker-end="url(#head)"/>'
        )
        if label:
            parts.append(
                f'<text x="{(x1 + x2) / 2 + 8:.1f}" y="{middle:.1f}" font-size="9">{html.escape(label)}</text>'
            )
    for name, style in boxes.items():
        x, y = place[name]
        radius = 6 if "rounded" in style.get("style", "") else 0
        parts.append(
            f'<rect x="{x - wide[name] / 2:.1f}" y="{y - tall[name] / 2:.1f}" width="{wide[name]:.1f}" '
            f'height="{tall[name]}" rx="{radius}" fill="{style.get("fillcolor", "white")}" '
            f'stroke="{style.get("color", "black")}"/>'
        )
        for i, line in enumerate(lines[name]):
            at = y - tall[name] / 2 + PAD + (i + 0.75) * LINE
            parts.append(
                f'<text x="{x:.1f}" y="{at:.1f}" fill="{style.get("fontcolor", "black")}">{html.escape(line)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])
