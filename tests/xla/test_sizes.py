"""Programs for several sizes: how many are compiled, that they give what exact ones give, and what is left to those."""

from __future__ import annotations

import collections
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp

import xtensor
import xtensor.nn.functional as F
from xtensor.tensor import array_of
from xtensor.xla import compiles, segments, sizes
from xtensor.xla.cache import clear_all
from xtensor.xla.pending import Pending
from xtensor.xla.sizes import spans
from xtensor.xla.sizes.families import OFTEN, SOON
from xtensor.xla.sizes.padded import RULES, Refused, Sizes, evaluate, run
from xtensor.xla.sizes.spans import Uncut, is_uncut
from xtensor.xla.sizes.terms import ALIKE, Term, alike, span_of, symbols, terms_of, values_of

SOME = (33, 2, 7)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing has been compiled, no sizes are known to vary, and programs for several sizes are used."""
    clear_all()
    sizes.forget()
    sizes.enable(True)
    yield
    sizes.enable(True)


@pytest.fixture
def made(waits: None) -> Iterator[collections.Counter[str]]:
    """The programs that are made meanwhile, by name."""
    found: collections.Counter[str] = collections.Counter()

    def watcher(name: str) -> Callable[[bool | None], None]:
        def tell(loaded: bool | None) -> None:
            found[name] += loaded is not None

        return tell

    compiles.watch(watcher)
    yield found
    compiles.unwatch(watcher)


def answers() -> int:
    """Calls that were answered without a program of their own."""
    segments.finish()
    return sizes.stats()["calls"] + sizes.stats()["host"]


def random(*shape: int, seed: int = 0, special: bool = True) -> np.ndarray:
    values = np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)
    if special and values.size > 3:
        values.reshape(-1)[[0, -1, values.size // 2]] = np.nan, np.inf, -np.inf
    return values


def tensor(*shape: int, seed: int = 0, special: bool = True) -> xtensor.Tensor:
    return xtensor.tensor(random(*shape, seed=seed, special=special))


# -- how many programs


class Block(xtensor.nn.Module):
    """Attention with a mask, as small language models write it."""

    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.norm, self.qkv = xtensor.nn.LayerNorm(width), xtensor.nn.Linear(width, 3 * width)
        self.out = xtensor.nn.Linear(width, width)
        self.heads = heads
        self.register_buffer("mask", xtensor.tril(xtensor.ones(longest, longest)))

    def forward(self, x: xtensor.Tensor) -> xtensor.Tensor:
        b, t, c = x.size()
        parts = self.qkv(self.norm(x)).split(c, dim=2)
        q, k, v = [p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in parts]
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        scores = scores.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        mixed = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(b, t, c)
        return x + self.out(mixed)


class Tiny(xtensor.nn.Module):
    def __init__(self, longest: int = 64) -> None:
        super().__init__()
        self.words, self.places = xtensor.nn.Embedding(11, 8), xtensor.nn.Embedding(longest, 8)
        self.blocks = xtensor.nn.ModuleList([Block(8, 2, longest) for _ in range(2)])
        self.head = xtensor.nn.Linear(8, 11)

    def forward(self, tokens: xtensor.Tensor) -> xtensor.Tensor:
        x = self.words(tokens) + self.places(xtensor.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def generated(model: Tiny, count: int, at_each: Callable[[int], None] = lambda n: None) -> list[int]:
    tokens = xtensor.zeros(1, 1, dtype=xtensor.int64)
    with xtensor.no_grad():
        for n in range(1, count):
            logits = model(tokens)[:, -1, :]
            tokens = xtensor.cat((tokens, logits.argmax(dim=-1, keepdim=True)), dim=1)
            at_each(n)
    return tokens.tolist()[0]


def test_a_growing_context_compiles_for_few_lengths(made: collections.Counter[str]) -> None:
    xtensor.manual_seed(0)
    model = Tiny()
    counts: list[int] = []
    found = generated(model, 60, lambda n: counts.append(sum(made.values())))
    # One, two and three tokens as they are; four make the programs for all lengths below 64.
    assert counts[2] > counts[1] > counts[0]
    assert counts[-1] == counts[4]
    assert answers() > 50
    sizes.enable(False)
    assert generated(model, 12) == found[:12]


def test_lengths_of_sequences_forward_and_backward(made: collections.Counter[str]) -> None:
    xtensor.manual_seed(0)
    model = xtensor.nn.LSTM(3, 5, batch_first=True)
    counts: list[int] = []

    def losses(lengths: Any) -> list[Any]:
        found = []
        for n in lengths:
            xtensor.manual_seed(n)
            # So many rows that a kernel which asks for their number cannot be told.
            out, _ = model(xtensor.randn(8, n, 3))
            (out[:, -1] ** 2).sum().backward()
            found.append([np.array(p.grad) for p in model.parameters()])
            model.zero_grad()
            counts.append(sum(made.values()))
        return found

    lengths = [*range(10, 22)]
    several = losses(lengths)
    assert counts[-1] == counts[6]
    sizes.enable(False)
    for a, b in zip(several[-1], losses(lengths[-1:])[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_packed_sequences_forward_and_backward(made: collections.Counter[str]) -> None:
    """Sets of lengths need no programs of their own."""
    model = xtensor.nn.LSTM(3, 5)
    random = np.random.default_rng(0)
    counts: list[int] = []

    def gradients(lengths: list[int]) -> list[Any]:
        values = np.random.default_rng(sum(lengths)).standard_normal((max(lengths), 4, 3)).astype(np.float32)
        packed = xtensor.nn.utils.rnn.pack_padded_sequence(
            xtensor.from_numpy(values), xtensor.tensor(lengths)
        )
        out, _ = xtensor.nn.utils.rnn.pad_packed_sequence(model(packed)[0])
        model.zero_grad()
        (out**2).sum().backward()
        counts.append(sum(made.values()))
        return [np.array(p.grad) for p in model.parameters()]

    sets = [sorted(random.integers(3, 30, 4).tolist(), reverse=True) for _ in range(24)]
    several = [gradients(lengths) for lengths in sets]
    # A longest length, or a number of rows, above all before needs the next bound's; one program a set would be twelve.
    assert counts[-1] - counts[11] <= 5
    sizes.enable(False)
    for a, b in zip(several[-1], gradients(sets[-1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_what_no_grad_decorates_is_a_place_like_any_other(made: collections.Counter[str]) -> None:
    @xtensor.no_grad()
    def grown(n: int) -> Any:
        return (xtensor.ones(n, 7) * 2).exp().sum(1)

    for n in range(2, 40):
        assert np.allclose(grown(n), 7 * np.exp(2.0))
    assert sum(made.values()) < 20


def test_a_trace_keeps_no_array_of_the_caller() -> None:
    owners = []
    for n in (33, 34, 35, 36, 7):
        x = xtensor.ones(n)
        x.add_(1).add_(1)
        owners.append(x._xt_storage.sole_owner())
    assert sizes.stats()["families"] and all(owners)


def test_widths_of_layers_are_no_sizes_that_vary(made: collections.Counter[str]) -> None:
    layers = [xtensor.nn.Linear(a, b) for a, b in [(5, 6), (6, 7), (7, 9), (9, 10), (10, 11), (11, 3)]]
    model = xtensor.nn.Sequential(*layers)
    for _ in range(3):
        model(xtensor.ones(4, 5)).sum().backward()
    assert made["linear"] == len(layers)


def test_widths_of_layers_share_programs_that_give_the_same_bits(made: collections.Counter[str]) -> None:
    norms = [xtensor.nn.Sequential(xtensor.nn.Hardswish(), xtensor.nn.Softmax(1)) for _ in range(6)]
    for n, norm in enumerate(norms, 5):
        norm(tensor(3, n, special=False)).tolist()
    # The first two, and one for all others; a sum may round otherwise, so softmax has six.
    assert (made["hardswish"], made["softmax"]) == (3, 6)


def test_what_comes_often_is_compiled_as_it_is(made: collections.Counter[str]) -> None:
    calls: list[int] = []
    for n in (5, 6, 7, *[8] * (OFTEN + 5)):
        tensor(n, 3, seed=1).sum(0).tolist()
        calls.append(answers())
    assert made["sum"] == 4  # as they are: 5, 6 and 8; below 64: one
    assert calls[-1] == calls[-4] and calls[-1] - calls[2] == OFTEN  # less the one of 7


@pytest.mark.skipif(
    segments.workers.count < 2, reason="one processor: nothing is compiled beside the program"
)
def test_what_comes_often_is_compiled_beside_if_the_bits_are_the_same(made: collections.Counter[str]) -> None:
    for n in (5, 6, 7, *[8] * SOON):
        tensor(n, 3, seed=1).expm1().tolist()
    segments.workers.wait()
    before = answers()
    tensor(8, 3, seed=1).expm1().tolist()
    last = answers()
    tensor(8, 3, seed=1).expm1().tolist()
    assert last == before + 1 and answers() == last


def test_the_first_sizes_are_compiled_as_they_are(made: collections.Counter[str]) -> None:
    for n in (4, 5, 6, 7, 8):
        tensor(n, 3).erfc()
    assert made["erfc"] == ALIKE + 1


# -- what they give

CASES: dict[str, Callable[[int], Any]] = {
    "exp": lambda n: tensor(n, 3).exp(),
    "add": lambda n: tensor(n, 3) + tensor(3),
    "mul_outer": lambda n: tensor(n, 1) * tensor(1, n),
    "where": lambda n: xtensor.where(tensor(n) > 0, tensor(n, seed=1), 2.0),
    "half": lambda n: tensor(n, 3).bfloat16() * 1.5,
    "integers": lambda n: xtensor.arange(n) // 3,
    "compare": lambda n: tensor(2, n) < tensor(2, n, seed=1),
    "sum": lambda n: tensor(2, n, special=False).sum(1),
    "sum_special": lambda n: tensor(2, n).sum(1),
    "sum_all": lambda n: tensor(n, 3, special=False).sum(),
    "prod": lambda n: (tensor(n, 2, special=False) * 0.1 + 1).prod(0),
    "mean": lambda n: tensor(2, n, special=False).mean(-1, keepdim=True),
    "var": lambda n: tensor(3, n, special=False).var(1),
    "amax": lambda n: tensor(2, n).amax(1),
    "amin_integers": lambda n: (tensor(2, n, special=False) * 100).int().amin(1),
    "all": lambda n: (tensor(2, n) > -9).all(1),
    "argmax": lambda n: tensor(3, n, special=False).argmax(1),
    "argmin_negative": lambda n: (-tensor(3, n, special=False).abs()).argmin(1),
    "max_pair": lambda n: tensor(3, n).max(1),
    "cumsum": lambda n: tensor(n, 2, special=False).cumsum(0),
    "softmax": lambda n: tensor(2, n, special=False).softmax(-1),
    "softmax_masked": lambda n: xtensor.full((2, n), float("-inf")).softmax(-1),
    "log_softmax": lambda n: tensor(n, 4, special=False).log_softmax(0),
    "logsumexp": lambda n: tensor(n, 4).logsumexp(0),
    "matmul_inner": lambda n: tensor(2, n) @ tensor(n, 3, special=False),
    "matmul_outer": lambda n: tensor(2, n, 3) @ tensor(2, 3, n, seed=1),
    "linear": lambda n: F.linear(tensor(2, n, 4), tensor(3, 4, special=False), tensor(3, special=False)),
    "layer_norm": lambda n: F.layer_norm(tensor(n, 6), (6,)),
    "batch_norm": lambda n: F.batch_norm(tensor(n, 3, special=False), None, None, training=True),
    "cross_entropy": lambda n: F.cross_entropy(tensor(n, 4, special=False), xtensor.arange(n) % 4),
    "embedding": lambda n: F.embedding(xtensor.arange(n) % 5, tensor(5, 3)),
    "gather": lambda n: tensor(n, 3).gather(0, xtensor.arange(n)[:, None].flip(0)),
    "index": lambda n: tensor(n, 3)[xtensor.tensor([0, -1, 1])],
    "index_select": lambda n: tensor(n, 3).index_select(0, xtensor.arange(n - 1, -1, -1)),
    "scatter_add": lambda n: xtensor.zeros(4, 3).scatter_add(0, xtensor.arange(n)[:, None] % 4, tensor(n, 1)),
    "index_add": lambda n: xtensor.zeros(n, 2).index_add(0, xtensor.arange(n), tensor(n, 2)),
    "cat": lambda n: xtensor.cat([tensor(2, n), tensor(2, 3), tensor(2, n, seed=1)], 1),
    "stack": lambda n: xtensor.stack([tensor(n, 2), tensor(n, 2, seed=1)], 1),
    "pad": lambda n: F.pad(tensor(2, n), (1, 2), value=7.0),
    "flip": lambda n: tensor(3, n).flip(1),
    "roll": lambda n: tensor(n, 2).roll(1, 0),
    "sort": lambda n: tensor(2, n).sort(1),
    "tril": lambda n: tensor(n, n).tril(),
    "transposed": lambda n: tensor(n, 3).t() + tensor(3, n, seed=1),
    "transposed_copy": lambda n: tensor(n, 2, 3).permute(2, 0, 1).contiguous(),
    "sliced": lambda n: tensor(n + 2, 4)[1:-1, ::2] * 2,
    "last": lambda n: tensor(2, n, 3)[:, -1] / 0.5,
    "reshaped": lambda n: (tensor(n, 4) + 1).reshape(2 * n, 2).sigmoid(),
    "masked_fill": lambda n: tensor(n, n).masked_fill(xtensor.ones(n, n, dtype=xtensor.bool).tril(), 0.0),
    "attention": lambda n: F.scaled_dot_product_attention(
        tensor(1, 2, n, 4, special=False),
        tensor(1, 2, n, 4, seed=1, special=False),
        tensor(1, 2, n, 4, special=False),
        is_causal=True,
    ),
    "einsum": lambda n: xtensor.einsum(
        "bij,bjk->bik", tensor(2, n, 3, special=False), tensor(2, 3, n, special=False)
    ),
    "max_pool": lambda n: F.max_pool1d(tensor(n, 2, 8), 2),
    "dropout": lambda n: F.dropout(tensor(n, 3)),
    "cdist": lambda n: xtensor.cdist(tensor(n, 3, special=False), tensor(n, 3, seed=1, special=False)),
    "in_place": lambda n: tensor(n, 3).add_(1),
    "conv1d": lambda n: F.conv1d(tensor(n, 2, 6, special=False), tensor(3, 2, 3, special=False)),
    "randn": lambda n: xtensor.randn(n, 3),
    "randint": lambda n: xtensor.randint(0, 1000, (2, n)),
}
# An open dimension is folded or contracted: terms are added in another order.
ROUNDED = {
    *(
        "sum sum_all prod mean var cumsum softmax log_softmax logsumexp matmul_inner matmul_outer linear"
    ).split(),
    *("layer_norm batch_norm cross_entropy conv1d scatter_add attention einsum cdist").split(),
}


def told(result: Any) -> list[tuple[Any, ...]]:
    """Everything that can be seen of results."""
    found = []
    for t in result if isinstance(result, (tuple, list)) else (result,):
        array = array_of(t)
        found.append((array.aval, array.committed, array.sharding, t.stride(), t.dtype, np.asarray(array)))
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(3)
def test_results_are_those_of_exact_programs(name: str, full: bool) -> None:
    case, before = CASES[name], answers()
    lengths = range(70, 1, -1) if full else SOME
    results = {}
    for n in (4, 6, *lengths):
        xtensor.manual_seed(n)
        results[n] = told(case(n))
    assert answers() > before
    sizes.enable(False)
    for n in lengths:
        xtensor.manual_seed(n)
        for (*form, values), (*exact_form, exact) in zip(results[n], told(case(n)), strict=True):
            assert form == exact_form
            if name in ROUNDED:
                np.testing.assert_allclose(values, exact, rtol=2e-5, atol=2e-6, equal_nan=True)
            else:
                # To the bit, but for what a NaN carries.
                wide = np.complex128 if values.dtype.kind == "c" else np.float64
                np.testing.assert_array_equal(values.astype(wide), exact.astype(wide))
                np.testing.assert_array_equal(np.signbit(values.real), np.signbit(exact.real))


@pytest.mark.parametrize("name", ["exp", "add", "sum", "cat", "flip", "amax", "transposed"])
def test_sizes_of_0_and_1_are_compiled_as_they_are(name: str) -> None:
    case = CASES[name]
    answered = []
    for n in (7, 6, 5, 4, *([0] if name != "amax" else []), 1):
        before = answers()
        case(n)
        answered.append(answers() - before)
    assert answered[3] > 0 or name == "transposed_copy"
    assert not any(answered[4:])


GRADIENTS: dict[str, Callable[[xtensor.Tensor], xtensor.Tensor]] = {
    "tanh": lambda x: x.tanh(),
    "sum": lambda x: x.sum(0),
    "softmax": lambda x: x.softmax(0),
    "matmul": lambda x: x @ x.t(),
    "slice": lambda x: x[1:] * x[:-1],
    "cat": lambda x: xtensor.cat([x, x * 2]),
    "gather": lambda x: x.gather(0, xtensor.zeros(2, 3, dtype=xtensor.int64)),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "mean": lambda x: (x * x).mean(),
    "split": lambda x: x.split(1, dim=1)[1] + x.split(1, dim=1)[0],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_exact_programs(name: str) -> None:
    function = GRADIENTS[name]

    def gradient(n: int) -> Any:
        x = tensor(n, 3, special=False).requires_grad_()
        y = function(x)
        y.backward(tensor(*y.shape, seed=5, special=False))
        return x.grad

    found = {n: told(gradient(n)) for n in (4, 6, 9, 5)}
    assert answers() > 0
    sizes.enable(False)
    for n in (9, 5):
        for (*form, values), (*exact_form, exact) in zip(found[n], told(gradient(n)), strict=True):
            assert form == exact_form
            np.testing.assert_allclose(values, exact, rtol=2e-5, atol=2e-6)


def test_errors_are_those_of_exact_programs() -> None:
    for n in (4, 5, 6, 7):
        xtensor.add(tensor(n, 3), tensor(n, 3))
        with pytest.raises(
            RuntimeError, match=rf"The size of tensor a \({n}\) must match the size of tensor b \({n + 1}\)"
        ):
            xtensor.add(tensor(n, 3), tensor(n + 1, 3))


def test_derivative_rules_hold_nothing_that_was_saved() -> None:
    for n in (4, 5, 6, 7):
        x = tensor(n, 3).requires_grad_()
        y = x.exp()
        held = weakref.ref(y._xt_storage)
        y.sum().backward()
        del x, y
        gc.collect()
        assert held() is None


def test_writes_do_not_show_in_what_was_computed() -> None:
    # Arguments and results pass through NumPy's memory, which no array may share with another.
    for n in (4, 5, 6, 7):
        x = xtensor.arange(n, dtype=xtensor.float32)
        y = x.expand(2, n).t().contiguous()
        z = x + 1
        x += 10
        y[0] = 5
        assert z.tolist() == [i + 1.0 for i in range(n)]
        assert x.tolist() == [i + 10.0 for i in range(n)]
        assert y.tolist() == [[5.0, 5.0], *[[float(i)] * 2 for i in range(1, n)]]


# -- switched off


# -- results that nobody has cut to their size yet


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes that results were cut to."""
    found: list[tuple[int, ...]] = []
    finish = Uncut.finish

    def told(self: Uncut) -> None:
        pending = self._pending()
        if pending is not None and pending.call is not None:
            found.append(tuple(pending.shape))
        finish(self)

    monkeypatch.setattr(Uncut, "finish", told)
    return found


