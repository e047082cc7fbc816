"""What moves, chooses, counts or joins elements: exact wherever it computes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import gradients
from ..engine import enable_grad
from ..ops.shape import view_scatter
from ..tensor import Tensor
from .cases import FLOATS, INTEGERS, Cases, booleans, case, drawn, fixed, indices

__all__ = ["CASES"]

ANY = (*FLOATS, *INTEGERS)
SINGLES = ("float32", "float64")
X, ROWS = drawn(37, 113), indices(67, below=37)
INDEX = indices(37, 113, below=37)
PAD: Any = np.pad  # its stubs know modes by their literals only
SORTED = fixed(np.linspace(-2, 2, 1031))


def put_rows(
    a: np.ndarray, dim: int, index: np.ndarray, source: Any, add: bool = False, alpha: float = 1
) -> np.ndarray:
    made = a.copy()
    if add:
        np.add.at(made, index, alpha * source)
    else:
        made[index] = source
    return made


def scattered(a: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    made = a.copy()
    np.add.at(made, (index, np.arange(a.shape[1])[None]), source)
    return made


def changed(a: np.ndarray, where: Any, source: Any) -> np.ndarray:
    made = a.copy()
    made[where] = source
    return made


UNIQUE = fixed(np.random.default_rng(0).permutation(37)[:23])

CASES: Cases = {
    "masked_fill": case(X, booleans(37, 113), 1.5, numpy=lambda a, m, v: np.where(m, v, a)),
    "masked_scatter": case(
        X, booleans(37, 113), drawn(37 * 113), numpy=lambda a, m, s: changed(a, m, s[: m.sum()]), dtypes=ANY
    ),
    "index": case(X, [ROWS], dims=(0,), numpy=lambda a, i, dims: a[i[0]], dtypes=ANY),
    "index_put": [
        case(
            *(X, [UNIQUE], drawn(23, 113)),
            dims=(0,),
            accumulate=False,
            numpy=lambda a, i, v, dims, accumulate: changed(a, i[0], v),
            dtypes=ANY,
        ),
        case(
            *(X, [ROWS], drawn(67, 113)),
            dims=(0,),
            accumulate=True,
            numpy=lambda a, i, v, dims, accumulate: put_rows(a, 0, i[0], v, True),
        ),
    ],
    "flip": case(X, (0, 1), numpy=np.flip, dtypes=ANY),
    "roll": case(X, 5, 1, numpy=np.roll, dtypes=ANY),
    "rot90": case(X, numpy=np.rot90, dtypes=ANY),
    "repeat": case(X, (2, 3), numpy=np.tile, dtypes=ANY),
    "repeat_elements": case(X, 3, 1, numpy=np.repeat, dtypes=ANY),
    "tril": case(X, 2, numpy=np.tril, dtypes=ANY),
    "triu": case(X, 2, numpy=np.triu, dtypes=ANY),
    "diag_embed": case(X, numpy=lambda a: a[..., None] * np.eye(113, dtype=a.dtype), dtypes=ANY),
    "constant_pad_nd": case(
        X,
        (3, 2, 1, 4),
        1.5,
        numpy=lambda a, p, v: np.pad(a, ((1, 4), (3, 2)), constant_values=v),
        dtypes=FLOATS,
    ),
    "border_pad": [
        case(
            drawn(5, 7, 1031),
            (3, 2),
            border,
            numpy=lambda a, p, b, mode=mode: PAD(a, ((0, 0), (0, 0), p), mode),
        )
        for border, mode in dict(reflect="reflect", replicate="edge", circular="wrap").items()
    ],
    "gather": case(X, 0, INDEX, numpy=lambda a, d, i: np.take_along_axis(a, i, d), dtypes=ANY),
    "scatter": case(
        *(
            X,
            0,
            fixed(np.random.default_rng(0).permuted(np.tile(np.arange(37)[:, None], 113), axis=0)),
            X,
        ),
        numpy=lambda a, d, i, s: changed(a, (i, np.arange(113)[None]), s),
        dtypes=ANY,
    ),
    "scatter_add": [case(X, 0, INDEX, X, numpy=scattered, dtypes=SINGLES + INTEGERS), case(X, 0, INDEX, X)],
    "scatter_reduce": [case(X, 0, INDEX, X, reduce) for reduce in ("sum", "amax", "amin", "mean", "prod")],
    "index_select": case(X, 0, ROWS, numpy=lambda a, d, i: a[i], dtypes=ANY),
    "index_add": case(
        X,
        0,
        ROWS,
        drawn(67, 113),
        alpha=2,
        numpy=lambda a, dim, index, source, alpha: put_rows(a, dim, index, source, True, alpha),
        dtypes=SINGLES,
    ),
    "index_copy": case(X, 0, UNIQUE, drawn(23, 113), numpy=put_rows, dtypes=ANY),
    "index_fill": case(X, 0, UNIQUE, 1.5, numpy=put_rows),
    "index_reduce": [
        case(X, 0, ROWS, drawn(67, 113), reduce, dtypes=SINGLES) for reduce in ("prod", "amax", "mean")
    ],
    "take": case(X, indices(1031, below=37 * 113), numpy=np.take, dtypes=ANY),
    "put": case(
        X,
        fixed(np.random.default_rng(0).permutation(37 * 113)[:1031]),
        drawn(1031),
        numpy=lambda a, i, v: changed(a.reshape(-1), i, v).reshape(a.shape),
        dtypes=ANY,
    ),
    "nonzero_static": case(
        fixed(np.arange(1031) % 3 - 1.0),
        size=800,
        numpy=lambda a, size: np.concatenate([np.argwhere(a), np.full((size - np.count_nonzero(a), 1), -1)]),
    ),
    "cat": case([X, drawn(5, 113)], numpy=np.concatenate, dtypes=ANY),
    "stack": case([X, X], 1, numpy=np.stack, dtypes=ANY),
    "block_diag": case([drawn(29, 41), drawn(37, 5)], dtypes=SINGLES),
    "combinations": case(drawn(53), 2, False, dtypes=SINGLES),
    "pixel_shuffle": case(drawn(2, 12, 17, 19), 2),
    "pixel_unshuffle": case(drawn(2, 3, 34, 38), 2),
    "channel_shuffle": case(drawn(2, 12, 17, 19), 3),
    "native_channel_shuffle": case(drawn(2, 12, 17, 19), 3),
    "channel_windows": case(drawn(3, 17, 29), 3),
    "im2col": case(drawn(2, 3, 23, 29), (3, 2), (1, 2), (1, 0), (2, 1)),
    "col2im": case(drawn(2, 18, 12 * 27), (23, 29), (3, 2), (1, 2), (1, 0), (2, 1)),
    "searchsorted": [
        case(SORTED, drawn(4_099), numpy=np.searchsorted, dtypes=SINGLES),
        case(
            SORTED,
            SORTED,
            right=True,
            numpy=lambda a, b, right: np.searchsorted(a, b, "right"),
            dtypes=SINGLES,
        ),
    ],
    "isin": case(fixed(np.arange(1031) % 13), fixed(np.arange(5) * 2), numpy=np.isin, dtypes=("int64",)),
    "bincount": case(
        indices(4_099, below=29), None, 29, numpy=lambda a, w, n: np.bincount(a, w, n), dtypes=("int64",)
    ),
    "histc": case(
        fixed(np.arange(4_099) % 97 / 16.0),
        *(0.0, 8.0, 16),
        numpy=lambda a, low, high, bins: np.histogram(a, bins, (low, high))[0],
        dtypes=SINGLES,
    ),
    "histogram_edges": case(drawn(1031, 1), (7,), None, dtypes=SINGLES),
    "histogram_counts": case(
        fixed(np.arange(1031)[:, None] % 97 / 16.0),
        [fixed(np.linspace(0, 8, 17))],
        None,
        False,
        dtypes=SINGLES,
    ),
    "quantiles": case(
        *(drawn(29, 149), fixed([0.0, 0.3, 0.5, 1.0]), 1, False, "linear", False),
        numpy=lambda a, q, dim, *_: np.quantile(a, q, axis=dim),
        dtypes=SINGLES,
    ),
    "frexp": case(drawn(4_099), numpy=np.frexp),
    "_equal": case(X, X, numpy=np.array_equal),
    "one_hot_kernel": case(
        indices(1031, below=17), 17, numpy=lambda a, n: np.eye(n, dtype=np.int64)[a], dtypes=("int64",)
    ),
    "embedding": case(drawn(53, 31), indices(67, 5, below=53), numpy=lambda w, i: w[i]),
    "embedding_renorm": case(drawn(53, 31), indices(17, below=53), 1.0, 2.0),
    "segment_reduce": [
        case(drawn(37, 113), fixed([5, 0, 20, 12]), reduce, dtypes=SINGLES)
        for reduce in ("sum", "mean", "max")
    ],
    "max_unpool": case(
        drawn(2, 3, 13, 17),
        fixed(np.broadcast_to((np.arange(221) * 4).reshape(13, 17), (2, 3, 13, 17)).copy()),
        (26, 34),
        dtypes=SINGLES,
    ),
    "max_pool2d_scatter": case(
        drawn(2, 3, 13, 17),
        fixed(np.broadcast_to((np.arange(221) * 4).reshape(13, 17), (2, 3, 13, 17)).copy()),
        (26, 34),
        dtypes=SINGLES,
    ),
}

# -- views: nothing runs until they are read, or differentiated


def adjoint(view: Any) -> Any:
    """The gradient of a view's input, of the gradients of its results."""

    def differentiated(x: Tensor, *given: Tensor) -> Any:
        with enable_grad():
            leaf = x.detach().requires_grad_()
            made = view(leaf)
            made = list(made) if len(given) > 1 else [made]
            return gradients.grad(made, leaf, list(given))

    return differentiated


