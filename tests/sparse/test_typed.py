"""`sparse.FloatTensor` and the like: the older constructors, as GCN programs have them."""

from __future__ import annotations

import warnings
from typing import Any

import xtensor


def used(t: Any) -> Any:
    i, v = t.tensor([[0, 1], [1, 2]]), t.tensor([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = t.sparse.FloatTensor(i, v, t.Size([3, 3]))
        others = [t.sparse.FloatTensor(i, v), t.sparse.DoubleTensor(2, 3), t.sparse.LongTensor()]
        errors = []
        for args in (([[0]], [1.0]), ("a",)):
            try:
                t.sparse.FloatTensor(*args)
            except TypeError as error:
                errors.append(str(error).replace("xtensor", "torch").partition("\n")[0])
    return (
        t.spmm(made, t.eye(3)).tolist(),
        made.is_coalesced(),
        [(tuple(o.shape), str(o.dtype).partition(".")[2]) for o in others],
        [isinstance(x, t.sparse.FloatTensor) for x in (made, v, others[1])],
        errors,
    )


def test_as_in_pytorch(torch: Any) -> None:
    assert used(xtensor) == used(torch)
