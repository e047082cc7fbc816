"""`torch.fx._symbolic_trace`: tracing under the names that packages import from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn.modules.module import Module
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .patching import Patcher, recording, recording_method, wrap, wrapped_functions, wrapped_methods
from .proxy import Attribute, ParameterProxy, Proxy, TracerBase, find_proxy
from .tracer import (
    PH,
    PHBase,
    PHWithMeta,
    ProxyableClassMeta,
    Tracer,
    assert_is_none,
    is_fx_symbolic_tracing,
    is_fx_tracing,
)

__all__ = [
    "PH",
    "Attribute",
    "Graph",
    "GraphModule",
    "Node",
    "PHBase",
    "PHWithMeta",
    "ParameterProxy",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "TracerBase",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

_Patcher, _assert_is_none, _find_proxy = Patcher, assert_is_none, find_proxy
_create_wrapped_func, _create_wrapped_method = recording, recording_method
_wrapped_fns_to_patch, _wrapped_methods_to_patch = wrapped_functions, wrapped_methods


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A module or function as a `GraphModule`: what it does with its inputs, whatever these are.

    concrete_args: values of arguments that are no inputs, by name, which conditions may depend on. Raises TraceError where the
    program's course depends on an input's values.

    >>> traced = xtensor.fx.symbolic_trace(lambda x, y: (x + y).clamp(min=0.0))
    >>> print(traced.code.strip())
    def forward(self, x, y):
        add = x + y;  x = y = None
        clamp = add.clamp(min = 0.0);  add = None
        return clamp
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
