"""Programs by signature: found in a later process without a trace, forgotten when others come, right in every way of use."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import subprocess
import sys
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from tests.fuzz.interrupts import stopped, watched
from xtensor import compile_cache
from xtensor.xla import executables, sizes, store, x64
from xtensor.xla.cache import BoundedCache
from xtensor.xla.jax_internals import caching
from xtensor.xla.memory import SMALL
from xtensor.xla.sizes.families import SOON
from xtensor.xla.x64 import call, jit

PROGRAM = """
import collections, json
from jax import monitoring
seen = collections.Counter()
monitoring.register_event_duration_secs_listener(lambda event, _, **__: seen.update([event.rpartition("/")[2]]))
import xtensor
from xtensor import nn
from xtensor.xla import sizes
from xtensor.plans.plans import executor
executor.enabled = False  # whether a plan or programs run is the moment's
for n in range(3, 9):
    t = (xtensor.ones(n, 4) * n).requires_grad_()
    (t.cumsum(0) * t).sum().backward()
executor.enabled = True
xtensor.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(144, 3))
optimizer = xtensor.optim.AdamW(model.parameters())
x, y = xtensor.randn(5, 1, 8, 8), xtensor.tensor([0, 1, 2, 1, 0])
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    executor.wait()
w = xtensor.linspace(0, 1, 24).reshape(4, 6).requires_grad_()
(g,) = xtensor.autograd.grad((w.t().exp() * w[:, :4].sum()).sum(), w, create_graph=True)
(h,) = xtensor.autograd.grad(g.square().sum(), w)
w.data[1] = w.data[:, 2].repeat(2)[:6]
s = xtensor.linalg.svdvals(w.detach())
print(json.dumps(dict(
    bits=[loss.item().hex(), h.tolist(), t.grad.tolist(), w.tolist(), s.tolist(), w.detach().sort().indices.tolist()],
    stats=xtensor.compile_cache.stats(), seen=seen, sizes=sizes.stats(),
)))
"""


def started(**environment: str) -> dict[str, Any]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_second_start_traces_lowers_and_compiles_nothing(tmp_path: pathlib.Path) -> None:
    first, second = [started(XTENSOR_COMPILE_CACHE=str(tmp_path / "cache")) for _ in range(2)]
    assert first["stats"]["misses"] > 20
    assert first["seen"]["jaxpr_trace_duration"] > 20
    assert second["stats"]["misses"] == 0
    assert second["stats"]["hits"] > 20
    assert first["sizes"]["families"] and second["sizes"]["calls"] == first["sizes"]["calls"]
    assert not any(second["seen"].get(n) for n in ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration"))
    assert second["bits"] == first["bits"]


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """An empty compile cache of this test's own."""
    theirs = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_compilation_cache_dir", None)
    caching.seat.reset_cache()
    monkeypatch.setattr(compile_cache._Choice, "path", None)
    compile_cache.set_directory(tmp_path / "own")
    yield tmp_path / "own"
    compile_cache.set_directory(None)
    jax.config.update("jax_compilation_cache_dir", theirs)
    caching.seat.reset_cache()


def count(what: str) -> float:
    return compile_cache.stats()[what]


def twice(make, *args):
    """What a program gives when compiled, and what the same one made again gives, which must be found."""
    hits = count("hits")
    first = call(make(), *args)
    assert count("hits") == hits
    again = call(make(), *args)
    assert count("hits") == hits + 1
    return first, again


def ours(function):
    function.__module__ = "xtensor.somewhere"
    return function


def program(function, **options):
    return lambda: jit(store.copy_of(ours(function)), **options)


def test_structures_types_and_devices_are_the_same(folder):
    def shapes(a, b):
        return (a + b, [a.sum(), None, (b * 2,)], jnp.asarray(2.0)), None

    first, again = twice(program(shapes), jnp.ones((3, 4)), np.float32(2))
    assert jax.tree.structure(first) == jax.tree.structure(again)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        assert (one.aval, one.sharding, one.committed) == (other.aval, other.sharding, other.committed)
        assert one.aval.weak_type == other.aval.weak_type
        assert np.array_equal(one, other)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int8", "uint64", "complex128", "bool"])
def test_dtypes_survive(folder, dtype):
    first, again = twice(
        program(lambda a: (a, a.astype("float32") if a.dtype.kind != "c" else a)), call(jnp.ones, 7, dtype)
    )
    assert [r.dtype for r in first] == [r.dtype for r in again]
    assert first[0].dtype == dtype


def test_arguments_that_are_not_used_and_numbers(folder):
    first, again = twice(program(lambda a, b, c: a * c), jnp.arange(5.0), jnp.ones(100), 3)
    assert again.tolist() == first.tolist() == [0, 3, 6, 9, 12]


def test_a_program_that_is_found_donates(folder):
    make = program(lambda a, b: a + b, donate_argnums=0)
    twice(make, jnp.ones(1031), jnp.ones(1031))
    again = make()
    call(again, jnp.zeros(1031), jnp.ones(1031))  # the first call of a signature works on a copy
    given = jnp.zeros(1031) + 1
    place = given.unsafe_buffer_pointer()
    found = call(again, given, jnp.ones(1031))
    assert given.is_deleted()
    assert found.unsafe_buffer_pointer() == place
    assert found.tolist() == [2.0] * 1031


