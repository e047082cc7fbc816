"""A few of PyTorch's own sparse samples; all of them: `python -m tests.sparse`."""

from __future__ import annotations

import json
import pathlib

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")

from tests.sparse.sweep import entries, run

DIFFERING = json.loads((pathlib.Path(__file__).parent / "differing.json").read_text())["differing"]
CHOSEN = [("coo", name) for name in ("sum", "mul", "masked.sum", "zeros_like")] + [
    ("csr", "masked.mean"),
    ("bsr", "zeros_like"),
]


@pytest.mark.parametrize(("layout", "name"), CHOSEN)
def test_a_sample_agrees(layout: str, name: str) -> None:
    found = run(entries(layout)[name], layout, "float32", limit=8)
    assert found.difference == "" or f"{name} {layout} float32" in DIFFERING


@pytest.mark.full
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_all_samples_agree_but_those_known(layout: str) -> None:
    for name, op in entries(layout).items():
        found = run(op, layout, "float32")
        known = DIFFERING.get(f"{name} {layout} float32")
        assert found.agreed >= (known["agree"] if known else found.run), (name, found)
