"""A sample of the random programs of views, writes and indexing; the full run is `python -m tests.fuzz.views`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xtensor
from tests.fuzz import model, views
from tests.fuzz.draw import Drawing
from tests.fuzz.judging import Program, Step

PROGRAMS, BATCH = 150, 10


def failure(program: Program, reference: Any) -> str | None:
    """The shrunk program and how it differs, or None where it agrees."""
    if views.compare(program, reference, xtensor).difference is None:
        return None
    small = views.shrink(program, reference, xtensor)
    left = views.compare(small, reference, xtensor).difference
    return f"\n{small.script()}\n# against {reference.__name__}: {left}"


def agree(seeds: range, reference: Any) -> None:
    found = [text for seed in seeds if (text := failure(views.generate(seed), reference))]
    assert not found, f"{len(found)} of seeds {seeds.start} to {seeds.stop - 1} differ:" + "\n".join(found)


@pytest.mark.parametrize("start", range(0, PROGRAMS, BATCH))
@pytest.mark.one_in(2)
def test_programs_agree_with_torch(start: int) -> None:
    agree(range(start, start + BATCH), pytest.importorskip("torch"))


@pytest.mark.parametrize("start", range(1000, 1000 + PROGRAMS // 3, BATCH))
def test_programs_agree_with_the_numpy_model(start: int) -> None:
    agree(range(start, start + BATCH), model)


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
@given(rng=st.randoms(use_true_random=False))
def test_drawn_programs_agree_with_the_numpy_model(rng: Random) -> None:
    program = Drawing(0, rng).program()
    assert views.compare(program, model, xtensor).difference is None, program.script()


def test_the_model_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    for seed in range(400):
        program = views.generate(seed)
        difference = views.compare(program, torch, model).difference
        assert difference is None, f"\n{program.script()}\n# {difference}"


def test_a_seed_gives_one_program() -> None:
    assert views.generate(7) == views.generate(7)
    assert len({views.generate(seed).script() for seed in range(50)}) > 45


def _copies(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: real(self, *args).clone()


def _forgets_the_write(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: self


def _swallows_errors(real: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        try:
            return real(self, *args)
        except (IndexError, RuntimeError):
            return self

    return method


def _changes_the_class(real: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        try:
            return real(self, *args)
        except IndexError as error:
            raise ValueError(str(error)) from None

    return method


def _writes_twice(real: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        real(self, *args)
        return real(self, *args)

    return method


# What each fault must be seen in, so that a judge blind to one of its aspects is found out.
FAULTS = [
    ("transpose", _copies, "t1 = t0.transpose(0, 1)"),
    ("unsqueeze", _copies, "t1 = t0.unsqueeze(0)"),
    ("neg_", _forgets_the_write, "t0.neg_()"),
    ("index_fill_", _swallows_errors, "t0.index_fill_(0, torch.tensor([9]), 1)"),
    ("select", _changes_the_class, "t1 = t0.select(0, 9)"),
    ("fill_", _writes_twice, "t0.fill_(2)"),
]


@pytest.mark.parametrize(("name", "fault", "source"), FAULTS, ids=[f"{n}-{f.__name__}" for n, f, _ in FAULTS])
def test_the_judge_catches_a_wrong_library(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., Any], source: str
) -> None:
    steps = (
        Step("new", "t0 = torch.arange(6, dtype=torch.float32).reshape((2, 3))", ("t0",)),
        Step("new", "t5 = torch.arange(3, dtype=torch.float32)", ("t5",)),
        Step("faulty", source, (), ("t0",)),
    )
    program = Program(0, steps)
    assert views.compare(program, model, xtensor).difference is None
    monkeypatch.setattr(xtensor.Tensor, name, fault(getattr(xtensor.Tensor, name)))
    difference = views.compare(program, model, xtensor).difference
    assert difference is not None
    assert difference.kind == "faulty"
    assert len(views.shrink(program, model, xtensor).steps) == 2


def test_random_programs_catch_a_wrong_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xtensor.Tensor, "permute", _copies(xtensor.Tensor.permute))
    programs = (views.generate(seed) for seed in range(400))
    with_permute = [p for p in programs if any(".permute((" in step.source for step in p.steps)][:6]
    assert any(views.compare(p, model, xtensor).difference for p in with_permute)
