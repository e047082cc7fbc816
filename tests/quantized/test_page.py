"""The examples of `docs/quantisation.md` do what they say."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "quantisation.md"


@pytest.mark.filterwarnings("ignore:must run observer")
def test_the_page():
    names = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S):
        exec(code, names)
    assert names["trained"].module[4].weight().is_quantized
