"""Sizes and dtypes of a graph's values, from a run of it."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ...dtypes import channels_last, channels_last_3d, contiguous_format, dtype, memory_format
from ...tensor import Size, Tensor
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    found = None
    if include_contiguity:
        orders = (contiguous_format, channels_last, channels_last_3d)
        ranks = {channels_last: 4, channels_last_3d: 5}
        fitting = [o for o in orders if ranks.get(o, result.dim()) == result.dim()]
        found = next((o for o in fitting if result.is_contiguous(memory_format=o)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {})


class ShapeProp(Interpreter):
    """Runs a graph, and leaves each node's sizes and dtype in `node.meta["tensor_meta"]`, its type in `node.meta["type"]`.

    >>> from xtensor.fx.passes.shape_prop import ShapeProp
    >>> traced = xtensor.fx.symbolic_trace(xtensor.nn.Linear(3, 4))
    >>> _ = ShapeProp(traced).propagate(xtensor.ones(2, 3))
    >>> print([tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes if n.op == "output"])
    [(2, 4)]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """The node's value, whose sizes are kept in its meta."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def described(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, described)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these inputs; what it gives."""
        return super().run(*args)
