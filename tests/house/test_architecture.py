"""`docs/architecture.md`: its toy engine runs, its floors are those of the house, what it shows of a call is what runs."""

from __future__ import annotations

import importlib.util
import pathlib
import re
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from tests.house.test_house import FLOORS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def section(title: str) -> str:
    """What stands under a heading of the second level."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def generated(name: str) -> str:
    """What stands between the markers of a name."""
    return PAGE.partition(f"<!-- generated: {name} -->\n")[2].partition("<!-- end of generated -->")[0]


def passed(name: str) -> list[str]:
    """The files of a generated table, in their order."""
    return re.findall(r"^\| \d+ \| `?(.+?)`? \|", generated(name), re.MULTILINE)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "tools" / "architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def toy() -> dict[str, Any]:
    """The names of the toy engine: the only block of Python that is not generated."""
    (text,) = re.findall(r"^```python\n(.*?)^```", section("A toy engine"), re.DOTALL | re.MULTILINE)
    assert len([line for line in text.splitlines() if line.strip()]) <= 30
    names: dict[str, Any] = {}
    exec(text, names)
    return names


def test_the_toy_engine_has_the_gradients_that_the_page_says(toy, rng):
    values = rng.standard_normal(5).astype(np.float32)
    x = toy["Tensor"](jnp.asarray(values))
    toy["backward"](toy["total"](toy["mul"](x, toy["sin"](x))))
    assert "`sin(x) + x * cos(x)`" in section("A toy engine")
    np.testing.assert_allclose(x.grad, np.sin(values) + values * np.cos(values), rtol=1e-6)


def test_the_toy_engine_agrees_with_the_real_one(toy, rng):
    """A graph in which gradients meet, and one tensor is used at several depths."""
    arrays = [rng.standard_normal((2, 3)).astype(np.float32) for _ in range(2)]

    def graph(mul: Any, sin: Any, total: Any, x: Any, y: Any) -> Any:
        z = mul(x, y)
        return total(mul(mul(z, sin(z)), mul(x, sin(sin(x)))))

    toys = [toy["Tensor"](jnp.asarray(a)) for a in arrays]
    toy["backward"](graph(toy["mul"], toy["sin"], toy["total"], *toys))
    real = [xtensor.tensor(a, requires_grad=True) for a in arrays]
    grads = xtensor.autograd.grad(graph(xtensor.mul, xtensor.sin, xtensor.sum, *real), real)
    for small, large in zip(toys, grads, strict=True):
        assert large is not None
        np.testing.assert_allclose(small.grad, large.numpy(), rtol=2e-5, atol=1e-6)


def test_a_second_backward_of_the_toy_adds_to_the_gradient(toy):
    x = toy["Tensor"](jnp.asarray([2.0]))
    for times in (1, 2):
        toy["backward"](toy["mul"](x, x))
        assert x.grad.tolist() == [4.0 * times]


def test_the_code_of_add_is_what_runs():
    assert generated("add") == f"```python\n{xtensor.ops.source('add').strip()}\n```\n"


def test_a_warm_call_passes_the_generated_function_and_at_most_one_file():
    files = passed("second call")
    assert files[0] == "generated"
    assert len(files) <= 2


def test_the_lives_begin_and_end_where_the_page_says():
    assert passed("first call")[0] == "xtensor/operators/functions/deferred.py"
    assert {"xtensor/operators/dispatch.py", "xtensor/ops/pointwise/arithmetic.py"} <= set(
        passed("first call")
    )
    for name in ("first backward", "planned backward"):
        assert passed(name)[0] == "xtensor/gradients.py"
    assert "xtensor/engine/executor.py" in passed("first backward")
    assert "xtensor/engine/executor.py" not in passed("planned backward")
    assert "xtensor/plans/patterns.py" in passed("planned backward")


def test_every_floor_is_told():
    told = section("The floors of the house")
    for names in FLOORS[:-1]:
        for name in names:
            spelled = [f"`xtensor/{name}{end}`" for end in ("/", ".py", ".pyi")]
            assert any(path in told for path in spelled), f"{name} is not in the page"


def test_floors_are_told_from_the_bottom():
    told = section("The floors of the house")
    bold = [line for line in told.splitlines() if line.startswith("**`")]
    order = [set(re.findall(r"`xtensor/(\w+)", line.partition(".**")[0])) for line in bold]
    assert order == [set(names) for names in FLOORS[:-2]]


def test_passed_by_lists_files_in_the_order_in_which_a_call_enters_them(tool):
    x = xtensor.ones(3)
    assert next(iter(tool.passed_by(lambda: x.requires_grad))) == "tensor.py"
    files = tool.passed_by(lambda: x.to(xtensor.float64).sum())
    assert "operators/dispatch.py" in files or "generated" in files
