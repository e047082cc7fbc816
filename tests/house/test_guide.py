"""The guide's blocks run, one after the other in a file, as a reader would paste them."""

import pathlib
import re
import runpy

import pytest

GUIDE = sorted((pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide").glob("*.md"))
PAGES = [*GUIDE, *(GUIDE[0].parents[1] / name for name in ("array_api.md", "index.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page, tmp_path, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    file = tmp_path / "page.py"
    file.write_text("\n".join(blocks), "utf-8")
    runpy.run_path(str(file))
    printed = capsys.readouterr().out
    if printed:  # what a page says is printed
        assert f"```\n{printed}```" in page.read_text("utf-8")
