"""SciPy's matrices in and out, as PyTorch's programs do it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xtensor

scipy_sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

WHOLE = np.array([[0.0, 2.0, 0.0], [1.5, 0.0, 0.0], [0.0, 0.0, -3.0], [0.0, 4.0, 0.0]])


def test_coordinates_in_and_out() -> None:
    matrix = scipy_sparse.coo_matrix(WHOLE)
    index = np.vstack((matrix.row, matrix.col))
    made = xtensor.sparse_coo_tensor(xtensor.LongTensor(index), xtensor.from_numpy(matrix.data), matrix.shape)
    assert made.dtype is xtensor.float64 and np.array_equal(made.to_dense().numpy(), WHOLE)
    again = xtensor.sparse_coo_tensor(index, matrix.data, xtensor.Size(matrix.shape))
    assert np.array_equal(again.to_dense().numpy(), WHOLE)
    out: Any = made.coalesce()
    back = scipy_sparse.coo_matrix((out.values().numpy(), out.indices().numpy()), shape=tuple(out.shape))
    assert (back != matrix).nnz == 0
    rows, columns = out.indices()
    back = scipy_sparse.csr_matrix((out.values(), (rows, columns)), shape=out.shape)
    assert np.array_equal(back.toarray(), WHOLE)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
def test_compressed_in_and_out(layout: str) -> None:
    matrix = getattr(scipy_sparse, f"{layout}_matrix")(WHOLE)
    if layout == "bsr":
        matrix = scipy_sparse.bsr_matrix(WHOLE, blocksize=(2, 1))
    make = getattr(xtensor, f"sparse_{layout}_tensor")
    made = make(matrix.indptr, matrix.indices, matrix.data, size=matrix.shape)
    assert np.array_equal(made.to_dense().numpy(), WHOLE)
    first, second = ("ccol_indices", "row_indices") if layout == "csc" else ("crow_indices", "col_indices")
    parts = (made.values().numpy(), getattr(made, second)().numpy(), getattr(made, first)().numpy())
    back = getattr(scipy_sparse, f"{layout}_matrix")(parts, shape=tuple(made.shape))
    assert np.array_equal(back.toarray(), WHOLE)
    assert np.allclose((made @ xtensor.ones(3, 2, dtype=xtensor.float64)).numpy(), matrix @ np.ones((3, 2)))


def test_a_normalized_adjacency_as_graph_programs_make_it() -> None:
    """`D^-1/2 (A + I) D^-1/2`, by SciPy, as a sparse tensor."""
    adjacency = scipy_sparse.coo_matrix(([1.0, 1.0, 1.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    adjacency = adjacency + adjacency.T + scipy_sparse.eye(3)
    scale = scipy_sparse.diags(np.power(np.asarray(adjacency.sum(1)).flatten(), -0.5))
    matrix = (scale @ adjacency @ scale).tocoo().astype(np.float32)
    index = xtensor.from_numpy(np.vstack((matrix.row, matrix.col)).astype(np.int64))
    made = xtensor.sparse_coo_tensor(index, xtensor.from_numpy(matrix.data), xtensor.Size(matrix.shape))
    features = xtensor.arange(6.0).reshape(3, 2)
    assert np.allclose(xtensor.spmm(made, features).numpy(), matrix @ features.numpy(), rtol=1e-6)
