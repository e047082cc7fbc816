"""One row of the operator table on a mesh against one device: values, what is written in place, gradients."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import numpy as np

import xtensor
from tests.table import Row
from tests.table.bridge import OURS, operator_named
from tests.transforms.sweep import Call
from xtensor import Tensor
from xtensor.distributed.device_mesh import DeviceMesh
from xtensor.distributed.tensor import Replicate, Shard, distribute_tensor

__all__ = ["KNOWN", "differences"]

SMOOTH = (xtensor.float64, xtensor.complex128)


def spread(tensor: Tensor, mesh: DeviceMesh, turn: int) -> Tensor:
    """The tensor split along the dimensions that the mesh divides; `turn` says with which one it begins."""
    placements: list[Any] = [Replicate()] * mesh.ndim
    free = list(range(mesh.ndim))
    for i in range(tensor.dim()):
        dim = (i + turn) % tensor.dim()
        for axis in free:
            if tensor.shape[dim] and tensor.shape[dim] % mesh.size(axis) == 0:
                placements[axis] = Shard(dim)
                free.remove(axis)
                break
    return distribute_tensor(tensor, mesh, placements)


def differences(row: Row, mesh: DeviceMesh, samples: int = 1) -> list[str]:
    """What differs for a row, as texts."""
    if row.empty:
        return []
    function = operator_named(row.name)
    found = []
    for sample in list(row.samples)[:samples]:
        call = Call(row, function, sample)
        for turn in range(2 if call.described else 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = compared(row, call, mesh, turn)
            if text:
                found.append(f"{row.name}{sample}: {text}"[:400])
                break
    return found


def outcome(row: Row, call: Call, tensors: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The results of a call, and the gradients of the sum of their squares."""
    xtensor.manual_seed(0)
    wanted = [i for i, t in enumerate(tensors) if row.grad and t.dtype in SMOOTH and call.described[i].grad]
    given = [t.clone() if t.dim() else t * 1 if t.dtype in SMOOTH else t.clone() for t in tensors]
    leaves = [given[i].detach().requires_grad_() for i in wanted]
    for i, leaf in zip(wanted, leaves, strict=True):
        given[i] = leaf
    results = call(given)
    smooth = [r for r in results if r.dtype in SMOOTH and r.requires_grad]
    grads: list[Tensor] = []
    if smooth and not row.random:
        total = sum([(r * r.conj()).real.sum() if r.is_complex() else (r * r).sum() for r in smooth])
        grads = [g for g in xtensor.autograd.grad(total, leaves, allow_unused=True) if g is not None]
    return results, grads


def compared(row: Row, call: Call, mesh: DeviceMesh, turn: int) -> str:
    """How a call on the mesh differs from the call on one device; empty where it does not."""
    tensors = call.tensors(0)
    try:
        results, grads = outcome(row, call, tensors)
    except Exception:
        return ""  # a sample of an error, or a function whose arguments are written
    try:
        spread_results, spread_grads = outcome(row, call, [spread(t, mesh, turn) for t in tensors])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for what, one, other in (("result", results, spread_results), ("gradient", grads, spread_grads)):
        if len(one) != len(other):
            return f"{len(other)} {what}s, not {len(one)}"
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            text = unequal(a, b)
            if text:
                return f"{what} {i}: {text}"
    return ""


def unequal(one: Tensor, other: Tensor) -> str:
    """How two tensors differ beyond rounding."""
    if one.dtype is not other.dtype or one.shape != other.shape or one.stride() != other.stride():
        return f"{other.dtype} {tuple(other.shape)} {other.stride()}, not {one.dtype} {tuple(one.shape)} {one.stride()}"
    if one.is_meta or other.is_meta:
        return "" if one.is_meta and other.is_meta else "only one is on the meta device"
    a, b = OURS.values(one), OURS.values(other.cpu())
    if a.dtype.kind not in "fc":
        return "" if np.array_equal(a, b) else f"{b.reshape(-1)[:4]}, not {a.reshape(-1)[:4]}"
    tolerance = 1e-10 if a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1) == 8 else 1e-4
    if np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return ""
    return f"{b.reshape(-1)[:4]}, not {a.reshape(-1)[:4]}"


KNOWN = {
    "conv_transpose1d": "XLA's partitioner: wrong where the length and the weight's channels are split over different axes",
    "conv_transpose3d": "XLA's partitioner: as of conv_transpose1d",
    "hash_tensor": "XLA on the CPU joins no parts of a reduction by xor",
    "lobpcg": "vectors of an iteration that stops at a tolerance, which rounding changes",
}
"""Rows that differ, and why."""


def clear() -> None:
    """Let compiled programs go."""
    jax.clear_caches()
