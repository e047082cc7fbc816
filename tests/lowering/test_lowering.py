"""Strided views as XLA programs, against NumPy's own strided arrays."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from xtensor import geometry, lowering
from xtensor.geometry import Geometry

F64 = np.dtype(np.float64)


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def whole(shape: tuple[int, ...]) -> Geometry:
    return Geometry(shape, geometry.contiguous_strides(shape), 0)


def places(g: Geometry) -> np.ndarray:
    """The index, in the flat storage, of each element of the view."""
    _, end = geometry.storage_extent(g)
    strides = tuple(8 * s for s in g.strides)
    return as_strided(np.arange(max(end - g.offset, 1)), g.sizes, strides) + g.offset


def recipe_for(shape: tuple[int, ...], g: Geometry, dtype: Any = F64, **flags: Any) -> lowering.Recipe:
    return lowering.recipe_for(shape, g.sizes, g.strides, g.offset, np.dtype(dtype), np.dtype(dtype), **flags)


# --- every kind of view, against NumPy -----------------------------------------------------------------------------

SHAPES = [(), (1,), (24,), (40,), (100,), (4, 6), (5, 7), (30, 2), (0, 3), (2, 3, 4), (6, 1, 4), (2, 2, 3, 2)]


def random_view(rng: random.Random, shape: tuple[int, ...]) -> Geometry:
    """A chain of views, or sometimes any strides that fit."""
    count = math.prod(shape)
    if rng.random() < 0.2:
        sizes = tuple(rng.randint(1, 4) for _ in range(rng.randint(0, 3)))
        strides = tuple(rng.choice([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 12]) for _ in sizes)
        _, end = geometry.storage_extent((sizes, strides, 0))
        if end <= count:
            return Geometry(sizes, strides, rng.randint(0, count - end))
    g = whole(shape)
    for _ in range(rng.randint(0, 5)):
        dim = rng.randrange(len(g.sizes)) if g.sizes else 0
        changes = [
            lambda g, d: geometry.transpose(g, d, 0),
            lambda g, d: geometry.select(g, d, rng.randrange(g.sizes[d])),
            lambda g, d: geometry.slice(
                g, d, rng.randint(0, 3), rng.randint(2, 30), rng.choice([1, 1, 2, 3, 9])
            ),
            lambda g, d: geometry.narrow(g, d, 1, rng.randint(1, 3)),
            lambda g, d: geometry.view(g, rng.choice([(-1,), (2, -1), (-1, 2), (-1, 3), (2, -1, 2)])),
            lambda g, d: geometry.unfold(g, d, rng.randint(1, 3), rng.randint(1, 3)),
            lambda g, d: geometry.diagonal(g, rng.randint(-1, 1), 0, 1),
            lambda g, d: geometry.expand(g, (2, *g.sizes)),
            lambda g, d: geometry.unsqueeze(g, d),
        ]
        try:
            g = rng.choice(changes)(g, dim)
        except (RuntimeError, IndexError, ValueError):
            continue
    return g


def views_of(shape: tuple[int, ...], count: int = 60) -> list[Geometry]:
    rng = random.Random(f"views of {shape}")
    views = {random_view(rng, shape) for _ in range(count)}
    if shape == (100,):  # enough overlap that it cannot be stacked
        views |= {Geometry((size, size), (1, 1), 100 - 2 * size + 1) for size in range(33, 45)}
    return sorted(views)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.one_in(2)
def test_read_write_and_accumulate(shape: tuple[int, ...]) -> None:
    """All views of a shape go through one program each for read, write and scatter_add."""
    base = np.arange(math.prod(shape), dtype=F64).reshape(shape) + 1
    views = views_of(shape)
    recipes = [recipe_for(shape, g) for g in views]
    offsets = [g.offset for g in views]
    values = [-1.0 - np.arange(math.prod(g.sizes), dtype=F64).reshape(g.sizes) for g in views]

    @jax.jit
    def run(base: Any, offsets: Any, values: Any) -> Any:
        reads = [lowering.read(r, base, o) for r, o in zip(recipes, offsets)]
        writes = [lowering.write(r, base, o, v) for r, o, v in zip(recipes, offsets, values)]
        sums = [lowering.scatter_add(r, base, o, v) for r, o, v in zip(recipes, offsets, values)]
        return reads, writes, sums

    for g, recipe, value, got, written, added in zip(views, recipes, values, *run(base, offsets, values)):
        what = f"{shape} {g} {recipe}"
        index = places(g).reshape(-1)
        flat = base.reshape(-1)
        expected = flat[index].reshape(g.sizes) if index.size else np.zeros(g.sizes)
        np.testing.assert_array_equal(got, expected, err_msg=what)
        assert got.shape == g.sizes and got.dtype == F64, what

        sums = flat.copy()
        np.add.at(sums, index, value.reshape(-1))
        np.testing.assert_array_equal(added, sums.reshape(shape), err_msg=what)

        assert written.shape == shape, what
        wrote = np.asarray(written).reshape(-1)
        for place in range(flat.size):
            candidates = value.reshape(-1)[index == place] if place in index else flat[place : place + 1]
            assert wrote[place] in candidates, what


def test_every_kind_of_recipe_is_exercised() -> None:
    kinds = Counter(recipe_for(shape, g).kind for shape in SHAPES for g in views_of(shape))
    assert set(kinds) == {"empty", "reshape", "digits", "window", "stack", "gather"}
    assert min(kinds.values()) >= 10, kinds


# --- which recipe --------------------------------------------------------------------------------------------------


def test_the_whole_array_is_itself() -> None:
    for shape in SHAPES:
        recipe = recipe_for(shape, whole(shape))
        assert recipe.identity and recipe.static
    assert not recipe_for((4, 6), whole((4, 6)), np.complex64, conj=True).identity
    assert not recipe_for((4, 6), whole((4, 6)), neg=True).identity
    assert recipe_for((4, 6), whole((4, 6)), conj=True).identity, "a real number is its conjugate"


@pytest.mark.parametrize(
    "g",
    [
        geometry.transpose(whole((4, 6)), 0, 1),
        geometry.view(whole((4, 6)), (3, 8)),
        geometry.view(whole((4, 6)), (24,)),
        geometry.expand(whole((4, 6)), (5, 4, 6)),
        geometry.unsqueeze(geometry.transpose(whole((4, 6)), 0, 1), 1),
    ],
    ids=str,
)
def test_full_coverage_takes_no_offset(g: Geometry) -> None:
    recipe = recipe_for((4, 6), g)
    assert recipe.kind == "reshape" and recipe.static
    base = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(lowering.read_program(recipe)(base, 0), base.reshape(-1)[places(g)])


def test_views_that_differ_in_offset_share_a_recipe() -> None:
    g = whole((6, 5, 4))
    assert len({recipe_for((6, 5, 4), geometry.select(g, 0, i)) for i in range(6)}) == 1
    assert len({recipe_for((6, 5, 4), geometry.select(g, 1, i)) for i in range(5)}) == 1
    assert len({recipe_for((6, 5, 4), geometry.narrow(g, 0, i, 3)) for i in range(3)}) == 1
    assert len({recipe_for((6, 5, 4), geometry.slice(g, 2, i, i + 2)) for i in range(3)}) == 1


def test_the_array_keeps_its_shape_where_the_view_fits_its_dimensions() -> None:
    g = geometry.slice(geometry.select(whole((6, 5, 4)), 1, 2), 0, 1, 5, 2)
    recipe = recipe_for((6, 5, 4), g)
    assert recipe.access.digits is not None and recipe.access.digits.radices == (6, 5, 4)
    text = str(jax.make_jaxpr(lambda b, o: lowering.read(recipe, b, o))(np.zeros((6, 5, 4)), 0))
    assert text.count("reshape") == 1, text  # the sizes of 1 go; the base is sliced as it is


def test_a_digit_that_carries_is_read_through_another_recipe() -> None:
    """Three elements from column 4 of 6 run into the next row: strides alone cannot tell."""
    base = np.arange(24.0).reshape(4, 6)
    fits = Geometry((2, 3), (6, 1), 3)
    carries = Geometry((2, 3), (6, 1), 4)
    assert recipe_for((4, 6), fits).kind == "digits"
    assert recipe_for((4, 6), carries).kind == "window"
    for g in (fits, carries):
        recipe = recipe_for((4, 6), g)
        np.testing.assert_array_equal(
            lowering.read_program(recipe)(base, g.offset), base.reshape(-1)[places(g)]
        )
        expected = base.copy()
        expected.reshape(-1)[places(g)] = -1
        got = lowering.write_program(recipe, False)(base, g.offset, np.full((2, 3), -1.0))
        np.testing.assert_array_equal(got, expected)


def test_few_elements_of_a_wide_window_are_written_alone() -> None:
    """The diagonal of a big matrix is scattered, not written back with all that lies between."""
    n = 50
    g = geometry.diagonal(whole((n, n)))
    recipe = recipe_for((n, n), g)
    assert recipe.kind == "window"
    base = np.zeros((n, n))
    text = str(jax.make_jaxpr(lambda b, o, v: lowering.write(recipe, b, o, v))(base, 0, np.ones(n)))
    assert "scatter" in text and "dynamic_update_slice" not in text and "select_n" not in text
    np.testing.assert_array_equal(
        lowering.write_program(recipe, False)(base, 0, np.arange(n) + 1.0), np.diag(np.arange(n) + 1.0)
    )
    np.testing.assert_array_equal(
        lowering.read_program(recipe)(np.diag(np.arange(n) + 1.0), 0), np.arange(n) + 1.0
    )


@pytest.mark.parametrize("step", [3, 4])
@pytest.mark.parametrize("length", [101, 70_001])
def test_stepped_writes_leave_what_lies_between(length: int, step: int) -> None:
    """Short axes use constant indices, long ones computed; steps that are powers of two are padded."""
    g = geometry.slice(whole((2, length)), 1, 1, None, step)
    recipe = recipe_for((2, length), g)
    assert recipe.access.digits is not None and step in recipe.access.digits.steps
    base = np.zeros((2, length))
    expected = base.copy()
    expected[:, 1::step] = 1 + np.arange(2 * g.sizes[1]).reshape(g.sizes)
    got = lowering.write_program(recipe, False)(base, g.offset, expected[:, 1::step])
    np.testing.assert_array_equal(got, expected)


def test_index_width_follows_the_size_of_the_array() -> None:
    """Beyond 2**31 elements the starts are 64-bit: traced only, nothing of that size is made."""
    for rows, expected in ((2**10, "i32"), (2**22, "i64")):
        shape = (rows, 2**10)
        recipe = recipe_for(shape, geometry.select(whole(shape), 0, 3), np.uint8)
        traced = jax.make_jaxpr(lambda b, o, r=recipe: lowering.read(r, b, o))(
            jax.ShapeDtypeStruct(shape, np.uint8), 0
        )
        starts = [
            str(v.aval) for e in traced.eqns if e.primitive.name == "dynamic_slice" for v in e.invars[1:]
        ]
        assert any(s.startswith(expected.replace("i", "int")) for s in starts), starts


# --- programs ------------------------------------------------------------------------------------------------------


def test_a_loop_over_rows_compiles_once() -> None:
    base = np.arange(2 * 101.0 * 3).reshape(101, 2, 3)
    before = lowering.stats()
    for i in range(101):
        g = geometry.select(whole((101, 2, 3)), 0, i)
        recipe = recipe_for((101, 2, 3), g)
        np.testing.assert_array_equal(lowering.read_program(recipe)(base, g.offset), base[i])
    assert lowering.stats().reads == before.reads + 1
    for i in range(101):
        g = geometry.select(whole((101, 2, 3)), 0, i)
        lowering.write_program(recipe_for((101, 2, 3), g), False)(base, g.offset, np.zeros((2, 3)))
    assert lowering.stats() == (before.reads + 1, before.writes + 1)


def test_an_identity_compiles_nothing_and_copies_nothing() -> None:
    base, value = np.zeros((3, 5)), np.ones((3, 5))
    recipe = recipe_for((3, 5), whole((3, 5)))
    before = lowering.stats()
    assert lowering.read_program(recipe)(base, 0) is base
    assert lowering.write_program(recipe, True)(base, 0, value) is value
    empty = recipe_for((3, 5), Geometry((0, 5), (5, 1), 3))
    assert lowering.write_program(empty, True)(base, 3, np.ones((0, 5))) is base
    assert lowering.stats() == before


@pytest.mark.parametrize(
    "g",
    [
        geometry.select(whole((64, 64)), 0, 5),
        geometry.select(whole((64, 64)), 1, 5),
        geometry.slice(whole((64, 64)), 1, 1, None, 2),
        geometry.diagonal(whole((64, 64))),
        Geometry((2, 3), (65, 2), 7),
        geometry.unfold(geometry.select(whole((64, 64)), 0, 2), 0, 3, 1),
    ],
    ids=str,
)
def test_donation_reuses_the_buffer(g: Geometry) -> None:
    recipe = recipe_for((64, 64), g)
    expected = np.zeros((64, 64))
    expected.reshape(-1)[places(g)] = 1
    base = jax.device_put(np.zeros((64, 64))) + 0
    kept = lowering.write_program(recipe, False)(base, g.offset, np.ones(g.sizes))
    np.testing.assert_array_equal(kept, expected)
    assert not base.is_deleted()
    # A signature's first call works on a copy, which an interrupt may lose.
    program = lowering.write_program(recipe, True)
    program(base, g.offset, np.ones(g.sizes))
    assert not base.is_deleted()
    pointer = base.unsafe_buffer_pointer()
    given = program(base, g.offset, np.ones(g.sizes))
    np.testing.assert_array_equal(given, expected)
    assert base.is_deleted()
    assert given.unsafe_buffer_pointer() == pointer


def test_offset_may_be_an_array() -> None:
    base = np.arange(20.0).reshape(4, 5)
    recipe = recipe_for((4, 5), geometry.select(whole((4, 5)), 0, 1))
    for offset in (15, np.int64(15), jax.numpy.asarray(15)):
        np.testing.assert_array_equal(lowering.read_program(recipe)(base, offset), base[3])


# --- elements of another dtype -------------------------------------------------------------------------------------

DTYPES = ["uint8", "int16", "float16", "int32", "float32", "int64", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("old", DTYPES)
def test_reinterpreted_elements(old: str) -> None:
    """`view(dtype)`, then a slice of it: reads and writes as NumPy's on the same bytes."""
    rng = np.random.default_rng(0)
    shape = (3, 16)
    base = rng.integers(0, 100, (3, 16 * np.dtype(old).itemsize), dtype=np.uint8).view(old)
    recipes, views, cases = [], [], []
    for new in DTYPES:
        typed = np.ascontiguousarray(base).view(new)
        g = geometry.slice(geometry.select(whole(typed.shape), 0, 1), 0, 0, None, 2)
        for view in (whole(typed.shape), g, geometry.transpose(whole(typed.shape), 0, 1)):
            recipes.append(lowering.recipe_for(shape, *view, np.dtype(old), np.dtype(new)))
            views.append(view)
            cases.append(typed)
    # Distinct values, a little different from what is there; bytes stay those of ordinary numbers.
    chosen = [np.ascontiguousarray(t.reshape(-1)[places(v)]) for t, v in zip(cases, views)]
    values = [(c.reshape(-1).view(np.uint8) ^ 1).view(c.dtype) for c in chosen]
    values = [v.reshape(g.sizes) for v, g in zip(values, views)]

    @jax.jit
    def run(base: Any, offsets: Any, values: Any) -> Any:
        reads = [lowering.read(r, base, o) for r, o in zip(recipes, offsets)]
        return reads, [lowering.write(r, base, o, v) for r, o, v in zip(recipes, offsets, values)]

    reads, writes = run(base, [v.offset for v in views], values)
    for typed, view, value, got, written, recipe in zip(cases, views, values, reads, writes, recipes):
        assert got.dtype == typed.dtype and got.shape == view.sizes
        expected = np.ascontiguousarray(typed.reshape(-1)[places(view)])
        assert np.asarray(got).tobytes() == expected.tobytes(), recipe
        stored = typed.reshape(-1).copy()
        stored[places(view)] = value
        assert written.dtype == base.dtype and written.shape == shape
        assert np.asarray(written).tobytes() == stored.tobytes(), recipe


