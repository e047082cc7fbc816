"""`torch.autograd.forward_ad`: tangents that go along with values.

Differs from PyTorch: a tangent is computed when `unpack_dual` asks for it, by two backward passes over the recorded
graph, so that operations on dual tensors must be recorded (not under `no_grad`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..engine import enable_grad
from ..gradients import grad
from ..ops.create.creation import zeros_like
from ..tensor import Tensor

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


class _Levels:
    """For each level that was entered, its dual tensors with their tangents."""

    open: list[list[tuple[Tensor, Tensor]]] = []


def enter_dual_level() -> int:
    """Begin a level, in which dual tensors can be made; RuntimeError inside another one."""
    if _Levels.open:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _Levels.open.append([])
    return len(_Levels.open) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tangents are forgotten."""
    if not _Levels.open:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != len(_Levels.open) - 1:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _Levels.open.pop()


@contextmanager
def dual_level() -> Iterator[int]:
    """A block in which dual tensors can be made."""
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent of the same shape; what is computed from it has tangents too."""
    if not _Levels.open:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not tensor.is_floating_point() and not tensor.is_complex():
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not tangent.is_floating_point() and not tangent.is_complex():
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"Expected tangent to have the same shape as the primal, but got {tuple(tangent.shape)} and "
            f"{tuple(tensor.shape)}"
        )
    with enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _Levels.open[-1].append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A value and its tangent."""
    duals = _Levels.open[-1] if _Levels.open else []
    for dual, tangent in duals:
        if dual is tensor:
            return UnpackedDualTensor(tensor, tangent)
    if not duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    with enable_grad():
        # The derivative of v -> J^T v along the tangents is J times them.
        direction = zeros_like(tensor).requires_grad_()
        pulled = grad(tensor, [d for d, _ in duals], direction, create_graph=True, allow_unused=True)
        used = [(p, t) for p, (_, t) in zip(pulled, duals, strict=True) if p is not None]
        if not used:
            return UnpackedDualTensor(tensor, None)
        (tangent,) = grad(
            [p for p, _ in used],
            [direction],
            [t for _, t in used],
            create_graph=True,
            allow_unused=True,
        )
    return UnpackedDualTensor(tensor, zeros_like(tensor) if tangent is None else tangent)