def chain(x: xtensor.Tensor) -> xtensor.Tensor:
    return F.gelu(x).softmax(-1).mul(3).add(x)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.full)])
def test_a_chain_hands_on_what_is_longer(cuts: list[tuple[int, ...]], dtype: str) -> None:
    values = {n: random(3, n, special=False).astype(dtype) for n in range(2, 40)}
    with segments.paused():
        found = {}
        for n, value in values.items():
            cuts.clear()
            found[n] = chain(xtensor.tensor(value)).numpy()
        assert cuts == [(3, 39)]
        sizes.enable(False)
        clear_all()
        for n, value in values.items():
            wanted = chain(xtensor.tensor(value)).numpy()
            assert found[n].dtype == wanted.dtype
            np.testing.assert_allclose(found[n], wanted, rtol=1e-6, atol=1e-6)


def uncut(n: int = 37) -> tuple[xtensor.Tensor, np.ndarray]:
    """A result that nobody has cut, and its values."""
    for size in range(2, n + 1):
        found = F.gelu(tensor(3, size, special=False))
    values = F.gelu(tensor(3, n, special=False)).numpy().copy()
    assert is_uncut(found._xt_storage.operand)
    return found, values


USES: dict[str, Callable[[xtensor.Tensor], Any]] = {
    "numpy": lambda x: x.numpy(),
    "view": lambda x: x[1:, 2:5],
    "write": lambda x: x.mul_(2),
    "write to a view": lambda x: x[:, 1].fill_(7),
    "copy": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "item": lambda x: x[0, 0].item(),
    "print": str,
    "dlpack": lambda x: np.from_dlpack(x),
    "out": lambda x: xtensor.add(x, 1, out=x),
    "cat": lambda x: xtensor.cat([x, x]),
    "metadata": lambda x: (x.shape, x.stride(), x.dtype, x.device, x.nbytes, x.is_contiguous()),
    "leaf": lambda x: x.requires_grad_().sum().backward(),
}