def test_bytes_that_make_no_whole_element_stay() -> None:
    base = np.arange(11, dtype=np.uint8)
    recipe = lowering.recipe_for((11,), (2,), (1,), 0, np.dtype(np.uint8), np.dtype(np.float32))
    got = lowering.read_program(recipe)(base, 0)
    assert np.asarray(got).tobytes() == base[:8].tobytes()
    for donate in (False, True):
        written = lowering.write_program(recipe, donate)(
            jax.device_put(base) + np.uint8(0), 0, np.zeros(2, np.float32)
        )
        np.testing.assert_array_equal(written, np.concatenate([np.zeros(8, np.uint8), base[8:]]))
    one = lowering.recipe_for((11,), (1,), (1,), 1, np.dtype(np.uint8), np.dtype(np.float32))
    written = lowering.write_program(one, False)(base, 1, np.zeros(1, np.float32))
    np.testing.assert_array_equal(written, np.where((base >= 4) & (base < 8), 0, base))


def test_bool_and_bytes() -> None:
    data = np.array([0, 1, 2, 255], np.uint8)
    u8, b1 = np.dtype(np.uint8), np.dtype(bool)
    as_bool = lowering.recipe_for((4,), (4,), (1,), 0, u8, b1)
    np.testing.assert_array_equal(lowering.read_program(as_bool)(data, 0), [False, True, True, True])
    last = lowering.recipe_for((4,), (1,), (1,), 0, u8, b1)
    written = lowering.write_program(last, False)(data, 0, np.array([True]))
    np.testing.assert_array_equal(written, [1, 1, 2, 255])  # the bytes not written keep their values
    bools = np.array([True, False, True])
    as_bytes = lowering.recipe_for((3,), (3,), (1,), 0, b1, u8)
    np.testing.assert_array_equal(lowering.read_program(as_bytes)(bools, 0), [1, 0, 1])
    written = lowering.write_program(as_bytes, False)(bools, 0, np.array([0, 1, 1], u8))
    assert written.dtype == b1
    np.testing.assert_array_equal(written, [False, True, True])
    wide = lowering.recipe_for((4,), (2,), (1,), 0, b1, np.dtype(np.int16))
    np.testing.assert_array_equal(lowering.read_program(wide)(np.array([1, 0, 0, 1], b1), 0), [1, 256])
    native = lowering.recipe_for((3,), (2,), (2,), 0, b1, b1)
    np.testing.assert_array_equal(lowering.read_program(native)(bools, 0), [True, True])


