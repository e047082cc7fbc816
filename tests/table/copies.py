"""Rows of `xtensor/ops/shape/copies.py`."""

from . import OTHERS, Row, Sample, T

X = T(3, 4)
ALL = (*OTHERS, "int32", "float64")


def row(name, *calls, **options):
    samples = [Sample(X, *args) for args in calls]
    return Row(name, samples, others=ALL, **options)


ROWS = [
    row("alias_copy", ()),
    row("as_strided_copy", ((2, 2), (4, 1)), ((2, 2), (1, 2), 1), layouts=False),
    row("detach_copy", ()),
    row("diagonal_copy", (), (1,), (-1, 1, 0), (0, 0, 0)),
    Row("expand_copy", [Sample(T(3, 1), (3, 4)), Sample(T(), (2,)), Sample(X, (2, 4))], others=ALL),
    # PyTorch writes to a strided `out` as if it were contiguous.
    row("narrow_copy", (1, 1, 2), (0, 1, 5), (2, 0, 0), (-3, 0, 0), outs=("empty", "right", "wrong")),
    row("permute_copy", ((1, 0),), ((0, 0),)),
    row("select_copy", (1, -1), (0, 3)),
    row("slice_copy", (1, 1, 4, 2), (0,)),
    Row("squeeze_copy", [Sample(T(3, 1, 1)), Sample(T(3, 1, 1), 1), Sample(T(3, 1, 1), (0, 2))], others=ALL),
    row("t_copy", ()),
    row("transpose_copy", (0, 1), (0, 2)),
    row("unfold_copy", (1, 2, 1), (0, 4, 1)),
    row("unsqueeze_copy", (1,), (-1,), (4,)),
    row("view_copy", ((2, 6),), ((5, 2),), layouts=False),
    Row(
        "view_as_real_copy",
        [Sample(T(2, 3)), Sample(T())],
        dtype="complex64",
        others=("complex128", "float32"),
    ),
    Row(
        "view_as_complex_copy", [Sample(T(3, 2)), Sample(T(3, 3))], others=("float64", "int64"), layouts=False
    ),
    row("split_copy", (2,), (3, 1), outs=()),
    row("split_with_sizes_copy", ((1, 2),), ((1, 3), 1), ((1, 1),), outs=()),
    row("unbind_copy", (), (1,), outs=()),
    row("unsafe_chunk", (2,), (3, 1), (0,), strides=False),
    row("unsafe_split", (2,), (3, 1), strides=False, without=("out",)),
    row("unsafe_split_with_sizes", ((1, 2),), ((1, 3), 1), strides=False, without=("out",)),
]
