"""`torch.onnx`: modules as ONNX models, by the translations of `xtensor.export.onnx`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from ... import trees
from ...export import Dim, ExportedProgram
from ...export import export as exported
from ...export.dims import combined_arguments
from ...export.onnx.model import OnnxExporterError, ONNXProgram, translate
from ...nn.modules.module import Module
from ...tensor import Tensor
from ..version import __version__
from . import symbolic_helper, symbolic_opset11

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "producer_name",
    "producer_version",
    "register_custom_op_symbolic",
    "symbolic_helper",
    "symbolic_opset11",
    "unregister_custom_op_symbolic",
]

producer_name = "pytorch"
producer_version = __version__.partition("+")[0]

_symbolics: dict[tuple[str, int], Callable[..., Any]] = {}
_state = threading.local()


def export(
    model: Module | ExportedProgram,
    args: Any = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    **options: Any,
) -> ONNXProgram | None:
    """A module's call with these arguments as an ONNX model, one node or a few for each operator; written to `f`, a path or a stream.

    args: a tuple of examples, or one tensor. input_names, output_names: of the tensors, in order. dynamic_axes: the sizes left open, for each
    input name a dict from dimensions to names, or a list of dimensions; dynamic_shapes: the same as `xtensor.export.export` has it.
    opset_version: 18 (the default) or later. custom_translation_table: functions `(builder, *args, **kwargs)` by operators.
    Gives an `ONNXProgram`, which onnxruntime runs; with `dynamo=False` nothing, and the module is exported in evaluation mode. Differs from
    PyTorch: both ways go by the same translations, and options of PyTorch's exporters choose nothing.

    OnnxExporterError for an operator that has no translation; it names its line.

    >>> program = xtensor.onnx.export(xtensor.nn.Linear(3, 2), (xtensor.ones(4, 3),))  # doctest: +SKIP
    """
    if isinstance(model, ExportedProgram):
        program = model
    else:
        given = (args,) if isinstance(args, Tensor) else tuple(args)
        options_of = dict(kwargs or {})
        if given and isinstance(given[-1], dict) and not dynamo:
            options_of = dict(given[-1]) | options_of
            given = given[:-1]
        wish = dynamic_shapes
        if wish is None and dynamic_axes:
            wish = shapes_of(model, given, options_of, list(input_names or ()), dynamic_axes)
        training = model.training
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            if not dynamo and training:
                model.eval()
            program = exported(model, given, options_of, dynamic_shapes=wish)
        finally:
            _state.depth -= 1
            if not dynamo and training:
                with suppress(NotImplementedError):
                    model.train()
    made = translate(
        program,
        input_names=input_names,
        output_names=output_names,
        opset_version=opset_version,
        custom_translation_table=custom_translation_table,
    )
    if f is not None:
        made.save(f)
    return made if dynamo else None


def shapes_of(
    model: Module, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str], axes: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The sizes that `dynamic_axes` leaves open, as `export` takes them."""
    dims: dict[str, Dim] = {}
    count = iter(range(len(trees.tree_leaves((args, kwargs)))))

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return None
        at = next(count)
        name = names[at] if at < len(names) else ""
        wish = axes.get(name, {})
        if not isinstance(wish, Mapping):
            wish = {dim: f"{name}_dim_{dim}" for dim in wish}
        return {dim % leaf.dim(): dims.setdefault(label, Dim(label, min=2)) for dim, label in wish.items()}

    return tuple([trees.tree_map(one, a) for a in combined_arguments(model.forward, args, kwargs).values()])


def is_in_onnx_export() -> bool:
    """Whether a module is being exported to ONNX."""
    return bool(getattr(_state, "depth", 0))


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int
) -> None:
    """Keep how an operator would be exported; `custom_translation_table` is what is asked here."""
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget how an operator would be exported."""
    _symbolics.pop((symbolic_name, opset_version), None)
