"""Reading and writing by index, against PyTorch (and NumPy, where it is absent)."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import xtensor as xt
from xtensor.operators import index_bounds
from xtensor.ops.index import hostindex, indexing
from xtensor.ops.reduce.statistics import counts_of
from xtensor.xla.sizes.terms import varied

torch: Any = pytest.importorskip("torch")

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
        [
            "int",
            "int",
            "slice",
            "slice",
            "none",
            "list",
            "tensor",
            "tensor",
            "array",
            "mask",
            "bool",
            "scalar",
            "int32",
        ]
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


def reading(data: Any, layout: str, index: Index) -> Callable[[Any], Any]:
    return lambda lib: arrange(lib, data, layout)[index.build(lib)]


def test_reads_as_torch_does(torch: Any, rng: np.random.Generator, full: bool) -> None:
    draw = random.Random(int(rng.integers(2**32)))
    for _ in range(8000 if full else 150):
        shape, layout = draw.choice(SHAPES), draw.choice(LAYOUTS)
        index = draw_index(draw, shape)
        compare(torch, reading(data_for(shape), layout, index), f"{layout} {shape}[{index}]")


def written(lib: Any, data: Any, layout: str, index: Index, value: Any) -> Any:
    x = arrange(lib, data, layout)
    x[index.build(lib)] = value(lib) if callable(value) else value
    return [x, x._base] if x._base is not None else x


def writing(data: Any, layout: str, index: Index, value: Any) -> Callable[[Any], Any]:
    return lambda lib: written(lib, data, layout, index, value)


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
    for _ in range(8000 if full else 150):
        shape, layout = draw.choice(SHAPES), draw.choice([name for name in LAYOUTS if name != "expanded"])
        index = draw_index(draw, shape)
        value = draw_value(draw, torch, shape, index)
        if callable(value) and repeats(shape, index):
            continue
        compare(torch, writing(data_for(shape), layout, index, value), f"{layout} {shape}[{index}] = {value}")


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
    for _ in range(3000 if full else 50):
        shape = draw.choice([(3, 4), (3, 3, 3)])
        layout = draw.choice(["plain", "transposed"])
        turned = shape[::-1] if layout == "transposed" else shape
        index = draw_index(draw, turned)
        value = None if draw.random() < 0.5 else draw_value(draw, torch, turned, index)
        if callable(value) and repeats(turned, index):
            continue
        data = data_for(shape, np.float64) / 7
        expected, got = [outcome(partial(gradients, lib, data, layout, index, value)) for lib in (torch, xt)]
        if isinstance(expected, tuple):
            assert got == expected, f"{shape}[{index}]"
            continue
        assert isinstance(got, list), f"{shape}[{index}]: {got}"
        for a, b in zip(got, expected, strict=True):
            assert (a is None) == (b is None), f"{shape}[{index}]"
            if a is not None:
                assert a[:2] == b[:2]
                np.testing.assert_allclose(a[4], b[4], rtol=1e-12, err_msg=f"{shape}[{index}]")


# ---- NumPy's rules, where PyTorch is not installed -----------------------------------------------------------------

RULES: list[Any] = [
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    (..., 0),
    None,
    (slice(0, 2), None, 1),
    [[1, 0]],
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [3, 0]),
    (slice(None), [2, 0], [1, 1]),
    (0, slice(None), np.array([[1], [2]])),
    (np.array([[0], [1]]), np.array([[0, 2]])),
    (..., np.array([3, -4])),
    np.array([True, False]),
    (slice(None), np.array([True, False, True])),
    (np.arange(6).reshape(2, 3) % 2 == 0, slice(1, 3)),
    (np.arange(24).reshape(2, 3, 4) % 5 == 0,),
    (True, [0, 1]),
    (False,),
]


@pytest.mark.parametrize("index", RULES, ids=repr)
def test_numpy_rules(index: Any) -> None:
    data = data_for((2, 3, 4))
    index = tuple(index) if isinstance(index, list) else index
    x = xt.tensor(data)
    # NumPy takes an int for an index array; PyTorch takes it first, so that what is left stands together.
    expected = data[0][:, index[2]] if index is RULES[11] else data[index]
    np.testing.assert_array_equal(x[index].numpy(), expected)
    x[index] = -1
    data[index] = -1
    np.testing.assert_array_equal(x.numpy(), data)


# ---- views ---------------------------------------------------------------------------------------------------------


def basic_item(draw: random.Random) -> Any:
    """A part of an index that makes a view, inside or outside of a dimension of up to four."""
    kind = draw.randrange(8)
    if kind < 3:
        return draw.randrange(-4, 4)
    if kind < 5:
        bounds = [None, *range(-6, 7)]
        return slice(draw.choice(bounds), draw.choice(bounds), draw.choice([None, 1, 1, 2, 3]))
    return (None, ..., np.int64(draw.randrange(-3, 3)))[kind - 5]


def seen_of_view(lib: Any, shape: tuple[int, ...], order: list[int], index: Any, grad: bool) -> Any:
    """Sizes, strides, offset and node of a view, and its base after a write; or the error."""
    base = lib.arange(int(np.prod(shape)), dtype=lib.float32).reshape(shape).permute(order)
    x = base.requires_grad_() if grad else base
    try:
        view = x[index]
        if not grad:
            x[index] = -1
    except (IndexError, ValueError) as error:
        return type(error), str(error)
    node = None if view.grad_fn is None else type(view.grad_fn).__name__
    return tuple(view.shape), view.stride(), view.storage_offset(), node, base.tolist()


@pytest.mark.parametrize("inline", [True, False])
def test_views_are_those_of_torch(
    torch: Any, full: bool, inline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes, strides, offset, node and errors of basic indices; and what a write through them leaves.

    inline: as in a program that has no classes and modes which see operators; else as in one that has some.
    """
    monkeypatch.setattr(indexing, "dispatching", [] if inline else [object])
    draw = random.Random(27)
    for _ in range(20000 if full else 2000):
        shape = tuple(draw.randrange(0 if draw.random() < 0.1 else 1, 5) for _ in range(draw.randrange(4)))
        order = draw.sample(range(len(shape)), len(shape))
        grad = draw.random() < 0.2
        index: Any = tuple([basic_item(draw) for _ in range(draw.randrange(5))])
        if index.count(...) > 1:
            continue
        if len(index) == 1 and draw.random() < 0.7:
            index = index[0]

        found, expected = (seen_of_view(lib, shape, order, index, grad) for lib in (xt, torch))
        assert found == expected, (shape, order, index, grad)


