"""Rows of `xtensor/ops/linalg/lu_factors.py`, on matrices that are far from singular."""

from . import Row, Sample, T

PLAIN = dict(others=("float64",), strides=False)
A = T(values=[[3.0, 1.0, 0.5], [-1.0, 4.0, 1.0], [0.5, -0.5, 2.0]])
PACKED = T(values=[[3.0, 1.0], [0.5, 2.0]])
PIVOTS = T(values=[2, 2], dtype="int32")

ROWS = [
    # The gradient: PyTorch's permutation asks for none, ours gets zeros; tests of linalg have it.
    Row(
        "linalg_lu", [Sample(A), Sample(T(2, 3)), Sample(T(3, 2))], reference="linalg.lu", grad=False, **PLAIN
    ),
    Row(
        "linalg_lu_factor_ex",
        [Sample(A), Sample(T(2, 3)), Sample(T(2, 3, 2)), Sample(T(3)), Sample(A, pivot=False)],
        reference="linalg.lu_factor_ex",
        **PLAIN,
    ),
    Row(
        "lu",
        [Sample(A), Sample(A, get_infos=True), Sample(T(2, 3, 3)), Sample(T(3))],
        reference="lu",
        without=("out",),
        **PLAIN,
    ),
    Row(
        "linalg_lu_solve",
        [
            Sample(PACKED, PIVOTS, T(2, 3)),
            Sample(PACKED, PIVOTS, T(3, 2), left=False),
            Sample(PACKED, PIVOTS, T(2, 2, 1), adjoint=True),
            Sample(PACKED, PIVOTS, T(3, 1)),
            Sample(PACKED, T(2), T(2, 3)),
        ],
        reference="linalg.lu_solve",
        covers=(),
        **PLAIN,
    ),
    Row(
        "lu_solve",
        [Sample(T(2, 3), PACKED, PIVOTS), Sample(T(2), PACKED, PIVOTS)],
        reference="lu_solve",
        **PLAIN,
    ),
    Row(
        "lu_unpack",
        [
            Sample(PACKED, PIVOTS),
            Sample(T(2, 3), PIVOTS),
            Sample(T(3, 2), T(values=[2, 3], dtype="int32")),
            Sample(PACKED, PIVOTS, unpack_pivots=False),
            Sample(PACKED, PIVOTS, unpack_data=False),
            Sample(PACKED, T(values=[2, 3], dtype="int32")),
        ],
        covers=("lu_unpack_factors",),
        outs=("empty", "right"),
        **PLAIN,
    ),
]
