"""A whole program as an ONNX model: operators by their translations, weights as initializers, checked."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import numpy as np

from ... import dtypes
from ...devices.extras import missing
from ...ops.create.ingest import from_numpy
from ...serialization.atomic import replacing
from ...tensor import Tensor, host_array
from ..dims import NAME, Size
from ..graph import Graph, Node, TensorMeta, map_nodes
from ..lowering import weights_of
from ..program import ExportedProgram
from ..signature import InputKind, OutputKind
from . import layers, more, pointwise, reductions, shapes
from .building import TABLE, Builder, Step, Untranslated, Value, type_number
from .memory import Memories, places

__all__ = ["ONNXProgram", "OnnxExporterError", "translate"]

OPSET = 18
TABLES = (layers, more, pointwise, reductions, shapes)
IR_VERSION = 10


class OnnxExporterError(RuntimeError):
    """A program that has no form in ONNX; the message names the operator and its line."""


def package(name: str = "onnx") -> Any:
    """The onnx or onnxruntime package; ImportError says how to get it."""
    try:
        if name == "onnx":
            import onnx

            return onnx
        import onnxruntime

        return onnxruntime
    except ImportError as error:
        raise missing("an ONNX model", name, "onnx") from error


class ONNXProgram:
    """An ONNX model of an exported program: `save` writes it, a call runs it by onnxruntime.

    model_proto: the model. exported_program: what it was made of.
    """

    def __init__(self, model: Any, program: ExportedProgram) -> None:
        self.model_proto = model
        self.exported_program = program
        self._session: Any = None

    def save(self, destination: str | os.PathLike[str] | IO[bytes], **options: Any) -> None:
        """Write the model to a path or a stream."""
        raw = self.model_proto.SerializeToString()
        if isinstance(destination, (str, os.PathLike)):
            with replacing(destination) as stream:
                stream.write(raw)
        else:
            destination.write(raw)

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """The results by onnxruntime, as a tuple of tensors."""
        if self._session is None:
            runtime = package("onnxruntime")
            options = runtime.SessionOptions()
            options.log_severity_level = 3
            raw = self.model_proto.SerializeToString()
            self._session = runtime.InferenceSession(raw, options, providers=["CPUExecutionProvider"])
        inputs = self.exported_program._inputs
        tensors = inputs.tensors(inputs.flat(args, kwargs))
        names = [value.name for value in self._session.get_inputs()]
        given = [value.name for value in self.model_proto.graph.input]
        fed = {name: host_array(t.detach()) for name, t in zip(given, tensors, strict=True) if name in names}
        return tuple([from_numpy(np.array(a)) for a in self._session.run(None, fed)])

    def __repr__(self) -> str:
        return f"ONNXProgram({len(self.model_proto.graph.node)} nodes)"


class Translator:
    """One program while it is translated."""

    def __init__(self, program: ExportedProgram, opset: int, table: Mapping[Any, Callable[..., Any]]) -> None:
        self.program = program
        self.builder = Builder(opset)
        self.memories = Memories(self.builder)
        self.table = table
        self.several: dict[Node, Sequence[Any]] = {}

    def run(self, input_names: Sequence[str], output_names: Sequence[str]) -> Any:
        """The model."""
        onnx = package()
        helper = onnx.helper
        program, b = self.program, self.builder
        targets = dict(weights_of(program.graph_signature))
        users = [s.arg.name for s in program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        inputs: list[Any] = []
        holders = [n for n in program.graph.nodes if n.op == "placeholder"]
        given = [n for n in holders if n.name in users]
        names = dict(zip([n.name for n in given], input_names, strict=False))
        weights = program._tensors()
        for node in holders:
            meta = node.meta["val"]
            name = b.name(names.get(node.name, targets.get(node.name, node.name)))
            value = Value(name, meta.dtype, meta.shape)
            if node.name in targets:
                b.constants[name] = host_array(weights[targets[node.name]].detach())
            else:
                inputs.append(
                    helper.make_tensor_value_info(name, type_number(meta.dtype), list(map(told, meta.shape)))
                )
                for dim, size in enumerate(meta.shape):
                    if isinstance(size, Size) and NAME.match(size):
                        b.sizes.setdefault(str(size), (value, dim))
            self.memories.made(node, value)
        needed = live(program.graph)
        for node in program.graph.nodes:
            if node.op == "call_function" and node in needed:
                self.step(node)
        outputs = []
        wishes = iter(output_names)
        for spec, result in zip(program.graph_signature.output_specs, program.graph.results, strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT or not isinstance(result, (Node, Size)):
                continue
            found = self.memories.read(result) if isinstance(result, Node) else b.scalar_size(result)
            meta = result.meta["val"] if isinstance(result, Node) else TensorMeta((), dtypes.int64)
            found = b.cast(found, meta.dtype)
            name = b.name(next(wishes, None) or (result.name if isinstance(result, Node) else "size"))
            b.nodes.append(identity(found.name, name))
            shape = list(map(told, meta.shape))
            outputs.append(helper.make_tensor_value_info(name, type_number(meta.dtype), shape))
        return self.model(onnx, inputs, outputs)

    def model(self, onnx: Any, inputs: list[Any], outputs: list[Any]) -> Any:
        """The parts as ONNX has them; what nothing takes is left out."""
        helper, b = onnx.helper, self.builder
        used = {value.name for value in outputs}
        kept = []
        for node in reversed(b.nodes):
            if used & set(node.outputs):
                used.update(node.inputs)
                kept.append(node)
        nodes = [helper.make_node(n.type, n.inputs, n.outputs, **n.attributes) for n in reversed(kept)]
        constants = [
            onnx.numpy_helper.from_array(np.asarray(a, order="C"), n)
            for n, a in b.constants.items()
            if n in used
        ]
        graph = helper.make_graph(nodes, "xtensor", inputs, outputs, constants)
        opsets = [helper.make_opsetid("", b.opset)]
        made = helper.make_model(graph, opset_imports=opsets, producer_name="xtensor", ir_version=IR_VERSION)
        onnx.checker.check_model(made)
        return made

    # -- steps

    def step(self, node: Node) -> None:
        """Translate one operator."""
        if node.target is operator.getitem:
            source, at = node.args
            value = self.several[source][at]
            if value is not None:
                self.memories.made(node, value)
            return
        b = self.builder
        written = node.meta.get("writes", ())
        name = getattr(node.target, "_opname", getattr(node.target, "__name__", ""))
        plain = name if name.startswith("__") else name.removesuffix("_")
        known = self.table.get(node.target) or self.table.get(name) or TABLE.get(name) or TABLE.get(plain)
        if known is None and name == "__setitem__":
            known = self.assign
        where = node.meta.get("line", "")
        if known is None:
            raise OnnxExporterError(
                f"there is no translation to ONNX of the operator {node.target}{f' ({where})' if where else ''}"
            )
        val = node.meta.get("val")
        metas = list(val) if isinstance(val, tuple) and not isinstance(val, TensorMeta) else [val]
        b.operator, b.results = plain, [written[0].meta["val"] if written and m is None else m for m in metas]
        args, kwargs = map_nodes((node.args, node.kwargs), self.memories.read)
        try:
            made = known(b, *args, **kwargs)
        except Untranslated as error:
            raise OnnxExporterError(f"{error}{f' ({where})' if where else ''}") from error
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OnnxExporterError(
                f"this use of the operator {node.target} has no translation to ONNX{f' ({where})' if where else ''}: {error}"
            ) from error
        if written and (plain != name or name == "__setitem__"):
            self.memories.write(written[0], b.cast(made, written[0].meta["val"].dtype))
            if isinstance(val, TensorMeta) and "same" not in node.meta:
                self.memories.made(node, self.memories.read(written[0]))
        elif written:
            raise OnnxExporterError(
                f"the operator {node.target} writes its arguments{f' ({where})' if where else ''}"
            )
        elif isinstance(val, TensorMeta):
            made = made[0] if isinstance(made, tuple) and not isinstance(made, Value) else made
            if isinstance(made, Value):
                self.memories.made(node, b.cast(made, val.dtype)._replace(shape=val.shape))
        else:
            self.several[node] = [
                b.cast(v, m.dtype)._replace(shape=m.shape)
                if isinstance(v, Value) and isinstance(m, TensorMeta)
                else v
                for v, m in zip([*made, *[None] * len(metas)], metas)
            ]

    def assign(self, b: Builder, target: Value, index: Any, value: Any) -> Value:
        """`target[index] = value` as the whole of it anew."""
        parts = index if isinstance(index, tuple) else (index,)
        if any(isinstance(i, Value) and i.dtype is dtypes.bool and i.shape == target.shape for i in parts):
            return b.op("Where", parts[0], b.number(value, target), target, like=target)
        if any(isinstance(i, (Value, Size)) for i in parts) or not all(
            isinstance(s, int) for s in target.shape
        ):
            raise Untranslated("a part that is assigned by tensors or open sizes")
        where = places(TensorMeta(target.shape, target.dtype))[index]
        count = int(np.prod(target.shape, dtype=np.int64))
        source = b.number(value, target)
        rest = [s for s in source.shape if s != 1] if source.rank > where.ndim else source.shape
        source = b.expand(b.reshape(source, list(rest)), where.shape)
        flat = b.reshape(target, [count])
        made = b.op(
            "ScatterND",
            flat,
            b.constant(where.reshape(-1, 1)),
            b.reshape(source, [where.size]),
            shape=(count,),
        )
        return b.reshape(made, target.shape)


def live(graph: Graph) -> set[Node]:
    """The nodes that results hang on, by what they take or by what is written."""
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in found or "writes" in node.meta:
            found.add(node)
            found.update(node.all_input_nodes)
    return found


def identity(source: str, name: str) -> Any:
    """A node that gives a value under a name."""
    return Step("Identity", [source], [name], {})


def told(size: Any) -> Any:
    """A size as ONNX's value infos have it: an int, or a name."""
    return str(size) if isinstance(size, Size) else int(size)


def translate(
    program: ExportedProgram,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
) -> ONNXProgram:
    """An exported program as an ONNX model; OnnxExporterError names the operator that has no form in ONNX, and its line."""
    opset = OPSET if opset_version is None else opset_version
    if opset < OPSET:
        raise OnnxExporterError(f"opset_version {opset} is too old: {OPSET} and later are written")
    made = Translator(program, opset, custom_translation_table or {})
    return ONNXProgram(made.run(input_names or (), output_names or ()), program)
