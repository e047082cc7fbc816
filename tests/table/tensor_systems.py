"""Rows of `xtensor/ops/linalg/tensor_systems.py`."""

from . import Row, Sample, T

PLAIN = dict(others=("float64",), strides=False)
UPPER = T(values=[[2.0, 0.5], [0.0, 1.5]])
SYSTEM = T(
    values=[[[3.0, 0.5, 0.0, 1.0], [0.0, 2.0, 0.5, 0.0]], [[0.5, 0.0, 4.0, 1.0], [1.0, 0.0, 0.5, 2.5]]]
)

ROWS = [
    Row(
        "triangular_solve",
        [
            Sample(T(2, 3), UPPER),
            Sample(T(2, 3), UPPER, transpose=True),
            Sample(T(3, 2, 1), UPPER, unitriangular=True),
            Sample(T(3, 1), UPPER),
            Sample(T(2), UPPER),
        ],
        outs=("empty", "right"),
        **PLAIN,
    ),
    Row(
        "linalg.tensorinv",
        [Sample(SYSTEM, 2), Sample(SYSTEM, ind=1), Sample(SYSTEM, 0)],
        reference="linalg.tensorinv",
        **PLAIN,
    ),
    Row(
        "linalg.tensorsolve",
        [Sample(SYSTEM, T(2, 2)), Sample(SYSTEM.but(layout="transposed"), T(2, 2)), Sample(SYSTEM, T(3))],
        reference="linalg.tensorsolve",
        **PLAIN,
    ),
    Row(
        "linalg.vander",
        [Sample(T(3)), Sample(T(2, 3), N=2), Sample(T()), Sample(T(2), N=4)],
        reference="linalg.vander",
        others=("int64", "bool", "complex64"),
        strides=False,
    ),
    Row(
        "linalg.diagonal",
        [Sample(T(2, 3)), Sample(T(2, 3, 4), offset=1), Sample(T(2, 3, 4), dim1=0, dim2=2)],
        reference="linalg.diagonal",
    ),
]