def test_real_and_imaginary_parts_are_views() -> None:
    z = (np.arange(6) + 1j * (np.arange(6) + 10)).astype(np.complex64).reshape(2, 3)
    pairs = geometry.view_as_real(whole((2, 3)))
    for index, part in ((0, z.real), (1, z.imag)):
        g = geometry.select(pairs, -1, index)
        recipe = lowering.recipe_for((2, 3), *g, z.dtype, np.dtype(np.float32))
        np.testing.assert_array_equal(lowering.read_program(recipe)(z, g.offset), part)
        written = lowering.write_program(recipe, True)(
            jax.device_put(z) + 0, g.offset, np.zeros((2, 3), np.float32)
        )
        np.testing.assert_array_equal(written, 1j * z.imag if index == 0 else z.real.astype(z.dtype))


def test_conjugate_and_negative_bits() -> None:
    z = (np.arange(6) + 1j * (np.arange(6) + 10)).reshape(2, 3)
    g = geometry.select(whole((2, 3)), 0, 1)
    for conj in (False, True):
        for neg in (False, True):
            recipe = recipe_for((2, 3), g, np.complex128, conj=conj, neg=neg)
            expected = np.conj(z[1]) if conj else z[1]
            expected = -expected if neg else expected
            np.testing.assert_array_equal(lowering.read_program(recipe)(z, g.offset), expected)
            written = lowering.write_program(recipe, False)(z, g.offset, expected)
            np.testing.assert_array_equal(written, z)  # writing what was read changes nothing


