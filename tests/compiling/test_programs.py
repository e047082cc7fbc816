"""A sample of what `python -m tests.compiling.programs` runs, and the taking out of steps that it stands on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiling import programs, scripts
from tests.compiling.hoist import hoisted
from tests.scripts import FOLDER


def test_every_script_has_a_step_that_is_taken_out() -> None:
    assert all(hoisted((FOLDER / f"{name}.py").read_text())[1] for name in scripts.NAMES)


def test_what_a_step_takes_and_returns() -> None:
    text = """
def main():
    total, kept = 0, []
    for i in range(3):
        y = data(i)
        loss = model(y) + total
        loss.backward()
        total = loss.detach()
        kept.append(loss.item())
    return kept, total
"""
    found, count = hoisted(text)
    assert count == 1
    assert "def step_1(i, total):" in found
    assert "return (loss, total)" in found
    assert "loss, total = step_1(i, total)" in found


@pytest.mark.parametrize("name", ["gat", "weight_norm", "gan"])
def test_steps_of_scripts_agree(name: str) -> None:
    found = scripts.compared(name)
    assert found.difference <= programs.ROUNDING
    assert found.fast == found.calls - 1, found.reasons


def test_modules_of_a_script_agree() -> None:
    found = scripts.compared("gan", modules=True)
    assert found.difference <= programs.ROUNDING
    assert found.fast > 60, found.reasons


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def differs(name: str, modules: bool = False) -> scripts.Outcome:
        return scripts.Outcome(name, 0.5 if modules else 0.0, 1, 2, 1, ["why"], [])

    monkeypatch.setattr(scripts, "compared", differs)
    assert programs.main(["scripts", "gat"]) == 1
    told = capsys.readouterr().out
    assert "1/2 calls" in told and "why" in told and "1 differ" in told
