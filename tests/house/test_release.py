"""What a release says of itself is one thing, and its forms are well made."""

import pathlib
import re
import tomllib

import xtensor

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_version_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert xtensor.__version__ == project["version"]
    assert re.search(rf"^version: {re.escape(project['version'])}$", citation, re.MULTILINE)
    assert f"license: {project['license']}\n" in citation


def test_issue_forms_ask_for_the_report():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 2
    for form in forms:
        text = form.read_text("utf-8")
        assert "python -m xtensor.env" in text
        assert {"name", "description", "labels", "body"} == set(re.findall(r"^(\w+):", text, re.MULTILINE))