def test_basic_parts_are_views() -> None:
    x = xt.tensor(data_for((2, 3, 4)))
    y = x[1, ..., None, ::2]
    assert y._base is x
    assert (tuple(y.shape), y.stride(), y.storage_offset()) == ((3, 1, 2), (4, 4, 2), 12)
    y[:] = 0
    assert x[1, :, ::2].sum().item() == 0 and x[0].sum().item() == 78
    assert x._version == 1


def test_views_of_views_write_to_the_base() -> None:
    x = xt.tensor(data_for((4, 6)))
    x[1:][:, [0, 5]] = 0
    x[0][x[0] > 4] = 0
    expected = data_for((4, 6))
    expected[1:, [0, 5]] = 0
    expected[0, 4:] = 0
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_view_chain_is_recorded() -> None:
    x = xt.tensor(data_for((3, 4))).requires_grad_()
    names = []
    node: Any = x[0:2, None, 1].grad_fn
    while node is not None and node.next_functions:
        names.append(node.name())
        node = node.next_functions[0][0]
    assert names == ["SelectBackward0", "UnsqueezeBackward0", "SliceBackward0"]


def test_an_empty_index_does_not_decide_for_others() -> None:
    """An empty write passes the gradient through; a later one of the same sizes must not."""
    for rows, kept in (([], 3), ([2], 2)):
        x = xt.tensor(data_for((3, 3))).requires_grad_()
        y = x * 2
        y[rows, ...] = 7
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.sum().item() == 2 * 3 * kept


def test_gradient_of_as_strided_scatter() -> None:
    """PyTorch's own is wrong, as its gradcheck says, so this one is judged by finite differences."""
    x = xt.tensor(data_for((2, 3), np.float64)).requires_grad_()
    source = xt.tensor(data_for((2, 2), np.float64)).requires_grad_()
    for base in (lambda x: x, lambda x: x.t()):
        assert xt.autograd.gradcheck(
            lambda x, s, base=base: base(x).as_strided_scatter(s, (2, 2), (3, 1)) ** 2, (x, source)
        )


