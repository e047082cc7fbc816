"""The site's hooks, which `mkdocs.yml` names: pages from outside `docs/`, and links as the repository has them.

The pages are written to be read in the repository, too. What they link to outside `docs/` is brought in: documents as
pages under `project/`, sources as pages under `source/`, so that no link of the site leads away.
"""

from __future__ import annotations

import os
import pathlib
import posixpath
import re
import sys
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import notebooks  # noqa: E402

# Notebooks that were not run before are run for the site, unless it is to be quick.
RUN = os.environ.get("XTENSOR_SITE_NOTEBOOKS") != "kept"
PROJECT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "benchmarks/RESULTS.md")
LEXERS = {".py": "python", ".json": "json", ".md": "markdown", ".toml": "toml", ".txt": "text"}
# Code, whole or in a line, which holds no links; else the target of one.
LINK = re.compile(
    r"(?P<code>^ *(`{3,})[^\n]*\n.*?^ *\2 *$|`[^`\n]+`)|(?P<open>\]\()(?P<to>[^()\s]+)\)", re.S | re.M
)
# What generated pages say to who would edit them; before the heading, it would hide the page's title.
NOTE = re.compile(r"\A(?:<!--.*?-->\s*)+", re.S)
PROMPTED = re.compile(r"^( *)```python\n(?= *>>> )", re.M)


def origin(uri: str) -> str:
    """Where in the repository a page of the site comes from."""
    if uri.startswith("tutorials/"):
        stem = pathlib.PurePosixPath(uri).stem
        (path,) = (path for path in notebooks.NOTEBOOKS if path.stem == stem)
        return path.relative_to(ROOT).as_posix()
    for folder in ("project/", "source/"):
        if uri.startswith(folder):
            return uri.removeprefix(folder).removesuffix(".md" if folder == "source/" else "")
    return f"docs/{uri}"


def place(path: str) -> str:
    """The page of the site that shows a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".ipynb"):
        return f"tutorials/{pathlib.PurePosixPath(path).stem}.md"
    if path in PROJECT or path.endswith((".png", ".svg")):
        return f"project/{path}"
    return f"source/{path}.md"


def targets(text: str, path: str) -> list[str]:
    """The files of the repository that a page links to."""
    found = (match["to"].partition("#")[0] for match in LINK.finditer(text) if match["to"])
    return [
        posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        for name in found
        if name and not re.match(r"[a-z]+:", name)
    ]


def relinked(text: str, uri: str) -> str:
    """A page's text with its links as the site has them."""
    path = origin(uri)

    def link(match: re.Match[str]) -> str:
        name, mark, anchor = (match["to"] or "").partition("#")
        if not name or re.match(r"[a-z]+:", name):
            return match[0]
        aim = place(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)))
        return f"]({posixpath.relpath(aim, posixpath.dirname(uri) or '.')}{mark}{anchor})"

    return LINK.sub(link, text)


def source_page(path: str) -> str:
    """A file of the repository as a page that the search leaves out."""
    lexer = LEXERS.get(pathlib.PurePosixPath(path).suffix, "text")
    text = (ROOT / path).read_text("utf-8")
    return (
        f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# {path}\n\n"
        f'`````{lexer} linenums="1"\n{text}\n`````\n'
    )


def on_files(files: Files, config: Any) -> Files:
    """Bring in what pages link to and `docs/` does not hold."""
    for path in PROJECT:
        files.append(File.generated(config, place(path), abs_src_path=str(ROOT / path)))
    for path in notebooks.NOTEBOOKS:
        text = notebooks.page(path, RUN)
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=text))
    linked = {
        aim
        for file in files.documentation_pages()
        for aim in targets(file.content_string, origin(file.src_uri))
        if not aim.startswith("docs/")
        and not aim.endswith(".ipynb")
        and aim not in PROJECT
        and (ROOT / aim).is_file()
    }
    for path in sorted(linked):
        if place(path).startswith("source/"):
            files.append(File.generated(config, place(path), content=source_page(path)))
        else:
            files.append(File.generated(config, place(path), abs_src_path=str(ROOT / path)))
    complete(config.nav, [file.src_uri for file in files.documentation_pages()])
    return files


def complete(nav: list[Any], pages: list[str]) -> None:
    """Add the reference's pages to the navigation: those of namespaces, and those of operators' families."""
    (reference,) = [part["Reference"] for part in nav if "Reference" in part]
    rest = [uri for uri in pages if uri.startswith("reference/") and uri not in reference]
    rest.sort(key=lambda uri: uri.removesuffix(".md").lower())
    spaces = [uri for uri in rest if uri.startswith("reference/xtensor")]
    reference += [{"Namespaces": spaces}, {"Operators": [uri for uri in rest if uri not in spaces]}]


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of the repository become the site's; what has prompts is shown as a session."""
    if page.file.src_uri.startswith("source/"):
        return markdown
    text = NOTE.sub("", markdown)
    return PROMPTED.sub(r"\1```pycon\n", relinked(text, page.file.src_uri))
