"""Convolutions that the CPU computes in ways of its own: values and gradients are PyTorch's, in each of them."""

from typing import Any

import jax
import numpy as np
import pytest

import xtensor
from xtensor.ops.network import convolution_cpu
from xtensor.ops.network.convolution import Convolution

# n, (N, C, O), size, kernel, stride, padding, dilation, groups
PLAIN = [
    (1, (4, 8, 8), 20, 7, 1, 6, 1, 1),  # a row, by samples
    (1, (2, 40, 90), 9, 3, 2, 1, 1, 1),  # a row of few places, by one product
    (1, (3, 10, 20), 40, 7, 1, 24, 8, 1),
    (1, (2, 8, 8), 5, 9, 1, 4, 1, 1),  # a kernel larger than the row
    (2, (8, 64, 64), 2, 3, 1, 1, 1, 1),
    (2, (2, 16, 130), 7, 3, 2, 1, 1, 1),  # more channels than places
    (2, (3, 16, 16), 3, 5, 2, 3, 1, 1),
    (2, (2, 16, 32), 6, 3, 1, 4, 3, 1),
    (3, (2, 16, 16), 2, 3, 1, 1, 1, 1),
]
# n, (N, C, O), size, kernel, stride, padding, output padding, dilation, groups
TRANSPOSED = [
    (1, (3, 8, 6), 20, 4, 2, 1, 1, 1, 2),
    (2, (3, 8, 6), 5, 4, 2, 1, 0, 1, 1),
    (2, (3, 8, 6), 5, 3, 2, 1, 2, 3, 1),  # an output padding that no weight meets
    (2, (2, 8, 4), 1, 4, 1, 0, 0, 1, 1),
    (2, (0, 8, 6), 5, 4, 2, 1, 0, 1, 1),
    (3, (2, 4, 4), 3, 3, 2, 1, 1, 1, 2),
]


def drawn(rng: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "complex64" else 0)
    return values.astype(dtype)


def compare(torch: Any, name: str, x: Any, w: Any, *args: Any) -> None:
    found = []
    for lib in (torch, xtensor):
        a, b = (lib.tensor(v, requires_grad=True) for v in (x, w))
        y = getattr(lib.nn.functional, name)(a, b, None, *args)
        grad = np.cos(np.arange(y.numel())).reshape(tuple(y.shape)) * (1 + 1j if x.dtype.kind == "c" else 1)
        y.backward(lib.tensor(grad.astype(x.dtype)))
        found.append([v.detach().resolve_conj().numpy() for v in (y, a.grad, b.grad)])
    for theirs, ours in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * max(1, np.abs(theirs).max(initial=0)))


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation", "parts"),
    [
        ((12, 14), (4, 4), (4, 4), 0, 1, 2),  # blocks side by side, the last columns unmet
        ((7, 9), (4, 3), (4, 3), 1, 1, 2),
        ((5, 4), (3, 3), (2, 1), 1, 2, 6),  # few places
        ((37, 31), (3, 2), (1, 2), 1, 1, 6),
        ((37, 31), (7, 5), (1, 2), 1, 1, 12),
        ((1031,), (3,), (1,), 1, 1, 3),
    ],
)
def test_inputs_are_unfolded_by_few_parts(rng: Any, size, kernel, stride, padding, dilation, parts) -> None:
    n = len(size)
    x, w = rng.standard_normal((2, 3, *size)), rng.standard_normal((4, 3, *kernel))
    where = stride, ((padding, padding),) * n, (dilation,) * n

    def unfolded(x: Any) -> Any:
        return convolution_cpu.unfolded(x, 2, kernel, *where)

    made = np.asarray(unfolded(x.astype("float32")))
    each = np.stack(list(map(np.asarray, convolution_cpu.shifted(x.astype("float32"), kernel, *where))), 2)
    np.testing.assert_array_equal(made, each)
    text = str(jax.make_jaxpr(unfolded)(x.astype("float32")))
    assert text.count(" slice[") == parts
    expected = jax.lax.conv_general_dilated(x, w, *where[:2], rhs_dilation=where[2])
    np.testing.assert_allclose(convolution_cpu.by_columns(x, w, *where), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", PLAIN, ids=str)
@pytest.mark.one_in(2)
def test_convolutions(torch: Any, rng: Any, case: Any) -> None:
    n, (batch, c, o), size, k, *rest = case
    for dtype in ("float32", "complex64"):
        x = drawn(rng, dtype, (batch, c, *(size,) * n))
        compare(torch, f"conv{n}d", x, drawn(rng, dtype, (o, c, *(k,) * n)), *rest)


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_convolutions(torch: Any, rng: Any, case: Any) -> None:
    n, (batch, c, o), size, k, stride, padding, more, dilation, groups = case
    for dtype in ("float32", "complex64"):
        w = drawn(rng, dtype, (c, o // groups, *(k,) * n))
        x = drawn(rng, dtype, (batch, c, *(size,) * n))
        for given in (x, x[0]) if batch else (x,):
            compare(torch, f"conv_transpose{n}d", given, w, stride, padding, more, groups, dilation)


def test_no_kernel_meets_less_than_itself() -> None:
    """XLA takes a hundred times as long for one that does: such a convolution is a product, in all three directions."""
    shape, weight = (4, 32, 2, 2), (32, 32, 3, 3)
    way = Convolution(2, weight, 1, 1, 1, 1)
    x, w = xtensor.randn(*shape), xtensor.randn(*weight)
    for call, args in (
        (way.forward, (x, w)),
        (lambda g, w: way.pull_input(g, w, shape), (x, w)),
        (lambda g, x: way.pull_weight(g, x, weight), (x, x)),
    ):
        arrays = [t._xt_storage.array for t in args]
        assert "stablehlo.convolution" not in jax.jit(call).lower(*arrays).as_text()


@pytest.mark.parametrize(
    "kernel, stride", [((4, 4), (2, 2)), ((3, 3), (2, 3)), ((5, 3), (2, 1)), ((2, 2), (2, 2))]
)
@pytest.mark.parametrize("padding, more", [(0, 0), (1, 0), (1, 1), (2, 0)])
def test_transposed_convolutions_by_phases(torch, monkeypatch, kernel, stride, padding, more):
    """Results and gradients, also where a border cuts off whole rows or what is added has none of the kernel."""
    if more and 1 in stride:
        pytest.skip("less is added than a stride")
    monkeypatch.setattr(convolution_cpu, "MANY_PRODUCTS", 1)
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal(s).astype(np.float32) for s in ((2, 3, 5, 7), (3, 4, *kernel)))

    def run(lib):
        a, w = (lib.tensor(v, requires_grad=True) for v in (x, weight))
        made = lib.nn.functional.conv_transpose2d(a, w, None, stride, padding, more)
        (made * made.detach()).sum().backward()
        return [t.detach().numpy() for t in (made, a.grad, w.grad)]

    for expected, found in zip(run(torch), run(xtensor), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
