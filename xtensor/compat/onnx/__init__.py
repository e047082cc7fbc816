"""`torch.onnx`: nothing is exported; what packages register for an export is taken and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import symbolic_helper, symbolic_opset11

__all__ = [
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "symbolic_helper",
    "symbolic_opset11",
    "unregister_custom_op_symbolic",
]

_symbolics: dict[tuple[str, int], Callable[..., Any]] = {}


def export(*args: Any, **kwargs: Any) -> Any:
    """Refused: models are not translated to ONNX; `to_torch` gives PyTorch's exporter the weights."""
    raise RuntimeError(
        "torch.onnx.export is not in xtensor: load the state_dict into the model on PyTorch, and export it there"
    )


def is_in_onnx_export() -> bool:
    """False: nothing is exported."""
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Keep how an operator would be exported."""
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget how an operator would be exported."""
    _symbolics.pop((symbolic_name, opset_version), None)
