"""Sums, products and joins as modules: of real numbers that are seen, and of quantised ones."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Any

from ......nn.modules.linear import Identity
from ......nn.modules.module import Module
from ......quantized import functions
from ......tensor import Tensor
from ...seen import INTENDED, FloatFunctional, FXFloatFunctional
from .utils import qparams, saved_state

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class QFunctional(Module):
    """Operations of quantised numbers, whose results have this scale and zero point."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process: Any = Identity()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        saved_state(self, destination, prefix)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *rest[1:])

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> Any:
        """RuntimeError: it is no layer."""
        raise RuntimeError(f"Functional{INTENDED}")

    def add(self, x: Any, y: Any) -> Tensor:
        """`x + y`."""
        return self.activation_post_process(functions.OPERATORS["add"](x, y, self.scale, self.zero_point))

    def add_scalar(self, x: Any, y: float) -> Tensor:
        """`x + y` of a number."""
        return functions.add_scalar(x, y)

    def mul(self, x: Any, y: Any) -> Tensor:
        """`x * y`."""
        return self.activation_post_process(functions.OPERATORS["mul"](x, y, self.scale, self.zero_point))

    def mul_scalar(self, x: Any, y: float) -> Tensor:
        """`x * y` of a number."""
        return functions.mul_scalar(x, y)

    def cat(self, x: Any, dim: int = 0) -> Tensor:
        """The tensors one after the other."""
        return self.activation_post_process(functions.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Any, y: Any) -> Tensor:
        """ReLU of `x + y`."""
        return self.activation_post_process(
            functions.OPERATORS["add_relu"](x, y, self.scale, self.zero_point)
        )

    def matmul(self, x: Any, y: Any) -> Tensor:
        """`x @ y`."""
        return functions.matmul(x, y, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of one whose results were seen; AssertionError for any other."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        made = cls()
        made.scale, made.zero_point = qparams(mod.activation_post_process)
        return made
