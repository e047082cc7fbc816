"""Strided arithmetic against PyTorch: sizes, strides, offsets, exception classes and wordings, exactly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xtensor import geometry
from xtensor.geometry import Geometry

torch = pytest.importorskip("torch")

STORAGE = 4096

# Sizes and strides with every oddity: empty, size-1 with a stray stride, expanded, permuted, overlapping, gapped.
BASES = [
    Geometry((), (), 0),
    Geometry((), (), 3),
    Geometry((1,), (1,), 0),
    Geometry((1,), (7,), 2),
    Geometry((5,), (1,), 0),
    Geometry((5,), (3,), 1),
    Geometry((0,), (1,), 4),
    Geometry((4,), (0,), 0),
    Geometry((2, 3), (3, 1), 0),
    Geometry((2, 3), (1, 2), 0),
    Geometry((3, 3), (0, 1), 5),
    Geometry((4, 2), (4, 2), 2),
    Geometry((0, 3), (3, 1), 0),
    Geometry((3, 0), (1, 1), 0),
    Geometry((1, 4), (9, 1), 0),
    Geometry((4, 1), (1, 9), 0),
    Geometry((2, 3, 4), (12, 4, 1), 0),
    Geometry((2, 3, 4), (1, 8, 2), 3),
    Geometry((2, 3, 4), (24, 8, 2), 1),
    Geometry((3, 1, 2), (2, 5, 1), 0),
    Geometry((1, 1, 1), (4, 2, 8), 0),
    Geometry((2, 1, 0), (0, 7, 3), 0),
    Geometry((3, 2, 2), (1, 1, 1), 0),
    Geometry((2, 3, 4, 2), (24, 8, 2, 1), 0),
    Geometry((2, 3, 4, 2), (24, 1, 6, 3), 0),
    Geometry((2, 3, 1, 1), (3, 1, 3, 3), 0),
    Geometry((1, 3, 2, 1), (6, 2, 1, 1), 0),
    Geometry((2, 1, 4, 4), (16, 1, 4, 1), 0),
    Geometry((2, 0, 4, 4), (0, 1, 0, 0), 0),
    Geometry((2, 3, 2, 2, 2), (24, 1, 12, 6, 3), 0),
]


def tensor_of(g: Any, dtype: Any = None) -> Any:
    storage = torch.empty(STORAGE, dtype=dtype or torch.uint8)
    return storage.as_strided(*g)


def described(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return (tuple(result.shape), result.stride(), result.storage_offset())
    if isinstance(result, (list, tuple)) and not isinstance(result, Geometry):
        return [described(r) for r in result]
    return tuple(result) if isinstance(result, Geometry) else result


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return described(call())
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        # PyTorch's unflatten pastes the C++ trace of the inner error below its message.
        return type(error), str(error).split("\nException raised from")[0]


def agree(ours: Callable[[], Any], theirs: Callable[[], Any], what: object) -> None:
    assert outcome(ours) == outcome(theirs), what


DIMS = (-6, -4, -3, -2, -1, 0, 1, 2, 3, 5)


@pytest.mark.parametrize("g", BASES, ids=str)
class TestAgainstTorch:
    def test_properties(self, g: Geometry) -> None:
        t = tensor_of(g)
        sizes, strides, _ = g
        assert geometry.numel(sizes) == t.numel()
        assert geometry.contiguous_strides(sizes) == torch.empty(sizes).stride()
        for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format"):
            memory_format = getattr(torch, name)
            agree(
                lambda n=name: geometry.is_contiguous(sizes, strides, n),
                lambda m=memory_format: t.is_contiguous(memory_format=m),
                name,
            )
            agree(
                lambda n=name: geometry.format_strides(sizes, n),
                lambda m=memory_format: torch.empty(sizes, memory_format=m).stride(),
                name,
            )
        assert geometry.is_non_overlapping_and_dense(
            sizes, strides
        ) == torch.ops.aten.is_non_overlapping_and_dense(t)
        assert geometry.preserve_strides(sizes, strides) == torch.empty_like(t).stride() == t.clone().stride()

    def test_one_dimension(self, g: Geometry) -> None:
        t = tensor_of(g)
        agree(lambda: geometry.t(g), lambda: t.t(), "t")
        agree(lambda: geometry.squeeze(g), lambda: t.squeeze(), "squeeze")
        for d in DIMS:
            agree(lambda d=d: geometry.unsqueeze(g, d), lambda d=d: t.unsqueeze(d), ("unsqueeze", d))
            agree(lambda d=d: geometry.squeeze(g, d), lambda d=d: t.squeeze(d), ("squeeze", d))
            agree(lambda d=d: geometry.unbind(g, d), lambda d=d: t.unbind(d), ("unbind", d))

    def test_two_dimensions(self, g: Geometry) -> None:
        t = tensor_of(g)
        for a, b in itertools.product(DIMS, DIMS):
            agree(
                lambda a=a, b=b: geometry.transpose(g, a, b),
                lambda a=a, b=b: t.transpose(a, b),
                ("transpose", a, b),
            )
            agree(
                lambda a=a, b=b: geometry.movedim(g, (a,), (b,)),
                lambda a=a, b=b: t.movedim(a, b),
                ("movedim", a, b),
            )
            agree(
                lambda a=a, b=b: geometry.squeeze(g, (a, b)),
                lambda a=a, b=b: t.squeeze((a, b)),
                ("squeeze", a, b),
            )
            agree(
                lambda a=a, b=b: flattened(g, a, b),
                lambda a=a, b=b: t.flatten(a, b),
                ("flatten", a, b),
            )
            for k in (-4, -1, 0, 1, 2, 9):
                agree(
                    lambda a=a, b=b, k=k: geometry.diagonal(g, k, a, b),
                    lambda a=a, b=b, k=k: t.diagonal(k, a, b),
                    ("diagonal", k, a, b),
                )

    def test_permute(self, g: Geometry) -> None:
        t = tensor_of(g)
        n = len(g.sizes)
        orders = itertools.islice(itertools.permutations(range(n)), 24)
        for dims in [
            *orders,
            (0,) * n,
            (*range(n), 0),
            tuple(range(-n, 0)),
            (9,) * n,
            tuple(range(n))[::-1][1:],
        ]:
            agree(lambda d=dims: geometry.permute(g, d), lambda d=dims: t.permute(d), ("permute", dims))
        for source, target in [
            ((0, 1), (1, 2)),
            ((0, 1), (0,)),
            ((0, 0), (1, 2)),
            ((0, 1), (-1, -1)),
            ((), ()),
        ]:
            agree(
                lambda s=source, d=target: geometry.movedim(g, s, d),
                lambda s=source, d=target: t.movedim(s, d),
                ("movedim", source, target),
            )

    def test_parts(self, g: Geometry) -> None:
        t = tensor_of(g)
        for d, i in itertools.product(DIMS, (-6, -3, -1, 0, 1, 2, 5)):
            agree(
                lambda d=d, i=i: geometry.select(g, d, i), lambda d=d, i=i: t.select(d, i), ("select", d, i)
            )
            for n in (-1, 0, 1, 3):
                agree(
                    lambda d=d, i=i, n=n: geometry.narrow(g, d, i, n),
                    lambda d=d, i=i, n=n: t.narrow(d, i, n),
                    ("narrow", d, i, n),
                )
                agree(
                    lambda d=d, i=i, n=n: geometry.unfold(g, d, n, i),
                    lambda d=d, i=i, n=n: t.unfold(d, n, i),
                    ("unfold", d, n, i),
                )

    def test_slices(self, g: Geometry) -> None:
        t = tensor_of(g)
        bounds = (None, -9, -2, 0, 1, 3, 9)
        for d, start, end, step in itertools.product((-4, -1, 0, 1), bounds, bounds, (-1, 0, 1, 2, 3, 7)):
            args = (d, start, end, step)
            agree(
                lambda a=args: geometry.slice(g, *a), lambda a=args: torch.ops.aten.slice.Tensor(t, *a), args
            )

    def test_splits(self, g: Geometry) -> None:
        t = tensor_of(g)
        for d, n in itertools.product(DIMS, (-2, -1, 0, 1, 2, 3, 7)):
            agree(lambda d=d, n=n: geometry.split(g, n, d), lambda d=d, n=n: t.split(n, d), ("split", n, d))
            agree(lambda d=d, n=n: geometry.chunk(g, n, d), lambda d=d, n=n: t.chunk(n, d), ("chunk", n, d))
            agree(
                lambda d=d, n=n: geometry.tensor_split(g, n, d),
                lambda d=d, n=n: t.tensor_split(n, d),
                ("tensor_split", n, d),
            )
        for n in (-2, -1, 0, 1, 2, 3, [1], [0, 2], [2, 1], [-1], []):
            for name in ("hsplit", "vsplit", "dsplit"):
                agree(
                    lambda n=n, f=name: getattr(geometry, f)(g, n),
                    lambda n=n, f=name: getattr(t, f)(n),
                    (name, n),
                )
        for d, parts in itertools.product(
            DIMS, ([], [1], [2], [1, 1], [1, 2], [2, 0, 1], [-1, 3], [3, -1], [4, 1])
        ):
            agree(
                lambda d=d, p=parts: geometry.split_with_sizes(g, p, d),
                lambda d=d, p=parts: t.split(p, d),
                ("split", parts, d),
            )
            agree(
                lambda d=d, p=parts: geometry.tensor_split(g, p, d),
                lambda d=d, p=parts: t.tensor_split(p, d),
                ("tensor_split", parts, d),
            )

    def test_view(self, g: Geometry) -> None:
        t = tensor_of(g)
        for shape in shapes_for(g.sizes):
            agree(lambda s=shape: geometry.view(g, s), lambda s=shape: t.view(s), ("view", shape))
            expected = outcome(lambda s=shape: t.view(s))
            if isinstance(expected[0], tuple):
                assert geometry.reshape(g, shape) == expected
            elif "view size is not compatible" in expected[1]:
                assert geometry.reshape(g, shape) is None
            else:
                assert outcome(lambda s=shape: geometry.reshape(g, s)) == expected

    def test_unflatten(self, g: Geometry) -> None:
        t = tensor_of(g)
        inner = [
            (),
            (1,),
            (-1,),
            (2, 2),
            (-1, 2),
            (2, -1),
            (0, 5),
            (-1, 0),
            (-1, -1),
            (3, -2),
            (1, 3, 1),
            (3, 5),
        ]
        for d, shape in itertools.product(DIMS, inner):
            agree(
                lambda d=d, s=shape: geometry.unflatten(g, d, s),
                lambda d=d, s=shape: t.unflatten(d, s),
                ("unflatten", d, shape),
            )

    def test_expand(self, g: Geometry) -> None:
        t = tensor_of(g)
        targets = {g.sizes, (2, *g.sizes), (1, *g.sizes), (1, 1, *g.sizes), (3, 1, *g.sizes), g.sizes[1:]}
        targets |= {(2, *(-1 for _ in g.sizes)), (-1, *g.sizes), (0, *g.sizes)}
        targets |= set() if 0 in g.sizes else {(-3, *g.sizes)}
        targets |= {tuple(5 if s == 1 else s for s in g.sizes), tuple(0 if s == 1 else s for s in g.sizes)}
        targets |= {tuple(s + 1 for s in g.sizes), (2**40, 2**40, *g.sizes), (2**40, 0, 2**40, *g.sizes)}
        for shape in targets:
            agree(
                lambda s=shape: geometry.expand(g, s, t.type()),
                lambda s=shape: t.expand(s),
                ("expand", shape),
            )

    def test_reinterpreted(self, g: Geometry) -> None:
        real = tensor_of(g, torch.float32)
        agree(lambda: geometry.view_as_complex(g), lambda: torch.view_as_complex(real), "view_as_complex")
        agree(
            lambda: geometry.view_as_real(g),
            lambda: torch.view_as_real(tensor_of(g, torch.complex64)),
            "view_as_real",
        )
        names = {
            "uint8": "Byte",
            "int16": "Short",
            "float32": "Float",
            "float64": "Double",
            "complex128": "ComplexDouble",
        }
        for a, b in itertools.product(names, names):
            old, new = getattr(torch, a), getattr(torch, b)
            agree(
                lambda a=a, b=b, o=old, n=new: geometry.view_dtype(
                    g, o.itemsize, n.itemsize, names[a], names[b]
                ),
                lambda o=old, n=new: tensor_of(g, o).view(n),
                ("view", a, b),
            )

    def test_extent(self, g: Geometry) -> None:
        sizes, strides, offset = g
        indices = {
            offset + sum(i * s for i, s in zip(index, strides))
            for index in itertools.product(*map(range, sizes))
        }
        start, end = geometry.storage_extent(g)
        assert (start, end) == ((min(indices), max(indices) + 1) if indices else (offset, offset))
        nbytes = end * 8 if indices else 0
        assert geometry.storage_nbytes(sizes, strides, 8, offset) == nbytes
        agree(
            lambda: geometry.as_strided(*g, 8, max(nbytes - 8, 0)),
            lambda: torch.empty(max(nbytes - 8, 0) // 8, dtype=torch.float64).as_strided(*g),
            "one element short",
        )

    def test_internal_overlap(self, g: Geometry) -> None:
        t = tensor_of(g, torch.float32)
        status = geometry.has_internal_overlap(g.sizes, g.strides)
        assert status == ("NO", "YES", "TOO_HARD")[internal_overlap(t)]
        agree(
            lambda: geometry.assert_no_internal_overlap(g.sizes, g.strides),
            lambda: (t.neg_(), None)[1],
            "neg_",
        )


def flattened(g: Geometry, start: int, end: int) -> Any:
    shape = geometry.flatten_sizes(g.sizes, start, end)
    result = geometry.flatten(g, start, end)
    return Geometry(shape, geometry.contiguous_strides(shape), 0) if result is None else result


def internal_overlap(t: Any) -> int:
    """at::has_internal_overlap, which Python does not reach, from its definition over PyTorch's own predicate."""
    if torch.ops.aten.is_non_overlapping_and_dense(t):
        return 0
    return 1 if any(st == 0 and s > 1 for s, st in zip(t.shape, t.stride())) else 2


