"""Source code with holes: a template is the code that will run, and a hole is a name in angle brackets.

A hole alone on its line is filled with lines, each indented as the hole is; with no lines, the line goes. A hole within a line is
filled with text. What stands for a block that is not wanted is a hole for lines too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["fill"]

HOLE = re.compile(r"<(\w+)>")


def fill(template: str, **holes: str | Sequence[str]) -> list[str]:
    """The lines of a template with its holes filled; KeyError for a hole that nothing is given for."""
    lines: list[str] = []
    for line in template.strip("\n").split("\n"):
        text = line.strip()
        alone = HOLE.fullmatch(text)
        if alone and not isinstance(given := holes[alone[1]], str):
            indent = line[: len(line) - len(text)]
            lines += [indent + part for part in given]
        else:
            lines.append(HOLE.sub(lambda hole: text_of(holes, hole[1]), line))
    return lines


def text_of(holes: dict[str, str | Sequence[str]], name: str) -> str:
    given = holes[name]
    if not isinstance(given, str):
        raise TypeError(f"the hole <{name}> is within a line, and was given lines")
    return given
