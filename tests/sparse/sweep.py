"""PyTorch's own sparse samples of its operators on both libraries: results, their layouts, and gradients."""

from __future__ import annotations

import random
import unittest
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import xtensor
from tests.parity.convert import ours
from tests.parity.entries import name_of
from tests.parity.facets import Subject

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


class Outcome(NamedTuple):
    """How many of an entry's samples agree, of how many, and the first difference."""

    agreed: int
    run: int
    difference: str


def entries(layout: str) -> dict[str, Any]:
    """PyTorch's entries that have samples in a layout."""
    found = {}
    for op in op_db:
        if getattr(op, f"supports_sparse_{layout}" if layout != "coo" else "supports_sparse", False):
            found[name_of(op)] = op
    return found


def mirrored(value: Any) -> Any:
    """The counterpart of an argument, sparse ones included."""
    if isinstance(value, torch.Tensor) and value.layout in PARTS:
        made = mirrored_sparse(value.detach())
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        return ours(value)
    if isinstance(value, (list, tuple)):
        return type(value)([mirrored(v) for v in value])
    if isinstance(value, dict):
        return {k: mirrored(v) for k, v in value.items()}
    return ours(value)


def mirrored_sparse(tensor: Any) -> Any:
    parts = [ours(getattr(tensor, name)().contiguous().clone()) for name in PARTS[tensor.layout]]
    if tensor.layout is torch.sparse_coo:
        return xtensor.sparse_coo_tensor(*parts, tuple(tensor.shape), is_coalesced=tensor.is_coalesced())
    layout = getattr(xtensor, str(tensor.layout).partition(".")[2])
    return xtensor.sparse_compressed_tensor(*parts, tuple(tensor.shape), layout=layout)


def dense(tensor: Any) -> Any:
    """The values of a tensor of either library, as NumPy has them."""
    found = tensor.detach()
    found = found if str(found.layout).endswith("strided") else found.to_dense()
    found = found.resolve_conj().resolve_neg()
    if str(found.dtype).endswith("bfloat16"):
        found = found.float()
    return found.numpy()


def leaves(value: Any, kind: type) -> list[Any]:
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v, kind)]
    return []


def compare(mine: Any, theirs: Any, what: str) -> str:
    """What differs, or nothing."""
    if mine is None or theirs is None:
        return "" if mine is theirs else f"{what}: {type(mine).__name__} for {type(theirs).__name__}"
    if str(mine.layout).partition(".")[2] != str(theirs.layout).partition(".")[2]:
        return f"{what}: layout {mine.layout} for {theirs.layout}"
    if tuple(mine.shape) != tuple(theirs.shape):
        return f"{what}: shape {tuple(mine.shape)} for {tuple(theirs.shape)}"
    if str(mine.dtype).partition(".")[2] != str(theirs.dtype).partition(".")[2]:
        return f"{what}: {mine.dtype} for {theirs.dtype}"
    if what == "drawn":
        return ""
    a, b = dense(mine), dense(theirs)
    tolerance = 1e-3 if str(theirs.dtype).endswith(("float32", "complex64")) else 1e-7
    if a.dtype.kind in "fc" and not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return f"{what}: values"
    if a.dtype.kind not in "fc" and not np.array_equal(a, b):
        return f"{what}: values"
    return ""


def gradients(library: Any, result: Any, inputs: list[Any]) -> list[Any]:
    """The gradients of weighted sums of the results."""
    total = None
    for leaf in leaves(result, library.Tensor):
        if leaf.requires_grad:
            whole = leaf if str(leaf.layout).endswith("strided") else leaf.to_dense()
            one = (whole * whole.detach().cos()).sum()
            one = one.abs() if whole.dtype.is_complex else one
            total = one if total is None else total + one
    if total is None:
        return []
    return list(library.autograd.grad(total, inputs, allow_unused=True))


def one(subject: Subject, sample: Any) -> str:
    """What differs in a sample, or nothing."""
    given = (sample.input, tuple(sample.args), dict(sample.kwargs))
    own = mirrored(given)
    try:
        expected = subject.theirs(given[0], *given[1], **given[2])
    except Exception:
        return "skip"  # PyTorch's samples include some that it refuses itself
    try:
        made = subject.ours()(own[0], *own[1], **own[2])
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    for mine, theirs in zip(leaves(made, xtensor.Tensor), leaves(expected, torch.Tensor), strict=True):
        found = compare(mine, theirs, "drawn" if "rand" in subject.name else "result")
        if found:
            return found
    theirs_in = [
        t for t in leaves([given[0], given[1], list(given[2].values())], torch.Tensor) if t.requires_grad
    ]
    mine_in = [t for t in leaves([own[0], own[1], list(own[2].values())], xtensor.Tensor) if t.requires_grad]
    if not theirs_in:
        return ""
    try:
        wanted = gradients(torch, expected, theirs_in)
    except Exception:
        return ""
    try:
        found_grads = gradients(xtensor, made, mine_in)
    except Exception as error:
        return f"gradient: {type(error).__name__}: {str(error).splitlines()[0][:80]}"
    for mine, theirs in zip(found_grads, wanted, strict=True):
        # The same values, whichever of the two libraries stores them as a sparse tensor.
        mine, theirs = [
            g if g is None or str(g.layout).endswith("strided") else g.to_dense() for g in (mine, theirs)
        ]
        found = compare(mine, theirs, "gradient")
        if found:
            return found
    return ""


def samples(op: Any, layout: str, dtype: str, grad: bool) -> Iterator[Any]:
    """PyTorch's samples of an entry in a layout."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  # PyTorch's sample makers draw from NumPy's global state
    wanted, kind = getattr(torch, f"sparse_{layout}"), getattr(torch, dtype)
    try:
        yield from op.sample_inputs_sparse(wanted, "cpu", kind, requires_grad=grad)
    except (NotImplementedError, unittest.SkipTest):
        # An entry without sparse samples of its own: its dense ones, of which the first argument is made sparse.
        for sample in op.sample_inputs("cpu", kind, requires_grad=grad):
            if not isinstance(sample.input, torch.Tensor) or sample.input.dim() < (
                1 if layout == "coo" else 2
            ):
                continue
            sample.input = made_sparse(sample.input, wanted)
            if sample.input is not None:
                yield sample


def made_sparse(tensor: torch.Tensor, layout: Any) -> Any:
    """A dense tensor in a sparse layout, or None where it has no place in it."""
    try:
        found = tensor.detach().to_sparse(layout=layout, blocksize=(1, 1) if "bs" in str(layout) else None)
    except Exception:
        return None
    return found.requires_grad_(tensor.requires_grad)


def run(op: Any, layout: str, dtype: str, limit: int | None = None) -> Outcome:
    """An entry's samples in a layout, values and gradients."""
    subject = Subject(op, dtype)
    agreed, count, first = 0, 0, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grad = bool(op.supports_autograd) and dtype not in ("int64", "bool")
        for sample in samples(op, layout, dtype, grad):
            if limit is not None and count >= limit:
                break
            found = one(subject, sample)
            if found == "skip":
                continue
            count += 1
            agreed += not found
            if found and not first:
                first = found
    return Outcome(agreed, count, first)
