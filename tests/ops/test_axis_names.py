"""`axis` for `dim`, wherever PyTorch's parser takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xtensor

METHODS = {
    "gather": {}, "take_along_dim": {}, "index_select": {}, "scatter": dict(src=1), "scatter_": dict(src=1), "scatter_add": dict(src=1),
    "scatter_add_": dict(src=1), "scatter_reduce": dict(src=1, reduce="sum"), "scatter_reduce_": dict(src=1, reduce="sum"),
    "index_add": dict(source=1), "index_add_": dict(source=1), "index_copy": dict(source=1), "index_copy_": dict(source=1),
    "index_fill": dict(value=2.0), "index_fill_": dict(value=2.0), "cumsum_": None, "cumprod_": None,
}  # fmt: skip


def called(t: Any, name: str) -> Any:
    x = t.arange(12.0).reshape(3, 4)
    options = METHODS[name]
    if options is None:
        return getattr(x.clone(), name)(axis=0)
    rows = name.startswith("index")
    given = {key: x if value == 1 else value for key, value in options.items()}
    if name == "take_along_dim":
        return x.take_along_dim(t.tensor([[0], [1], [2]]), axis=1)
    index = t.tensor([0, 1, 2]) if rows else t.tensor([[0], [1], [2]])
    return getattr(x.clone(), name)(axis=0 if rows else 1, index=index, **given)


@pytest.mark.parametrize("name", METHODS)
def test_axis_of_methods(torch: Any, name: str) -> None:
    np.testing.assert_array_equal(np.asarray(called(xtensor, name)), np.asarray(called(torch, name)))


def test_axis_of_functions() -> None:
    x = xtensor.arange(12.0).reshape(3, 4)
    assert xtensor.stack((x, x), axis=-1).shape == (3, 4, 2)
    assert xtensor.select_scatter(x, xtensor.ones(4), axis=0, index=1)[1].tolist() == [1, 1, 1, 1]
    assert xtensor.slice_scatter(x, xtensor.ones(1, 4), axis=0, start=1, end=2)[1].tolist() == [1, 1, 1, 1]
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        xtensor.stack((x, x), axes=-1)