VIEWED: dict[str, Any] = {
    "transpose": lambda a: a.T,
    "select": lambda a: a[:, 5],
    "slice": lambda a: a[3:30:4, 1::3],
    "expand": lambda a: a[:, None].expand(37, 3, 113) if isinstance(a, Tensor) else np.stack([a] * 3, 1),
    "diagonal": lambda a: a.diagonal(2),
    "unflatten": lambda a: a[:36].reshape(4, 9, 113),
    "permute": lambda a: a.reshape(37, 1, 113).transpose(2, 0) if isinstance(a, Tensor) else a.T[:, None],
}
for _name, _view in VIEWED.items():
    CASES[_name] = case(X, call=_view, numpy=_view, dtypes=ANY)
CASES["view_adjoint"] = case(
    *(X, drawn(37, 30)),
    call=adjoint(lambda a: a[:, 10:70:2]),
    numpy=lambda a, g: changed(np.zeros_like(a), (slice(None), slice(10, 70, 2)), g),
)
CASES["views_adjoint"] = case(
    *(X, drawn(20, 113), drawn(17, 113)),
    call=adjoint(lambda a: a.split([20, 17])),
    numpy=lambda a, g, h: np.concatenate([g, h]),
)

# -- writes through views: their arguments are made by the public functions
CASES |= {
    "select_scatter": case(
        X,
        drawn(113),
        call=lambda a, s: view_scatter.select_scatter(a, s, 0, 3),
        numpy=lambda a, s: changed(a, 3, s),
        dtypes=ANY,
    ),
    "slice_scatter": case(
        *(X, drawn(37, 30)),
        call=lambda a, s: view_scatter.slice_scatter(a, s, 1, 10, 70, 2),
        numpy=lambda a, s: changed(a, (slice(None), slice(10, 70, 2)), s),
        dtypes=ANY,
    ),
    "diagonal_scatter": case(
        X,
        drawn(37),
        call=view_scatter.diagonal_scatter,
        numpy=lambda a, s: changed(a, (np.arange(37),) * 2, s),
        dtypes=ANY,
    ),
    "as_strided_scatter": case(
        *(X, drawn(5, 7)),
        call=lambda a, s: view_scatter.as_strided_scatter(a, s, (5, 7), (113, 2), 4),
        numpy=lambda a, s: changed(a, (slice(0, 5), slice(4, 18, 2)), s),
        dtypes=ANY,
    ),
}
