"""The examples of `docs/graphs.md` do what they say."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "graphs.md"


def test_the_page(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    shown = next(block for block in blocks if block.startswith("def forward(self, x, residual_1"))
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        if block is not shown:
            exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert shown.strip() in printed
    assert "call_module    linear" in printed
