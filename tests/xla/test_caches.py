"""Caches: bounded, in the order promised, safe to share, and all of them known."""

import ast
import gc
import math
import pathlib
import threading

import pytest

import xtensor
from xtensor.operators.declare import REGISTRY
from xtensor.xla import cache as module
from xtensor.xla.cache import BoundedCache, bounded, caches, clear_all, size_of
from xtensor.xla.number_arrays import NUMBER_ARRAYS

PACKAGE = pathlib.Path(xtensor.__file__).parent


def test_a_dict_stays_within_its_bound() -> None:
    cache: BoundedCache[int, int] = BoundedCache(100)
    most = 0
    for i in range(10_000):
        cache[i] = -i
        most = max(most, len(cache))
        assert cache[i] == -i
    assert most == 100
    assert size_of(cache) == (len(cache), 100)


def test_what_came_first_goes_first() -> None:
    cache: BoundedCache[int, str] = BoundedCache(16)
    for i in range(16):
        cache[i] = "first"
    assert cache[0] == "first"  # a lookup makes nothing younger
    cache[3] = "second"  # no new key: nothing goes
    assert list(cache) == list(range(16))
    cache[16] = "new"
    assert list(cache) == list(range(2, 17))
    assert cache[3] == "second"
    cache.pop(5)
    cache[17] = "new"
    assert list(cache) == [2, 3, 4, *range(6, 18)]


def test_a_cache_of_one() -> None:
    cache: BoundedCache[str, int] = BoundedCache(1)
    cache["a"] = 1
    cache["b"] = 2
    assert cache == {"b": 2}
    with pytest.raises(ValueError, match="at least one entry"):
        BoundedCache(0)


def test_threads_share_a_cache() -> None:
    cache: BoundedCache[tuple[int, int], int] = BoundedCache(64)
    start, faults = threading.Barrier(8), []

    def fill(own: int) -> None:
        start.wait()
        try:
            for i in range(1250):
                cache[own, i] = i
                found = cache.get((own, i))
                if len(cache) > 64 + 8 or found not in (i, None):
                    faults.append((own, i, found))
                if i % 500 == 0:
                    cache.clear()
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=fill, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert 0 < len(cache) <= 64 + 8


def test_what_goes_may_fill_the_cache_again() -> None:
    cache: BoundedCache[int, object] = BoundedCache(8)

    class Filling:
        def __del__(self) -> None:
            cache[-1] = None

    for i in range(20):
        cache[i] = Filling()
        assert len(cache) <= 8
    assert -1 in cache
    cache.clear()


def test_functions_keep_what_was_used_last() -> None:
    calls = []

    @bounded(2)
    def double(x: int) -> int:
        """Twice `x`."""
        calls.append(x)
        return 2 * x

    assert [double(1), double(2), double(1), double(3), double(1), double(2)] == [2, 4, 2, 6, 2, 4]
    assert calls == [1, 2, 3, 2]
    assert double.__doc__ == "Twice `x`."
    for i in range(10_000):
        double(i)
    assert size_of(double) == (2, 2)


def test_caches_are_known_while_they_live() -> None:
    cache: BoundedCache[int, int] = BoundedCache(4)
    function = bounded(4)(abs)
    ids = {id(c) for c in caches()}
    assert {id(cache), id(function)} <= ids
    held = len(module._all)
    del cache, function
    gc.collect()
    assert len(module._all) <= held - 2


def test_all_caches_are_known_and_within_their_bounds() -> None:
    x = xtensor.ones(3, 4, requires_grad=True)
    (x[1:] * 2.5).sum().backward()
    op = REGISTRY["mul"]
    known = {id(cache) for cache in caches()}
    assert {id(c) for c in (op.programs, op.variants, op.pullbacks, op.known, NUMBER_ARRAYS)} <= known
    sizes = [size_of(cache) for cache in caches()]
    assert all(held <= limit for held, limit in sizes)
    assert sum(held for held, _ in sizes) > 10


def test_all_caches_are_emptied_and_fill_again() -> None:
    def step() -> list[float]:
        x = xtensor.arange(6.0).reshape(2, 3).requires_grad_()
        (x.t()[1:] * 1.25).exp().sum().backward()
        assert x.grad is not None
        return x.grad.flatten().tolist()

    before = step()
    clear_all()
    assert {size_of(cache)[0] for cache in caches()} == {0}
    assert step() == before


def test_a_change_of_what_traces_depend_on_empties_them() -> None:
    xtensor.add(xtensor.ones(2), 1.5)
    assert REGISTRY["add"].programs
    default = xtensor.get_default_dtype()
    xtensor.set_default_dtype(xtensor.float64)
    try:
        assert not REGISTRY["add"].programs
        assert xtensor.sqrt(xtensor.ones(2, dtype=xtensor.int64)).dtype is xtensor.float64
    finally:
        xtensor.set_default_dtype(default)
    assert xtensor.sqrt(xtensor.ones(2, dtype=xtensor.int64)).dtype is default


def test_an_operator_keeps_no_more_programs_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    op = REGISTRY["flip"]
    op.forget()
    monkeypatch.setattr(op.programs, "limit", 3)
    x = xtensor.arange(16).reshape(2, 2, 2, 2)
    expected = x.numpy()[:, ::-1]
    for _ in range(2):
        for dim in range(4):
            xtensor.flip(x, (dim,))
            assert len(op.programs) <= 3
    assert (xtensor.flip(x, (1,)).numpy() == expected).all()


def unbounded(text: str) -> list[int]:
    """The lines on which a source names a cache of `functools`: `bounded` is the one way to them."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module="functools", names=names):
                if {alias.name for alias in names} & {"cache", "lru_cache"}:
                    found.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="functools"), attr="cache" | "lru_cache"):
                found.append(node.lineno)
            case _:
                pass
    return found


def test_no_cache_of_functools_is_used_by_itself() -> None:
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if unbounded(path.read_text("utf-8"))
    }
    assert users == {"xla/cache.py"}


def test_caches_of_functools_are_found() -> None:
    assert unbounded("import functools\n\n@functools.cache\ndef f(): ...") == [3]
    assert unbounded("from functools import partial, lru_cache") == [1]
    assert unbounded("import functools\nf = functools.lru_cache(maxsize=None)(g)") == [2]
    assert unbounded("import functools\nf = functools.partial(g)\nfrom .cache import cache") == []


def test_zeros_of_either_sign_are_kept_apart() -> None:
    """0.0 == -0.0: one key would mix them up, and none cost 10 us at every `masked_fill(mask, 0.0)`."""
    plus, minus = NUMBER_ARRAYS[float, 0.0], NUMBER_ARRAYS[float, -0.0]
    assert NUMBER_ARRAYS[float, 0.0] is plus and NUMBER_ARRAYS[float, -0.0] is minus
    assert math.copysign(1, float(plus)) == 1 and math.copysign(1, float(minus)) == -1
    assert NUMBER_ARRAYS[int, 0] is not plus
