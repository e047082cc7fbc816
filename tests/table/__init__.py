"""The operator table: one row per operator, every property of it tested from the row.

An ordinary operator is one line in its family's file of this package:

    ROWS = [
        Row("tanh", unary(), numpy=np.tanh),
        Row("add", binary() + [Sample(T(2, 3), T(3), alpha=2)], numpy=np.add),
    ]

`unary()`, `binary()`, `reducing()` are the usual samples (see `samples.py`); a `Sample` is the arguments of a call, in
which `T(2, 3)` stands for a tensor of random values, `Dtype("int64")` for a dtype. The tests are in
`tests/ops/test_table.py`; what each facet means is in `facets.py` and `on_meta.py`:

    value         value, dtype, shape, strides; errors, where PyTorch raises; the other dtypes
    layouts       transposed, sliced and expanded inputs
    gradient      of every input; the second gradient
    inplace       value, version, identity, aliasing through a view, gradient
    out           an empty `out`, one of the right size, of a wrong size (warns), of another dtype
    variants      the methods, in-place forms and `out=` that PyTorch has and we have not
    meta          shape, dtype and strides on the meta device: of results, gradients, in-place, `out=`

Expected results are PyTorch's (`reference`: a dotted name under `torch`, or a function that is given torch tensors;
the operator's own name by default), and without PyTorch those of `numpy` and of finite differences. An operator or
composite without a row fails the suite; so does a row without an operator.

A run is sampled (main dtype: all samples; the rest: the first samples that say something); `--full` runs every sample
in every dtype. `python -m pytest tests/ops/test_table.py -k "tanh"` runs a row.
"""

from __future__ import annotations

import importlib
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .samples import Dtype, Sample, T, binary, matrices, reducing, unary

__all__ = ["ROWS", "Dtype", "Row", "Sample", "T", "binary", "matrices", "reducing", "rows", "unary"]

OUTS = ("empty", "right", "strided", "wrong", "float64", "int32", "complex128")
OTHERS = ("int64", "bool", "complex64", "bfloat16")
ALL = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
    "complex128",
)


@dataclass(frozen=True)
class Row:
    """What the table knows of one operator.

    name: of the operator (or `family.name` for a composite whose name two families share).
    samples: calls; the first ones matter most, since sampled runs test gradients, in-place and `out=` with them.
    dtype: the main dtype. others: further dtypes tried (PyTorch's errors are expected of us too).
    reference: PyTorch's function, by dotted name or as a function of torch tensors. numpy: a function of arrays.
    random: values are drawn: only shape, dtype and strides are compared, and `check(arguments, result)` is called.
    empty: values are unset memory, compared in shape, dtype and strides only.
    grad: whether gradients are tested. tolerance, grad_tolerance: factors on the usual ones for values and for
        gradients, with the reason beside the row.
    differences: gradients are those of finite differences even where PyTorch is there, whose own are wrong.
    slopes: whether finite differences are its gradient: not where PyTorch's follows a convention of its own.
    meta: whether the shape can be known without values. layouts: whether other memory layouts are tried, or which.
    strides: whether the strides of results are PyTorch's too; not where its kernel merely leaves them so.
    outs: the kinds of `out=` that are tried.
    without: variants of PyTorch's that are absent on purpose: "method", "inplace", "out".
    covers: internal operators, which no user calls by name, that this row runs.
    """

    name: str
    samples: Sequence[Sample]
    dtype: str = "float32"
    others: Sequence[str] = OTHERS
    reference: str | Callable[..., Any] | None = None
    numpy: Callable[..., Any] | None = None
    random: bool = False
    empty: bool = False
    check: Callable[..., None] | None = None
    grad: bool = True
    second: bool = True
    tolerance: float = 1.0
    grad_tolerance: float = 1.0
    differences: bool = False
    slopes: bool = True
    meta: bool = True
    layouts: bool | tuple[str, ...] = True
    strides: bool = True
    outs: Sequence[str] = OUTS
    without: Sequence[str] = ()
    covers: Sequence[str] = field(default=())

    def __str__(self) -> str:
        return self.name


def rows() -> list[Row]:
    """Every row, family by family."""
    found: list[Row] = []
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if path.stem not in MACHINERY:
            found += importlib.import_module(f"{__name__}.{path.stem}").ROWS
    return found


MACHINERY = {"__init__", "bridge", "facets", "long_arrays", "odd", "on_meta", "samples"}
ROWS = rows()
