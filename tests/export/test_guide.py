"""The code of docs/export.md runs as it stands, one block after the other."""

import pathlib
import re

import pytest

pytest.importorskip("flatbuffers")

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "export.md"


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), namespace)
    assert "ExportedProgram:" in capsys.readouterr().out
    assert (tmp_path / "model.xtx").exists()


def test_the_loader_is_the_one_that_is_tested():
    text = GUIDE.read_text("utf-8")
    tested = (GUIDE.parents[1] / "tests" / "export" / "test_files.py").read_text("utf-8")
    loader = re.search(r"^def read\(path\):\n(?:    .*\n)+", text, re.MULTILINE)
    assert loader is not None and loader.group() in tested
