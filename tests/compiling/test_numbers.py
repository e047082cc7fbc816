"""Numbers among the arguments that change from call to call: one program for all values, where they only enter arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn


def checked(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Any:
    """Compare calls with eager ones, values and dtypes; what was compiled."""
    run = xtensor.compile(function)
    for given in calls:
        a, b = run(*given), function(*given)
        assert a.dtype == b.dtype, given
        np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=1e-5, err_msg=repr(given))
    return run._xt_compiled


X = [1.0, -2.0, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("kind", [int, float])
def test_one_program_for_all_values(dtype: str, kind: type) -> None:
    x = xtensor.tensor(X).to(getattr(xtensor, dtype))
    inner = checked(lambda a, k: a * k + (1 - k / 2) - a[0] / (k + 1), [(x, kind(n)) for n in range(6)])
    assert len(inner.entries) == 2 and inner.entries[0].program.calls >= 4
    assert not inner.reasons


def test_several_numbers_by_name_and_by_default() -> None:
    def f(a: Any, k: Any, *, s: Any = 1.0) -> Any:
        return (a > s) + a * s + k

    x = xtensor.tensor(X)
    run = xtensor.compile(f)
    for n in range(8):
        np.testing.assert_allclose(run(x, n, s=n * 0.5).numpy(), f(x, n, s=n * 0.5).numpy())
    np.testing.assert_allclose(run(x, 3).numpy(), f(x, 3).numpy())
    assert len(run._xt_compiled.entries) <= 4 and not run._xt_compiled.reasons


BY_VALUE: dict[str, Callable[[Any, Any], Any]] = {
    "an argument of an operator": lambda a, k: a.clamp(max=k),
    "a class is asked": lambda a, k: a * 2 if isinstance(k, int) else a * 3,
    "it is compared": lambda a, k: a * k if k > 2 else a - k,
    "a shape": lambda a, k: a.sum() + xtensor.ones(int(k) + 1).sum(),
    "a text": lambda a, k: a * len(f"{k}"),
    "a divisor": lambda a, k: a * (1 / (k + 1)),
    "a power": lambda a, k: a + 2**k,
    "a large product": lambda a, k: a + (k * 10**15) % 7,
}


@pytest.mark.parametrize("name", BY_VALUE)
def test_used_for_more_it_is_compared_by_value(name: str) -> None:
    inner = checked(BY_VALUE[name], [(xtensor.tensor(X), n) for n in range(5)])
    assert inner.numbered == {}
    assert len(inner.entries) == 4 and not inner.reasons


def test_a_write_is_a_write() -> None:
    kept = [xtensor.zeros(3), xtensor.zeros(3)]

    def of(state: Any) -> Any:
        def f(k: Any) -> Any:
            state.add_(1.0)
            y = state
            y *= k
            return y + 0

        return f

    run, plain = xtensor.compile(of(kept[0])), of(kept[1])
    for n in range(7):
        np.testing.assert_allclose(run(n).numpy(), plain(n).numpy())
        np.testing.assert_allclose(kept[0].numpy(), kept[1].numpy())


def test_a_step_with_a_temperature_that_falls() -> None:
    losses = []
    for compiled in (False, True):
        xtensor.manual_seed(0)
        model = nn.Linear(4, 3)
        opt = xtensor.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, y: Any, temperature: float, model: Any = model, opt: Any = opt) -> Any:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x) / temperature, y) * temperature
            loss.backward()
            opt.step()
            return loss.detach()

        run: Any = xtensor.compile(step) if compiled else step
        x, y = xtensor.ones(5, 4), xtensor.tensor([0, 1, 2, 1, 0])
        losses.append([run(x, y, 2.0 * 0.9**n).item() for n in range(9)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert len(run._xt_compiled.entries) == 2


RATE, SHIFT = 0.1, 2


class Options:
    def __init__(self) -> None:
        self.factor = 3.0
        self.name = "a"


class Scaled(xtensor.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = 1.0
        self.kind = "a"

    def forward(self, x: xtensor.Tensor) -> xtensor.Tensor:
        return x / self.temperature + (1 if self.kind == "a" else 2)


def test_numbers_of_globals_closures_and_attributes_become_values() -> None:
    global RATE, SHIFT
    options, beta = Options(), 0.5

    def step(x: xtensor.Tensor) -> xtensor.Tensor:
        y = x * RATE + SHIFT - beta * options.factor
        return y / SHIFT if options.name == "a" else y * [RATE for _ in range(2)][1]

    fast = xtensor.compile(step, fullgraph=True)
    x = xtensor.arange(5.0)
    for number in range(9):
        RATE, SHIFT, beta, options.factor = 0.1 * number, 2 + number, number / 2, number * 1.5
        options.name = "b" if number > 6 else "a"
        np.testing.assert_allclose(fast(x).numpy(), step(x).numpy(), rtol=1e-6)
    inner = fast._xt_compiled
    assert len(inner.entries) == 2, inner.missed
    SHIFT = 2.5  # of another kind
    np.testing.assert_allclose(fast(x).numpy(), step(x).numpy(), rtol=1e-6)
    assert len(inner.entries) == 3


def test_numbers_of_modules_become_values() -> None:
    module = Scaled()
    fast = xtensor.compile(lambda x: module(x) * 2, fullgraph=True)
    x = xtensor.arange(5.0)
    for number in range(8):
        module.temperature = 1.0 + number
        module.kind = "b" if number > 5 else "a"
        np.testing.assert_allclose(fast(x).numpy(), (module(x) * 2).numpy(), rtol=1e-6)
    assert len(fast._xt_compiled.entries) == 2, fast._xt_compiled.missed


def test_a_number_that_chooses_a_shape_stays_a_value_of_python() -> None:
    global SHIFT
    fast = xtensor.compile(lambda x: x.view(SHIFT, -1).sum(1), fullgraph=True)
    x = xtensor.arange(12.0)
    for SHIFT in (2, 3, 4, 2, 3, 4):
        assert fast(x).shape == (SHIFT,)
    assert len(fast._xt_compiled.entries) == 3
