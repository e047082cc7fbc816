"""`torch.fx`: programs as graphs, which are traced, looked at, changed and run: `symbolic_trace(module)` gives one."""

from __future__ import annotations

from . import immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Attribute, Proxy, TraceError
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "Attribute",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
