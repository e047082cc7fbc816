"""Kernels that know their platform give what the general ones give, and each has its row in the table."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor.lowering import transposes
from xtensor.operators.operator import REGISTRY
from xtensor.ops.network import attention, convolution, convolution_cpu
from xtensor.ops.reduce import cumulative, sorting
from xtensor.xla.platforms import CHOICES, on_cpu
from xtensor.xla.segments import apart
from xtensor.xla.x64 import call

NAN = float("nan")
FLOATS = [
    1,
    NAN,
    float("inf"),
    -0.0,
    0.0,
    -float("inf"),
    -NAN,
    3,
    3,
    *np.random.default_rng(0).integers(-3, 4, 40),
]
DTYPES = ("float32", "float16", "bfloat16", "int32", "uint32", "int16", "uint8", "bool")


def values(dtype: str) -> Any:
    if "float" in dtype:
        return jnp.asarray(FLOATS, dtype)
    limits = np.iinfo(dtype) if "int" in dtype else None
    drawn = np.random.default_rng(1).integers(0, 6, 49)
    if limits is not None:
        drawn[:4] = limits.min, limits.max, limits.min, limits.max
    return jnp.asarray(drawn.astype(dtype))


def same(left: Any, right: Any) -> None:
    for a, b in zip(left, right, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a.astype(jnp.float64)), np.asarray(b.astype(jnp.float64)))
        np.testing.assert_array_equal(
            np.signbit(np.asarray(a.astype(jnp.float64))), np.signbit(np.asarray(b.astype(jnp.float64)))
        )


def test_many_rows_are_sorted_in_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.asarray(np.random.default_rng(2).integers(0, 99, (5, 3, 2200)))
    expected = np.sort(np.asarray(x), axis=-1)
    for chains in (sorting.CHAINS, 4, 99):  # 15 rows: in parts of one or two, of three or four, and undivided
        monkeypatch.setattr(sorting, "CHAINS", chains)
        text = jax.jit(lambda a: sorting.sorted_rows(a)).lower(x).as_text()
        assert text.count("stablehlo.sort") == (chains if chains < 15 else 1)
        np.testing.assert_array_equal(np.asarray(sorting.sorted_rows(x)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_one_integer_per_element_sorts_as_pairs_do(dtype: str, descending: bool) -> None:
    def check() -> None:
        x = values(dtype).reshape(7, 7)
        for axis in (0, 1):
            same(sorting.order_packed(x, axis, descending), sorting.order_pairs(x, axis, descending))

    call(check)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int16", "uint8"])
@pytest.mark.parametrize("largest", [False, True])
def test_the_partial_sort_gives_the_first_of_the_order(dtype: str, largest: bool) -> None:
    def check() -> None:
        x = jnp.stack([values(dtype), values(dtype)[::-1]])
        for k in (1, 6, 49):
            whole = [a[:, :k] for a in sorting.order_pairs(x, 1, largest)]
            same(sorting.top_partial(x, k, 1, largest), whole)

    call(check)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.one_in(3)
def test_the_first_of_blocks_are_the_first_of_all(dtype: str, largest: bool) -> None:
    def check() -> None:
        random = np.random.default_rng(3)
        few = jnp.asarray(random.integers(-3, 4, (4, 301)), dtype)
        special = jnp.concatenate([values(dtype)] * 7)[None, :301]
        many = jnp.asarray(random.normal(size=(3, 301)) * 100).astype(dtype)
        x = jnp.concatenate([few, special, special[:, ::-1], many])
        for k in (1, 5, 9):
            whole = [a[:, :k] for a in sorting.order_pairs(x, 1, largest)]
            same(sorting.top_partial(x, k, 1, largest), whole)
            same(sorting.top_partial(x.T, k, 0, largest), [a.T for a in whole])

    call(check)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.one_in(2)
def test_running_sums_by_products(dtype: str, reverse: bool) -> None:
    def check() -> None:
        random = np.random.default_rng(4)
        large = {"float32": 3e38, "float64": 1.5e308}[dtype]
        for n in (16, 40, 64, 100, 1024, 1500):
            x = random.normal(size=(-(-(2**14) // n), n)).astype(dtype)
            tolerance = 1e-5 if dtype == "float32" else 1e-12
            wanted = np.cumsum(x[:, ::-1] if reverse else x, 1, "float64")
            wanted = wanted[:, ::-1] if reverse else wanted
            for found in (
                cumulative.running_sum(jnp.asarray(x), 1, reverse),
                cumulative.running_sum(jnp.asarray(x.T), 0, reverse).T,
            ):
                np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.sqrt(n))
            np.testing.assert_allclose(
                cumulative._by_products(jnp.asarray(x), reverse),
                wanted,
                rtol=tolerance,
                atol=tolerance * np.sqrt(n),
            )
            for row, wrong in enumerate((np.nan, np.inf, -np.inf, large)):
                x[row, n // 2] = wrong
                x[row, n // 2 + 1] = wrong
            np.testing.assert_array_equal(
                np.isfinite(cumulative.running_sum(jnp.asarray(x), 1, reverse)),
                np.isfinite(jax.lax.cumsum(jnp.asarray(x), 1, reverse)),
            )

    call(check)


def test_the_transpose_of_a_depthwise_convolution(full: bool) -> None:
    random = np.random.default_rng(0)

    def check() -> None:
        ways = itertools.product((1, 2, 3), (0, 1, 3), (1, 2))
        for stride, padding, dilation in itertools.islice(ways, None, None, 1 if full else 7):
            x = jnp.asarray(random.normal(size=(2, 3, 9, 8)))
            w = jnp.asarray(random.normal(size=(3, 1, 3, 2)))
            one = convolution.Convolution(2, w.shape, stride, padding, dilation, 3)
            out, pull = jax.vjp(lambda x, w=w, one=one: one.run(x, w), x)
            grad = jnp.asarray(random.normal(size=out.shape))
            found = one.pull_input(grad, w, x.shape)
            np.testing.assert_allclose(found, pull(grad)[0], rtol=1e-12, atol=1e-12)

    call(check)


@pytest.mark.parametrize(("batch", "stride"), [(3, 1), (8, 2)])
def test_sums_for_each_element_of_a_depthwise_kernel_are_those_of_many(
    monkeypatch: pytest.MonkeyPatch, batch: int, stride: int
) -> None:
    random = np.random.default_rng(0)

    def check() -> None:
        x, w = (jnp.asarray(random.normal(size=shape)) for shape in ((batch, 3, 9, 8), (3, 1, 3, 2)))
        one = convolution.Convolution(2, w.shape, stride, 1, 1, 3)
        out, pull = jax.vjp(lambda w: one.run(x, w), w)
        grad = jnp.asarray(random.normal(size=out.shape))
        for few in (0, grad.size):
            monkeypatch.setattr(convolution_cpu, "FEW", few)
            found = convolution_cpu.depthwise_weight(
                grad, x, w.shape, (stride, stride), ((1, 1), (1, 1)), (1, 1)
            )
            np.testing.assert_allclose(found, pull(grad)[0], rtol=1e-12, atol=1e-12)

    call(check)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [((70, 2048), (1, 0)), ((2, 64, 512), (0, 2, 1)), ((65, 2, 1024), (2, 1, 0)), ((64, 8, 256), (1, 2, 0))],
)
def test_strips_transpose(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    def check() -> None:
        x = (jnp.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)
        assert transposes.conflicts(x, order) or x.dtype.itemsize == 1
        wanted = np.transpose(np.asarray(x), order)
        np.testing.assert_array_equal(transposes.in_strips(x, order), wanted)
        np.testing.assert_array_equal(transposes.transpose(x, order), wanted)

    call(check)


def test_what_a_cache_holds_is_transposed_at_once() -> None:
    for shape, order in (((1000, 1000), (1, 0)), ((32, 2048), (1, 0)), ((64, 2048), (0, 1)), ((3,), (0,))):
        assert not transposes.conflicts(np.zeros(shape, np.float32), order)


@pytest.mark.parametrize(
    ("shape", "weight", "stride", "padding", "dilation"),
    [
        ((3, 4, 5, 6), (7, 4, 1, 1), 1, 0, 1),
        ((2, 3, 8), (5, 3, 1), 1, 0, 1),
        ((2, 3, 9, 8), (5, 3, 3, 3), 2, 1, 1),
        ((2, 1, 9, 8), (3, 1, 2, 5), (1, 2), (2, 3), (2, 1)),
        ((2, 2, 11), (3, 2, 4), 3, 1, 2),
        ((1, 1, 4, 5, 4), (2, 1, 2, 3, 2), 1, 1, 1),
    ],
)
@pytest.mark.one_in(2)
def test_convolutions_as_products(
    shape: tuple[int, ...], weight: tuple[int, ...], stride: Any, padding: Any, dilation: Any
) -> None:
    def check() -> None:
        random = np.random.default_rng(0)
        complex_ = len(shape) == 4
        x, w = (
            jnp.asarray(random.normal(size=s) + 1j * complex_ * random.normal(size=s))
            for s in (shape, weight)
        )
        x, w = (a if complex_ else a.real for a in (x, w))
        one = convolution.Convolution(len(shape) - 2, w.shape, stride, padding, dilation, 1)
        out = one.run(x, w)
        grad = jnp.asarray(random.normal(size=out.shape)).astype(out.dtype)
        np.testing.assert_allclose(one.forward(x, w), out, rtol=1e-12, atol=1e-12)
        (whole,) = jax.linear_transpose(lambda x: one.run(x, jnp.conj(w)), x)(grad)
        np.testing.assert_allclose(one.pull_input(grad, w, x.shape), whole, rtol=1e-12, atol=1e-12)
        whole = one.transpose_weight(grad, x, w.shape)
        np.testing.assert_allclose(one.pull_weight(grad, x, w.shape), whole, rtol=1e-12, atol=1e-12)

    call(check)


def test_a_choice_has_its_row() -> None:
    assert all(len(why) > 20 for why in CHOICES.values())
    with pytest.raises(KeyError, match="not in CHOICES"):
        on_cpu("nothing", jnp.sin, jnp.sin, 1.0)


def test_only_the_platforms_own_way_enters_a_program() -> None:
    program = call(jax.jit(lambda x: sorting.order(x, 0, False)).lower, jnp.ones(8, jnp.float32))
    assert program.as_text().count("stablehlo.sort") == 1


ATTENTIONS: dict[str, Any] = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": (9, 13)},
    "mask of heads": {"attn_mask": (2, 1, 9, 13)},
    "one row of a mask": {"attn_mask": (1, 13)},
    "bool mask": {"attn_mask": "bool"},
    "groups": {"enable_gqa": True},
    "scale": {"scale": 0.3, "is_causal": True},
}


@pytest.mark.parametrize(("form", "length"), [*[(f, 9) for f in ATTENTIONS], ("causal", 13), ("mask", 13)])
@pytest.mark.one_in(3)
def test_attention_by_blocks_of_queries(form: str, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    heads = 2 if form == "groups" else 4
    arrays = [
        rng.normal(size=(2, h, n, 5)).astype(np.float32) for h, n in ((4, length), (heads, 13), (heads, 13))
    ]
    options = dict(ATTENTIONS[form])
    given = options.get("attn_mask")
    if given == "bool":
        mask = rng.integers(0, 2, (length, 13)) > 0
        mask[2] = False
        options["attn_mask"] = xtensor.tensor(mask)
    elif given is not None:
        shape = tuple(length if n == 9 else n for n in given)
        options["attn_mask"] = xtensor.tensor(rng.normal(size=shape).astype(np.float32), requires_grad=True)
    found = []
    # All at once; two queries of all heads, or all of one head; some queries of one head; several heads at a time.
    for limit, block in ((attention.MANY_SCORES, attention.BLOCK_SCORES), (10, 208), (10, 60), (10, 500)):
        monkeypatch.setattr(attention, "MANY_SCORES", limit)
        monkeypatch.setattr(attention, "BLOCK_SCORES", block)
        monkeypatch.setattr(attention, "LEAST_ROWS", 2)
        REGISTRY["scaled_dot_product_attention"].forget()
        q, k, v = (xtensor.tensor(a, requires_grad=True) for a in arrays)
        out = xtensor.nn.functional.scaled_dot_product_attention(q, k, v, **options)
        wanted = [q, k, v]
        if given is not None and given != "bool":
            wanted.append(options["attn_mask"])
        grads = xtensor.autograd.grad((out * out).sum(), wanted)
        found.append([out.detach(), *grads])
    REGISTRY["scaled_dot_product_attention"].forget()
    for parts in found[1:]:
        for whole, part in zip(found[0], parts, strict=True):
            np.testing.assert_allclose(part.numpy(), whole.numpy(), rtol=2e-5, atol=2e-6)


def test_attention_takes_memory_for_a_block_of_scores() -> None:
    shape = jax.ShapeDtypeStruct((1, 4, 4096, 16), np.float32)
    scores = 4 * 4096 * 4096 * 4

    def run(q: Any, k: Any, v: Any) -> Any:
        return REGISTRY["scaled_dot_product_attention"].traced((0.0, False, None, False, False))(
            q, k, v, None
        )

    def loss(*args: Any) -> Any:
        return jnp.sum(run(*args) ** 2)

    for function in (run, jax.grad(loss, argnums=(0, 1, 2))):
        memory = call(lambda f=function: jax.jit(f).lower(shape, shape, shape).compile()).memory_analysis()
        assert memory.temp_size_in_bytes < scores / 8


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.one_in(3)
def test_groups_are_convolved_one_by_one(transposed: bool, dtype: str) -> None:
    random = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        values = random.normal(size=shape) + (1j * random.normal(size=shape) if dtype == "complex64" else 0)
        return jnp.asarray(values).astype(dtype)

    def check() -> None:
        for stride, padding, dilation in ((1, 1, 1), (2, 0, 2)):
            x, w = draw(2, 6, 9, 8), draw(6, 4, 3, 2) if transposed else draw(9, 2, 3, 2)
            one = convolution.Convolution(2, w.shape, stride, padding, dilation, 3, 0 if transposed else None)
            assert one.splits(x.shape, w.shape)
            out = one.run(x, w)
            grad = draw(*out.shape)
            found = [
                one.forward(x, w),
                one.pull_input(grad, w, x.shape),
                one.pull_weight(grad, x, w.shape),
            ]
            fixed, conj = jnp.conj(x), jnp.conj(w)
            (of_x,) = jax.linear_transpose(lambda x, w=conj, one=one: one.run(x, w), x)(grad)
            (of_w,) = jax.linear_transpose(lambda w, x=fixed, one=one: one.run(x, w), w)(grad)
            for a, b in zip(found, [out, of_x, of_w], strict=True):
                assert a.dtype == b.dtype
                a, b = (np.asarray(v.astype(np.complex128)) for v in (a, b))
                np.testing.assert_allclose(
                    a,
                    b,
                    rtol=0.02 if dtype == "bfloat16" else 1e-4,
                    atol=1e-2 if dtype == "bfloat16" else 1e-4,
                )

    call(check)


def test_a_grouped_weight_gradient_has_no_grouped_convolution_on_the_cpu() -> None:
    one = convolution.Convolution(2, (64, 16, 3, 3), 1, 1, 1, 4)
    x = jax.ShapeDtypeStruct((2, 64, 8, 8), np.float32)
    lowered = call(lambda: jax.jit(lambda g, x: one.pull_weight(g, x, (64, 16, 3, 3))).lower(x, x).compile())
    text = lowered.as_text()
    assert "feature_group_count" not in text
    assert "batch_group_count" not in text


def test_a_convolution_in_a_branch_is_seen() -> None:
    one = convolution.Convolution(2, (6, 2, 3, 3), 1, 0, 1, 2)
    x, w = jnp.ones((2, 4, 6, 6), np.float32), jnp.ones((6, 2, 3, 3), np.float32)
    (equation,) = call(lambda: jax.make_jaxpr(jax.jit(one.forward))(x, w)).eqns
    assert apart.convolves(equation)
    (equation,) = jax.make_jaxpr(jax.jit(jnp.sin))(x).eqns
    assert not apart.convolves(equation)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.one_in(3)
def test_volumes_are_convolved_plane_by_plane(groups: int, dtype: str) -> None:
    random = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return jnp.asarray(random.normal(size=shape)).astype(dtype)

    def check() -> None:
        for stride, padding, dilation in ((1, 1, 1), ((2, 1, 3), (0, 2, 1), (2, 1, 1)), (1, "same", 2)):
            x, w = draw(2, 4, 7, 6, 5), draw(6, 4 // groups, 3, 2, 3)
            one = convolution.Convolution(3, w.shape, stride, padding, dilation, groups)
            assert one.has_planes(x.shape, w.shape) != one.splits(x.shape, w.shape)
            out = one.run(x, w)
            grad = draw(*out.shape)
            found = [
                one.forward(x, w),
                one.pull_input(grad, w, x.shape),
                one.pull_weight(grad, x, w.shape),
            ]
            (of_x,) = jax.linear_transpose(lambda x, w=w, one=one: one.run(x, w), x)(grad)
            (of_w,) = jax.linear_transpose(lambda w, x=x, one=one: one.run(x, w), w)(grad)
            tolerance = 2e-2 if dtype == "bfloat16" else 1e-4
            for a, b in zip(found, [out, of_x, of_w], strict=True):
                assert a.dtype == b.dtype
                a, b = (np.asarray(v.astype(np.float32)) for v in (a, b))
                np.testing.assert_allclose(
                    a, b, rtol=tolerance, atol=10 * tolerance if dtype == "bfloat16" else tolerance
                )

    call(check)
