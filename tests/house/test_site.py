"""The site is built with warnings as errors, and read in a browser without a network: search, copying, narrow screens."""

from __future__ import annotations

import functools
import html.parser
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import urllib.parse
from typing import Any, NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = (1280, 900), (360, 740)


class Answer(NamedTuple):
    """What a page told, and the addresses that it asked for."""

    value: Any
    asked: list[str]


for needed in ("mkdocs", "material", "nbclient"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed: pip install '.[docs]'", allow_module_level=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
    """The folder of the built site."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "XTENSOR_SITE_NOTEBOOKS": "kept"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_every_page_of_the_repository_is_there(site):
    """Warnings would have failed the build: dead links, dead anchors, pages in no navigation."""
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / (path.parent if path.name == "index" else path) / "index.html").exists(), page


def test_sources_that_pages_link_to_are_shown(site):
    text = (site / "reference" / "scatter" / "index.html").read_text("utf-8")
    assert "source/xtensor/ops/index/scatter.py" in text
    shown = (site / "source" / "xtensor" / "ops" / "index" / "scatter.py" / "index.html").read_text("utf-8")
    assert "def</span>" in shown


class Links(html.parser.HTMLParser):
    """What a page links to, and the places in it that others may link to."""

    def __init__(self, page: pathlib.Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.add(value)
            elif value and name in ("id", "name"):
                self.places.add(value)


def dead_links(site: pathlib.Path) -> list[tuple[str, str]]:
    """Page and link of what leads nowhere within the site."""
    pages = {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    dead = []
    for page, found in pages.items():
        for link in found.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (page.parent / urllib.parse.unquote(url.path)).resolve() if url.path else page
            target = target / "index.html" if target.is_dir() else target
            place = urllib.parse.unquote(url.fragment)
            if not target.exists() or (
                target in pages and place and place[:2] != "__" and place not in pages[target].places
            ):
                dead.append((page.relative_to(site).as_posix(), link))
    return dead


def test_no_link_is_dead(site):
    """As the pages were made, after the hooks: links to sources, of the navigation, and in notebooks too."""
    assert dead_links(site.resolve()) == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<p id="here"><a href="#here"/><a href="a/"/><a href="a/#b"/>', "utf-8"
    )
    assert sorted(link for _, link in dead_links(tmp_path)) == ["a/", "a/#b"]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<a href="../#here"/><a href="https://example.org"/>', "utf-8")
    assert dead_links(tmp_path) == [("index.html", "a/#b")]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that says nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address(site):
    """Where a file server shows the site."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class SystemBrowser:
    """A Chromium of the system, driven by playwright."""

    def __init__(self, driver: Any, path: str) -> None:
        self.browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])

    def answer(self, url: str, size: tuple[int, int], script: str, asked: str) -> Answer:
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]}, permissions=["clipboard-read", "clipboard-write"]
        )
        urls: list[str] = []
        page = context.new_page()
        page.on("request", lambda request: urls.append(request.url))
        try:
            page.goto(url)
            if script:
                page.evaluate(f"() => {{ {script} }}")
            wanted = "navigator.clipboard.readText()" if asked == "clipboard" else asked
            for _ in range(100):
                if (found := page.evaluate(wanted)) not in (None, ""):
                    return Answer(found, urls)
                page.wait_for_timeout(100)
            return Answer(None, urls)
        finally:
            context.close()


class QtBrowser:
    """The Chromium of PySide6, in a process of its own."""

    def answer(self, url: str, size: tuple[int, int], script: str, asked: str) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "tests.house.qt_browser"],
            cwd=ROOT,
            input=json.dumps([[url, size, script, asked]]),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode and "cannot open shared object file" in done.stderr:
            pytest.skip(f"PySide6's Chromium does not start here: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout.strip().splitlines()[-1])
        return Answer(told["answers"][0], told["asked"])


@pytest.fixture(scope="module")
def browser():
    """The system's browser, or else that of PySide6; neither has a window."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is not None and importlib.util.find_spec("playwright") is not None:
        from playwright import sync_api

        with sync_api.sync_playwright() as driver:
            opened = SystemBrowser(driver, found)
            yield opened
            opened.browser.close()
    elif importlib.util.find_spec("PySide6") is not None:
        yield QtBrowser()
    else:
        pytest.skip("no Chromium: install one of the system's, or pip install '.[browser]'")


@pytest.fixture
def ask(browser, address):
    """What a page of the site answers; it may ask this server alone."""

    def asking(path: str, size: tuple[int, int], script: str, asked: str) -> Any:
        found = browser.answer(address + path, size, script, asked)
        assert [url for url in found.asked if not url.startswith((address, "data:", "blob:"))] == []
        assert any(url.startswith(address) for url in found.asked)
        return found.value

    return asking


SEARCH = """
document.querySelector("[data-md-toggle=search]").click();
const field = document.querySelector("input.md-search__input");
field.focus();
field.value = WORD;
field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
"""
FOUND = """(links => links.length ? links.map(link => link.href) : null)(
    [...document.querySelectorAll(".md-search-result__link")].filter(link => link.getBoundingClientRect().height > 0))"""
COPY = """
const block = [...document.querySelectorAll(".highlight")].find(block => block.querySelector(".gp"));
block.querySelector("[data-clipboard-target], .md-code__button[title]").click();
"""


@pytest.mark.parametrize(("word", "wanted"), [("scatter_reduce", "scatter_reduce"), ("where", "where")])
def test_the_search_finds_a_name(ask, word, wanted):
    found = ask("", WIDE, SEARCH.replace("WORD", json.dumps(word)), FOUND)
    assert found is not None
    assert any("/reference/" in url and f"#{wanted}" in url for url in found), found


def test_code_is_copied_as_it_was_typed(ask):
    copied = ask("reference/scatter/", WIDE, COPY, "clipboard")
    assert copied is not None
    assert ">>>" not in copied
    assert "tensor([[1]," not in copied
    assert copied.strip().splitlines()[0] == "x = xtensor.tensor([[1, 2], [3, 4]])"


@pytest.mark.parametrize(
    "path", ["", "guide/basics/", "reference/", "reference/xtensor.nn/", "architecture/", "project/"]
)
def test_a_narrow_screen_is_wide_enough(ask, path):
    assert ask(path, NARROW, "", "window.innerWidth") == NARROW[0]
    assert ask(path, NARROW, "", "document.scrollingElement.scrollWidth") <= NARROW[0]
