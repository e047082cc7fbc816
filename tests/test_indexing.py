"""Reading and writing by index, against PyTorch (and NumPy, where it is absent)."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import xtensor as xt
from xtensor.ops import hostindex, index_bounds

SHAPES = [(3, 4), (2, 3, 4), (5,), (4, 1, 3), ()]
LAYOUTS = ["plain", "transposed", "strided", "expanded", "offset"]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """The deprecations that these tests walk through on purpose are asserted where they matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ---- index expressions ---------------------------------------------------------------------------------------------


class Index:
    """An index expression as a function of a library, so that both get tensors of their own."""

    def __init__(self, items: list[Any], bare: bool) -> None:
        self.items = items
        self.bare = bare

    def build(self, lib: Any) -> Any:
        made = [item(lib) if callable(item) else item for item in self.items]
        return made[0] if self.bare and len(made) == 1 else tuple(made)

    def __repr__(self) -> str:
        return repr(tuple([item(np) if callable(item) else item for item in self.items]))


def number(rng: random.Random, size: int) -> int:
    if rng.random() < 0.04:
        return rng.choice([size, -size - 1, size + 3])
    return rng.randrange(-size, size) if size else 0


def bound(rng: random.Random, size: int) -> Any:
    return rng.choice([None, None, rng.randint(-size - 2, size + 2), rng.randint(0, size)])


def array_of_numbers(rng: random.Random, size: int) -> np.ndarray[Any, Any]:
    shape = rng.choice([(2,), (2,), (3,), (1,), (2, 1), (2, 3), (0,)])
    data = [number(rng, size) for _ in range(int(np.prod(shape)))]
    return np.array(data, np.int64).reshape(shape)


def tensor_item(data: np.ndarray[Any, Any], dtype: str | None = None) -> Callable[[Any], Any]:
    def make(lib: Any) -> Any:
        if lib is np:
            return data
        tensor = lib.tensor(data)
        return tensor if dtype is None else tensor.to(getattr(lib, dtype))

    return make


def draw_item(rng: random.Random, sizes: list[int]) -> tuple[Any, int]:
    """One item of an index, and how many dimensions it takes."""
    size = sizes[0] if sizes else 0
    kind = rng.choice(
        ["int", "int", "slice", "slice", "none", "list", "tensor", "tensor", "array", "mask", "bool", "scalar", "int32"]
    )
    if kind == "none":
        return None, 0
    if kind == "bool":
        return (rng.random() < 0.7, 0) if rng.random() < 0.4 else (slice(None), 1)
    if kind == "int":
        return number(rng, size), 1
    if kind == "slice":
        return slice(bound(rng, size), bound(rng, size), rng.choice([None, None, 1, 2, 3])), 1
    if kind == "mask":
        rank = rng.randint(1, max(len(sizes), 1))
        shape = tuple(sizes[:rank]) if rng.random() > 0.03 else (7,)
        data = np.array([rng.random() < 0.5 for _ in range(int(np.prod(shape)))], bool).reshape(shape)
        return tensor_item(data, rng.choice([None, None, None, "uint8"])), rank
    data = array_of_numbers(rng, size)
    if kind == "list":
        return data.tolist(), 1
    if kind == "array":
        return data, 1
    if kind == "scalar":
        return tensor_item(np.array(number(rng, size))), 1
    return tensor_item(data, "int32" if kind == "int32" else None), 1


def draw_index(rng: random.Random, sizes: tuple[int, ...]) -> Index:
    items: list[Any] = []
    left = list(sizes)
    dots = False
    for _ in range(rng.randint(0, len(sizes) + 1)):
        if not dots and rng.random() < 0.12:
            items.append(...)
            dots = True
            drop = rng.randint(0, len(left))
            left = left[drop:]
            continue
        item, taken = draw_item(rng, left)
        items.append(item)
        left = left[taken:]
    return Index(items, rng.random() < 0.5)


def arrange(lib: Any, data: np.ndarray[Any, Any], layout: str) -> Any:
    """A tensor with the values of `data`, laid out in memory in one of several ways."""
    if data.ndim == 0 or layout == "plain":
        return lib.tensor(data)
    if layout == "transposed":
        return lib.tensor(np.ascontiguousarray(data.T)).permute(tuple(reversed(range(data.ndim))))
    if layout == "strided":
        wide = np.zeros((*data.shape[:-1], 2 * data.shape[-1]), data.dtype)
        wide[..., ::2] = data
        return lib.tensor(wide)[..., ::2]
    if layout == "expanded":
        return lib.tensor(data[:1]).expand(data.shape)
    return lib.tensor(np.concatenate([data, data]))[data.shape[0] :]


def outcome(run: Callable[[], Any]) -> Any:
    """What a call gives: values, sizes, strides and dtype, or its error."""
    try:
        found = run()
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    return described(found)