# ---- bounds --------------------------------------------------------------------------------------------------------

OUTSIDE: list[tuple[type[Exception], str, Callable[[Any, Any], Any]]] = [
    (IndexError, "index 3 is out of bounds for dimension 0 with size 3", lambda x, i: x[i]),
    (IndexError, "index 3 is out of bounds for dimension 0 with size 3", lambda x, i: x[i.tolist()]),
    (IndexError, "index 3 is out of bounds for dimension 0 with size 3", lambda x, i: x[i.numpy()]),
    (IndexError, "index 3 is out of bounds for dimension 0 with size 3", lambda x, i: x.__setitem__(i, 1)),
    (
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.index_put_((i,), xt.tensor(5.0)),
    ),
    (IndexError, "index out of range in self", lambda x, i: x.index_select(0, i)),
    (
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.index_add_(0, i, x[:2] * 1),
    ),
    (
        IndexError,
        "index_copy_(): index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.index_copy_(0, i, x[:2] * 1),
    ),
    (
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.index_fill_(0, i, 1.0),
    ),
    (
        IndexError,
        "index out of range in self",
        lambda x, i: x.index_reduce_(0, i, x[:2] * 1, "amax"),
    ),
    (
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.gather(0, i.view(2, 1)),
    ),
    (
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.scatter_(0, i.view(2, 1), 1.0),
    ),
    (
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.scatter_add_(0, i.view(2, 1), x[:2] * 1),
    ),
    (
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
        lambda x, i: x.scatter_reduce_(0, i.view(2, 1), x[:2] * 1, "sum"),
    ),
    (
        IndexError,
        "out of range: tried to access index 99 on a tensor of 12 elements.",
        lambda x, i: x.take(i * 33),
    ),
    (
        IndexError,
        "out of range: tried to access index 99 on a tensor of 12 elements.",
        lambda x, i: x.put_(i * 33, x[0, :2] * 1),
    ),
]


@pytest.mark.parametrize("case", range(len(OUTSIDE)))
def test_out_of_range_raises_and_changes_nothing(case: int) -> None:
    kind, words, run = OUTSIDE[case]
    x = xt.tensor(data_for((3, 4)))
    with pytest.raises(kind) as caught:
        run(x, xt.tensor([0, 3]))
    assert str(caught.value) == words
    np.testing.assert_array_equal(x.numpy(), data_for((3, 4)))
    assert x._version == 0


def test_bounds_of_an_array_are_found_once_and_do_not_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    index = xt.tensor(np.arange(2000) % 7)
    assert index_bounds.bounds_of(index._xt_storage.array) == (0, 6)
    key = id(index._xt_storage.array)
    assert key in index_bounds._known
    monkeypatch.setattr(index_bounds, "extremes", None)
    assert index_bounds.bounds_of(index._xt_storage.array) == (0, 6)
    index += 1
    assert index_bounds.bounds_of(index._xt_storage.array) == (1, 7)
    (held, *_) = index_bounds._known[id(index._xt_storage.array)]
    del index
    assert held() is None


def test_bounds_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_bounds, "on_cpu", lambda array: False)
    x = xt.tensor(data_for((3, 4)))
    assert x[xt.tensor([2, -3])].tolist() == [[9, 10, 11, 12], [1, 2, 3, 4]]
    with pytest.raises(IndexError, match="index -4 is out of bounds for dimension 0 with size 3"):
        x[xt.tensor([0, -4])]


# ---- no program per value ------------------------------------------------------------------------------------------


