"""Rows of `xtensor/ops/linalg/ldl_factors.py`: blocks of one and of two, batches, what is refused."""

from . import Row, Sample, T

PLAIN = dict(strides=False, grad=False, layouts=False)
DEFINITE = T(values=[[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 1.0]], smooth=False)
INDEFINITE = T(
    values=[[0.0, 1.0, 2.0, 0.5], [1.0, 0.0, 3.0, -1.0], [2.0, 3.0, 0.25, 1.0], [0.5, -1.0, 1.0, 0.0]]
)
BATCH = T(values=[[[0.0, 2.0], [2.0, 0.0]], [[3.0, 1.0], [1.0, -2.0]]])
FACTORS = T(values=[[2.0, 0.0], [0.5, 3.0]])
BLOCK = T(values=[[0.5, 0.0], [2.0, 0.25]])

ROWS = [
    Row(
        "linalg_ldl_factor_ex",
        [
            Sample(DEFINITE),
            Sample(INDEFINITE),
            Sample(BATCH),
            Sample(INDEFINITE, hermitian=True),
            Sample(T(2, 3)),
        ],
        reference="linalg.ldl_factor_ex",
        others=("float64", "int64"),
        **PLAIN,
    ),
    Row(
        "linalg_ldl_solve",
        [
            Sample(FACTORS, T(values=[1, 2], dtype="int32"), T(2, 3)),
            Sample(BLOCK, T(values=[-2, -2], dtype="int32"), T(2, 3)),
            Sample(FACTORS, T(values=[2, 2], dtype="int32"), T(3, 2, 1)),
            Sample(FACTORS, T(values=[1, 2], dtype="int32"), T(3, 1)),
        ],
        reference="linalg.ldl_solve",
        others=("float64",),
        **PLAIN,
    ),
]
