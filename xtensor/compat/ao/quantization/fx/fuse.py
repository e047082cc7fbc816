"""Neighbouring layers of a graph made one."""

from __future__ import annotations

from typing import Any

from .....fx.graph_module import GraphModule
from .....nn.modules.activation import ReLU
from .....nn.modules.module import Module
from ..backend_config import BackendConfig
from .patterns import matches, module_of

__all__ = ["fuse", "placed"]


def placed(model: Module, path: str, module: Module) -> None:
    """Put a module where another stood."""
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner) if owner else model, name, module)


def fuse(model: GraphModule, is_qat: bool, backend: BackendConfig) -> GraphModule:
    """The model with the modules of each fusing pattern as one, in the place of the first."""
    modules = dict(model.named_modules(remove_duplicate=False))
    patterns = [c for c in backend.configs if c.fuser_method is not None]
    # What has become one may be the first of another pattern: Linear with its norm, and ReLU.
    while found := matches(model.graph, modules, patterns):
        for match in found:
            layers: list[Any] = [module_of(node, modules) or ReLU() for node in match.nodes]
            method: Any = match.config.fuser_method
            made = method(is_qat, *layers)
            qconfig = getattr(layers[0], "qconfig", None)
            if qconfig is not None:
                made.qconfig = qconfig
            first, *rest = match.nodes
            placed(model, str(first.target), made)
            modules[str(first.target)] = made
            rest[-1].replace_all_uses_with(first)
            for node in reversed(rest):
                model.graph.erase_node(node)
    return GraphModule(model, model.graph)
