"""The examples of `docs/graphs.md` do what they say."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "graphs.md"


def test_the_page(capsys):
    text = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (shown,) = re.findall(
        r"^```text\n(def forward\(self, x, residual_1.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert shown.strip() in printed
    assert "call_module    linear" in printed
