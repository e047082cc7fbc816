"""Calls whose signature has come before, with views that enter the programs which read and write them."""

from __future__ import annotations

from typing import Any

import jaxlib.version
import numpy as np
import pytest

import xtensor
from xtensor import lowering
from xtensor.operators.operator import REGISTRY
from xtensor.xla.x64 import call

VIEWS: dict[str, Any] = {
    "row": lambda x: x[1],
    "column": lambda x: x[:, 1],
    "step": lambda x: x[:, ::2],
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[:, :1].expand(4, 6, 5),
    "unsqueeze": lambda x: x[2].unsqueeze(1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(1, 3, 2),
    "flatten": lambda x: x.flatten(1),
    "empty": lambda x: x[:, 2:2],
}

CALLS: dict[str, Any] = {
    "exp": lambda lib, v: v.exp(),
    "add": lambda lib, v: v + 2.5,
    "alpha": lambda lib, v: lib.add(v, v, alpha=3),
    "square": lambda lib, v: v * v,
    "where": lambda lib, v: lib.where(v > 0, v, v.neg()),
    "clamp": lambda lib, v: v.clamp(-0.5, 0.5),
    "reversed": lambda lib, v: 1.0 - v,
    "broadcast": lambda lib, v: v / lib.ones(v.shape[-1:]),
    "float64": lambda lib, v: v + lib.ones(v.shape, dtype=lib.float64),
    "sigmoid": lambda lib, v: lib.sigmoid(v),
    "matmul": lambda lib, v: v @ lib.ones(v.shape[-1], 3),
    "sum": lambda lib, v: v.sum(0),
    "maximum": lambda lib, v: v.sum(-1).cummax(0)[0],
    "cat": lambda lib, v: lib.cat([v, v + 1, v]),
    "stack": lambda lib, v: lib.stack((v, v), -1),
    "sort": lambda lib, v: v.sort(-1, descending=True)[0],
    "comparison": lambda lib, v: (v >= 0.25).float(),
}


def programs(name: str) -> int:
    return sum(key[0] == "reading" for key in REGISTRY[name].variants)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.one_in(4)
def test_as_in_pytorch(view: str, call: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    values = rng.normal(size=(4, 6, 5)).astype(np.float32)
    found = []
    for lib in (xtensor, torch):
        x = lib.tensor(values)
        plain = CALLS[call](lib, VIEWS[view](x))
        x.requires_grad_()
        v = VIEWS[view](x)
        results = [CALLS[call](lib, v), CALLS[call](lib, v)]
        results.append(CALLS[call](lib, VIEWS[view](x)))
        if results[0].requires_grad:
            sum((i * r * r).sum() for i, r in enumerate(results, 1)).backward()
        found.append([plain, *[r.detach() for r in results], x.grad])
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert tuple(ours.shape) == tuple(theirs.shape)
            if call != "sort":  # whose results are contiguous here
                assert ours.stride() == theirs.stride()
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_a_view_is_one_program_and_no_copy() -> None:
    x, y = xtensor.rand(5, 7), xtensor.rand(7, 5)
    before, reads = programs("atan2"), lowering.stats().reads
    for _ in range(3):
        xtensor.atan2(x.t(), y)
    assert programs("atan2") == before + 1
    assert lowering.stats().reads == reads


def test_a_transposed_operand_is_not_transposed_where_the_result_lies_as_it_does() -> None:
    for kept in (REGISTRY["sin"].variants, REGISTRY["sin"].known):
        kept.clear()  # of the tests before
    x = xtensor.ones(3, 7, 5).permute(1, 2, 0)
    y = xtensor.sin(x)
    assert y.stride() == x.stride()
    (program,) = (p for key, p in REGISTRY["sin"].variants.items() if key[0] == "reading" and key[2][1])
    assert "transpose" not in call(program.lower, np.zeros((3, 7, 5), np.float32)).as_text()


@pytest.mark.parametrize("shape", [(70, 512), (3, 64, 512)])
def test_large_strides(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    values = rng.normal(size=shape).astype(np.float32)
    other = rng.normal(size=shape[:-2] + shape[:-3:-1]).astype(np.float32)
    row = rng.normal(size=shape[-2]).astype(np.float32)
    x, y = xtensor.tensor(values), xtensor.tensor(other)
    turned = np.swapaxes(values, -1, -2)
    for _ in range(2):
        t = x.transpose(-1, -2)
        np.testing.assert_array_equal((t + y).numpy(), turned + other)
        np.testing.assert_array_equal((y + t).numpy(), turned + other)
        np.testing.assert_array_equal((t * xtensor.tensor(row)).numpy(), turned * row)
        np.testing.assert_array_equal(t.contiguous().numpy(), turned)
    t.add_(y)
    np.testing.assert_array_equal(x.numpy(), values + np.swapaxes(other, -1, -2))


def test_offsets_share_a_program() -> None:
    x, y = xtensor.rand(6, 3), xtensor.rand(3)
    before = programs("hypot")
    for i in range(6):
        np.testing.assert_array_equal(xtensor.hypot(x[i], y).numpy(), xtensor.hypot(x[i].clone(), y).numpy())
    assert programs("hypot") == before + 1


def test_views_read_again_compile_nothing_and_are_not_copied() -> None:
    v = xtensor.rand(5, 7).t()
    assert v._xt_view is not None
    v.exp()
    before, reads = programs("exp"), lowering.stats().reads
    for _ in range(3):
        v.exp()
    assert (programs("exp"), lowering.stats().reads) == (before, reads)
    assert v._xt_view.cached_at == -1


def test_views_that_are_costly_to_reach_are_read_once() -> None:
    v = xtensor.rand(6, 6).diagonal()
    assert v._xt_view is not None
    v.exp()
    assert v._xt_view.cached_at == v._xt_storage.writes


WRITES: dict[str, Any] = {
    "add": lambda lib, v: v.add_(1.5),
    "alpha": lambda lib, v: v.sub_(lib.ones(v.shape), alpha=2),
    "multiply": lambda lib, v: v.mul_(lib.full((v.shape[-1],), 3.0)),
    "sigmoid": lambda lib, v: v.sigmoid_(),
    "clamp": lambda lib, v: v.clamp_(min=0),
    "double": lambda lib, v: v.add_(lib.ones((), dtype=lib.float64)),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", [v for v in VIEWS if v not in ("expand", "unfold")])
def test_writes_as_in_pytorch(view: str, write: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    values = rng.normal(size=(4, 6, 5)).astype(np.float32)
    found = []
    for lib in (xtensor, torch):
        x = lib.tensor(values)
        v = VIEWS[view](x)
        read = v + 0
        for _ in range(3):
            assert WRITES[write](lib, VIEWS[view](x)) is not None
        found.append([x, v + 0, v.clone(), read, x.transpose(0, 2)])
        assert x._version == v._version == 3
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_a_write_to_a_view_is_one_program() -> None:
    x, y = xtensor.zeros(6, 3), xtensor.ones(3)
    before, reads, writes = len(REGISTRY["hypot"].known), *lowering.stats()
    for i in range(6):
        x[i].hypot_(y)
    np.testing.assert_array_equal(x.numpy(), np.ones((6, 3)))
    assert len(REGISTRY["hypot"].known) - before <= 2  # one that reuses the buffer, and one that may not
    assert lowering.stats() == (reads, writes)


@pytest.mark.parametrize("whole", [True, False])
def test_a_write_reads_views_by_itself(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = xtensor.zeros(6, 4), xtensor.rand(4, 6), xtensor.rand(6, 9)

    def write() -> None:
        target = x if whole else x[1:3]
        target.add_(y.t() if whole else y.t()[1:3]).mul_(z[:, 3:7] if whole else z[1:3, 3:7])

    write()
    x.zero_()

    def alone(recipe: Any) -> Any:
        raise AssertionError(f"read by a program of its own: {recipe}")

    with monkeypatch.context() as patch:
        patch.setattr(lowering, "read_program", alone)
        write()
    expected = y.numpy().T * z.numpy()[:, 3:7]
    rows = slice(None) if whole else slice(1, 3)
    np.testing.assert_array_equal(x.numpy()[rows], expected[rows])
    assert x.numpy().sum() == x.numpy()[rows].sum()


COPIES: dict[str, Any] = {
    "whole": lambda x, y: x.copy_(y.t()),
    "row": lambda x, y: x.__setitem__(1, y[:, 2]),
    "broadcast": lambda x, y: x.__setitem__(slice(1, 3), y[:, 0]),
    "column": lambda x, y: x.__setitem__((slice(None), 2), y[1]),
    "converted": lambda x, y: x.__setitem__((slice(None), slice(1, 3)), y.double().t()[:, :2]),
    "one": lambda x, y: x.copy_(y[:, :1].t()),
    "within": lambda x, y: x[1:].copy_(x.clone()[:-1]),
    "transposed": lambda x, y: x.t()[1:3].copy_(y[2:]),
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_is_one_program(copy: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    values = [rng.normal(size=s).astype(np.float32) for s in ((6, 4), (4, 6))]
    theirs, other = map(torch.tensor, values)
    COPIES[copy](theirs, other)
    COPIES[copy](*map(xtensor.tensor, values))
    ours, other = map(xtensor.tensor, values)

    def alone(recipe: Any) -> Any:
        raise AssertionError(f"read by a program of its own: {recipe}")

    with monkeypatch.context() as patch:
        patch.setattr(lowering, "read_program", alone)
        COPIES[copy](ours, other)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert ours._version == theirs._version


def test_a_copy_within_a_storage_reads_before_it_writes() -> None:
    x = xtensor.arange(6.0)
    half = x[:5]
    half += 1
    x.view(2, 3)[1].copy_(x.view(2, 3)[0])
    assert x.tolist() == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]


def test_writes_that_pytorch_refuses() -> None:
    x = xtensor.zeros(3, 1)
    with pytest.raises(
        RuntimeError, match="unsupported operation: more than one element of the written-to tensor"
    ):
        x.expand(3, 4).add_(1)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x[0].add_(xtensor.ones(5))
    with pytest.raises(RuntimeError, match="can't be cast"):
        xtensor.zeros(3, 2, dtype=xtensor.int64)[0].add_(1.5)
    leaf = xtensor.zeros(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        leaf[0].add_(1)
    with xtensor.no_grad():
        leaf[0].add_(1)
    assert leaf.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_writes_that_autograd_follows() -> None:
    leaf = xtensor.ones(3, 2, requires_grad=True)
    x = leaf * 1
    x[0].mul_(3)
    x[1] *= leaf[2]
    x.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]]


def test_writes_are_seen() -> None:
    x = xtensor.zeros(3, 4)
    v = x.t()
    np.testing.assert_array_equal((v + 1).numpy(), np.ones((4, 3)))
    for value in (1.0, 2.0):
        x.fill_(value)
        np.testing.assert_array_equal((v + 1).numpy(), np.full((4, 3), value + 1))


def test_an_operand_that_the_derivative_needs_is_made_and_checked() -> None:
    x = xtensor.rand(3, 4, requires_grad=True)
    base = x * 1
    out = base.t().exp().sum() + base.t().sin().sum()
    base += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_errors_are_pytorchs() -> None:
    x = xtensor.rand(3, 4)
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        x.t() + x
    with pytest.raises(TypeError):
        x.t() + "a"


def test_meta_views() -> None:
    x = xtensor.empty(3, 4, device="meta")
    assert (x.t() + 1).shape == (4, 3)


def test_conjugates_and_negatives(rng: np.random.Generator) -> None:
    z = xtensor.tensor((rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(np.complex64))
    np.testing.assert_allclose((z.conj().t() * 2).numpy(), z.numpy().conj().T * 2)
    np.testing.assert_allclose((z.conj().imag + 1).numpy(), 1 - z.numpy().imag, rtol=1e-6)
    np.testing.assert_allclose((z.mH * z.mT).numpy(), (z.numpy().conj() * z.numpy()).T, rtol=1e-5)


def test_the_bits_are_those_of_copies(rng: np.random.Generator) -> None:
    """Until jaxlib 0.10; XLA of 0.12 has other code for other strides, whose last bits differ."""
    apart = 0 if jaxlib.version.__version_info__[:2] <= (0, 10) else 4
    x = xtensor.tensor(rng.normal(size=(8, 33)).astype(np.float32))
    for name in ("exp", "tanh", "erf", "log1p", "sigmoid", "sin"):
        function = getattr(xtensor, name)
        found, right = function(x.t()).numpy(), function(x.t().contiguous()).numpy()
        np.testing.assert_array_equal(np.isnan(found), np.isnan(right), err_msg=name)
        found, right = np.nan_to_num(found), np.nan_to_num(right)
        assert (np.abs(found - right) <= apart * np.spacing(np.abs(right))).all(), name


def functional(lib: Any) -> Any:
    return lib.nn.functional


# What moves, multiplies, orders or normalizes reads views in their own order; each with a view of [6, 8].
KERNELS: dict[str, Any] = {
    "matmul": lambda lib, v, w: v @ w.t(),
    "vector": lambda lib, v, w: v @ w[0],
    "linear": lambda lib, v, w: functional(lib).linear(v, w[:, :8], w[:, 0]),
    "einsum": lambda lib, v, w: lib.einsum("ij,kj->ik", v, w),
    "bmm": lambda lib, v, w: lib.bmm(v.unsqueeze(0), w.t().unsqueeze(0)),
    "softmax": lambda lib, v, w: v.softmax(1),
    "layer_norm": lambda lib, v, w: functional(lib).layer_norm(v, (8,), w[0], w[1]),
    "cross_entropy": lambda lib, v, w: functional(lib).cross_entropy(v, lib.arange(6)),
    "conv1d": lambda lib, v, w: functional(lib).conv1d(v.unsqueeze(1), w[:2, :3].unsqueeze(1)),
    "attention": lambda lib, v, w: functional(lib).scaled_dot_product_attention(v[None], w[None], w[None]),
    "max_pool": lambda lib, v, w: functional(lib).max_pool1d(v, 2),
    "cat": lambda lib, v, w: lib.cat([v, w, v + 1], 1),
    "stack": lambda lib, v, w: lib.stack((v, w)),
    "sort": lambda lib, v, w: v.sort(1)[0],
    "topk": lambda lib, v, w: v.topk(3, 1).values,
    "cumsum": lambda lib, v, w: v.cumsum(1),
    "var": lambda lib, v, w: v.var(1),
    "norm": lambda lib, v, w: lib.linalg.vector_norm(v, dim=1),
    "logsumexp": lambda lib, v, w: v.logsumexp([0]),
    "max": lambda lib, v, w: v.max(1).values,
    "argmax": lambda lib, v, w: v.argmax(1),
    "index_select": lambda lib, v, w: v.index_select(1, lib.tensor([3, 1])),
    "index": lambda lib, v, w: v[lib.tensor([3, 1, 1])],
    "gather": lambda lib, v, w: v.gather(0, lib.tensor([[3, 1], [0, 0]]).t()),
    "take": lambda lib, v, w: v.take(lib.tensor([40, 3])),
    "embedding": lambda lib, v, w: functional(lib).embedding(lib.tensor([[1, 9], [2, 0]])[:, :1], v),
    "flip": lambda lib, v, w: v.flip(0, 1),
    "roll": lambda lib, v, w: v.roll(3, 1),
    "repeat": lambda lib, v, w: v.repeat(2, 1),
    "repeat_interleave": lambda lib, v, w: v.repeat_interleave(2, 1),
    "tril": lambda lib, v, w: v.tril(),
    "pad": lambda lib, v, w: functional(lib).pad(v, (1, 2)),
    "masked_fill": lambda lib, v, w: v.masked_fill(w > 0, 2.0),
    "where": lambda lib, v, w: lib.where(v > 0, v, w),
    "atan2": lambda lib, v, w: lib.atan2(v, w),
}
MATRICES: dict[str, tuple[tuple[int, ...], Any]] = {
    "transpose": ((8, 6), lambda x: x.t()),
    "slice": ((9, 12), lambda x: x[2:8, 1:9]),
    "step": ((6, 16), lambda x: x[:, ::2]),
    "expand": ((1, 8), lambda x: x.expand(6, 8)),
    "select": ((8, 3, 6), lambda x: x[:, 1].t()),
    "diagonal": ((6, 8, 8), lambda x: x.diagonal(0, 1, 2)),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("view", ["transpose", "slice", "expand", "select"])
@pytest.mark.one_in(3)
def test_a_kernel_that_reads_a_view_has_the_bits_of_one_that_does_not(
    view: str, kernel: str, rng: np.random.Generator
) -> None:
    shape, look = MATRICES[view]
    run = KERNELS[kernel]
    values = rng.normal(size=shape).astype(np.float32)
    w = xtensor.tensor(rng.normal(size=(6, 8)).astype(np.float32))
    found = []
    for copied in (False, True):
        x = xtensor.tensor(values, requires_grad=True)
        v = look(x).contiguous() if copied else look(x)
        with xtensor.no_grad():
            quiet = run(xtensor, look(x).contiguous() if copied else look(x), w)
        first, again = run(xtensor, v, w), run(xtensor, v, w)
        if first.requires_grad:
            (first * again).sum().backward()
        found.append([quiet, first, again, x.grad])
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())


@pytest.mark.parametrize(
    "kernel", ["matmul", "softmax", "layer_norm", "conv1d", "cat", "sort", "var", "sum", "index", "take"]
)
def test_a_view_and_the_kernel_that_reads_it_are_one_program(
    kernel: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = {**KERNELS, "sum": lambda lib, v, w: v.sum(1)}[kernel]
    x, w = xtensor.rand(8, 6), xtensor.rand(6, 8)
    asks = xtensor.rand(8, 6, requires_grad=True)
    for y in (x, asks):
        expected = run(xtensor, y.t(), w)

        def alone(recipe: Any) -> Any:
            raise AssertionError(f"read by a program of its own: {recipe}")

        with monkeypatch.context() as patch:
            patch.setattr(lowering, "read_program", alone)
            found = run(xtensor, y.t(), w)
        np.testing.assert_array_equal(found.detach().numpy(), expected.detach().numpy())


def test_what_takes_a_few_elements_transposes_nothing() -> None:
    x, at = xtensor.rand(64, 1024), xtensor.tensor([5, 3])
    np.testing.assert_array_equal(x.t()[at].numpy(), x.numpy().T[[5, 3]])
    for name, result in (("index", False), ("flip", True)):
        if result:
            np.testing.assert_array_equal(x.t().flip(0).numpy(), x.numpy().T[::-1])
        found = [
            p for k, p in REGISTRY[name].variants.items() if k[0] == "reading" and base_of(k) == (64, 1024)
        ]
        assert found
        arrays = [np.zeros((64, 1024), np.float32)] + ([np.zeros(2, np.int64)] if name == "index" else [])
        assert any(("while" in call(p.lower, *arrays).as_text()) == result for p in found)


def base_of(key: Any) -> Any:
    read = key[2].reads[0]
    return None if read is None else read.recipe.base_shape


def test_values_that_a_kernel_read_are_kept() -> None:
    v = xtensor.rand(5, 7).t()
    assert v._xt_view is not None
    first = xtensor.softmax(v, 1)
    assert v._xt_view.cached_at == v._xt_storage.writes
    before = programs("softmax")
    np.testing.assert_array_equal(xtensor.softmax(v, 1).numpy(), first.numpy())
    assert programs("softmax") == before
    v += 1
    np.testing.assert_array_equal(xtensor.softmax(v, 1).numpy(), xtensor.softmax(v.contiguous(), 1).numpy())


FOLDS: dict[str, Any] = {
    "sum": lambda v, **o: v.sum([1], **o),
    "mean": lambda v, **o: xtensor.mean(v, (1,), **o),
    "prod": lambda v, **o: xtensor.prod(v, 1, **o),
    "amax": lambda v, **o: xtensor.amax(v, 1, **o),
    "all": lambda v, **o: v.sum(**o),
}


@pytest.mark.parametrize("dtype", [xtensor.float32, xtensor.bfloat16, xtensor.int32])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("view", MATRICES)
@pytest.mark.one_in(3)
def test_a_reduction_rounds_the_same_whatever_was_read_before(
    view: str, fold: str, dtype: Any, rng: np.random.Generator
) -> None:
    shape, look = MATRICES[view]
    if fold == "mean" and dtype is xtensor.int32:
        pytest.skip("mean is of floats")
    x = xtensor.tensor((rng.normal(size=shape) * 10).astype(np.float32)).to(dtype)
    run = FOLDS[fold]
    results = [run(look(x))]
    v = look(x)
    v.clone()
    xtensor.softmax(v.float(), 1)
    _ = v @ v.t()  # which keeps the values
    results += [run(v), run(v)]
    with xtensor.profiler.profile():
        results.append(run(look(x)))
    if dtype is not xtensor.int32:
        results.append(run(look(x.clone().requires_grad_())).detach())
    if fold != "all":
        results.append(run(look(x), out=xtensor.empty_like(results[0])))
    for other in results[1:]:
        assert xtensor.equal(other, results[0])
    np.testing.assert_allclose(
        results[0].float().numpy(),
        run(v.contiguous()).float().numpy(),
        rtol=2e-2 if dtype is xtensor.bfloat16 else 1e-4,
    )


def test_what_a_reduction_saves_is_kept() -> None:
    x = xtensor.rand(5, 7, requires_grad=True)
    v = x.t()
    assert v._xt_view is not None
    v.sum(0)
    assert v._xt_view.cached_at == -1
    out = v.amax(0)
    assert v._xt_view.cached_at == v._xt_storage.writes
    out.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), (x == x.amax(1, keepdim=True)).numpy())


@pytest.mark.parametrize(
    "dtype", [xtensor.bfloat16, xtensor.float16, xtensor.float8_e4m3fn, xtensor.int8, xtensor.bool]
)
def test_large_strides_of_short_types(dtype: Any, rng: np.random.Generator) -> None:
    x = xtensor.tensor(rng.normal(size=(70, 4096)).astype(np.float32) * 3).to(dtype)
    np.testing.assert_array_equal(x.t().contiguous().float().numpy(), x.float().numpy().T)


@pytest.mark.parametrize("wrong", [1.0, True, (1.0,)])
@pytest.mark.parametrize("name", ["sum", "cat", "max", "softmax", "sort", "stack", "cumsum"])
def test_what_equals_an_int_is_refused_after_it_too(name: str, wrong: Any) -> None:
    torch = pytest.importorskip("torch")
    calls: dict[str, Any] = {
        "sum": lambda lib, x, dim: x.sum(dim),
        "cat": lambda lib, x, dim: lib.cat([x, x], dim),
        "max": lambda lib, x, dim: x.max(dim),
        "softmax": lambda lib, x, dim: lib.softmax(x, dim),
        "sort": lambda lib, x, dim: x.sort(dim),
        "stack": lambda lib, x, dim: lib.stack([x, x], dim),
        "cumsum": lambda lib, x, dim: x.cumsum(dim),
    }
    for lib in (torch, xtensor):
        x = lib.ones(2, 3)
        calls[name](lib, x, 1)
        with pytest.raises(TypeError):
            calls[name](lib, x, wrong)


PIECES: dict[str, Any] = {
    "rows": lambda x, i: x[i % 4],
    "columns": lambda x, i: x[:, i % 6],
    "blocks": lambda x, i: x[:, i % 4 : i % 4 + 2],
    "steps": lambda x, i: x.transpose(0, 2)[i % 2 : i % 2 + 4 : 2],
    "expanded": lambda x, i: x[i % 4].unsqueeze(0).expand(3, 6, 5),
}


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("piece", PIECES)
def test_views_of_one_form_are_joined_by_one_gather(piece: str, dim: int) -> None:
    torch = pytest.importorskip("torch")
    values = np.arange(120, dtype=np.float32).reshape(4, 6, 5)
    found = []
    for lib in (torch, xtensor):
        x = lib.tensor(values, requires_grad=True)
        parts = [PIECES[piece](x, i) for i in (3, 0, 2, 2, 1, 5, 4)]
        made = [lib.stack(parts, dim), lib.cat(parts, dim)]
        gradients = [lib.autograd.grad((m * m).sum(), x)[0] for m in made]
        found.append([m.detach().numpy() for m in (*made, *gradients)])
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    programs = [p for key, p in REGISTRY["stack"].variants.items() if key[0] == "packed"]
    text = programs[-1].lower(xtensor.tensor(values)._xt_storage.array, np.zeros(7, np.int64)).as_text()
    assert text.count('"stablehlo.gather"') == 1 and "dynamic_slice" not in text
