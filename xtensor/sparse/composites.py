"""Operators that are written over others: for sparse tensors, too, they are what those make of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..ops.linalg.low_rank import pca_lowrank
from ..ops.linalg.tensor_systems import triangular_solve
from ..tensor import Tensor
from .convert import densify
from .layout import HANDLERS, SparseTensor
from .reductions import total

__all__: list[str] = []

OVER_OTHERS = (
    "adjoint hstack vstack row_stack dstack column_stack svd_lowrank lobpcg chain_matmul multi_dot"
).split()
"""Functions in Python that call no array themselves."""


def body_of(name: str) -> Callable[..., Any]:
    """A function that asks nobody about its own call, only about those that it makes."""

    def run(*args: Any, **kwargs: Any) -> Any:
        library = importlib.import_module(__name__.partition(".")[0])
        function = (
            getattr(library, name, None) or getattr(library.linalg, name, None) or getattr(Tensor, name)
        )
        return vars(function).get("__wrapped__", function)(*args, **kwargs)

    run.__name__ = name
    return run


for _name in OVER_OTHERS:
    HANDLERS[_name] = body_of(_name)


def dropped(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout where nothing is dropped; NotImplementedError otherwise, as in PyTorch."""
    if not training or p == 0:
        return input
    raise NotImplementedError(
        "Could not run 'aten::bernoulli_.float' with arguments from the 'SparseCPU' backend."
    )


def components(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """`pca_lowrank`: only the tensor whose columns' means are taken off is dense."""
    return pca_lowrank(
        densify(A) - densify(total(A, 0)) / A.shape[0] if center else densify(A), q, False, niter
    )


def solved(b: Tensor, A: Any, *args: Any, **kwargs: Any) -> Any:
    """`triangular_solve` with a sparse matrix, found as of a dense one."""
    return triangular_solve(densify(b) if isinstance(b, SparseTensor) else b, densify(A), *args, **kwargs)


HANDLERS.update(pca_lowrank=components, triangular_solve=solved)
HANDLERS.update(dropout=dropped, alpha_dropout=dropped, feature_dropout=dropped)
