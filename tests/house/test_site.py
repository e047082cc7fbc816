"""The site is built with warnings as errors, and read in a browser without a network: search, copying, narrow screens."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 740}

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


@pytest.fixture(scope="module")
def browser():
    """The system's browser, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright: pip install '.[docs]'")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser, address):
    """A wide page that may ask this server alone, and copy."""
    context = browser.new_context(
        viewport=WIDE, base_url=address, permissions=["clipboard-read", "clipboard-write"]
    )
    asked: list[str] = []
    opened = context.new_page()
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    context.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize(("word", "wanted"), [("scatter_reduce", "scatter_reduce"), ("where", "where")])
def test_the_search_finds_a_name(page, word, wanted):
    page.goto("")
    page.fill("input.md-search__input", word)
    page.wait_for_selector(".md-search-result__link")
    found = page.eval_on_selector_all(".md-search-result__link", "links => links.map(link => link.href)")
    assert any("/reference/" in url and f"#{wanted}" in url for url in found), found


def test_code_is_copied_as_it_was_typed(page):
    page.goto("reference/scatter/")
    block = page.locator(".highlight", has=page.locator(".gp")).first
    block.hover()
    block.locator("[data-clipboard-target], .md-code__button[title]").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert ">>>" not in copied
    assert "tensor([[1]," not in copied
    assert copied.strip().splitlines()[0] == "x = xtensor.tensor([[1, 2], [3, 4]])"


@pytest.mark.parametrize(
    "path", ["", "guide/basics/", "reference/", "reference/xtensor.nn/", "architecture/", "project/"]
)
def test_a_narrow_screen_is_wide_enough(page, path):
    page.set_viewport_size(NARROW)
    page.goto(path)
    width = page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= NARROW["width"]
