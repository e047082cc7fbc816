"""Passes as objects: what they need, what they do, what holds behind them."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ....nn.modules.module import Module
from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass gives: the module, and whether it was changed."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does it, `requires` and `ensures` check before and behind."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Check, do, check."""
        self.requires(graph_module)
        made = self.call(graph_module)
        self.ensures(graph_module)
        return made

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """What the pass does; None where nothing was changed."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise where the pass cannot be done."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise where the pass has not done what it should."""
