"""The documents: their links lead somewhere, the files that they name exist, measurements say when and on what."""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.house.test_house import repository_files

ROOT = pathlib.Path(__file__).resolve().parents[2]


def documents() -> list[pathlib.Path]:
    return sorted(path for path in repository_files() if path.suffix == ".md")


def without_code(text: str) -> str:
    """The text without its blocks and its spans of code."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def links(text: str) -> list[str]:
    """The targets of links and images, those of the web left out."""
    found = re.findall(r"\]\(([^()\s]+)\)", without_code(text))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings have, as GitHub makes them."""
    found: set[str] = set()
    for title in re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.M
    ):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        base = anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        times = 0
        while anchor in found:
            times += 1
            anchor = f"{base}-{times}"
        found.add(anchor)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def dead(path: pathlib.Path, text: str) -> list[str]:
    """The links of a page that lead to no file, or to no heading of it."""

    def leads(target: str) -> bool:
        name, _, anchor = target.partition("#")
        at = (path.parent / name).resolve() if name else path
        if name and not at.exists():
            return False
        return not anchor or at.suffix != ".md" or anchor in anchors(at.read_text("utf-8") if name else text)

    return [target for target in links(text) if not leads(target)]


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    assert dead(path, path.read_text("utf-8")) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# A title: `x + y`\n## Twice\n## Twice\n")
    text = (
        "# Here\n[a](there.md) [b](there.md#a-title-x--y) [c](there.md#twice-1) [d](#here) [e](https://example.org/x) "
        "`[f](no.md)`\n[g](gone.md) [h](there.md#gone) ![i](gone.png) [j](#gone)\n"
    )
    assert dead(tmp_path / "page.md", text) == ["gone.md", "there.md#gone", "gone.png", "#gone"]


def named_files(text: str) -> set[str]:
    """The paths of the repository that a page names."""
    spans = re.findall(r"(?:xtensor|tests|tools|docs|benchmarks|examples)/[\w./-]*", text)
    return {span.rstrip(".") for span in spans}


@pytest.mark.parametrize(
    "path",
    [p for p in documents() if p.relative_to(ROOT).as_posix().startswith("docs/") and p.parent.name == "docs"]
    + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: path.name,
)
def test_files_that_a_page_names_exist(path):
    text = path.read_text("utf-8")
    # What a program writes in a user's folder is no file of the repository.
    text = re.sub(r"~/[\w./-]*", "", text)
    # Nor is what a walk has the reader write: the files by whose names its blocks begin.
    for written in re.findall(r"^ *```python\n *# ([\w./-]+)$", text, re.MULTILINE):
        text = text.replace(written, "")
    assert [name for name in sorted(named_files(text)) if not (ROOT / name).exists()] == []


def test_files_that_are_missing_are_found():
    named = named_files("`xtensor/tensor.py`, see xtensor/ops/ and `tests/gone.py`.")
    assert named == {"xtensor/tensor.py", "xtensor/ops/", "tests/gone.py"}


def undated(text: str) -> list[str]:
    """The sections that do not begin with a day, a machine or package, and versions."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    line = re.compile(r"\n\n\*20\d\d-\d\d-\d\d[^;*]*;[^*]*\d[^*]*\*\n")
    return [part.partition("\n")[0] for part in parts if not line.search(part[:200])]


def test_measurements_say_when_and_on_what():
    assert undated((ROOT / "docs" / "measurements.md").read_text("utf-8")) == []


def test_undated_measurements_are_found():
    assert undated("# M\n\n## A\n\n*2026-01-02; two cores; JAX 0.10.2*\n\n1\n\n## B\n\n3 ms\n") == ["B"]


def test_decisions_are_short():
    """An entry is a heading and at most twelve lines; what is longer is history, and goes to the measurements."""
    text = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    entries = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    long = [
        entry.partition("\n")[0]
        for entry in entries
        if len(entry.partition("\n## ")[0].strip().splitlines()) > 13
    ]
    assert long == []
    assert len(entries) > 20
