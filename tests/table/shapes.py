"""Rows of `xtensor/ops/shape/shapes.py`."""

import numpy as np

from . import Row, Sample, T

VIEW = dict(others=("bool",))
PLAIN = [Sample(T(2, 3)), Sample(T()), Sample(T(0)), Sample(T(2, 1, 3))]


def split_samples(dim):
    shape = (4, 3, 2) if dim == 0 else (2, 4, 3) if dim == 1 else (2, 3, 4)
    return [Sample(T(*shape), 2), Sample(T(*shape), (1, 3)), Sample(T(*shape), 3), Sample(T(), 2)]


ROWS = [
    Row("T", [Sample(T(2, 3)), Sample(T())], reference="Tensor.T", covers=("reverse_dims",), **VIEW),
    Row(
        "mT", [Sample(T(2, 1, 3)), Sample(T(3))], reference="Tensor.mT", covers=("matrix_transpose",), **VIEW
    ),
    Row("reshape_as", [Sample(T(2, 3), T(3, 2)), Sample(T(), T(1)), Sample(T(2, 3), T(4))], **VIEW),
    Row(
        "sum_to_size",
        [
            Sample(T(2, 3), 1, 3),
            Sample(T(2, 3), (2, 1)),
            Sample(T(2, 3), (3,)),
            Sample(T(2, 3), (2,)),
            Sample(T(), ()),
        ],
        **VIEW,
    ),
    Row("view_as", [Sample(T(2, 3), T(3, 2)), Sample(T(), T(1)), Sample(T(2, 3), T(4))], **VIEW),
    Row(
        "unfold",
        [Sample(T(5), 0, 3, 1), Sample(T(2, 6), 1, 2, 3), Sample(T(), 0, 1, 1), Sample(T(5), 0, 6, 1)],
        reference="Tensor.unfold",
        **VIEW,
    ),
    Row(
        "view",
        [
            Sample(T(2, 3), (3, 2)),
            Sample(T(2, 3), (-1,)),
            Sample(T(), (1, 1)),
            Sample(T(0), (0, 3)),
            Sample(T(2, 3), (4,)),
        ],
        **VIEW,
    ),
    Row(
        "expand",
        [Sample(T(3), (2, 3)), Sample(T(2, 1), (-1, 3)), Sample(T(), (2,)), Sample(T(3), (2,))],
        **VIEW,
    ),
    Row(
        "as_strided",
        [
            Sample(T(2, 3), (2, 2), (3, 1)),
            Sample(T(2, 3), (3, 2), (1, 1), 1),
            Sample(T(3), (), (), 2),
            Sample(T(0), (0,), (1,)),
            Sample(T(3), (4,), (1,)),
        ],
        **VIEW,
    ),
    Row(
        "broadcast_to",
        [Sample(T(3), (2, 3)), Sample(T(), (2,)), Sample(T(2, 1, 3), (2, 2, 3)), Sample(T(3), (2,))],
        numpy=np.broadcast_to,
        **VIEW,
    ),
    Row("chunk", [Sample(T(2, 3), 2, 1), Sample(T(3), 2), Sample(T(0), 3), Sample(T(), 2)], **VIEW),
    Row(
        "diagonal",
        [
            Sample(T(2, 3)),
            Sample(T(2, 3), 1),
            Sample(T(2, 3), -1),
            Sample(T(2, 1, 3), 0, 0, 2),
            Sample(T(2, 3), 5),
            Sample(T(3)),
        ],
        **VIEW,
    ),
    Row("dsplit", split_samples(2), **VIEW),
    Row("expand_as", [Sample(T(3), T(2, 3)), Sample(T(), T(2)), Sample(T(2), T(3))], **VIEW),
    Row("flatten", [*PLAIN, Sample(T(2, 1, 3), 1), Sample(T(2, 1, 3), 0, 1), Sample(T(2, 3), 1, 0)], **VIEW),
    Row("hsplit", [*split_samples(1), Sample(T(4), 2)], **VIEW),
    Row(
        "moveaxis", [Sample(T(2, 1, 3), 0, 2), Sample(T(2, 1, 3), (0, 1), (2, 0))], numpy=np.moveaxis, **VIEW
    ),
    Row(
        "movedim",
        [Sample(T(2, 1, 3), 0, 2), Sample(T(2, 1, 3), (0, 1), (2, 0)), Sample(T(2, 1, 3), (0, 0), (1, 2))],
        numpy=np.moveaxis,
        **VIEW,
    ),
    Row(
        "narrow",
        [
            Sample(T(2, 3), 1, 1, 2),
            Sample(T(2, 3), 0, -1, 1),
            Sample(T(0), 0, 0, 0),
            Sample(T(2, 3), 1, 2, 2),
            Sample(T(), 0, 0, 1),
        ],
        covers=("view_adjoint",),
        **VIEW,
    ),
    Row(
        "permute",
        [Sample(T(2, 1, 3), (2, 0, 1)), Sample(T(2, 3), (-1, 0)), Sample(T(), ()), Sample(T(2, 3), (0, 0))],
        numpy=np.transpose,
        **VIEW,
    ),
    Row("ravel", PLAIN, numpy=np.ravel, **VIEW),
    Row(
        "reshape",
        [
            Sample(T(2, 3), (3, 2)),
            Sample(T(2, 3), (-1,)),
            Sample(T(), (1, 1)),
            Sample(T(0), (0, 3)),
            Sample(T(2, 1, 3), (6,)),
            Sample(T(2, 3), (4, 2)),
            Sample(T(0), (-1, 0)),
        ],
        numpy=np.reshape,
        **VIEW,
    ),
    Row(
        "select",
        [Sample(T(2, 3), 0, 1), Sample(T(2, 3), -1, -2), Sample(T(2, 3), 0, 2), Sample(T(), 0, 0)],
        **VIEW,
    ),
    Row(
        "slice",
        [
            Sample(T(2, 3), 1, 1),
            Sample(T(2, 3), 1, 0, 3, 2),
            Sample(T(2, 3), 0, -1),
            Sample(T(3), 0, 2, 1),
            Sample(T(0), 0, 0, 5),
        ],
        reference=lambda x, dim=0, start=None, end=None, step=1: x[
            (slice(None),) * dim + (slice(start, end, step),)
        ],
        **VIEW,
    ),
    Row(
        "split",
        [
            Sample(T(2, 3), 2, 1),
            Sample(T(2, 3), (1, 2), 1),
            Sample(T(3), 5),
            Sample(T(0), 2),
            Sample(T(3), (1, 1)),
        ],
        covers=("equal_split",),
        **VIEW,
    ),
    Row("split_with_sizes", [Sample(T(2, 3), (1, 2), 1), Sample(T(3), (0, 3)), Sample(T(3), (1, 1))], **VIEW),
    Row(
        "squeeze",
        [
            Sample(T(2, 1, 3)),
            Sample(T(2, 1, 3), 1),
            Sample(T(2, 1, 3), 0),
            Sample(T(1, 2, 1), (0, 2)),
            Sample(T()),
            Sample(T(), 0),
        ],
        numpy=lambda a, dim=None: (
            np.squeeze(a)
            if dim is None
            else a.reshape([n for i, n in enumerate(a.shape) if n != 1 or i not in np.atleast_1d(dim)])
        ),
        **VIEW,
    ),
    Row("swapaxes", [Sample(T(2, 1, 3), 0, 2), Sample(T(2, 3), -1, 0)], numpy=np.swapaxes, **VIEW),
    Row("swapdims", [Sample(T(2, 1, 3), 0, 2), Sample(T(2, 3), -1, 0)], numpy=np.swapaxes, **VIEW),
    Row("t", [Sample(T(2, 3)), Sample(T(3)), Sample(T()), Sample(T(2, 1, 3))], **VIEW),
    Row(
        "tensor_split",
        [Sample(T(2, 3), 2, 1), Sample(T(2, 3), (1, 2), 1), Sample(T(3), 5), Sample(T(), 2)],
        **VIEW,
    ),
    Row(
        "transpose",
        [
            Sample(T(2, 1, 3), 0, 2),
            Sample(T(2, 3), -1, 0),
            Sample(T(), 0, -1),
            Sample(T(0), 0, 0),
            Sample(T(2, 3), 0, 2),
        ],
        numpy=lambda a, x, y: np.swapaxes(a, x, y) if a.ndim else a,
        **VIEW,
    ),
    Row(
        "unbind",
        [Sample(T(2, 3)), Sample(T(2, 3), 1), Sample(T(0)), Sample(T())],
        covers=("views_adjoint",),
        **VIEW,
    ),
    Row(
        "unflatten",
        [Sample(T(2, 6), 1, (2, 3)), Sample(T(2, 6), -1, (-1, 2)), Sample(T(2, 6), 1, (4, 2))],
        **VIEW,
    ),
    Row(
        "unsqueeze",
        [Sample(T(2, 3), 1), Sample(T(), 0), Sample(T(2, 3), -1), Sample(T(0), 0), Sample(T(2, 3), 3)],
        numpy=np.expand_dims,
        **VIEW,
    ),
    Row("vsplit", split_samples(0), **VIEW),
]
