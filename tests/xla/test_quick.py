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
from xtensor.xla import quick, segments, sizes, store
from xtensor.xla.cache import clear_all
from xtensor.xla.jax_internals import caching
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
        (lambda x: jax.jit(lambda y: y.T.sum(0))(x), np.float32, False),
        (lambda x: x.sum(), np.int32, True),
        (lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), np.float32, True),
        (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x), np.float32, False),
        (jax.scipy.special.erf, np.float32, False),
        (lambda x: jax.lax.cond(x[0, 0] > 0, jnp.tan, jnp.cos, x), np.float32, False),
        (lambda x: x * 2, np.float16, False),
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
        return (c * c).sum((0, 2)) + 1, jnp.tanh(s) * jax.lax.rsqrt(m * m + 1e-5), jnp.cumsum(c, 1)

    lowered = [jax.jit(function).lower(x, m) for _ in range(2)]
    jaxpr = jax.make_jaxpr(function)(x, m).jaxpr
    a, b = lowered[0].compile()(x, m), lowered[1].compile(quick.options(jaxpr))(x, m)
    assert [np.asarray(p).tobytes() == np.asarray(q).tobytes() for p, q in zip(a, b, strict=True)] == [
        True
    ] * 3


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
