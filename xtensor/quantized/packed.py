"""What PyTorch's quantised layers keep as objects of C++: weights and biases in one, here with what they hold in sight.

Checkpoints name them `torch.ScriptObject`, with the class's name and its state.
"""

from __future__ import annotations

from typing import Any

from .. import checks, dtypes
from ..tensor import Tensor
from .layout import QuantizedTensor

__all__ = ["ScriptObject", "cell_packed", "half_packed", "linear_packed"]

PREFIX = "__torch__.torch.classes."
LINEAR, CELL = f"{PREFIX}quantized.LinearPackedParamsBase", f"{PREFIX}rnn.CellParamsBase"


class ScriptObject:
    """The parameters of a layer, packed; `unpack` gives a weight and a bias back."""

    __slots__ = ("_name", "_state")

    _name: str
    _state: tuple[Any, ...]

    def __new__(cls) -> ScriptObject:
        made = object.__new__(cls)
        made._name, made._state = "", ()
        return made

    def unpack(self) -> tuple[Any, Any]:
        """The weight and the bias, or None where there is none; RuntimeError where it is of a cell."""
        checks.check(self._name == LINEAR, "{} has no weight of its own", self._name)
        return self._state[0], self._state[1]

    def _type(self) -> str:
        return self._name

    def __getstate__(self) -> Any:
        return self._state, self._name

    def __setstate__(self, saved: Any) -> None:
        if not isinstance(saved, tuple) or len(saved) != 2 or saved[1] not in FORMS:
            raise TypeError("packed parameters have a state and the name of a class that is known here")
        state, name = saved
        if not isinstance(state, tuple) or not FORMS[name](state):
            raise TypeError(f"this is no state of {name}")
        self._state, self._name = state, name

    def __repr__(self) -> str:
        return f"ScriptObject <{self._name}>"


def is_linear(state: tuple[Any, ...]) -> bool:
    """Whether this is a weight and a bias."""
    return (
        len(state) == 2
        and isinstance(state[0], Tensor)
        and state[0].dim() == 2
        and (state[1] is None or isinstance(state[1], Tensor))
    )


def is_cell(state: tuple[Any, ...]) -> bool:
    """Whether this is what a cell keeps: a kind, biases, two lists of numbers, and two packed weights."""
    if len(state) != 5 or not all(isinstance(part, (list, tuple)) for part in state[1:]):
        return False
    parts, ranges = state[4], state[3]
    whole = len(parts) == 2 and all(isinstance(part, ScriptObject) and part._name == LINEAR for part in parts)
    ranged = state[0] == "quantized_fp16" or (len(ranges) == 1 and type(ranges[0]) is int)
    return whole and ranged and state[0] in ("quantized_dynamic", "quantized_fp16")


FORMS = {LINEAR: is_linear, CELL: is_cell}


def packed(name: str, state: Any) -> ScriptObject:
    made = ScriptObject()
    made._name, made._state = name, state
    return made


def linear_packed(weight: Tensor, bias: Tensor | None = None) -> ScriptObject:
    """A quantised weight (out, in) and a real bias, packed; RuntimeError where they do not fit.

    Differs from PyTorch: the weight is kept as it is, whatever the engine.
    """
    checks.check(
        weight.dim() == 2, "The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional."
    )
    if not isinstance(weight, QuantizedTensor) or weight.dtype is not dtypes.qint8:
        raise RuntimeError(
            f"Unsupported weight dtype {weight.dtype.scalar_name} for quantized::linear_prepack"
        )
    if bias is not None:
        checks.check(bias.dim() == 1, "bias should be a vector (1D Tensor)")
        checks.check(bias.shape[0] == weight.shape[0], "bias should have N elements: {}", weight.shape[0])
    return packed(LINEAR, (weight, None if bias is None else bias.detach()))


def half_packed(weight: Tensor, bias: Tensor | None = None) -> ScriptObject:
    """A weight (out, in) rounded to half precision, and a real bias, packed."""
    rounded = weight.detach().to(dtypes.float16).to(dtypes.float32)
    return packed(LINEAR, (rounded, None if bias is None else bias.detach()))


def cell_packed(ih: ScriptObject, hh: ScriptObject, reduce_range: bool | None) -> ScriptObject:
    """The two weights of a recurrent cell, packed: of 8 bits, or of half precision where `reduce_range` is None."""
    if reduce_range is None:
        return packed(CELL, ("quantized_fp16", [], [], [], [ih, hh]))
    biases = [half.unpack()[1] for half in (ih, hh)]
    return packed(CELL, ("quantized_dynamic", biases, [], [int(reduce_range)], [ih, hh]))
