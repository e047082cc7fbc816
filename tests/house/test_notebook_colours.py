"""What notebooks show reads on a light page and on a dark one: its letters have the page's colour, its grounds let the page through.

Jupyter, VS Code and Colab put HTML into their page, whose text colour it inherits; each prefers it to an SVG, which they
show as an image that knows no page. Colours are mixed and compared here as a browser does, without one.
"""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator

import pytest

import xtensor
from xtensor import nn
from xtensor.autograd import drawing

Colour = tuple[float, float, float]
# Ground and text of the three in their light and dark themes (`--jp-layout-color0`, `--vscode-editor-background`,
# `--colab-primary-surface-color` and the text colours that go with them).
PAGES: dict[str, tuple[Colour, Colour]] = {
    "Jupyter, light": ((255, 255, 255), (33, 33, 33)),
    "Jupyter, dark": ((17, 17, 17), (255, 255, 255)),
    "VS Code, light": ((255, 255, 255), (59, 59, 59)),
    "VS Code, dark": ((31, 31, 31), (204, 204, 204)),
    "Colab, light": ((255, 255, 255), (31, 31, 31)),
    "Colab, dark": ((30, 30, 30), (227, 227, 227)),
}
READABLE = 4.5  # the contrast that WCAG 2 asks of text
RGBA = re.compile(r"background:rgba\((\d+), ?(\d+), ?(\d+), ?([\d.]+)\)")
TINTED = re.compile(r'fill="#([0-9a-f]{6})" fill-opacity="([\d.]+)"')


def drawn() -> xtensor.autograd.GraphPicture:
    """A graph with every kind of box: a name, a number on an arrow, a value that was overwritten."""
    x = xtensor.ones(2, requires_grad=True)
    y = x.exp()
    values, _ = (y * 2).max(0)
    y.add_(1)
    return xtensor.autograd.draw([values, y.sum()], {"x": x})


SHOWN: dict[str, Callable[[], str]] = {
    "tensor": lambda: xtensor.arange(-6.0, 6.0).view(2, 2, 3)._repr_html_(),
    "graph": lambda: drawn()._repr_html_(),
    "comparison": lambda: xtensor.devices.compare(
        nn.Linear(2, 2), xtensor.ones(2), devices=["cpu"]
    )._repr_html_(),
    "explanation": lambda: xtensor.ops.explain("exp")._repr_html_(),
    "selfcheck": lambda: xtensor.selfcheck.check("cpu", ["exp"])._repr_html_(),
}


def light_of(colour: Colour) -> float:
    """The relative luminance of an sRGB colour."""
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: Colour, b: Colour) -> float:
    low, high = sorted((light_of(a), light_of(b)))
    return (high + 0.05) / (low + 0.05)


def grounds(text: str, page: Colour) -> Iterator[Colour]:
    """The grounds on which letters stand: the page's, and the tints mixed with it."""
    found = [(tuple(map(int, m[:3])), float(m[3])) for m in RGBA.findall(text)]
    found += [(tuple(bytes.fromhex(code)), float(share)) for code, share in TINTED.findall(text)]
    yield page
    for tint, share in found:
        mixed = [t * share + p * (1 - share) for t, p in zip(tint, page, strict=True)]
        yield mixed[0], mixed[1], mixed[2]


def fixed_colours(text: str) -> set[str]:
    """The colours of letters, lines and opaque grounds that do not follow the page."""
    text = TINTED.sub("", RGBA.sub("", text))
    named = re.findall(r'(?:\bfill|stroke)="([^"]+)"', text) + re.findall(
        r"(?:\bcolor|background[a-z-]*):([^;'\"]+)", text
    )
    return set(named) - {"none", "currentColor"}


@pytest.mark.parametrize(("what", "page"), list(itertools.product(SHOWN, PAGES)))
def test_what_is_shown_reads_on_every_page(what, page):
    ground, letters = PAGES[page]
    text = SHOWN[what]()
    # A node whose saved value was overwritten is red: in letters of 10 pixels beside its line, on any page.
    assert fixed_colours(text) <= ({"red"} if what == "graph" else set())
    for behind in grounds(text, ground):
        assert contrast(letters, behind) >= READABLE, (what, page, behind)


@pytest.mark.parametrize("layout", ["Graphviz's", "ours"])
def test_a_graph_in_a_page_is_the_graph_of_the_file_without_its_ground(layout, monkeypatch):
    if layout == "ours":
        monkeypatch.setattr(drawing, "graphviz", lambda boxes, arrows: None)
    picture = drawn()
    page, file = (ElementTree.fromstring(text) for text in (picture._repr_html_(), picture._repr_svg_()))
    assert [e.text for e in page.iter() if e.text and e.text.strip()] == [
        e.text for e in file.iter() if e.text and e.text.strip()
    ]
    assert len(list(page.iter())) == len(list(file.iter())) - 1
    texts = [e for e in page.iter() if e.tag.endswith("text")]
    assert texts and {e.get("fill") for e in texts} == {"currentColor", "red"}
    assert fixed_colours(picture._repr_html_()) == {"red"}
    assert 'fill="white"' in picture.svg and "currentColor" not in picture.svg


def test_colours_that_do_not_read_are_found():
    assert fixed_colours('<text fill="black">') == {"black"} and fixed_colours("<td style='color:#000'>") == {
        "#000"
    }
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    page, letters = PAGES["Jupyter, dark"]
    (_, opaque) = grounds("<td style='background:rgba(238,242,247,1)'>", page)
    assert contrast(letters, opaque) < READABLE
