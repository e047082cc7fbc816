"""`torch.autograd.forward_ad`: tangents that go along with values.

A dual tensor holds its tangent beside its values, and every operator gives its results theirs: by the rules of its derivative, so
that forward and reverse mode have the same values at kinks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..engine import modes
from ..operators.levels.crossing import (
    dual,
    new_level,
    primal,
    refuse_complex_along,
    refuse_nested,
    remember_tangent,
)
from ..operators.levels.dual_storage import dual_over, tangent_of, unpacked
from ..tensor import Tensor, array_of, strides_of
from ..xla.levels import Level, levels_of
from ..xla.signals import from_start

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None where it depends on no dual tensor."""

    primal: Tensor
    tangent: Tensor | None


class _Levels:
    """The levels that were entered: at most one."""

    __slots__ = ("enabled", "open")

    def __init__(self) -> None:
        self.open: tuple[Level, ...] = ()
        self.enabled = True


_levels = _Levels()


def enter_dual_level() -> int:
    """Begin a level, in which dual tensors can be made; RuntimeError inside another one."""
    return dual_level().__enter__()


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: its tensors have no tangents from then on."""
    global _current_level
    if not _levels.open:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    ended = _levels.open[-1]
    rest = tuple([t for t in modes.state.transforms if t is not ended])
    ended.open = False
    modes.state.transforms = rest
    _levels.open = _levels.open[:-1]
    _current_level -= 1


class dual_level(modes.DecoratorContext):
    """A block in which dual tensors can be made; gives the number of its level.

    >>> import xtensor.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     dual = fwAD.make_dual(xtensor.tensor(3.), xtensor.tensor(1.))
    ...     fwAD.unpack_dual(dual ** 2).tangent
    tensor(6.)
    """

    def __enter__(self) -> int:
        global _current_level
        refuse_nested()
        self.level = level = new_level("forward_ad.dual_level")
        self.before = before = modes.state.transforms
        _levels.open = (level,)
        modes.state.transforms = (*before, level)
        _current_level = 0
        return 0

    @from_start
    def __exit__(self, *exc: object) -> None:
        global _current_level
        try:
            self.level  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            self.level.open = False
            modes.state.transforms = self.before
            _levels.open = ()
            _current_level = -1


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent of the same shape; what is computed from it has tangents too.

    It is the tensor's own memory, and the tangent's where that lies alike: writes show in all of them.

    Differs from PyTorch: where the tensor or the tangent requires grad, the result has memory of its own; a tangent gets the
    tensor's dtype, and a complex one of a real tensor is a RuntimeError.
    """
    at = _level(level)
    if at is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
            if level is None
            else INVALID
        )
    if not tensor.is_floating_point() and not tensor.is_complex():
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not tangent.is_floating_point() and not tangent.is_complex():
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    refuse_complex_along(tensor, tangent)
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if at.number in levels_of(array_of(tensor)):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if at.number in levels_of(array_of(tangent)):
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    made = dual_over(tensor, tangent, at)
    if made is None:
        made = dual(tensor, tangent.to(tensor.dtype), at)
        if _alike(tensor, tangent):
            remember_tangent(made, tangent)
    return made


def _alike(tensor: Tensor, tangent: Tensor) -> bool:
    """Whether a tangent is kept as the tensor that it is: what lies otherwise is copied in PyTorch."""
    return (
        tensor.dtype is tangent.dtype
        and strides_of(tensor) == strides_of(tangent)
        and tensor.is_conj() == tangent.is_conj()
        and tensor.is_neg() == tangent.is_neg()
    )


INVALID = "Trying to access a forward AD level with an invalid index. This index was either not created or is already deleted."


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A value and its tangent; the tangent is None for what is no dual tensor, and outside of a level."""
    at = _level(level)
    if at is None and level is not None and _levels.open:
        raise RuntimeError("Invalid level given to _fw_primal")
    if at is None or at.number not in levels_of(array_of(tensor)):
        return UnpackedDualTensor(tensor, None)
    found = unpacked(tensor, at)
    return UnpackedDualTensor(primal(tensor, at) if found is None else found[0], tangent_of(tensor, at))


def _level(number: int | None) -> Level | None:
    """The level of a number, or the present one."""
    if number is not None and not 0 <= number < len(_levels.open):
        return None
    return _levels.open[-1] if _levels.open else None


def _is_fwd_grad_enabled() -> bool:
    """Whether operators compute tangents."""
    return _levels.enabled and all(
        t.open for t in modes.state.transforms if isinstance(t, Level) and t.size is None
    )


class _set_fwd_grad_enabled(modes.DecoratorContext):
    """Switch the computation of tangents on or off, at once and for a block."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        tangents = [t for t in modes.state.transforms if isinstance(t, Level) and t.size is None]
        self.levels = [(level, level.open) for level in {*_levels.open, *tangents}]
        self.before = _levels.enabled
        self._set(mode)

    def _set(self, mode: bool) -> None:
        _levels.enabled = mode
        for level, _ in self.levels:
            level.open = mode

    def __enter__(self) -> None:
        self._set(self.mode)

    def __exit__(self, *exc: Any) -> None:
        _levels.enabled = self.before
        for level, before in self.levels:
            level.open = before

    def clone(self) -> Any:
        """Another one for a call of a decorated function."""
        return self.__class__(self.mode)