class Compiles:
    """How many programs XLA has compiled."""

    def __init__(self) -> None:
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self)

    def __call__(self, event: str, *_: Any, **__: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            self.count += 1


@pytest.fixture(scope="session")
def compiles() -> Compiles:
    return Compiles()


def grown(compiles: Compiles, run: Callable[[], Any]) -> int:
    before = compiles.count
    run()
    return compiles.count - before


def test_values_never_compile(compiles: Compiles, waits: None) -> None:
    def work(k: int) -> None:
        x = xt.tensor(data_for((7, 5)))
        x[k % 7].sum()
        x[k % 3 : k % 3 + 2].sum()
        index = xt.tensor([k % 7, -1 - k % 7])
        x[index]
        x[[k % 7, 0]]
        x[:, k % 5] = k + 0.5
        x[index] = 1.5 * k
        x[k % 7] = float(k)
        x.index_fill_(0, index, k + 0.25)
        x.gather(0, index.view(2, 1) % 7)
        x.scatter_(0, index.view(1, 2) % 7, k + 0.5)
        x[x > k] = k + 0.5

    work(1)
    assert grown(compiles, lambda: [work(k) for k in range(2, 30)]) == 0


def test_masks_do_not_compile_per_count(compiles: Compiles) -> None:
    x = xt.tensor(data_for((64,)))

    def work(k: int) -> None:
        mask = x < k
        assert x[mask].shape == (k - 1,)
        assert mask.nonzero().shape == (k - 1, 1)
        assert x.masked_select(mask).shape == (k - 1,)
        y = xt.tensor(data_for((64,)))
        y[mask] = xt.tensor(-data_for((k - 1,)))
        assert y.tolist()[k - 2] == -(k - 1.0)

    work(20)
    assert grown(compiles, lambda: [work(k) for k in range(21, 40)]) == 0


def test_masks_on_an_accelerator_compile_per_power_of_two(
    monkeypatch: pytest.MonkeyPatch, compiles: Compiles
) -> None:
    monkeypatch.setattr(hostindex, "enabled", lambda array: False)
    x = xt.tensor(data_for((64, 3)))

    def work(k: int) -> None:
        found = x[x[:, 0] < 3 * k]
        assert tuple(found.shape) == (k, 3) and found.is_contiguous() and len(found.tolist()) == k

    work(17)
    assert grown(compiles, lambda: [work(k) for k in range(18, 33)]) == 0
    np.testing.assert_array_equal(x[x[:, 0] < 15].numpy(), data_for((64, 3))[:5])
    assert tuple(x[x < 0].shape) == (0,)


def test_gradient_of_a_padded_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostindex, "enabled", lambda array: False)
    x = xt.tensor(data_for((5, 2))).requires_grad_()
    y = x[xt.tensor([True, False, True, True, False])]
    (y * y).sum().backward()
    expected = 2 * data_for((5, 2))
    expected[[1, 4]] = 0
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_a_mask_and_a_number_do_not_visit_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(array: Any) -> Any:
        raise AssertionError("a visit to the host")

    x = xt.tensor(data_for((3, 4)))
    mask = x > 5
    monkeypatch.setattr(hostindex, "values_of", refuse)
    x[mask] = 0
    assert x.sum().item() == 15


# ---- warnings and meta tensors -------------------------------------------------------------------------------------


def test_byte_masks_are_deprecated() -> None:
    x = xt.tensor(data_for((3,)))
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert x[xt.tensor([1, 0, 1], dtype=xt.uint8)].tolist() == [1, 3]


def test_sequences_read_as_tuples_warn() -> None:
    x = xt.tensor(data_for((3, 4)))
    with pytest.warns(
        UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"
    ):
        assert x[[[0, 1], [1, 2]]].tolist() == [2, 7]


def test_meta_tensors() -> None:
    x = xt.tensor(data_for((3, 4))).to("meta")
    assert tuple(x[0, None, 1:].shape) == (1, 3)
    assert tuple(x[[0, 2]].shape) == (2, 4)
    x[[0, 2]] = 1
    with pytest.raises(NotImplementedError):
        x[x > 0]


# ---- the gather, scatter and index families ------------------------------------------------------------------------