@pytest.mark.parametrize("use", USES)
def test_what_is_uncut_is_used_as_any_result(use: str) -> None:
    with segments.paused():
        found, values = uncut()
        plain = xtensor.tensor(values)
        results = [USES[use](t) for t in (found, plain)]
        wanted = [np.asarray(r.detach()) if isinstance(r, xtensor.Tensor) else r for r in results]
        np.testing.assert_equal(*wanted)
        np.testing.assert_equal(found.detach().numpy(), plain.detach().numpy())
        if plain.grad is not None:
            np.testing.assert_equal(found.grad.numpy(), plain.grad.numpy())


def test_threads_cut_once() -> None:
    with segments.paused():
        found, values = uncut()
    read: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: read.append(found.numpy())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 6
    assert all((r == values).all() for r in read)


def test_what_is_cut_lets_go_of_what_is_longer() -> None:
    with segments.paused():
        found, _ = uncut()
        pending = found._xt_storage.operand
        longer = weakref.ref(pending._call.array)
        found.numpy()
        assert longer() is None


def test_it_can_be_switched_off(made: collections.Counter[str]) -> None:
    sizes.enable(False)
    for n in (4, 5, 6, 7, 8):
        tensor(n, 3).erfinv()
    assert made["erfinv"] == 5
    program = "import xtensor.xla.sizes as s; print(s.enabled())"
    for value, shown in (("0", "False"), ("1", "True")):
        out = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "XTENSOR_SIZES": value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert out.stdout.strip() == shown


