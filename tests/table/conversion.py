"""Rows of `xtensor/ops/tensor/conversion.py`."""

import numpy as np

from . import Dtype, Row, Sample, T, unary


def shorthand(name):
    """A method that converts to one dtype; an integer result has no gradient."""
    covers = ("_to_copy",) if name == "double" else ()
    return Row(name, [Sample(T(2, 3)), Sample(T()), Sample(T(0))], covers=covers)


def refuse(tensor, device):
    raise RuntimeError("Invalid device")


ROWS = [
    *map(
        shorthand, ("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int")
    ),
    *map(shorthand, ("long", "short")),
    Row("contiguous", unary()),
    Row(
        "copy_",
        [
            Sample(T(2, 3, grad=False), T(2, 3)),
            Sample(T(2, 3, grad=False), T(3)),
            Sample(T(2, 3, grad=False), T(dtype="float64")),
            Sample(T(2, 3, grad=False), T(2)),
            Sample(T(3, grad=False), T(2, 3)),
            Sample(T(2, 3, grad=False), 2),
            Sample(T(2, 3, grad=False), [1, 2]),
        ],
        layouts=False,
        grad=False,
    ),
    Row("cpu", [Sample(T(2, 3))], meta=False),
    # Whatever devices there are, a method refuses another kind; the way between devices is in test_conversion.py.
    Row("cuda", [Sample(T(2), "cpu")], reference=refuse, others=(), layouts=False, grad=False, meta=False),
    Row("tpu", [Sample(T(2), "cpu")], reference=refuse, others=(), layouts=False, grad=False, meta=False),
    Row(
        "fill_diagonal_",
        [
            Sample(T(3, 3), 1.5),
            Sample(T(7, 2), 2, wrap=True),
            Sample(T(2, 7), 2),
            Sample(T(2, 2, 2), 3),
            Sample(T(3), 1),
            Sample(T(2, 3, 2), 1),
        ],
        layouts=False,
        grad=False,
    ),
    Row("is_pinned", [Sample(T(2))], layouts=False, grad=False),
    Row("is_shared", [Sample(T(2))], layouts=False, grad=False),
    Row("item", [Sample(T()), Sample(T(1)), Sample(T(2, 3)), Sample(T(0))], grad=False, meta=False),
    Row("pin_memory", [Sample(T(2))], reference=lambda t, device=None: t, layouts=False, grad=False),
    Row("share_memory_", [Sample(T(2))], layouts=False, grad=False),
    Row(
        "to",
        [
            Sample(T(2, 3), Dtype("float64")),
            Sample(T(2, 3), Dtype("int64")),
            Sample(T(2, 3), "cpu", Dtype("float16")),
            Sample(T(2, 3), T(1, dtype="int8", grad=False)),
            Sample(T(2, 3), copy=True),
            Sample(T(), Dtype("complex64")),
            Sample(T(0), Dtype("bool")),
            Sample(T(2, 3), 1, 2, 3, 4, 5),
        ],
    ),
    Row(
        "tolist",
        [Sample(T(2, 3)), Sample(T()), Sample(T(0))],
        others=("int64", "bool"),
        grad=False,
        meta=False,
    ),
    Row(
        "type",
        [
            Sample(T(2, 3)),
            Sample(T(2, 3), Dtype("float64")),
            Sample(T(2), "torch.IntTensor"),
            Sample(T(2), "foo"),
        ],
        meta=False,
    ),
    Row("type_as", [Sample(T(2, 3), T(1, dtype="float64", grad=False))]),
    Row("clone", unary(), numpy=np.copy),
    Row(
        "fill",
        [Sample(T(2, 3), 1.5), Sample(T(2, 3), T()), Sample(T(), 2), Sample(T(0), 1)],
        numpy=lambda a, v: np.full_like(a, v),
    ),
    Row(
        "is_nonzero",
        [Sample(T(1)), Sample(T()), Sample(T(2, 3)), Sample(T(0))],
        numpy=lambda a: bool(a),
        meta=False,
    ),
    Row("zero_", unary(), reference="Tensor.zero_", numpy=np.zeros_like, grad=False),
]
