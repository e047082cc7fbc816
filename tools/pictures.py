"""Pictures of the site's pages in Chromium, wide and narrow, light and dark, and whether they fit and are found.

    mkdocs build --strict && python tools/pictures.py site pictures

writes `pictures/<page>-<width>-<scheme>.png`; the status is 1 where a page is wider than its screen or the search does not find a name.
It needs PySide6 (`pip install '.[browser]'`), whose Chromium runs without a window and without a browser of the system.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox --disable-gpu")

try:
    from PySide6.QtCore import QTimer, QUrl  # pyright: ignore[reportMissingImports]
    from PySide6.QtWebEngineWidgets import QWebEngineView  # pyright: ignore[reportMissingImports]
    from PySide6.QtWidgets import QApplication  # pyright: ignore[reportMissingImports]
except ImportError:
    raise SystemExit("PySide6 is needed: pip install '.[browser]'") from None

PAGES = (
    "",
    "guide/basics/",
    "guide/debugging/",
    "tutorials/tour/",
    "tutorials/digits/",
    "tutorials/conv2d/",
    "reference/",
    "reference/xtensor.nn/",
)
SCREENS = {"wide": (1280, 1000), "narrow": (390, 800)}
SOUGHT = "scatter_reduce"
DARK = "const s = [...document.querySelectorAll('input[name=__palette]')]; s[%d].click();"
SEARCH = f"""
document.querySelector('[data-md-toggle=search]').click();
const field = document.querySelector('input.md-search__input');
field.focus();
field.value = '{SOUGHT}';
field.dispatchEvent(new KeyboardEvent('keyup', {{bubbles: true}}));
"""
WIDTH = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
FOUND = "[...document.querySelectorAll('.md-search-result__link')].filter(link => link.getBoundingClientRect().height > 0).length"
SETTLED, SEARCHED = 1500, 6000
"""Milliseconds until a page has laid itself out, and until the search has read its index."""


class Shot(NamedTuple):
    """One picture: the page, its name, the size of the screen, what is run before, how long it is waited for, and what must be asked then."""

    page: str
    name: str
    size: tuple[int, int]
    script: str
    wait: int
    asked: str
    fits: Callable[[Any], bool]


def shots() -> Iterator[Shot]:
    """All pictures."""
    for page in PAGES:
        for screen, size in SCREENS.items():
            for number, scheme in enumerate(("light", "dark")):
                title = page.strip("/").replace("/", "-") or "start"
                yield Shot(
                    page,
                    f"{title}-{screen}-{scheme}",
                    size,
                    DARK % number,
                    SETTLED,
                    WIDTH,
                    lambda over: over <= 0,
                )
    yield Shot("", "search", SCREENS["wide"], SEARCH, SEARCHED, FOUND, lambda count: count > 0)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path)
    parser.add_argument("pictures", type=Path)
    options = parser.parse_args()
    options.pictures.mkdir(parents=True, exist_ok=True)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(options.site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    app, view = QApplication(sys.argv[:1]), QWebEngineView()
    left, wrong = list(shots()), 0

    def begin() -> None:
        if not left:
            app.quit()
            return
        view.resize(*left[0].size)
        view.show()
        view.load(QUrl(f"http://127.0.0.1:{server.server_port}/{left[0].page}"))

    def loaded(ok: bool) -> None:
        view.page().runJavaScript(left[0].script)
        QTimer.singleShot(
            left[0].wait, lambda: view.page().runJavaScript(left[0].asked, functools.partial(told, ok))
        )

    def told(ok: bool, answer: Any) -> None:
        nonlocal wrong
        shot = left.pop(0)
        view.grab().save(str(options.pictures / f"{shot.name}.png"))
        right = ok and answer is not None and shot.fits(answer)
        wrong += not right
        print(f"{shot.name}: {'as it should be' if right else f'WRONG ({answer})'}", flush=True)
        begin()

    view.loadFinished.connect(loaded)
    QTimer.singleShot(0, begin)
    app.exec()
    server.shutdown()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