FAMILIES: list[str] = """
x.gather(1, i); x.gather(1, i.int()); x.gather(1, i.short()); x.gather(5, i); x.gather(1, i[0])
x.gather(1, T([[0] * 5] * 5)); T(3.).gather(0, T([0, 0])); x.gather(1, L.empty(0, dtype=L.long))
x.t().gather(0, i.t()); x.scatter(1, i, s); x.scatter(1, i, 7.); x.scatter(1, i, s.double())
x.scatter(1, i, s[:1]); x.scatter(1, i, s[0]); x.scatter(1, i, 7, reduce='add'); x.scatter(1, i, 1j)
x.scatter(1, i[0], 7.); x.byte().scatter(1, i, -1); x.scatter_(1, i, x)
x[:, :1].expand(3, 4).scatter_(1, i, 1.); x.t().scatter(0, i.t(), s.t()); x.scatter_add(1, i, s)
x.bool().scatter_add(1, i, s.bool()); x.scatter_add(1, i, s[:1])
x.scatter_reduce(1, i, s, 'sum', include_self=False); x.scatter_reduce(1, i, s, 'prod')
x.scatter_reduce(1, i, s, 'mean'); x.scatter_reduce(1, i, s, 'amax', include_self=False)
x.scatter_reduce(1, i, s, 'amin'); x.scatter_reduce(1, i, s, 'no')
x.int().scatter_reduce(1, i, -s.int(), 'mean', include_self=False)
x.bool().scatter_reduce(1, i, s.bool(), 'mean'); x.cfloat().scatter_reduce(1, i, s.cfloat(), 'amax')
x.index_select(0, v); x.index_select(0, i); x.index_select(0, v.short()); T(3.).index_select(0, T([0, 0]))
x.index_add(0, v, r, alpha=2); x.index_add(0, v, r[:1]); x.index_add(0, v, r[:, :2]); x.index_add(0, i, r)
x.index_add(0, v, r.double()); x.index_add_(0, v, x[:2]); x.int().index_add(0, v, r.int(), alpha=2.5)
x.index_copy(0, v, r); x.index_copy(0, v, r[:1]); x.index_copy(0, v, r[:, :2]); x.index_copy(0, T(1), r[0])
T(3.).index_copy(0, T([0, 0]), T([2., 3.])); x.index_copy(0, v, T(3.)); x.index_fill(0, v, 5.)
x.index_fill(0, v, T(5.)); x.index_fill(0, v, T([5.])); x.index_fill(0, v, 1j); x.t().index_fill(0, v, 1)
x.index_reduce(0, v, r, 'prod'); x.index_reduce(0, T([0, 0]), r, 'mean', include_self=False)
x.index_reduce(0, v, r, 'sum'); x.take(i); x.take(T(-1)); x.take(v.int()); L.empty(0).take(T([0]))
x.t().take(v); x.put(v, T([1., 2])); x.put(v, T([1.])); x.put(T([0, 0]), T([1., 2]), accumulate=True)
x.t().put(v, T([1., 2])); L.take_along_dim(x, i, 1); L.take_along_dim(x, i)
L.take_along_dim(x, T([[-1]]), 1); L.take_along_dim(x, i[0], 1); x.masked_fill(x > 3, 5)
x.masked_fill(x > 3, 1j); x.masked_fill(x > 3, T([1.])); x.masked_fill(i, 5)
x.masked_fill_(x[:, :2] > 3, 5); x.masked_scatter(x > 3, L.ones(2)); x.masked_scatter(x > 3, s)
x.masked_scatter(x > 9, s); x.masked_scatter(x > 3, s.int()); x.masked_select(x > 9); x.masked_select(i)
x.t().masked_select(x.t() > 9); L.nonzero(x > 9); L.nonzero(T(3.)); L.argwhere(x > 11)
L.nonzero(L.zeros(0, 3)); L.where(x > 5, x, 0); L.where(x > 5, 1, 0); L.where(x > 5, x.int(), 2.5)
L.where(x, x, x); L.where((x > 5).t(), x.t(), 0); x.where(x > 5, T(2.).double())
L.where(T([True, False]), x, T(0.)); x.select_scatter(r[0], 0, 1); x.t().select_scatter(r[0, :3], 0, 1)
x.select_scatter(r, 0, 1); x.slice_scatter(s, 1, 0, 4, 2); x.diagonal_scatter(s[:, 0])
x[1:, 1:].slice_scatter(r[:, :2], 1, 1); x.as_strided_scatter(r[:, :2], (2, 2), (1, 2), 1)
x[1].as_strided_scatter(s[:2], (2, 2), (1, 2)); x.as_strided_scatter(s[:2], (2, 2), (0, 1))
x.as_strided_scatter(r, (2, 2), (1, 2))
""".replace("\n", ";").split(";")  # fmt: skip


def family(lib: Any, expression: str) -> Any:
    names = dict(
        L=lib,
        T=lib.tensor,
        x=lib.tensor(data_for((3, 4))),
        i=lib.tensor([[0, 1], [3, 3], [2, 0]]),
        s=lib.tensor(data_for((3, 2)) - 3),
        v=lib.tensor([0, 2]),
        r=lib.tensor(data_for((2, 4)) + np.float32(0.5)),
    )
    return eval(expression, names)