# -- sizes as terms


def test_sizes_are_written_as_terms() -> None:
    vectors = [(2, 4, 3, 9), (3, 6, 3, 10), (5, 10, 3, 12)]
    terms = terms_of(vectors, (0, 1, 3))
    assert terms == (Term(0, 1, 0), Term(0, 2, 0), 3, Term(0, 1, 7))
    assert terms is not None
    assert values_of(terms, (7, 14, 3, 14)) == (7,)
    assert values_of(terms, (7, 14, 3, 15)) is None
    assert values_of(terms, (7, 14, 4, 14)) is None
    # Two sizes that have nothing to do with each other, and one that is the same twice.
    assert terms_of([(2, 9), (3, 4), (5, 8)], (0, 1)) == (Term(0, 1, 0), Term(1, 1, 0))
    assert terms_of([(2, 9), (3, 9), (5, 8)], (0, 1)) is None
    assert [span_of(n, 64) for n in (2, 63, 64, 127, 128)] == [
        (2, 64),
        (2, 64),
        (64, 128),
        (64, 128),
        (128, 256),
    ]


def test_sizes_vary_where_one_place_meets_several() -> None:
    seen = [(1, (2, 3)), (1, (4, 3)), (2, (5, 9)), (2, (5, 7))]
    assert alike((6, 3), 1, seen) == (Term(0, 1, 0), 3)
    assert alike((6, 3), 2, seen) is None
    assert alike((5, 3), 1, seen) == (Term(0, 1, 0), 3)
    assert alike((1, 3), 1, seen) is None


