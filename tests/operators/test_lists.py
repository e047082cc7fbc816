"""Lists of many tensors: stacked, joined, split and unbound, they compile no program for all parts, and their gradients are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor.xla import compiles

COUNT = 12

JOINED: dict[str, Callable[[Any, list[Any]], Any]] = {
    "stack": lambda lib, x: lib.stack(x),
    "stack last": lambda lib, x: lib.stack([t * 2 for t in x], -1),
    "cat": lambda lib, x: lib.cat(x),
    "cat last": lambda lib, x: lib.cat([t.exp() for t in x], 1),
}
PARTED: dict[str, Callable[[Any], Any]] = {
    "unbind": lambda x: x.unbind(),
    "unbind last": lambda x: x.unbind(-1),
    "split": lambda x: x.split(2),
    "lengths": lambda x: x.split([1] * (COUNT - 2) + [2], 1),
    "moved": lambda x: x.permute(2, 0, 1).unbind(1),
}


@pytest.fixture
def made() -> Iterator[list[str]]:
    """The names of programs that are compiled, or found on disk."""
    names: list[str] = []

    def watcher(name: str) -> Callable[[bool | None], None]:
        names.append(name)
        return lambda _: None

    compiles.watch(watcher)
    yield names
    compiles.unwatch(watcher)


@pytest.mark.parametrize("again", [False, True], ids=["first", "double"])
@pytest.mark.parametrize("how", JOINED)
def test_gradients_of_what_is_joined(how: str, again: bool) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).normal(size=(COUNT, 3, 4)).astype(np.float32)
    found = []
    for lib in (torch, xtensor):
        x = [lib.tensor(v, requires_grad=True) for v in values]
        out = JOINED[how](lib, x)
        weight = lib.tensor(np.cos(np.arange(out.numel())).reshape(tuple(out.shape)).astype(np.float32))
        grads = lib.autograd.grad((out * out * weight).sum(), x, create_graph=again)
        if again:
            grads = lib.autograd.grad(sum((g * g).sum() for g in grads), x)
        (JOINED[how](lib, x) * weight).sum().backward()
        x[0].grad.add_(1)  # writes to no other's
        found.append([t.detach().numpy() for t in (*grads, *[t.grad for t in x])])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


@pytest.mark.parametrize("all_of_them", [True, False])
@pytest.mark.parametrize("how", PARTED)
def test_gradients_of_what_is_parted(how: str, all_of_them: bool) -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).normal(size=(COUNT, COUNT, COUNT)).astype(np.float32)
    found = []
    for lib in (torch, xtensor):
        x = lib.tensor(values, requires_grad=True)
        parts = PARTED[how](x)[: None if all_of_them else -1]
        total = sum(((p * (i + 1)) ** 2).sum() for i, p in enumerate(parts))
        (grad,) = lib.autograd.grad(total, x, create_graph=True)
        (double,) = lib.autograd.grad((grad * grad).sum(), x)
        found.append((grad.detach().numpy(), double.numpy()))
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


def large(names: list[str]) -> list[str]:
    """Those of programs that give many parts, each of which XLA compiles by itself."""
    return [n for n in names if n in ("stack_backward", "cat_backward") or n.startswith("backward_of")]


def test_no_program_gives_all_parts_of_a_gradient(made: list[str]) -> None:
    # Sizes of this test's own, so that no other has compiled for them.
    leaves = [xtensor.rand(3, 41, requires_grad=True) for _ in range(COUNT)]
    for join in (xtensor.stack, xtensor.cat):
        made.clear()
        join(leaves).pow(2).sum().backward()
        assert made and not large(made)
    x = xtensor.rand(COUNT, 3, 43, requires_grad=True)
    made.clear()
    xtensor.stack([p * 2 for p in x.split(1)]).sum().backward()
    assert made and not large(made)


def test_rows_of_many_lengths_are_written_on_the_host(made: list[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=n).astype(np.float32) for n in range(7, 47)]
    source = xtensor.tensor(rng.normal(size=(40, 47)).astype(np.float32))
    target = xtensor.zeros(40, 61)
    expected = np.zeros((40, 61), np.float32)
    made.clear()
    for i, row in enumerate(rows):
        target[i, : len(row)] = xtensor.tensor(row)
        target[i, len(row) : len(row) + 5] = source[i, 1:6]
        expected[i, : len(row)] = row
        expected[i, len(row) : len(row) + 5] = source.numpy()[i, 1:6]
    np.testing.assert_array_equal(target.numpy(), expected)
    assert not {"copy", "_write_body"} & set(made)


def test_random_numbers_beside_tensors_are_drawn_by_the_same_programs(made: list[str]) -> None:
    for n in range(23, 29):
        p = xtensor.full((n,), 0.5)
        assert set(xtensor.bernoulli(p).tolist()) <= {0.0, 1.0} and p.multinomial(2).max() < n
    assert made.count("words") <= 1 and made.count("exponential") <= 1
