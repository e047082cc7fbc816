"""A sample of the random autograd programs; the full run is `python -m tests.fuzz.autograd`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xtensor
from tests.fuzz import autograd
from tests.fuzz.autograd import FINITE_DIFFERENCES
from tests.fuzz.judging import Program, Step

PROGRAMS, BATCH = 80, 10
SMOOTH = 30


def failure(program: Program, reference: Any) -> str | None:
    """The shrunk program and how it differs, or None where it agrees."""
    if autograd.compare(program, reference, xtensor).difference is None:
        return None
    small = autograd.shrink(program, reference, xtensor)
    left = autograd.compare(small, reference, xtensor).difference
    return f"\n{small.script()}\n# against {reference.__name__}: {left}"


def agree(seeds: range, reference: Any) -> None:
    found = [text for seed in seeds if (text := failure(autograd.generate(seed, reference), reference))]
    assert not found, f"{len(found)} of seeds {seeds.start} to {seeds.stop - 1} differ:" + "\n".join(found)


@pytest.mark.parametrize("start", range(0, PROGRAMS, BATCH))
def test_programs_agree_with_torch(start: int) -> None:
    agree(range(start, start + BATCH), pytest.importorskip("torch"))


@pytest.mark.parametrize("start", range(0, SMOOTH, BATCH))
def test_gradients_agree_with_finite_differences(start: int) -> None:
    agree(range(start, start + BATCH), FINITE_DIFFERENCES)


def test_most_smooth_programs_end() -> None:
    programs = [autograd.generate(seed, FINITE_DIFFERENCES) for seed in range(SMOOTH)]
    ended = [p for p in programs if autograd.final(p, xtensor) is not None]
    assert len(ended) > SMOOTH // 2


def test_a_seed_gives_one_program() -> None:
    assert autograd.generate(7) == autograd.generate(7)
    assert len({autograd.generate(seed).script() for seed in range(50)}) > 45


def wrong_sin(real: Callable[..., Any]) -> Callable[..., Any]:
    """The right value with the derivative of the identity."""
    return lambda x: real(x.detach()) + (x - x.detach())


LEAF = Step("leaf", "t0 = torch.tensor([0.4, 0.9], dtype=torch.float64, requires_grad=True)", ("t0",))
SINE = Program(
    0,
    (
        LEAF,
        Step("loss", "t1 = t0.sin().sum()", ("t1",), ("t0",)),
        Step("grad", "gradients = torch.autograd.grad(t1, [t0])", ("gradients",), ("t0", "t1")),
    ),
)


def test_finite_differences_catch_a_wrong_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    assert autograd.compare(SINE, FINITE_DIFFERENCES, xtensor).difference is None
    monkeypatch.setattr(xtensor.Tensor, "sin", wrong_sin(xtensor.Tensor.sin))
    difference = autograd.compare(SINE, FINITE_DIFFERENCES, xtensor).difference
    assert difference is not None
    assert difference.aspect == "gradient"


FAULTS: list[tuple[str, Callable[..., Any], str, str]] = [
    ("sin", wrong_sin, "t1 = t0.sin()", "grad_fn"),
    ("register_hook", lambda real: lambda self, hook: None, "t0.register_hook(lambda g: g * 2)", "grad"),
    ("mul_", lambda real: lambda self, other: self, "t0.mul_(2.0)", "raises"),
    ("detach", lambda real: lambda self: self, "t1 = t0.detach()", "requires_grad"),
]


@pytest.mark.parametrize(("name", "fault", "source", "aspect"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_the_judge_catches_a_wrong_library(
    monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[..., Any], source: str, aspect: str
) -> None:
    torch = pytest.importorskip("torch")
    made = ("t1",) if source.startswith("t1") else ()
    last = Step("backward", "(t0 * t0).sum().backward()", (), ("t0",))
    program = Program(0, (LEAF, Step("faulty", source, made, ("t0",)), last))
    assert autograd.compare(program, torch, xtensor).difference is None
    monkeypatch.setattr(xtensor.Tensor, name, fault(getattr(xtensor.Tensor, name)))
    difference = autograd.compare(program, torch, xtensor).difference
    assert difference is not None
    assert difference.aspect == aspect