def shapes_for(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes to view `sizes` as: factorings of its element count with ones among them, and wrong ones."""
    n = math.prod(sizes)
    shapes = {
        sizes,
        (n,),
        (-1,),
        (n, 1),
        (1, n),
        (1, 1, n, 1),
        (),
        (-1, -1),
        (-2, -1),
        (n + 1,),
        (-1, 0),
        (0, -1),
    }
    shapes |= {
        (*sizes, 1),
        (1, *sizes),
        (-1, *sizes[1:]),
        (*sizes[:-1], -1),
        (-1, 2),
        (2, -1, 2),
        (0, 7),
        (3, 0, 1),
    }
    for a in range(1, 9):
        if n % a == 0:
            shapes |= {(a, n // a), (n // a, a), (a, -1), (n // a, 1, a)}
            shapes |= {(a, b, n // a // b) for b in range(2, 5) if n // a % b == 0}
    return sorted(shapes)


def test_view_of_every_permutation_and_slice() -> None:
    for order in itertools.permutations(range(3)):
        for step in (1, 2):
            g = geometry.slice(geometry.permute(Geometry((2, 4, 6), (24, 6, 1), 0), order), 1, 0, None, step)
            t = tensor_of(g)
            for shape in shapes_for(g.sizes):
                agree(lambda s=shape, g=g: geometry.view(g, s), lambda s=shape, t=t: t.view(s), (g, shape))


AS_STRIDED = [
    ((2, 2), (1,), 0),
    ((2, 2), (12, 13), 0),
    ((2, 2), (-1, 1), 0),
    ((2, 2), (1, 1), -1),
    ((25,), (1,), 0),
    ((24,), (1,), 1),
    ((25, 0), (1, 1), 0),
    ((0,), (1,), 30),
    ((0,), (-1,), 0),
    ((), (), 30),
    ((), (), 24),
    ((), (), 23),
    ((-2, 2), (1, 1), 0),
    ((2**40,), (2**40,), 0),
    ((2**32, 2**32), (0, 0), 0),
    ((1,), (2**62,), 0),
    ((1,), (1,), 2**61),
]


@pytest.mark.parametrize("args", AS_STRIDED, ids=str)
def test_as_strided(args: Any) -> None:
    t = torch.empty(24, dtype=torch.float32)
    agree(lambda: geometry.as_strided(*args, 4, 96), lambda: t.as_strided(*args), args)


def test_as_strided_reaches_the_whole_storage_of_a_view() -> None:
    t = torch.empty(6, dtype=torch.int64)[2:4]
    for n in range(8):
        args = ((n,), (1,), 0)
        agree(lambda a=args: geometry.as_strided(*a, 8, 48), lambda a=args: t.as_strided(*a), args)


SHAPES = [(), (1,), (3,), (0,), (1, 3), (2, 1), (2, 3), (4, 3), (2, 0), (5, 1, 3), (5, 2, 1), (1, 1, 1)]


def test_broadcast_shapes() -> None:
    for shapes in itertools.product(SHAPES, repeat=3):
        tensors = [torch.empty(s) for s in shapes]
        agree(
            lambda s=shapes: list(geometry.broadcast_shapes(*s)),
            lambda t=tensors: list(torch.broadcast_tensors(*t)[0].shape),
            shapes,
        )
    assert geometry.broadcast_shapes() == ()


def overlapping_write(a: Any, b: Any) -> Any:
    a.sigmoid_() if b is None else torch.sigmoid(b, out=a)


def test_overlap_between_views() -> None:
    """`torch.sigmoid(b, out=a)` refuses exactly a partial overlap, `torch.take` and friends any overlap."""
    views = [
        Geometry((4,), (1,), offset) if kind == 0 else Geometry((2, 2), strides, offset)
        for offset in (0, 1, 3, 4, 9)
        for kind, strides in ((0, ()), (1, (2, 1)), (1, (1, 2)), (1, (4, 1)), (1, (0, 1)))
    ]
    storage = torch.zeros(64)
    for ga, gb in itertools.product(views, views):
        if ga.sizes != gb.sizes:
            continue
        a, b = storage.as_strided(*ga), storage.as_strided(*gb)
        theirs = outcome(lambda a=a, b=b: (torch.sigmoid(b, out=a), None)[1])

        def ours(ga: Geometry = ga, gb: Geometry = gb) -> None:
            geometry.assert_no_internal_overlap(ga.sizes, ga.strides)
            geometry.assert_no_partial_overlap(gb, ga)

        assert outcome(ours) == theirs, (ga, gb)
        index = torch.zeros(ga.sizes, dtype=torch.int64)
        theirs = outcome(lambda a=a, b=b, i=index: (torch.gather(b, 0, i, out=a), None)[1])

        def ours_any(ga: Geometry = ga, gb: Geometry = gb) -> None:
            geometry.assert_no_internal_overlap(ga.sizes, ga.strides)
            geometry.assert_no_overlap(ga, gb)

        assert outcome(ours_any) == theirs, (ga, gb)


def test_overlap_counts_bytes() -> None:
    storage = torch.zeros(64, dtype=torch.uint8)
    a, b = Geometry((4,), (1,), 1), Geometry((4,), (1,), 8)
    ours = outcome(lambda: geometry.assert_no_partial_overlap(a, b, 4, 1))
    x, y = storage.view(torch.int32).as_strided(*a), storage.as_strided(*b)
    assert ours == outcome(lambda: (torch.neg(y, out=x), None)[1])
    assert geometry.overlap_status(a, b, 4, 1) == "PARTIAL"
    assert geometry.overlap_status(a, b._replace(offset=20), 4, 1) == "NO"
    assert geometry.overlap_status(a, Geometry((16,), (1,), 4), 4, 1) == "FULL"
    assert geometry.overlap_status(Geometry((0,), (1,), 1), Geometry((4,), (1,), 0)) == "NO"


# --- TensorIterator's output strides, by hypothesis ---------------------------------------------------------------


@st.composite
def operand(draw: st.DrawFn, shape: tuple[int, ...]) -> Geometry:
    """A tensor that broadcasts to `shape`, permuted, sliced, expanded or with stray strides."""
    sizes = list(shape[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else shape)
    sizes = [1 if draw(st.integers(0, 4)) == 0 else s for s in sizes]
    order = draw(st.permutations(range(len(sizes))))
    strides = [0] * len(sizes)
    step = draw(st.sampled_from([1, 1, 1, 2]))
    for dim in order:
        strides[dim] = step
        step *= max(sizes[dim], 1) * draw(st.sampled_from([1, 1, 1, 1, 2]))
    for dim in range(len(sizes)):
        odd = draw(st.integers(0, 9))
        if odd == 0:
            strides[dim] = 0
        elif odd == 1 and sizes[dim] == 1:
            strides[dim] = draw(st.integers(1, 6))
    return Geometry(tuple(sizes), tuple(strides), 0)


@st.composite
def operands(draw: st.DrawFn) -> list[Geometry]:
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 2, 3, 3]), max_size=5)))
    return [draw(operand(shape)) for _ in range(draw(st.integers(1, 3)))]


def theirs_pointwise(tensors: list[Any]) -> Any:
    if len(tensors) == 1:
        return torch.exp(tensors[0])
    return torch.add(*tensors) if len(tensors) == 2 else torch.addcmul(*tensors)


@settings(max_examples=1500, deadline=None, derandomize=True)
@given(operands())
def test_iterator_strides(gs: list[Geometry]) -> None:
    expected = theirs_pointwise([tensor_of(g, torch.float32) for g in gs])
    shape = geometry.broadcast_shapes(*[g.sizes for g in gs])
    assert shape == tuple(expected.shape)
    assert geometry.iterator_strides(shape, tuple((g.sizes, g.strides) for g in gs)) == expected.stride()


@settings(max_examples=500, deadline=None, derandomize=True)
@given(operands())
def test_scalar_operand_counts_in_iterator_strides(gs: list[Geometry]) -> None:
    g = gs[0]
    got = geometry.iterator_strides(g.sizes, ((g.sizes, g.strides), ((), ())))
    assert got == (tensor_of(g, torch.float32) + 1.0).stride()


@settings(max_examples=800, deadline=None, derandomize=True)
@given(operands())
def test_strides_that_clones_keep(gs: list[Geometry]) -> None:
    for g in gs:
        t = tensor_of(g, torch.float32)
        assert geometry.preserve_strides(g.sizes, g.strides) == t.clone().stride()
        assert geometry.is_non_overlapping_and_dense(
            g.sizes, g.strides
        ) == torch.ops.aten.is_non_overlapping_and_dense(t)
        for name in ("contiguous_format", "channels_last", "channels_last_3d"):
            assert geometry.is_contiguous(g.sizes, g.strides, name) == t.is_contiguous(
                memory_format=getattr(torch, name)
            )


@settings(max_examples=800, deadline=None, derandomize=True)
@given(operands(), st.data())
def test_view_of_anything(gs: list[Geometry], data: st.DataObject) -> None:
    g = gs[0]
    shape = data.draw(st.sampled_from(shapes_for(g.sizes)))
    agree(lambda: geometry.view(g, shape), lambda: tensor_of(g).view(shape), shape)
