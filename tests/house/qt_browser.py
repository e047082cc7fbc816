"""Pages in the Chromium that PySide6 brings, for machines without a browser: `python -m tests.house.qt_browser < steps`.

The standard input is a JSON list of steps: the address of a page, the width and height of the screen, a script to run when the
page is there, and an expression that is asked until it is not null; `clipboard` asks for copied text. The standard output is
a JSON list of the answers, and of all addresses that were asked for.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox --disable-gpu")

from PySide6.QtCore import QEventLoop, QTimer, QUrl
from PySide6.QtWebEngineCore import QWebEngineSettings, QWebEngineUrlRequestInterceptor
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

PATIENCE, PAUSE = 20.0, 100
"""Seconds until a page or an answer is given up, and milliseconds between two questions."""


class Asked(QWebEngineUrlRequestInterceptor):
    """Notes what pages ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def interceptRequest(self, info: Any) -> None:
        self.urls.append(info.requestUrl().toString())


class Browser:
    """One window, whose calls wait."""

    def __init__(self) -> None:
        self.app = QApplication.instance() or QApplication(sys.argv[:1])
        self.view = QWebEngineView()
        self.asked = Asked()
        self.view.page().profile().setUrlRequestInterceptor(self.asked)
        self.view.settings().setAttribute(QWebEngineSettings.WebAttribute.JavascriptCanAccessClipboard, True)

    def wait(self, begin: Any) -> Any:
        """What `begin` hands to the function that it is given; None where that takes too long."""
        loop, told = QEventLoop(), []
        timer = QTimer(singleShot=True, interval=int(PATIENCE * 1000))
        timer.timeout.connect(loop.quit)
        timer.start()
        begin(lambda *answer: (told.append(answer[0] if answer else None), loop.quit()))
        if not told:
            loop.exec()
        timer.stop()
        return told[0] if told else None

    def run(self, script: str) -> Any:
        """The value of a script, by way of JSON."""
        found = self.wait(lambda done: self.view.page().runJavaScript(f"JSON.stringify({script})", done))
        return json.loads(found) if found else None

    def step(self, url: str, size: tuple[int, int], script: str, asked: str) -> Any:
        """The answer of a page."""
        self.app.clipboard().clear()
        self.view.resize(*size)
        self.view.show()

        def load(done: Any) -> None:
            self.view.loadFinished.connect(done)
            self.view.load(QUrl(url))

        if not self.wait(load):
            return None
        self.view.loadFinished.disconnect()
        if script:
            self.run(f"(() => {{ {script} }})()")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = (self.app.clipboard().text() or None) if asked == "clipboard" else self.run(asked)
            if answer is not None:
                return answer
            self.wait(lambda done: QTimer.singleShot(PAUSE, done))
        return None


def main() -> None:
    browser = Browser()
    answers = [browser.step(*step) for step in json.load(sys.stdin)]
    print(json.dumps({"answers": answers, "asked": browser.asked.urls}), flush=True)
    os._exit(0)  # the threads of Chromium end with the process; Qt's own teardown may wait for them


if __name__ == "__main__":
    main()