@pytest.mark.parametrize("expression", [e.strip() for e in FAMILIES if e.strip()])
def test_families_as_torch(torch: Any, expression: str) -> None:
    compare(torch, lambda lib: family(lib, expression), expression)


def test_no_index_is_looked_at_where_nothing_is_touched() -> None:
    x = xt.arange(12).reshape(1, 2, 3, 2)
    index = (slice(-2, 0), xt.tensor([-1, -3]), None, xt.tensor([False, False, True]))
    x[index] = 0
    assert x[index].shape == (2, 0, 1, 2)
    assert x.flatten().tolist() == list(range(12))


def test_sizes_that_values_tell_do_not_compile_for_each() -> None:
    x = xt.arange(24.0).reshape(6, 4)
    for n in range(9, 17):
        assert xt.bincount(xt.tensor([0, n - 1])).tolist() == [1, *[0] * (n - 2), 1]
        often = [n, 0, 1, 2, 0, 3]
        rows = xt.repeat_interleave(x, xt.tensor(often), dim=0)
        assert rows.tolist() == np.repeat(x.numpy(), often, axis=0).tolist()
    sizes = {key[0] for key in counts_of.operator.programs if 9 <= key[0] <= 16}
    assert sizes == {16}


@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "bfloat16", "float16", "complex64", "uint8", "bool", "int64"]
)
def test_elements_are_read_where_they_lie(name: str) -> None:
    x = xt.tensor([[0, 1, 0], [1, 0, 1]]).to(getattr(xt, name))
    for row, values in zip(x.t(), x.t().tolist(), strict=True):
        assert [e.item() for e in row] == values
        assert [type(e.item()) for e in row] == [type(v) for v in values]
    if name == "complex64":
        assert (x * (1 + 2j)).conj()[0, 1].item() == 1 - 2j
        assert (x * (1 + 2j)).imag[0, 1].item() == 2


def test_several_numbers_are_one_view() -> None:
    x = xt.arange(24).reshape(2, 3, 4)
    one = x[1, -1]
    assert one.shape == (4,)
    assert one.storage_offset() == 20
    one[2] = -7
    assert x[1, 2, 2].item() == -7 == int(x[xt.tensor(1)][2, 2])
    for wrong, place, size in (((2, 0), 0, 2), ((0, -4), 1, 3), ((0, 0, 4), 2, 4)):
        with pytest.raises(
            IndexError, match=rf"index {wrong[place]} is out of bounds for dimension {place} with size {size}"
        ):
            x[wrong]
    with pytest.raises(IndexError, match="too many indices"):
        x[0, 0, 0, 0]
    leaf = xt.ones(2, 3, requires_grad=True)
    leaf[1, 2].backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[0, 0, 0], [0, 0, 1]]
    with xt.no_grad():
        seen = leaf[0, 1]
        seen.mul_(5)
    assert leaf[0, 1].item() == 5


