"""Pictures as Graphviz's text, which it lays out when they are asked for."""

from __future__ import annotations

import pathlib
from typing import Any

from ..devices.extras import missing
from .drawing import GraphPicture

__all__ = ["Dot", "quoted"]


class Dot:
    """A picture's Graphviz source; `picture()` lays it out, `write_svg`, `write_png` and others write it to files."""

    def __init__(self, text: str, nodes: int) -> None:
        self.text, self.nodes = text, nodes

    def to_string(self) -> str:
        """The source."""
        return self.text

    def create(self, format: str = "svg") -> bytes:
        """The picture, laid out by pygraphviz (the `viz` extra)."""
        try:
            import pygraphviz
        except ImportError as error:
            raise missing("drawing a graph", "pygraphviz", "viz") from error
        made = pygraphviz.AGraph(string=self.text).draw(format=format, prog="dot")
        return made if isinstance(made, bytes) else str(made).encode()

    def picture(self) -> GraphPicture:
        """The picture as an object that notebooks show."""
        svg = self.create("svg").decode()
        return GraphPicture(self.text, svg[svg.index("<svg") :], self.nodes)

    def _repr_svg_(self) -> str:
        return self.picture().svg

    def write_dot(self, path: str | pathlib.Path) -> None:
        """Write the source to a file."""
        pathlib.Path(path).write_text(self.text, "utf-8")

    write_raw = write_dot

    def __getattr__(self, name: str) -> Any:
        kind, _, form = name.partition("_")
        if kind == "create" and form:
            return lambda: self.create(form)
        if kind == "write" and form:
            return lambda path: pathlib.Path(path).write_bytes(self.create(form))
        raise AttributeError(name)


def quoted(text: str) -> str:
    """A text as Graphviz has it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