# -- rules: padding of any value is never seen


def padded_against_exact(
    function: Callable[..., Any], shapes: Callable[[Any], Any], n: int, dtype: Any
) -> None:
    """A function over arrays whose padding is poison, against the function."""
    (symbol,) = symbols((Term(0, 1, 0),), (span_of(n, 16),))
    forms = [jax.ShapeDtypeStruct(tuple(s), dtype) for s in shapes(symbol)]
    closed = jax.make_jaxpr(function)(*forms)
    rng = np.random.default_rng(n)
    exact, longer = [], []
    for i, form in enumerate(forms):
        shape = tuple([int(evaluate(d, {"n0": n})) for d in form.shape])
        values = (rng.standard_normal(shape) * 4).astype(dtype)
        long = np.full(
            [int(evaluate(d, {"n0": 16})) for d in form.shape], POISON[np.dtype(dtype).kind][i % 2], dtype
        )
        long[tuple(map(slice, shape))] = values
        exact.append(values)
        longer.append(long)

    def program(count: Any, *arrays: Any) -> Any:
        return run(Sizes({"n0": 16}, {"n0": count}), closed.jaxpr, closed.consts, arrays)

    found = jax.jit(program)(np.int32(n), *longer)
    wanted = jax.tree.leaves(jax.jit(function)(*exact))
    for array, whole, var in zip(found, wanted, closed.jaxpr.outvars, strict=True):
        true = tuple([slice(int(evaluate(d, {"n0": n}))) for d in var.aval.shape])
        np.testing.assert_allclose(np.asarray(array)[true], whole, rtol=1e-5, atol=1e-5)


