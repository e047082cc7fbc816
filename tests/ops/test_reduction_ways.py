"""The ways that the CPU has of its own for scans, order and selection, against PyTorch, at sizes on both sides of where each begins."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import xtensor

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int64", "int32", "int8", "uint8")


def both(values: Any) -> tuple[Any, Any]:
    return xtensor.tensor(values), torch.from_numpy(values.copy())


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    draw = np.random.default_rng(0)
    if dtype.startswith("float"):
        return (draw.standard_normal(shape) * 10).astype(dtype)
    return draw.integers(0 if dtype == "uint8" else -50, 50, shape).astype(dtype)


def odd(shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Values with NaNs, with infinities, with zeros of both signs."""
    draw, plain = np.random.default_rng(1), drawn(shape, dtype)
    share = draw.random(shape)
    nans, ends = (
        np.where(share < 0.1, NAN, plain),
        np.where(share < 0.2, INF, np.where(share > 0.8, -INF, plain)),
    )
    return [v.astype(dtype) for v in (nans, ends, np.where(share < 0.5, 0.0, -0.0))]


# ---- scans ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cumprod", "logcumsumexp", "cummax", "cummin"])
@pytest.mark.parametrize("shape", [(1,), (2, 0), (1031,), (4, 5, 6)])
@pytest.mark.one_in(3)
def test_scans_along_every_dimension(name: str, shape: tuple[int, ...]):
    for dtype in ("float32", "float64" if name == "logcumsumexp" else "int8"):
        ours, theirs = both(drawn(shape, dtype) / 10 if dtype.startswith("float") else drawn(shape, dtype))
        for dim in range(len(shape)):
            found, wanted = getattr(ours, name)(dim), getattr(theirs, name)(dim)
            if name.startswith("cumm"):
                np.testing.assert_array_equal(found.indices.numpy(), wanted.indices.numpy())
                found, wanted = found.values, wanted.values
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cumprod", "logcumsumexp", "cummax"])
def test_derivatives_of_scans(name: str):
    values = drawn((17, 33), "float64") / 10
    values[2, 3] = values[4, 1] = values[4, 7] = 0
    ours, theirs = both(values)
    weight = np.random.default_rng(2).standard_normal(values.shape)
    for dim in (0, 1):
        a, b = ours.clone().requires_grad_(), theirs.clone().requires_grad_()
        found, wanted = getattr(a, name)(dim), getattr(b, name)(dim)
        if name == "cummax":
            found, wanted = found.values, wanted.values
        (found * xtensor.tensor(weight)).sum().backward()
        (wanted * torch.from_numpy(weight)).sum().backward()
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "values", [[-INF, 0, 1], [-INF, -INF, 2], [1, INF, 2], [1, NAN, 2], [0.0, -0.0, 0.0], [INF, -INF, 1]]
)
def test_scans_of_infinities(values: list[float]):
    ours, theirs = both(np.array(values, np.float32))
    for name in ("cumprod", "logcumsumexp"):
        np.testing.assert_allclose(
            getattr(ours, name)(0).numpy(), getattr(theirs, name)(0).numpy(), rtol=1e-6
        )
    for name in ("cummax", "cummin"):
        found, wanted = getattr(ours, name)(0), getattr(theirs, name)(0)
        np.testing.assert_array_equal(found.values.numpy(), wanted.values.numpy())
        np.testing.assert_array_equal(found.indices.numpy(), wanted.indices.numpy())