def test_as_many_indices_as_come() -> None:
    """Where their number varies, NumPy picks: the same elements, strides, errors and gradients, and no memory in common."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(401, 3)).astype(np.float32)
    x, row = xt.from_numpy(table.copy()), xt.from_numpy(table[:, 0].copy())
    for n in [*range(300, 340), *range(320, 300, -1)]:
        index = rng.integers(-401, 401, n)
        given = xt.from_numpy(index)
        for source, values in ((row, table[:, 0]), (x, table)):
            picked = source[given]
            assert picked.numpy().tobytes() == values[index].tobytes()
            assert picked.is_contiguous()
            picked += 1
        assert x.t()[:, given].numpy().tobytes() == table.T[:, index].tobytes()
    assert x.numpy().tobytes() == table.tobytes() and row.numpy().tobytes() == table[:, 0].tobytes()
    assert 310 in varied
    with pytest.raises(IndexError, match="index 401 is out of bounds for dimension 0 with size 401"):
        row[xt.arange(401 - 309, 402)]
    row.requires_grad_()
    picked = row[given]
    picked.sum().backward()
    assert np.array_equal(row.grad.numpy(), np.bincount(index % 401, minlength=401).astype(np.float32))
    with xt.no_grad():
        assert not row[given].requires_grad


@pytest.mark.parametrize("place", [0, (slice(None), 0), (1, 2), ..., (slice(0, 2), slice(1, 3)), (None, 0)])
def test_numbers_that_are_differentiated_are_written_with_their_history(place: Any) -> None:
    base = xt.zeros(3, 4)
    leaf = xt.tensor(1.5, requires_grad=True)
    base[place] = leaf
    assert base.requires_grad and base[place].eq(1.5).all()
    base.sum().backward()
    assert leaf.grad is not None and leaf.grad.item() == base.ne(0).sum().item()


def test_no_index_is_refused_where_values_are_put() -> None:
    for x in (xt.ones(()), xt.ones(3)):
        for put in (x.index_put, x.index_put_):
            with pytest.raises(RuntimeError, match="at least one index must be provided"):
                put([], xt.ones(1), True)


@pytest.mark.parametrize(("dim", "kind"), [(0, IndexError), (1, RuntimeError), (2, IndexError)])
@pytest.mark.parametrize("index", [7, -1])
def test_rows_beyond_a_tensor_raise_as_in_pytorch(
    torch: Any, dim: int, kind: type[Exception], index: int
) -> None:
    told = []
    for t in (torch, xt):
        with pytest.raises(kind) as caught:
            t.ones(4, 3, 2).index_select(dim, t.tensor([0, index]))
        told.append(str(caught.value))
    assert told[0] == told[1]


EXPANDED: dict[str, Callable[[Any, Any], Any]] = {
    "index_put_": lambda t, x: x.index_put_((t.tensor([0, 1]),), t.tensor(5.0)),
    "index_put_ of several": lambda t, x: x.index_put_(
        (t.tensor([0, 1]), t.tensor([1, 1])), t.tensor([5.0, 6.0])
    ),
    "accumulated": lambda t, x: x.index_put_(
        (t.tensor([0, 1]), t.tensor([1, 1])), t.tensor([5.0, 6.0]), True
    ),
    "rows": lambda t, x: x.index_fill_(0, t.tensor([0]), 5.0),
    "columns": lambda t, x: x.index_fill_(1, t.tensor([0, 2]), 5.0),
    "mask": lambda t, x: x.__setitem__(t.eye(3, 4).bool(), t.tensor([5.0, 6.0, 7.0])),
    "numbers": lambda t, x: x.__setitem__((t.tensor([0, 1]), t.tensor([0, 3])), 2.0),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_writes_by_index_to_expanded_tensors_warn(torch: Any, name: str) -> None:
    told = []
    for t in (torch, xt):
        base = t.arange(4.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            EXPANDED[name](t, base.expand(3, 4))
        told.append((base.tolist(), [str(w.message).partition(" (Triggered")[0] for w in caught]))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("sizes", "index"), [((4, 1, 3), []), ((4, 3, 1), [[]]), ((4, 0, 1), [0, 1]), ((0, 1, 3), [])]
)
def test_nothing_lies_in_memory_as_pytorch_has_it(torch: Any, sizes: Any, index: Any) -> None:
    def strides(lib: Any) -> Any:
        return lib.zeros(sizes)[lib.tensor(index, dtype=lib.int64)].stride()

    assert strides(xt) == strides(torch)


def test_put_by_a_mask_lies_in_memory_as_the_input(torch: Any) -> None:
    def strides(lib: Any) -> Any:
        input, mask = lib.zeros(3, 2).t(), lib.ones(3, 2, dtype=lib.bool).t()
        return input.index_put((mask,), lib.tensor(1.0)).stride()

    assert strides(xt) == strides(torch) == (1, 2)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("number", [65519.0, 70000, -1e9, 1e39, 464.0, 1 + 2j])
def test_short_floats_take_numbers_beyond_their_largest(name, number):
    """As in `scores[mask] = -1e9` of halves, which `fill_` refuses."""
    told = []
    for lib in (torch, xt):
        for index in (0, ..., lib.tensor([0]), lib.tensor([True, False])):
            if name.startswith("float8") and index is not ... and getattr(index, "dtype", None) is lib.bool:
                continue
            x = lib.zeros(2, 2, dtype=getattr(lib, name))
            try:
                x[index] = number
                told.append(x.float().tolist())
            except RuntimeError as error:
                told.append(str(error))
    half = len(told) // 2
    np.testing.assert_equal(told[:half], told[half:])