POISON: dict[str, tuple[Any, Any]] = {"f": (np.nan, np.inf), "i": (2**31 - 1, -(2**31)), "b": (True, True)}
Case = tuple[Callable[..., Any], Callable[[Any], Any]]
RULE_CASES: dict[str, Case] = {
    "sum": (lambda a: a.sum(0), lambda n: [(n, 3)]),
    "prod": (lambda a: a.prod(1), lambda n: [(2, n)]),
    "max": (lambda a: a.max(), lambda n: [(n, 3)]),
    "min": (lambda a: a.min(0), lambda n: [(n, n)]),
    "argmax": (lambda a: jnp.argmax(a, 0), lambda n: [(n, 2)]),
    "argmin": (lambda a: jnp.argmin(a, 1), lambda n: [(2, n)]),
    "any": (lambda a: (a > 6).any(0), lambda n: [(n, 2)]),
    "all": (lambda a: (a < 100).all(0), lambda n: [(n, 2)]),
    "cumsum": (lambda a: lax.cumsum(a), lambda n: [(n,)]),
    "cumsum_back": (lambda a: lax.cumsum(a, reverse=True), lambda n: [(n, 2)]),
    "cummax_back": (lambda a: lax.cummax(a, reverse=True), lambda n: [(n, 2)]),
    "dot": (lambda a, b: a @ b, lambda n: [(3, n), (n, 2)]),
    "dot_batch": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), lambda n: [(n, 2, n), (n, n, 3)]),
    "concatenate": (lambda a, b: jnp.concatenate([a, b, a], 0), lambda n: [(n, 2), (3, 2)]),
    "pad": (lambda a: jnp.pad(a, ((1, 2), (0, 0)), constant_values=7), lambda n: [(n, 2)]),
    "pad_between": (lambda a: lax.pad(a, jnp.zeros((), a.dtype), [(2, 1, 1)]), lambda n: [(n,)]),
    "crop": (lambda a: lax.pad(a, jnp.zeros((), a.dtype), [(-1, 0, 0)]), lambda n: [(n + 1,)]),
    "slice": (lambda a: a[1:], lambda n: [(n + 1, 2)]),
    "slice_end": (lambda a: a[:-1], lambda n: [(n + 1, 2)]),
    "last": (lambda a: a[-1], lambda n: [(n, 2)]),
    "steps": (lambda a: a[::2], lambda n: [(2 * n, 2)]),
    "second_half": (lambda a, b: a[b.shape[0] :], lambda n: [(2 * n, 2), (n,)]),
    "reverse": (lambda a: a[::-1], lambda n: [(n, 2)]),
    "reshape_rows": (lambda a: a.reshape(-1, 2), lambda n: [(n, 4)]),
    "reshape_columns": (lambda a: a.reshape(-1), lambda n: [(3, n)]),
    "reshape_both": (lambda a: a.reshape(a.shape[1], a.shape[0]), lambda n: [(n, 3)]),
    "reshape_square": (lambda a: a.reshape(-1), lambda n: [(n, n)]),
    "transpose": (lambda a: a.T, lambda n: [(n, 3)]),
    "stack": (lambda a, b: jnp.stack([a, b], 1), lambda n: [(n,), (n,)]),
    "sort": (lambda a: lax.sort(a, dimension=0), lambda n: [(n, 2)]),
    "sort_pairs": (lambda a, b: lax.sort([a, b], num_keys=1, dimension=0), lambda n: [(n,), (n,)]),
    "take_clip": (lambda a: jnp.take(a, jnp.array([0, 50, -1]), 0, mode="clip"), lambda n: [(n, 2)]),
    "take_fill": (lambda a: a.at[jnp.array([0, 50, 1])].get(mode="fill", fill_value=3), lambda n: [(n, 2)]),
    "take_many": (lambda a, b: a[jnp.arange(b.shape[0]) % 3], lambda n: [(3, 2), (n,)]),
    "put": (lambda a, b: a.at[jnp.arange(b.shape[0]) % 3].add(b), lambda n: [(3, 2), (n, 2)]),
    "put_drop": (lambda a: a.at[jnp.array([0, 50])].set(1, mode="drop"), lambda n: [(n, 2)]),
    "put_clip": (lambda a: a.at[jnp.array([0, 50])].set(1, mode="clip"), lambda n: [(n, 2)]),
    "dynamic_slice": (lambda a: lax.dynamic_slice(a, (50, 0), (2, 2)), lambda n: [(n, 2)]),
    "dynamic_update": (lambda a, b: lax.dynamic_update_slice(a, b, (50, 0)), lambda n: [(n + 2, 2), (2, 2)]),
    "update_open": (lambda a, b: lax.dynamic_update_slice(a, b, (1, 0)), lambda n: [(n + 2, 2), (n, 2)]),
    "add_part": (lambda a, b: a.at[1:].add(b), lambda n: [(n + 1, 2), (n, 2)]),
    "least_part": (lambda a, b: a.at[:-1].min(b), lambda n: [(n + 1, 2), (n, 2)]),
    "slice_gradient": (
        lambda a: jax.vjp(lambda v: v[1:] * 2.0, a)[1](a[1:] * 1.0)[0],
        lambda n: [(n + 1, 2)],
    ),
    "scan": (lambda a: lax.scan(lambda c, r: (c + r, c * 2), a[0], a), lambda n: [(n, 2)]),
    "scan_back": (lambda a: lax.scan(lambda c, r: (c + r, c), a[0], a, reverse=True), lambda n: [(n, 2)]),
    "while": (
        lambda a: lax.while_loop(
            lambda s: s[0].sum() < 50, lambda s: (s[0] + s[1], s[1]), (a * 0, abs(a) + 1)
        )[0],
        lambda n: [(n,)],
    ),
    "cond": (lambda a: lax.cond(a.sum() > 0, lambda v: v + 1, lambda v: v - 1, a), lambda n: [(n,)]),
    "size": (lambda a: a * a.shape[0], lambda n: [(n, 2)]),
    "iota": (lambda a: jnp.arange(a.shape[0]) * 2, lambda n: [(n,)]),
    "tile": (lambda a: jnp.tile(a, (1, 3)), lambda n: [(n, 2)]),
    "repeat": (lambda a: jnp.repeat(a, 3, axis=0), lambda n: [(n, 2)]),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in RULE_CASES
        for dtype in ("float32", "int32")
        if (name, dtype) != ("slice_gradient", "int32")
    ],
)
@pytest.mark.one_in(3)
def test_padding_is_never_seen(name: str, dtype: str) -> None:
    function, shapes = RULE_CASES[name]
    for n in (2, 15):
        padded_against_exact(function, shapes, n, np.dtype(dtype))