# ---- order and selection -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("shape", [(1031,), (3, 4, 6), (16411,)])
@pytest.mark.one_in(3)
def test_medians_and_ranks(shape: tuple[int, ...], dtype: str):
    for values in [drawn(shape, dtype), *(odd(shape, dtype) if dtype in FLOATS else [])]:
        ours, theirs = both(values)
        np.testing.assert_array_equal(ours.median().numpy(), theirs.median().numpy())
        np.testing.assert_array_equal(ours.nanmedian().numpy(), theirs.nanmedian().numpy())
        for dim, size in enumerate(shape):
            for found, wanted in (
                (ours.median(dim), theirs.median(dim)),
                (ours.nanmedian(dim), theirs.nanmedian(dim)),
                (ours.kthvalue(size // 3 + 1, dim), theirs.kthvalue(size // 3 + 1, dim)),
            ):
                np.testing.assert_array_equal(found.values.numpy(), wanted.values.numpy())
                picked = np.take_along_axis(values, np.expand_dims(found.indices.numpy(), dim), dim).squeeze(
                    dim
                )
                np.testing.assert_array_equal(picked, wanted.values.numpy())


@pytest.mark.parametrize("shape", [(5, 33), (7, 1031)])
@pytest.mark.parametrize("most", [50, 2**31, 2**62])
def test_long_integers_are_in_order_whether_they_are_small_or_not(most: int, shape: tuple[int, ...]):
    values = np.random.default_rng(3).integers(-most, most, shape)
    ours, theirs = both(values)
    for dim, descending in itertools.product((0, 1), (False, True)):
        found = ours.sort(dim, descending=descending)
        wanted = torch.sort(theirs, dim=dim, descending=descending, stable=True)
        np.testing.assert_array_equal(found.values.numpy(), wanted.values.numpy())
        np.testing.assert_array_equal(found.indices.numpy(), wanted.indices.numpy())
    np.testing.assert_array_equal(ours.mode(1).values.numpy(), theirs.mode(1).values.numpy())


@pytest.mark.parametrize("size", [33, 16411])
@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.one_in(3)
def test_quantiles_of_few_and_of_many(size: int, interpolation: str):
    for values in [drawn((2, size), "float32"), odd((2, size), "float32")[0]]:
        ours, theirs = both(values)
        for q in (0.0, 0.3, 1.0, [0.1, 0.2, 0.7]):
            own, other = (xtensor.tensor(q), torch.tensor(q)) if isinstance(q, list) else (q, q)
            for name in ("quantile", "nanquantile"):
                found = getattr(ours, name)(own, dim=1, interpolation=interpolation)
                wanted = getattr(theirs, name)(other, dim=1, interpolation=interpolation)
                np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
    a, b = [t.requires_grad_() for t in both(drawn((2, size), "float32"))]
    a.quantile(0.3, dim=1, interpolation=interpolation).sum().backward()
    b.quantile(0.3, dim=1, interpolation=interpolation).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4)


@pytest.mark.parametrize("interpolation", ["lower", "higher", "nearest"])
def test_a_quantile_that_is_an_element_may_be_infinite(interpolation: str):
    for values in ([-INF, -INF, 1.0, 2.0], [1.0, INF, INF, INF]):
        for q in (0.0, 0.1, 0.5, 1.0):
            found = xtensor.tensor(values).quantile(q, interpolation=interpolation).item()
            assert found == torch.tensor(values).quantile(q, interpolation=interpolation).item()


@pytest.mark.parametrize("count", [0, 1, 1031, 1 << 20, (1 << 20) + 1])
def test_a_permutation_has_each_number_once(count: int):
    made = xtensor.randperm(count, generator=xtensor.Generator().manual_seed(7)).numpy()
    np.testing.assert_array_equal(np.sort(made), np.arange(count))


def test_unsigned_integers_of_64_bits_are_in_order():
    values = np.array([2**64 - 1, 0, 2**63, 5, 2**31, 2**64 - 2] * 1000, np.uint64)
    found = xtensor.tensor(values).sort()
    np.testing.assert_array_equal(found.values.numpy(), np.sort(values))
    np.testing.assert_array_equal(found.indices.numpy(), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "wide", "ends"])
def test_unique_values(dtype: str):
    values = drawn((40, 3), "int64" if dtype == "wide" else "float32")
    if dtype == "ends":
        values = np.arange(-128, 128).astype(np.int8).repeat(3).reshape(-1, 3)[::-1].copy()
    else:
        values = values * 2**50 if dtype == "wide" else np.round(values).clip(0).astype(dtype)
    ours, theirs = both(values)
    for name, dim, inverse, counts in itertools.product(
        ("unique", "unique_consecutive"), (None, 0), (False, True), (False, True)
    ):
        told = dict(return_inverse=inverse, return_counts=counts, dim=dim)
        found, wanted = getattr(xtensor, name)(ours, **told), getattr(torch, name)(theirs, **told)
        pairs = zip(found, wanted, strict=True) if inverse or counts else [(found, wanted)]
        for a, b in pairs:
            assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize(("shape", "k"), [((3, 300), 5), ((64, 4099), 100), ((2, 1 << 17), 7)])
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_few_of_rows_short_and_long(shape: tuple[int, int], k: int, largest: bool):
    draw = np.random.default_rng(5)
    for values in (
        draw.standard_normal(shape).astype(np.float32),
        draw.integers(0, 50, shape).astype(np.float32),
    ):
        values[draw.random(shape) < 1e-3] = NAN if largest else -INF
        ours = xtensor.tensor(values)
        found = ours.topk(k, largest=largest)
        # Of equal ones the first come first, and NaNs before all where the largest do.
        key = np.where(np.isnan(values), -INF, -values) if largest else values
        places = np.argsort(key, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(found.indices.numpy(), places)
        np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(values, places, 1))
        if not largest:
            kth = ours.kthvalue(k, 1)
            np.testing.assert_array_equal(kth.values.numpy(), found.values.numpy()[:, -1])
            np.testing.assert_array_equal(kth.indices.numpy(), found.indices.numpy()[:, -1])


def test_complex_sums_round_as_those_of_their_parts() -> None:
    """One number after the other, half a million of them were off by two thousandths."""
    x = xtensor.arange(32.0).mul(0.5).add(0.234375).repeat_interleave(256).repeat(64)
    for given in (x.to(xtensor.complex64).view(64, 32, 16, 16), xtensor.complex(x, -x).view(64, -1).t()):
        assert given.sum().real.item() == x.double().sum().item()
        assert given.mean().real.item() == pytest.approx(x.double().mean().item(), rel=1e-6)
