"""A sample of what `python -m tests.compiling.programs` runs, and the taking out of steps that it stands on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiling import programs, random_programs, scripts, training, worlds
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


@pytest.mark.parametrize(
    "kind",
    [
        "average, swa",
        "scheduler inside: SequentialLR",
        "mixed precision, steps skipped",
        "spectral norm, old",
    ],
)
def test_kinds_of_training_agree(kind: str) -> None:
    found = training.compared(kind, 8)
    assert found.difference <= 1e-2 and not found.counts
    assert (found.programs, found.calls) == (1, 7), found.reasons


def test_random_programs_of_all_statements_agree(full: bool) -> None:
    captured = 0
    for seed in range(400 if full else 8):
        found = random_programs.compared(seed)
        assert not found.different, f"seed {seed}: {found.different}\n{random_programs.text_of(seed)}"
        captured += found.calls > 0
    assert captured >= 3


def test_a_world_that_changes_gets_no_stale_answer(full: bool) -> None:
    for seed in range(5 if full else 1):
        found = worlds.compared(seed + 7, 100 if full else 12)
        assert not found.different, found.different
        assert found.calls > 0