def test_sizes_of_a_program_that_turns_out_to_be_refused_have_programs_of_their_own(monkeypatch: Any) -> None:
    def refuses(*_: Any) -> Any:
        raise Refused("only when it is run")

    monkeypatch.setattr(spans, "run", refuses)
    before = sizes.stats()["refused"]
    for rows in (31, 32, 33, 34, 35, 36):
        x = xtensor.linspace(-1, 1, rows * 8).reshape(rows, 8)
        np.testing.assert_array_equal((x.sigmoid() * 2).numpy(), (x * 1).sigmoid().numpy() * 2)
    # Of each function once, in the spans that these are in.
    assert 0 < sizes.stats()["refused"] - before <= 6


def test_what_has_no_rule_is_refused() -> None:
    refused: list[Case] = [
        (lambda a: jnp.fft.fft(a), lambda n: [(n,)]),
        (lambda a: jnp.linalg.inv(a), lambda n: [(n, n)]),
        (lambda a: lax.top_k(a, 2)[0], lambda n: [(n,)]),
        (lambda a: jnp.split(a, [1], 0)[0], lambda n: [(n, 2)])
        if "split" not in RULES
        else (lambda a: lax.top_k(a, 1)[0], lambda n: [(n,)]),
    ]
    for function, shapes in refused:
        with pytest.raises(Refused):
            padded_against_exact(function, shapes, 5, np.dtype("float32"))