def test_weak_types_and_settings_are_signatures_of_their_own(folder):
    make = program(lambda a: a * jnp.ones(3, "float32"))
    assert call(make(), call(jnp.asarray, 2.0)).dtype == np.float32
    assert call(make(), call(jnp.asarray, 2.0, "float64")).dtype == np.float64
    make = program(lambda a: a @ a)
    for precision in ("bfloat16", "float32", "highest"):
        with jax.default_matmul_precision(precision):
            call(make(), jnp.ones((4, 4)))
    assert len(list(folder.glob("call_*"))) == 5


def test_what_traces_depend_on_is_part_of_the_name(folder):
    def scalar():
        return ours(lambda a: a + jnp.ones((), xtensor.get_default_dtype().numpy))

    call(jit(scalar()), jnp.ones(3, "float32"))
    xtensor.set_default_dtype(xtensor.float64)
    try:
        assert call(jit(scalar()), jnp.ones(3, "float32")).dtype == np.float64
    finally:
        xtensor.set_default_dtype(xtensor.float32)


def test_a_program_within_jax_s_transformations_is_traced(folder):
    made = jit(ours(lambda a: jnp.sin(a) * 2))
    x = jnp.linspace(0, 1, 5)
    assert np.allclose(jax.grad(lambda v: made(v).sum())(x), 2 * jnp.cos(x))
    assert np.allclose(jax.vmap(made)(x), 2 * jnp.sin(x))
    assert np.allclose(jax.jit(lambda v: made(v) + 1)(x), 2 * jnp.sin(x) + 1)
    assert np.allclose(made(x), 2 * jnp.sin(x))


def test_effects_and_callbacks_are_left_to_jax(folder):
    told = []

    def calling(a):
        jax.debug.callback(lambda v: told.append(float(v)), a.sum())
        return jax.pure_callback(lambda v: np.asarray(v) + 1, a, a)

    made = jit(calling)
    for n in (1, 2, 3):
        assert made(jnp.ones(2, "float32") * n).tolist() == [n + 1.0] * 2
    jax.effects_barrier()
    assert told == [2.0, 4.0, 6.0]
    assert not list(folder.glob("call_calling*"))


def test_errors_are_raised_by_each_call(folder):
    made = jit(ours(lambda a, b: a + b))
    for _ in range(2):
        with pytest.raises(TypeError, match="incompatible shapes"):
            made(jnp.ones(3), jnp.ones(4))
    assert made(jnp.ones(3), jnp.ones(3)).tolist() == [2.0] * 3


def test_a_call_that_was_interrupted_is_as_fast_later(folder, monkeypatch):
    """JAX keeps a signature whose first call failed as one that Python answers."""
    came: list[Any] = []
    answer = store.Program.__call__
    monkeypatch.setattr(store.Program, "__call__", lambda *args: came.append(args) or answer(*args))
    x = jnp.ones(1031)
    before = sys.gettrace()
    sys.settrace(watched)
    try:
        # In finding out what the signature is, in tracing, in compiling.
        for at in (1, 40, 400):
            f = jit(lambda x, at=at: x * at + 1)
            assert stopped(lambda f=f: f(x), at)[0]
            sys.settrace(watched)  # the exception has ended the tracing
            assert [f(x)[0] for _ in range(4)] == [at + 1] * 4
            came.clear()
            assert f(x)[0] == at + 1 and not came
    finally:
        sys.settrace(before)


def test_a_users_function_is_compiled_and_not_kept(folder):
    def theirs(a):
        return a * 5

    assert jit(theirs)(jnp.ones(3)).tolist() == [5.0] * 3
    assert not list(folder.glob("call_theirs*"))
    assert list(folder.glob("jit_theirs*"))


def test_threads_that_meet_a_signature_at_once(folder):
    made, results = jit(ours(lambda a: jnp.cumsum(a * 3))), []
    start = threading.Barrier(8)

    def work():
        start.wait()
        results.append(call(made, jnp.ones(1031)).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[3.0 * i for i in range(1, 1032)]] * 8


def test_damage_and_other_versions_are_compiled_anew(folder, monkeypatch):
    make = program(lambda a: a * 11)
    call(make(), jnp.ones(3))
    misses = count("misses")
    monkeypatch.setattr("xtensor.xla.identity.sources", lambda: bytes(32))
    assert call(make(), jnp.ones(3)).tolist() == [11.0] * 3  # found under JAX's key
    assert count("misses") == misses
    for file in folder.glob("*.xla"):
        file.write_bytes(file.read_bytes()[:-5])
    assert call(make(), jnp.ones(3)).tolist() == [11.0] * 3
    assert count("misses") == misses + 1


def test_another_processor_s_programs_are_not_found(folder, monkeypatch):
    make = program(lambda a: a * 17)
    call(make(), jnp.ones(3))
    (name,) = folder.glob("call_*")
    monkeypatch.setattr(compile_cache, "machine", lambda: "another")
    assert call(make(), jnp.ones(3)).tolist() == [17.0] * 3
    assert len(set(folder.glob("call_*")) - {name}) == 1


