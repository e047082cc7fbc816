"""The meta facet: every operator by abstract evaluation, compared with what the same call gives with values.

Shape, dtype, strides and device of the result, of its gradients, of what an in-place form wrote and of what `out=`
became. An operator whose result needs values (`meta=False` in its row) says so, and names the meta device.
"""

from __future__ import annotations

from typing import Any

import pytest

from xtensor.tensor import Tensor

from . import Row, Sample
from .bridge import META, OURS, flat, operator_named
from .facets import (
    attempt,
    cotangents,
    dtypes_of,
    key_of,
    noting,
    outs_for,
    quietly,
    showing,
    takes_out,
    write_to,
)
from .samples import T

__all__ = ["meta"]

REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError)


def meta(row: Row, full: bool) -> None:
    """On the meta device: shape, dtype and strides of results, gradients, in-place targets and `out=`."""
    for dtype, every in dtypes_of(row, full) if full else [(row.dtype, False)]:
        samples = [s for s in row.samples if s.tensors]
        for sample in samples if every and full else samples[:2]:
            with showing(row, sample, dtype, "meta"):
                if row.meta:
                    result(row, sample, dtype)
                else:
                    refusal(row, sample, dtype)
        for sample in samples[:1] if row.meta else ():
            for what in (gradient, inplace, out):
                with showing(row, sample, dtype, f"meta, {what.__name__}"):
                    what(row, sample, dtype)


def same(ours: Any, expected: Any) -> None:
    """Both results alike in everything but values, ours on the meta device."""
    for a, b in zip(flat(ours), flat(expected), strict=True):
        assert META.describe(a) == OURS.describe(b)
        if isinstance(a, Tensor):
            assert a.device.type == "meta"


def result(row: Row, sample: Sample, dtype: str) -> None:
    function, key = operator_named(row.name), key_of(row, sample)
    expected, error = attempt(function, *OURS.arguments(sample, key, dtype)[:2])
    if error is not None:
        return
    if "cpu" in (*sample.args, *sample.kwargs.values()):  # asked for values on a real device
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            quietly(function, *META.arguments(sample, key, dtype)[:2])
        return
    same(quietly(function, *META.arguments(sample, key, dtype)[:2]), expected)


def refusal(row: Row, sample: Sample, dtype: str) -> None:
    """An operator that needs values says that a meta tensor has none; one that needs nothing of them just works."""
    key = key_of(row, sample)
    _, error = attempt(operator_named(row.name), *OURS.arguments(sample, key, dtype)[:2])
    _, own = attempt(operator_named(row.name), *META.arguments(sample, key, dtype)[:2])
    if error is None and own is not None:
        assert isinstance(own, REFUSALS) and "meta" in str(own).lower(), repr(own)


def gradient(row: Row, sample: Sample, dtype: str) -> None:
    function, key = operator_named(row.name), key_of(row, sample)

    def run(library: Any) -> list[Any]:
        args, kwargs, leaves = library.arguments(sample, key, dtype, grad=True)
        made = [o for o in flat(quietly(function, args, kwargs)) if isinstance(o, Tensor) and o.requires_grad]
        return library.grad(made, leaves, cotangents(library, made, key), False) if made and leaves else []

    expected, error = attempt(run, (OURS,), {})
    if row.grad and error is None:
        same(run(META), expected)


def inplace(row: Row, sample: Sample, dtype: str) -> None:
    method = getattr(Tensor, row.name.rpartition(".")[2] + "_", None)
    if method is None or not isinstance(sample.args[0], T):
        return
    key = key_of(row, sample)
    expected, error = attempt(method, *OURS.arguments(sample, key, dtype)[:2])
    if error is None:
        args, kwargs, _ = META.arguments(sample, key, dtype)
        written = quietly(method, args, kwargs)
        assert written is args[0]
        same(written, expected)
        assert written._version == expected._version


def out(row: Row, sample: Sample, dtype: str) -> None:
    function, key = operator_named(row.name), key_of(row, sample)
    plain, error = attempt(function, *OURS.arguments(sample, key, dtype)[:2])
    if not takes_out(function) or error is not None:
        return
    for kind in ("empty", "wrong"):
        with noting(f"out of kind '{kind}'"):
            expected, found = (
                outs_for(library, [r for r in flat(plain) if isinstance(r, Tensor)], kind)
                for library in (OURS, META)
            )
            _, error, warned = write_to(function, *OURS.arguments(sample, key, dtype)[:2], expected)
            if error is not None:
                continue
            _, own, warned_too = write_to(function, *META.arguments(sample, key, dtype)[:2], found)
            if own is not None:
                raise own
            same(found, expected)
            assert warned_too == warned