def described(found: Any) -> Any:
    if isinstance(found, (tuple, list)):
        return [described(f) for f in found]
    if found is None or isinstance(found, (int, float, bool, complex)):
        return found
    values = found.detach()
    return str(found.dtype).split(".")[1], tuple(found.shape), found.stride(), found._version, values.tolist()


def data_for(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(shape))) + 1).astype(dtype).reshape(shape)


def compare(torch: Any, run: Callable[[Any], Any], what: str) -> None:
    expected, got = outcome(lambda: run(torch)), outcome(lambda: run(xt))
    assert got == expected, f"{what}\n  expected {expected}\n  got      {got}"


def test_reads_as_torch_does(torch: Any, rng: np.random.Generator, full: bool) -> None:
    draw = random.Random(int(rng.integers(2**32)))
    for _ in range(8000 if full else 400):
        shape, layout = draw.choice(SHAPES), draw.choice(LAYOUTS)
        index = draw_index(draw, shape)
        data = data_for(shape)
        compare(torch, lambda lib: arrange(lib, data, layout)[index.build(lib)], f"{layout} {shape}[{index}]")


def written(lib: Any, data: Any, layout: str, index: Index, value: Any) -> Any:
    x = arrange(lib, data, layout)
    x[index.build(lib)] = value(lib) if callable(value) else value
    return [x, x._base] if x._base is not None else x


def draw_value(rng: random.Random, torch: Any, shape: tuple[int, ...], index: Index) -> Any:
    if rng.random() < 0.4:
        return rng.choice([7, 2.5, True])
    try:
        sizes = tuple(torch.zeros(shape)[index.build(torch)].shape)
    except Exception:
        sizes = (2,)
    sizes = sizes[rng.randint(0, len(sizes)) :] if rng.random() < 0.4 else sizes
    sizes = tuple([1 if rng.random() < 0.15 else s for s in sizes])
    if rng.random() < 0.05:
        sizes = (*sizes, 2)
    values = -data_for(sizes) if rng.random() > 0.05 else -data_for(sizes, np.float64)
    return lambda lib: lib.tensor(values)


def repeats(shape: tuple[int, ...], index: Index) -> bool:
    """Whether an index names a place twice: which of several values stays is then nobody's promise."""
    try:
        named = np.arange(int(np.prod(shape))).reshape(shape)[index.build(np)]
    except (IndexError, ValueError):
        return False
    return np.unique(named).size < named.size


def test_writes_as_torch_does(torch: Any, rng: np.random.Generator, full: bool) -> None:
    draw = random.Random(int(rng.integers(2**32)))
    for _ in range(8000 if full else 400):
        shape, layout = draw.choice(SHAPES), draw.choice([name for name in LAYOUTS if name != "expanded"])
        index = draw_index(draw, shape)
        value = draw_value(draw, torch, shape, index)
        if callable(value) and repeats(shape, index):
            continue
        data = data_for(shape)
        compare(
            torch, lambda lib: written(lib, data, layout, index, value), f"{layout} {shape}[{index}] = {value}"
        )


def gradients(lib: Any, data: Any, layout: str, index: Index, value: Any) -> Any:
    leaf = lib.tensor(data).requires_grad_()
    x = (leaf * 2).transpose(0, -1) if layout == "transposed" else leaf * 2
    source = None
    if value is None:
        found = x[index.build(lib)]
    else:
        source = value(lib) if callable(value) else value
        if not isinstance(source, (int, float, bool)):
            source.requires_grad_()
        x[index.build(lib)] = source
        found = x
    (found * found).sum().backward()
    return [leaf.grad, source.grad if hasattr(source, "grad") else None]


def test_gradients_as_torch(torch: Any, rng: np.random.Generator, full: bool) -> None:
    draw = random.Random(int(rng.integers(2**32)))
    for _ in range(3000 if full else 120):
        shape = draw.choice([(3, 4), (3, 3, 3)])
        layout = draw.choice(["plain", "transposed"])
        turned = shape[::-1] if layout == "transposed" else shape
        index = draw_index(draw, turned)
        value = None if draw.random() < 0.5 else draw_value(draw, torch, turned, index)
        if callable(value) and repeats(turned, index):
            continue
        data = data_for(shape, np.float64) / 7
        expected = outcome(lambda: gradients(torch, data, layout, index, value))
        got = outcome(lambda: gradients(xt, data, layout, index, value))
        if isinstance(expected, tuple):
            assert got == expected, f"{shape}[{index}]"
            continue
        assert isinstance(got, list), f"{shape}[{index}]: {got}"
        for a, b in zip(got, expected, strict=True):
            assert (a is None) == (b is None), f"{shape}[{index}]"
            if a is not None:
                assert a[:2] == b[:2]
                np.testing.assert_allclose(a[4], b[4], rtol=1e-12, err_msg=f"{shape}[{index}]")
