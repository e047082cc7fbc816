"""Functions that log: what stands before the break is one program, what follows runs eagerly."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn

F = nn.functional
STEP = 0
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
log = logging.getLogger("xtensor.tests")


def parts() -> tuple[Any, Any]:
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    return model, xtensor.optim.Adam(model.parameters(), lr=1e-2)


def prints() -> Any:
    model, opt = parts()

    def step(x: Any, y: Any, number: int) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        print(f"{loss.item():.3f}")
        return loss.detach()

    return step


def prints_now_and_then() -> Any:
    model, opt = parts()

    def step(x: Any, y: Any, number: int) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        if number % 4 == 0:
            print(number, f"{loss.item():.3f}")
        return loss.detach()

    return step


def prints_by_a_global() -> Any:
    model, opt = parts()

    def step(x: Any, y: Any, number: int = 0) -> Any:
        opt.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        opt.step()
        if STEP % 5 == 0:
            right = [int(a == b) for a, b in zip(logits.argmax(1).tolist(), y.tolist())]
            print(STEP, right, loss.item())
        return loss.detach()

    def run(x: Any, y: Any, number: int) -> Any:
        global STEP
        STEP = number
        return compiled(x, y)

    compiled: Any = step
    run.step = step  # type: ignore[attr-defined]

    def use(other: Any) -> None:
        nonlocal compiled
        compiled = other

    run.use = use  # type: ignore[attr-defined]
    return run


class Trainer:
    def __init__(self) -> None:
        self.model, self.opt = parts()
        self.losses: list[float] = []
        self.count = 0

    def step(self, x: Any, y: Any, number: int) -> Any:
        self.opt.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.opt.step()
        self.count += 1
        self.losses.append(loss.item())
        return loss.detach() * self.count


def logs_before_the_end() -> Any:
    model, opt = parts()

    def step(x: Any, y: Any, number: int) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if not np.isfinite(loss.item()):
            raise ValueError("the loss is not finite")
        loss.backward()
        opt.step()
        return loss.detach()

    return step


def outcome(make: Callable[[], Any], compiled: bool, capsys: Any) -> tuple[list[float], str, Any]:
    """The losses, what was printed, and what was compiled."""
    function = make()
    inner = None
    if compiled:
        whole = getattr(function, "step", function)
        made = xtensor.compile(whole)
        inner = made._xt_compiled
        if whole is function:
            function = made
        else:
            function.use(made)
    losses = []
    for number in range(13):
        xtensor.manual_seed(number)
        x, y = xtensor.randn(5, 4), xtensor.randint(0, 3, (5,))
        losses.append(function(x, y, number).item())
    return losses, capsys.readouterr().out, inner


CASES = {
    "prints": (prints, 12),
    "now and then": (prints_now_and_then, 8),
    "by a global": (prints_by_a_global, 8),
    "method": (lambda: Trainer().step, 12),
    "before the end": (logs_before_the_end, 12),
}


@pytest.mark.parametrize("name", CASES)
def test_what_stands_before_a_break_is_a_program(name: str, capsys: Any) -> None:
    make, least = CASES[name]
    eager, told, _ = outcome(make, False, capsys)
    fast, same, inner = outcome(make, True, capsys)
    np.testing.assert_allclose(fast, eager, rtol=1e-5)
    # The same words, and numbers that are the same to rounding.
    assert NUMBER.sub("", same) == NUMBER.sub("", told)
    np.testing.assert_allclose(
        [float(n) for n in NUMBER.findall(same)], [float(n) for n in NUMBER.findall(told)], rtol=1e-5
    )
    assert inner.head is not None, (inner.reasons, inner.missed)
    assert not inner.reasons
    assert sum(entry.program.calls for entry in inner.head.entries) >= least
    report = str(xtensor.compiler.explain(wrapper(inner))())
    assert "eager from line" in report


def wrapper(inner: Any) -> Any:
    def run() -> None:
        raise AssertionError("it is compiled already")

    run._xt_compiled = inner  # type: ignore[attr-defined]
    return run


def test_fullgraph_splits_nothing() -> None:
    step = xtensor.compile(prints(), fullgraph=True)
    x, y = xtensor.ones(5, 4), xtensor.zeros(5, dtype=xtensor.int64)
    step(x, y, 0)
    with pytest.raises(RuntimeError, match="needs a value"):
        step(x, y, 0)


def test_variables_that_may_be_missing_are_not_carried_over() -> None:
    def f(x: Any, flag: bool) -> Any:
        y = x.exp()
        if flag:
            z = y.sum()
        if y.sum().item() > 0 and flag:
            y = y + z  # pyright: ignore[reportPossiblyUnboundVariable]
        return y

    run = xtensor.compile(f)
    x = xtensor.arange(3.0)
    with pytest.warns(UserWarning, match="cannot be captured"):
        for flag in (True, False, True, True):
            np.testing.assert_allclose(run(x, flag).numpy(), f(x, flag).numpy())
    assert run._xt_compiled.head is None


def test_a_function_that_returns_before_the_break_is_not_split() -> None:
    def f(x: Any) -> Any:
        if x.ndim > 1:
            return x
        y = x * 2
        print(y.sum().item())
        return y

    run = xtensor.compile(f)
    with pytest.warns(UserWarning, match="cannot be captured"):
        for _ in range(3):
            run(xtensor.ones(2))
    assert run._xt_compiled.head is None


def test_containers_stay_one_and_the_same() -> None:
    def f(x: Any) -> Any:
        a = [x.exp()]
        b = a
        print(len(b), a[0].sum().item())
        b.append(x)
        return len(a)

    run = xtensor.compile(f)
    found = []
    with pytest.warns(UserWarning, match="twice"):
        found = [run(xtensor.ones(2)) for _ in range(4)]
    assert found == [2, 2, 2, 2]


def test_defaults_keywords_and_comprehensions() -> None:
    def f(x: Any, *more: Any, scale: float = 2.0, name: str = "a", **options: Any) -> Any:
        y = x * scale + sum([m.sum() for m in more])
        parts = {k: v * 2 for k, v in options.items()}
        total = [p.sum().item() for p in parts.values()]
        return y, total, [name, *(n for n in (name, scale))]

    run = xtensor.compile(f)
    for number in range(5):
        x = xtensor.arange(3.0) + number
        given = (x, x + 1), {"name": f"n{number}", "z": x}
        a, b = run(*given[0], **given[1]), f(*given[0], **given[1])
        np.testing.assert_allclose(a[0].numpy(), b[0].numpy())
        assert a[1:] == b[1:]
    assert run._xt_compiled.head is not None
    assert run._xt_compiled.head.entries[0].program.calls == 4
