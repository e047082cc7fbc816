"""A picture drawn in black on white, in the colours of the page that shows it: light or dark."""

from __future__ import annotations

import re

__all__ = ["in_page_colours"]

GROUND = re.compile(r'<(?:rect width="100%"|polygon fill="white" stroke="(?:none|transparent|white)")[^>]*/>')
TINT = re.compile(r'fill="(#[0-9a-f]{6})"')
UNFILLED = re.compile(r"<(text|path)(?![^>]*\bfill=)")


def in_page_colours(svg: str) -> str:
    """The SVG for a place in HTML: no ground, lines and letters of the text's colour, boxes tinted.

    An SVG in a file or an image keeps its white ground, since it does not know the colours around it.
    """
    svg = GROUND.sub("", svg, count=1)
    svg = re.sub(r'(fill|stroke)="black"', r'\1="currentColor"', svg)
    svg = UNFILLED.sub(r'<\1 fill="currentColor"', svg)
    return TINT.sub(r'fill="\1" fill-opacity="0.25"', svg)