# --- adjoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "g",
    [
        geometry.expand(geometry.select(whole((4, 6)), 0, 1), (5, 6)),
        geometry.unfold(geometry.select(whole((4, 6)), 0, 2), 0, 3, 1),
        geometry.diagonal(whole((4, 6)), 1),
        Geometry((3, 4), (1, 1), 5),
        Geometry((3, 1, 4), (0, 7, 2), 5),
        geometry.transpose(whole((4, 6)), 0, 1),
    ],
    ids=str,
)
def test_scatter_add_is_the_transpose_of_read(g: Geometry) -> None:
    recipe = recipe_for((4, 6), g)
    rng = np.random.default_rng(1)
    grad = rng.integers(-9, 9, g.sizes).astype(F64)
    _, pullback = jax.vjp(lambda b: lowering.read(recipe, b, g.offset), np.zeros((4, 6)))
    np.testing.assert_array_equal(
        lowering.scatter_add(recipe, np.zeros((4, 6)), g.offset, grad), pullback(grad)[0]
    )


def test_scatter_add_of_parts_and_conjugates() -> None:
    zero = np.zeros(3, np.complex128)
    grad = np.array([1.0, 2.0, 3.0])
    imag = lowering.recipe_for((3,), (3,), (2,), 1, zero.dtype, F64)
    np.testing.assert_array_equal(lowering.scatter_add(imag, zero, 1, grad), 1j * grad)
    conj = recipe_for((3,), whole((3,)), np.complex128, conj=True, neg=True)
    np.testing.assert_array_equal(lowering.scatter_add(conj, zero, 0, 1j * grad), 1j * grad)
    real = np.zeros(6)
    pairs = lowering.recipe_for((6,), (3,), (1,), 0, F64, zero.dtype)
    np.testing.assert_array_equal(lowering.scatter_add(pairs, real, 0, 1j * grad), [0, 1, 0, 2, 0, 3])


def test_read_and_scatter_add_differentiate() -> None:
    """They are used inside larger traced programs, so jax must see through them."""
    recipe = recipe_for((4, 6), geometry.select(whole((4, 6)), 1, 2))
    base = np.arange(24.0).reshape(4, 6)
    gradient = jax.grad(lambda b: (lowering.read(recipe, b, 2) ** 2).sum())(base)
    expected = np.zeros((4, 6))
    expected[:, 2] = 2 * base[:, 2]
    np.testing.assert_array_equal(gradient, expected)
    gradient = jax.grad(lambda v: (lowering.write(recipe, base, 2, v) ** 2).sum())(np.ones(4))
    np.testing.assert_array_equal(gradient, np.full(4, 2.0))
