"""Lists too long for one program: results, gradients and errors as of short ones, and programs that do not grow with the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.lowering import parts
from xtensor.xla import compiles

MANY = parts.TOGETHER + parts.PART + 3


def programs(run: Callable[[], Any]) -> list[str]:
    """The names of the programs that are made meanwhile, or loaded."""
    made: list[str] = []

    def told(name: str) -> Callable[[bool | None], None]:
        made.append(name)
        return lambda cached: None

    compiles.watch(told)
    try:
        run()
    finally:
        compiles.unwatch(told)
    return made


def test_parts_cover_a_list_once() -> None:
    forms = [i % 2 for i in range(MANY)]
    places = list(parts.alike(forms))
    assert sorted(i for part in places for i in part) == list(range(MANY))
    assert all(len({forms[i] for i in part}) == 1 and len(part) <= parts.PART for part in places)
    assert [i for part in parts.slices(MANY) for i in range(MANY)[part]] == list(range(MANY))


def steps(count: int, kind: str, **options: Any) -> list[Any]:
    """Parameters after two steps; every seventh has another shape."""
    params = [nn.Parameter(xtensor.full((2 if i % 7 else 3,), float(i % 5))) for i in range(count)]
    optimizer = getattr(xtensor.optim, kind)(params, lr=0.1, **options)
    for step in range(2):
        for i, param in enumerate(params):
            param.grad = xtensor.full_like(param, 0.5 * (i % 3) - 0.25 * step)
        optimizer.step()
    states = [optimizer.state[p].get("exp_avg_sq") for p in params]
    return [*[p.tolist() for p in params], *[s.tolist() for s in states if s is not None]]


@pytest.mark.parametrize(("kind", "options"), [("SGD", {"momentum": 0.9}), ("Adam", {})])
def test_a_step_of_many_parameters_is_that_of_few(kind: str, options: dict[str, Any]) -> None:
    many, few = steps(MANY, kind, **options), steps(210, kind, **options)
    assert many[:210] == few[:210]
    if kind == "Adam":
        assert many[MANY : MANY + 210] == few[210:]


def test_programs_of_a_step_do_not_grow_with_the_parameters() -> None:
    def step(count: int) -> Callable[[], None]:
        params = [nn.Parameter(xtensor.ones(2, 3)) for _ in range(count)]
        for param in params:
            param.grad = xtensor.ones(2, 3)
        return xtensor.optim.Adagrad(params, lr=0.1).step

    whole = 2 * parts.TOGETHER
    first = programs(step(whole))
    assert first.count("step") == 1
    assert programs(step(2 * whole)) == []


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 0.0, float("inf"), 3.0])
def test_the_norm_of_many_gradients(norm_type: float) -> None:
    grads = [xtensor.full((2,), i % 4 - 1.5) for i in range(MANY)]
    norms = np.array([np.linalg.norm(np.asarray(g.tolist()), norm_type) for g in grads])
    expected = np.linalg.norm(norms, norm_type)
    assert nn.utils.get_total_norm(grads, norm_type).item() == pytest.approx(expected, rel=1e-5)


def test_many_gradients_are_clipped() -> None:
    params = [nn.Parameter(xtensor.zeros(2)) for _ in range(MANY)]
    for param in params:
        param.grad = xtensor.ones(2)
    total = nn.utils.clip_grad_norm_(params, 1.0).item()
    assert total == pytest.approx((2 * MANY) ** 0.5, rel=1e-6)
    assert {round(v * total, 4) for p in params if p.grad is not None for v in p.grad.tolist()} == {1.0}


@pytest.mark.parametrize("join", ["cat", "stack"])
@pytest.mark.parametrize("dim", [0, -1])
def test_many_tensors_are_joined_with_gradients(join: str, dim: int) -> None:
    rows = np.arange(MANY * 4, dtype=np.float32).reshape(MANY, 2, 2)
    xs = [xtensor.tensor(row, requires_grad=True) for row in rows]
    joined = getattr(xtensor, join)(xs, dim)
    expected = np.concatenate(rows, dim) if join == "cat" else np.stack(list(rows), dim)
    np.testing.assert_array_equal(joined.detach().numpy(), expected)
    (joined * joined).sum().backward()
    for x, row in zip(xs, rows, strict=True):
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad.numpy(), 2 * row)


def test_programs_of_joining_do_not_grow_with_the_list() -> None:
    xs = [xtensor.ones(5) for _ in range(4 * parts.TOGETHER)]
    first = programs(lambda: xtensor.cat(xs[: 2 * parts.TOGETHER]))
    assert len(first) <= 2
    assert len(programs(lambda: xtensor.cat(xs))) <= 1


def test_errors_of_long_lists_are_those_of_short_ones() -> None:
    xs = [xtensor.ones(2) for _ in range(MANY)]
    with pytest.raises(RuntimeError, match=rf"got \[2\] at entry 0 and \[3\] at entry {MANY}"):
        xtensor.stack([*xs, xtensor.ones(3)])
    with pytest.raises(IndexError):
        xtensor.cat(xs, 1)
    with pytest.raises(RuntimeError, match="number of dimensions"):
        xtensor.cat([*xs, xtensor.ones(1, 1)])


def test_a_captured_step_of_many_parameters_is_one_program() -> None:
    params = [nn.Parameter(xtensor.ones(2)) for _ in range(parts.TOGETHER + 1)]
    optimizer = xtensor.optim.SGD(params, lr=0.5)

    @xtensor.compile(fullgraph=True)
    def step() -> None:
        for param in params:
            param.grad = xtensor.ones(2)
        optimizer.step()

    step()
    assert {v for p in params for v in p.tolist()} == {0.5}
