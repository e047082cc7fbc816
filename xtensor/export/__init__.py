"""Programs out of modules: what a call computes, as a graph with its weights, for xtensor, for plain JAX and for others, in one file."""

from __future__ import annotations

from ..trees import register_dataclass
from .calls import CallSpec, ModuleCallEntry, ModuleCallSignature
from .dims import Dim, dims
from .draft import draft_export
from .dynamic_shapes import AdditionalInputs, ShapesCollection
from .files import load, save
from .graph import Graph, GraphModule, Node
from .looking import Cost, Explanation, Roof, draw, explain
from .program import ExportedModule, ExportedProgram, export
from .signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from .steps import TrainingStep, export_step
from .unflatten import InterpreterModule, UnflattenedModule, unflatten

__all__ = [
    "draft_export",
    "unflatten",
    "UnflattenedModule",
    "InterpreterModule",
    "ModuleCallSignature",
    "ModuleCallEntry",
    "CallSpec",
    "AdditionalInputs",
    "ConstantArgument",
    "Cost",
    "Dim",
    "Explanation",
    "ExportGraphSignature",
    "ExportedModule",
    "ExportedProgram",
    "Graph",
    "GraphModule",
    "InputKind",
    "InputSpec",
    "Node",
    "OutputKind",
    "OutputSpec",
    "Roof",
    "ShapesCollection",
    "TensorArgument",
    "TrainingStep",
    "dims",
    "draw",
    "explain",
    "export",
    "export_step",
    "load",
    "register_dataclass",
    "save",
]
