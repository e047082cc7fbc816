"""Programs that are compiled sooner: which are, that they are compiled once more where they are still called, and their bits."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor import compile_cache
from xtensor.xla import extra_options, quick, segments, sizes, store
from xtensor.xla.cache import clear_all
from xtensor.xla.extra_options import extra
from xtensor.xla.jax_internals import caching, compiling
from xtensor.xla.x64 import call

LARGE = 5003


@pytest.fixture
def again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[quick.Again]:
    """What compiles programs once more, when it is told to, with an empty cache."""
    theirs = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_compilation_cache_dir", None)
    caching.seat.reset_cache()
    monkeypatch.setattr(compile_cache._Choice, "path", None)
    compile_cache.set_directory(tmp_path / "own")
    made = quick.Again()
    made.on = True
    monkeypatch.setattr(made, "_thread", threading.current_thread())  # it needs none of its own
    monkeypatch.setattr(store, "again", made)
    clear_all()
    with segments.paused(), sizes.paused():
        yield made
    compile_cache.set_directory(None)
    jax.config.update("jax_compilation_cache_dir", theirs)
    caching.seat.reset_cache()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool, bool]]:
    """Names of programs that were compiled, whether quickly, and whether they may be compiled again."""
    made: list[tuple[str, bool, bool]] = []
    plain = store.Program._compiled

    def seen(self: store.Program, *args: Any) -> Any:
        entry = plain(self, *args)
        assert entry is not None
        made.append((self.jitted.__name__, entry.quick, entry.again))
        return entry

    monkeypatch.setattr(store.Program, "_compiled", seen)
    return made


def test_a_program_that_is_still_called_is_compiled_once_more(
    again: quick.Again, compiled: list[tuple[str, bool, bool]]
) -> None:
    x = xtensor.linspace(-3, 3, LARGE)
    compiled.clear()
    first = x.cosh().numpy(), x.sinh().numpy()
    assert compiled == [("cosh", True, True), ("sinh", True, True)]
    again.look()
    assert again.work() == 0  # nobody has called them
    for turn in range(3):
        np.testing.assert_array_equal(x.cosh().numpy(), first[0])
        if not turn:
            assert again.work() > 0
    assert compiled[2:] == [("cosh", False, False)]
    np.testing.assert_array_equal(x.sinh().numpy(), first[1])
    again.look()
    assert len(compiled) == 3
    # What was compiled last is found from then on, and it is not looked after.
    clear_all()
    np.testing.assert_array_equal(x.cosh().numpy(), first[0])
    again.look()
    np.testing.assert_array_equal(x.cosh().numpy(), first[0])
    again.work()
    assert [name for name, *_ in compiled[3:]] == ["sinh"]


def test_a_program_that_comes_by_at_every_call_is_compiled_once_more(
    again: quick.Again, compiled: list[tuple[str, bool, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LARGE", 0)  # as if it asked for memory
    x = xtensor.linspace(-3, 3, LARGE)
    first = x.cosh().numpy()
    again.look()
    for _ in range(3):
        np.testing.assert_array_equal(x.cosh().numpy(), first)
    assert again.work() > 0 and again.work() == 0
    again.look()
    np.testing.assert_array_equal(x.cosh().numpy(), first)
    assert again.work() == 0 and [told for told in compiled if told[0] == "cosh"] == [
        ("cosh", True, True),
        ("cosh", False, False),
    ]


def test_small_programs_are_compiled_once(again: quick.Again, compiled: list[tuple[str, bool, bool]]) -> None:
    x = xtensor.linspace(-3, 3, 7)
    for _ in range(3):
        x.cosh().tolist()
        again.look()
    assert compiled[-1] == ("cosh", True, False) and again.work() == 0


def test_without_a_folder_large_programs_are_compiled_once(
    again: quick.Again, compiled: list[tuple[str, bool, bool]]
) -> None:
    compile_cache.set_directory(None)
    x = xtensor.linspace(-3, 3, LARGE)
    x.cosh().tolist()
    assert compiled[-1] == ("cosh", False, False)


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        (lambda x: jnp.sqrt(x) / jnp.max(x @ x.T), np.float64, True),
        (lambda x: jnp.exp(x), np.float64, False),
        (
            lambda x: jnp.tile(x * x, (32, 32)).sum(),
            np.float32,
            True,
        ),  # by a library, which makes sums of so many numbers
        (lambda x: jnp.tile(x * x, (32, 32)).sum(1, keepdims=True).sum(0), np.float32, True),
        (lambda x: (x * x).sum(), np.float32, False),
        (
            lambda x: jax.jit(lambda y: y.T.sum(0))(x),
            np.float32,
            True,
        ),  # of what is there, along one dimension
        (lambda x: jax.nn.log_softmax(jnp.where(x > 0, x, -x)), np.float32, True),
        (lambda x: x.sum(), np.float32, False),
        (lambda x: x[:1].sum(), np.float32, True),
        (lambda x: x.reshape(2, 2, 4).reshape(4, 4).sum(0), np.float32, False),
        (lambda x: x.reshape(2, 2, 4).sum(0), np.float32, True),
        (lambda x: jax.jit(lambda y: y.T.sum(0))(x * x), np.float32, False),
        (lambda x: jax.jit(lambda y: y * y)(x).sum(0), np.float32, False),
        (lambda x: jnp.maximum(x + 1, 0).sum(0), np.float32, False),
        (lambda x: jnp.exp(x + 1).sum(0), np.float32, True),
        (lambda x: x.sum(0), np.float64, False),
        (lambda x: x.sum(), np.int32, True),
        (lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), np.float32, True),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x), np.float32, False),
        (jax.scipy.special.erf, np.float32, False),
        (lambda x: jax.lax.cond(x[0, 0] > 0, jnp.tan, jnp.cos, x), np.float32, False),
        (lambda x: x * 2, np.float16, False),
        (lambda x: x + jnp.where(x > 0, x * x, 0), np.float32, False),
        (lambda x: x + jnp.where(x > 0, x, 0) * x, np.float32, True),
        (lambda x: x * x.T + x * x, np.float32, True),
        (lambda x: x * x.T + x * x, np.float64, False),
        (lambda x: x * x.T + x, np.float64, True),
        (lambda x: jnp.linalg.qr(x)[0], np.float32, False),
    ],
)
def test_operations_that_round_otherwise_are_compiled_the_other_way(function, dtype, expected) -> None:
    jaxpr = call(jax.make_jaxpr(function), jax.ShapeDtypeStruct((4, 4), dtype)).jaxpr
    assert quick.is_quick(jax.devices("cpu")[0], jaxpr) is expected


def test_both_ways_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    x, m = [rng.standard_normal((3, 31, 1031)).astype(np.float32) for _ in range(2)]

    def function(x, m):
        c = x - m.mean((0, 2), keepdims=True)
        s = jax.nn.softmax(c * 3 + m, -1)
        return (c * c).sum((0, 2)) + 1, jnp.tanh(s) * jax.lax.rsqrt(m * m + 1e-5), jax.lax.cummax(c, 1)

    jaxpr = jax.make_jaxpr(function)(x, m).jaxpr
    way = quick.quickly(jaxpr, True)
    assert way is not None and way.extra == () and way.again
    expected = jax.jit(function).lower(x, m).compile()(x, m)
    found = jax.jit(lambda x, m: function(x, m)).lower(x, m).compile(way.options)(x, m)
    assert [np.asarray(a).tobytes() for a in found] == [np.asarray(a).tobytes() for a in expected]


@pytest.mark.parametrize(
    ("shape", "axis"), [((8, 7), 0), ((7, 131), 1), ((3, 31, 17), 1), ((2, 1031), 1), ((24, 1, 33), 0)]
)
def test_short_sums_of_what_is_no_product_give_the_same_bits(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)

    def function(x):
        shares = jnp.exp(x - x.max(axis, keepdims=True))
        total = shares.sum(axis, keepdims=True)
        return (
            shares / total,
            jnp.log(total),
            x.mean(axis),
            jnp.abs(x).sum(axis),
            jnp.where(x > 0, x, 0).sum(axis),
        )

    jaxpr = jax.make_jaxpr(function)(x).jaxpr
    way = quick.quickly(jaxpr, True)
    assert quick.keeps(jaxpr) and way is not None and not way.extra
    expected = jax.jit(function).lower(x).compile()(x)
    found = jax.jit(lambda x: function(x)).lower(x).compile(way.options)(x)
    assert [np.asarray(a).tobytes() for a in found] == [np.asarray(a).tobytes() for a in expected]


@pytest.mark.parametrize("shape", [(3, 31, 1031), (3, 17, 19), (5,)])
def test_loops_as_they_are_written_give_the_same_bits(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, m = [rng.standard_normal(shape).astype(np.float32) for _ in range(2)]

    def function(x, m):
        most = x.max(-1, keepdims=True)
        s = jnp.exp(x - most) * m + x
        moved = jnp.where(m > 0, jnp.flip(s, 0), jnp.roll(m, 1, -1) / (x * x + 1))
        return s, moved, jnp.tanh(moved * 3 + m), jax.lax.cummax(moved, x.ndim - 1), jnp.sin(m) ** 2 - s * x

    jaxpr = jax.make_jaxpr(function)(x, m).jaxpr
    way = quick.quickly(jaxpr, True)
    assert quick.keeps(jaxpr) and way is not None and way.extra
    expected = jax.jit(function).lower(x, m).compile()(x, m)
    for names in (quick.NOT_UNROLLED, quick.FOR_SIZE):
        anew = jax.jit(lambda x, m: function(x, m))  # whose lowered module JAX does not know to be compiled
        with extra(names):
            found = anew.lower(x, m).compile(way.options)(x, m)
        assert [np.asarray(a).tobytes() for a in found] == [np.asarray(a).tobytes() for a in expected]


@pytest.mark.parametrize(
    ("size", "again", "names", "once_more"),
    [
        (1024, False, quick.FOR_SIZE, False),
        (1024, True, quick.FOR_SIZE, False),
        (1025, True, quick.FOR_SIZE, True),
        (1025, False, (), False),
        (4097, True, quick.NOT_UNROLLED, True),
    ],
)
def test_options_by_the_largest_array(
    size: int, again: bool, names: tuple[str, ...], once_more: bool
) -> None:
    way = quick.quickly(jax.make_jaxpr(jnp.tanh)(np.zeros(size, np.float32)).jaxpr, again)
    assert way is not None and (way.extra, way.again) == (names, once_more)


@pytest.mark.parametrize("added", [lambda m, v: m @ v, lambda m, v: m.sum(0)])
def test_products_and_sums_are_left_as_they_were(added: Any) -> None:
    for size, once_more in ((20, False), (64, False), (65, True)):
        given = np.zeros((size, size), np.float32), np.zeros(size, np.float32)
        jaxpr = jax.make_jaxpr(jax.jit(lambda m, v: jnp.tanh(added(m, v))))(*given).jaxpr
        way = quick.quickly(jaxpr, True)
        assert way is not None and (way.extra, way.again) == ((), once_more)


def test_the_branch_of_another_platform_does_not_count() -> None:
    def function(x: jax.Array) -> jax.Array:
        return jax.lax.platform_dependent(
            x, cpu=jnp.tanh, default=lambda x: jnp.cumsum(jax.scipy.special.erf(x), 0)
        )

    def chosen(x: jax.Array) -> jax.Array:
        return jax.lax.platform_dependent(x, cpu=lambda x: jnp.cumsum(x, 0), default=jnp.tanh)

    x = np.zeros((4, 4), np.float32)
    assert quick.keeps(jax.make_jaxpr(function)(x).jaxpr)
    assert not quick.keeps(jax.make_jaxpr(chosen)(x).jaxpr)


def kept(function: Any, *given: Any) -> bool:
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(function)(*given).jaxpr
    return quick.keeps(jaxpr)


def test_a_power_of_one_number_of_float64_has_the_same_bits() -> None:
    def corrected(mean: jax.Array, beta: jax.Array, step: jax.Array) -> jax.Array:
        return mean / (1 - beta**step).astype(mean.dtype)

    mean = np.zeros(7, np.float32)
    assert kept(corrected, mean, np.float64(0.9), np.float64(3))
    assert not kept(lambda betas, step: betas**step, np.zeros(3), np.float64(3))


@pytest.mark.parametrize("by_call", [False, True])
def test_parts_that_a_library_multiplies_have_the_same_bits_in_additions(by_call: bool) -> None:
    def columns(x: jax.Array) -> jax.Array:
        return jnp.concatenate([x[:-1] * 2, x[1:] * 3], 1)

    def added(x: jax.Array, w: jax.Array, bias: jax.Array) -> jax.Array:
        return (jax.jit(columns)(x) if by_call else columns(x)) @ w + bias

    x, w, bias = [np.zeros(shape, np.float32) for shape in ((8, 5), (10, 6), (6,))]
    assert kept(added, x, w, bias)
    assert not kept(
        lambda x, w: (jax.jit(columns) if by_call else columns)(x) @ w + columns(x), x, w[:, [0] * 10]
    )
    assert not kept(lambda x: columns(x) + 1, x)


def rows_added(x: jax.Array) -> jax.Array:
    """Products added to rows, most of them more than once."""
    return jnp.zeros_like(x).at[jnp.arange(2 * len(x)) % 7].add(jnp.concatenate([x * 3, x * x]))


@pytest.mark.parametrize("function", [rows_added, jax.lax.erf_inv], ids=lambda f: f.__name__)
def test_sums_of_rows_and_normal_numbers_have_the_same_bits(function: Any) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (31, 103)).astype(np.float32)
    assert kept(function, x)
    way = quick.quickly(jax.make_jaxpr(function)(x).jaxpr, True)
    assert way is not None
    expected = jax.jit(function).lower(x).compile()(x)
    assert (
        np.asarray(jax.jit(lambda x: function(x)).lower(x).compile(way.options)(x)).tobytes()
        == np.asarray(expected).tobytes()
    )


def test_long_programs_are_divided_among_the_processors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "processors", lambda: 4)
    for length, parts in ((quick.MOST, 1), (quick.MOST + 1, 4)):
        jaxpr = jax.make_jaxpr(lambda x, n=length: [jnp.tanh(x) for _ in range(n)])(
            np.zeros(3, np.float32)
        ).jaxpr
        way = quick.quickly(jaxpr, True)
        assert way is not None and way.options[quick.SPLIT] == parts


def test_large_programs_that_stay_are_compiled_in_the_ordinary_way() -> None:
    assert quick.quickly(jax.make_jaxpr(jnp.tanh)(np.zeros(4097, np.float32)).jaxpr, False) is None


def test_extra_options_are_those_of_one_program(again: quick.Again) -> None:
    """They are in what XLA is given and in JAX's key, beside the process's own; the next program has none of them."""
    given: list[bytes] = []
    keys: list[str | None] = []

    def seen(*args: object, **options: object) -> object:
        made = extra_options._make(*args, **options)
        given.append(made.SerializeAsString())
        return made

    seat = compiling.seat
    try:
        for names in (quick.FOR_SIZE, ()):
            with compile_cache.compiling() as told, extra(names):
                seat.create_compile_options = seen
                jax.jit(lambda x: x + 1).lower(np.zeros(3, np.float32)).compile(
                    {"xla_cpu_use_fusion_emitters": False}
                )
            keys.append(told.key)
    finally:
        seat.create_compile_options = compiling.make
    with_them, without = given
    assert None not in keys and keys[0] != keys[1]
    for name in quick.FOR_SIZE:
        assert with_them.count(name.encode()) == 1 and name.encode() not in without
    assert (
        with_them.count(b"xla_cpu_use_fusion_emitters") == without.count(b"xla_cpu_use_fusion_emitters") >= 1
    )


def test_extra_options_end_with_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), extra(quick.FOR_SIZE):
        raise KeyboardInterrupt
    assert extra_options._own.names == ()


def test_the_thread_ends_with_the_process(tmp_path: pathlib.Path) -> None:
    program = (
        "import xtensor as xt; from xtensor.xla import quick; quick.CALM = 0.0\n"
        "x = xt.ones(5003)\n"
        "while not quick.again._last or quick.again._noted or not quick.again._thread: y = (x * 2).tolist()\n"
        "print(y[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": "",
            "HOME": str(tmp_path),
            "XTENSOR_COMPILE_CACHE": str(tmp_path / "cache"),
            "PYTHONPATH": ".",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "2.0"), done.stderr
