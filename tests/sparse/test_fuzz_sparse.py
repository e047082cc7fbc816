"""A few random programs of sparse operators; more: `python -m tests.fuzz.sparse 1000`."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")

from tests.fuzz.sparse import run


@pytest.mark.parametrize("first", range(0, 12, 3))
def test_programs_agree(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 3):
            assert run(seed) == ""
