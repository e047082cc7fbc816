"""Forms of a graph's values, from a run of it on fake tensors: nothing is computed."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..fake_tensors import FakeTensorMode
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on fake tensors, and leaves each node's in `node.meta["val"]`.

    >>> from xtensor.fx.passes.fake_tensor_prop import FakeTensorProp
    >>> traced = xtensor.fx.symbolic_trace(xtensor.nn.Linear(3, 4))
    >>> FakeTensorProp(traced).propagate(xtensor.ones(2, 3)).shape
    xtensor.Size([2, 4])
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = mode or FakeTensorMode()

    def run_node(self, n: Node) -> Any:
        """The node's value, which is kept in its meta."""
        result = super().run_node(n)
        n.meta["val"] = result
        return result

    def fetch_attr(self, target: str) -> Any:
        """What the module has under a name; tensors as fake ones."""
        found = super().fetch_attr(target)
        return self._mode.from_tensor(found) if isinstance(found, Tensor) else found

    def propagate(self, *args: Any) -> Any:
        """Run the graph on tensors of these forms; what it gives."""
        return self.propagate_dont_convert_inputs(
            *[self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """The same of tensors that are fake already, or plain ones that the mode takes."""
        before = self._mode.allow_non_fake_inputs
        self._mode.allow_non_fake_inputs = True  # a module's own tensors are plain
        try:
            with self._mode:
                return super().run(*args)
        finally:
            self._mode.allow_non_fake_inputs = before