def test_a_kernel_that_asks_for_a_size_is_compiled_for_each(made: collections.Counter[str]) -> None:
    # A discrete Fourier transform has no rule; a matrix's inverse none either.
    for n in (4, 5, 6, 7):
        a = random(n, n, special=False) + 9 * np.eye(n, dtype=np.float32)
        found = xtensor.linalg.inv(xtensor.tensor(a))
        np.testing.assert_allclose(found.numpy(), np.linalg.inv(a), rtol=1e-3, atol=1e-4)
    assert sizes.stats()["refused"] > 0 or sum(made.values()) > 3


def test_constants_within_a_trace_are_left_to_it() -> None:
    """Sizes have varied before a function is traced: what it computes of tensors that it makes itself is part of its trace."""
    for n in range(2, 40):
        xtensor.ones(n).sum()
    assert answers()
    before = answers()

    def function(x: Any) -> Any:
        return x + xtensor.ones(43).sum() + xtensor.ones(17).sum()

    compiled = xtensor.compile(function, fullgraph=True)
    for _ in range(2):
        assert compiled(xtensor.zeros(3)).tolist() == [60.0] * 3
    assert jax.jit(lambda a: a + array_of(xtensor.ones(44).sum()))(1.0) == 45.0
    assert xtensor.ones(45).sum() == 45 and answers() > before


def test_pauses_of_several_threads_overlap() -> None:
    """The one that begins first may end first."""
    first, second = sizes.paused(), sizes.paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not sizes.enabled()
    second.__exit__(None, None, None)
    assert sizes.enabled()
    with pytest.raises(KeyboardInterrupt), sizes.paused():
        raise KeyboardInterrupt
    assert sizes.enabled()


def test_what_a_reading_keeps_holds_no_large_array() -> None:
    """A part of a small array is read when somebody asks, of a large one at once: that may be given up, or written to, in between."""

    def kept(rows: int) -> tuple[Any, np.ndarray[Any, Any]]:
        array = jnp.arange(rows * 64.0).reshape(rows, 64)
        host = spans.HostArray(array, jax.core.ShapedArray((3, 64), array.dtype), lambda base: base[2:5])
        return host.later(), np.asarray(array)[2:5]

    for rows, waits in ((8, True), (spans.HELD // 256 + 1, False)):
        found, wanted = kept(rows)
        assert (type(found) is Pending and found.call is not None) is waits
        np.testing.assert_array_equal(np.asarray(found), wanted)