def test_programs_go_when_others_come(folder, monkeypatch):
    monkeypatch.setattr(
        sizes.families._State, "enabled", False
    )  # which would answer most of these by one program
    monkeypatch.setattr(x64, "signatures", store.inside.Signatures(capacity=16))
    monkeypatch.setattr(store, "signatures", x64.signatures)
    monkeypatch.setattr(store, "_latest", BoundedCache(16))
    made, evicted = jit(ours(lambda a: a + 1)), count("evicted")
    for n in range(1, 41):
        assert made(jnp.zeros(n, "float32")).tolist() == [1.0] * n
    assert count("programs") == 16
    assert count("evicted") >= evicted + 24
    hits = count("hits")
    assert made(jnp.zeros(1, "float32")).tolist() == [1.0]
    assert count("hits") == hits + 1  # gone from memory, and on disk


def test_what_the_compiled_call_forgets_is_not_loaded_again(folder):
    made: Any = jit(ours(lambda a: a + 2))
    for n in (3, 4):
        made(jnp.zeros(n, "float32"))
    before = count("hits"), count("misses"), count("evicted")
    made._clear_cache()
    assert [made(jnp.zeros(n, "float32")).tolist() for n in (3, 4)] == [[2.0] * 3, [2.0] * 4]
    assert (count("hits"), count("misses"), count("evicted")) == before


def test_nothing_of_a_trace_stays(folder):
    class Held:
        pass

    def making():
        held = Held()

        def function(a):
            return a + (held is not None)

        return jit(function), weakref.ref(held)

    made, alive = making()
    assert made(jnp.ones(3)).tolist() == [2.0] * 3
    del made
    gc.collect()
    assert alive() is None


def test_prepared_programs_only_run(folder):
    made = jit(ours(lambda a, b: (a @ b).sum()), donate_argnums=0)
    form = jax.ShapeDtypeStruct((5, 5), "float32")
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        x64.prepare(made, form, form)
    misses = count("misses")
    assert float(made(jnp.ones((5, 5), "float32"), jnp.ones((5, 5), "float32"))) == 125
    assert count("misses") == misses


def test_facts_are_told_once(folder):
    asked = []

    def tell(jaxpr):
        asked.append(len(jaxpr.eqns))
        return {"shapes": [v.aval.shape for v in jaxpr.outvars]}

    for _ in range(2):
        found = x64.facts(jit(ours(lambda a: (a * 2).T)), (jnp.ones((2, 3)),), tell)
        assert found == {"shapes": [[3, 2]]}
    assert asked == [2]


def test_without_what_is_taken_from_jax_programs_run_its_way(monkeypatch):
    monkeypatch.setattr(store, "inside", None)
    made = jit(lambda a: a * 7, donate_argnums=0)
    for _ in range(2):
        assert made(jnp.ones(3)).tolist() == [7.0] * 3


def test_a_checker_compares_what_is_found(folder, monkeypatch):
    make = program(lambda a: a * 13)
    call(make(), jnp.ones(3))
    checker = store.Checker()
    checker.enabled = True
    monkeypatch.setattr(store, "checker", checker)
    call(make(), jnp.ones(3))
    assert (checker.compared, checker.different) == (1, [])
    real, found_first = executables.from_bytes, iter("!")

    def other(content, device):
        entry = real(content, device)
        entry.key += next(found_first, "")
        return entry

    monkeypatch.setattr(store, "from_bytes", other)
    call(make(), jnp.ones(3))
    assert checker.compared == 2
    assert len(checker.different) == 1


def test_what_gives_no_buffers_up_serves_the_first_calls_of_what_does(folder):
    """A first start may have its calls wait, which then give nothing up."""
    for count, misses in ((7, 1), (1 << 17, 1), (1 << 24, 2)):
        before = compile_cache.stats()["misses"]
        x = jnp.ones(count)
        for donated in ((), 0):
            add = program(lambda a, b: a + b * 5, donate_argnums=donated)()
            assert call(add, x, jnp.ones(count))[0] == 6
        assert compile_cache.stats()["misses"] == before + misses


def test_a_write_that_waited_before_is_not_compiled_once_more(folder: pathlib.Path) -> None:
    def scaled(x: Any, by: Any) -> Any:
        return x * by

    by = jnp.float32(3)
    arrays = [jnp.ones((SMALL // 4,), "float32") for _ in range(SOON + 9)]
    program(scaled, donate_argnums=())()(arrays[0], by)
    giving = program(scaled, donate_argnums=0)()
    misses = count("misses")
    for array in arrays[1 : SOON + 1]:
        assert giving(array, by)[-1] == 3 and not array.is_deleted()
    (met,) = giving._xt_undonated.met.values()
    met[1].result()
    assert count("misses") == misses + 1
    for array in arrays[SOON + 1 :]:
        assert giving(array, by)[-1] == 3
    assert arrays[-1].is_deleted()
    assert count("misses") == misses + 1
