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
from ..dims import Size
from ..graph import Graph, Node, TensorMeta, map_nodes
from ..lowering import weights_of
from ..program import ExportedProgram
from ..signature import InputKind, OutputKind
from . import (
    decomposed,
    elements,
    gathering,
    layers,
    matrices,
    more,
    moving,
    pairs,
    pointwise,
    reductions,
    shapes,
    windows,
)
from .building import TABLE, Body, Builder, Refused, Step, Untranslated, Value, refuse_unknown, type_number
from .kernels import by_kernel, real_type
from .memory import Memories, places

__all__ = ["ONNXProgram", "OnnxExporterError", "translate"]

OPSET = 18
TABLES = (
    decomposed, elements, gathering, layers, matrices, more, moving, pairs, pointwise, reductions, shapes, windows,
)  # fmt: skip
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

    def __init__(self, model: Any, program: ExportedProgram, complex_results: Sequence[bool]) -> None:
        self.model_proto = model
        self.exported_program = program
        self._session: Any = None
        self._complex = complex_results

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
        fed = {
            name: as_real(host_array(t.detach()))
            for name, t in zip(given, tensors, strict=True)
            if name in names
        }
        made = self._session.run(None, fed)
        return tuple([
            from_numpy(as_complex(np.array(a)) if complex_ else np.array(a))
            for a, complex_ in zip(made, self._complex, strict=True)
        ])  # fmt: skip

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
        self.weights: set[Node] = set()
        self.needed: set[Node] = set()
        self.complex_results: list[bool] = []

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
                self.weights.add(node)
                b.constants[name] = as_real(host_array(weights[targets[node.name]].detach()))
            else:
                inputs.append(helper.make_tensor_value_info(name, *type_and_shape(meta)))
                for dim, size in enumerate(meta.shape):
                    if isinstance(size, Size):
                        b.find_size(size, value, dim)
            self.memories.made(node, value)
        self.needed = live(program.graph)
        for node in program.graph.nodes:
            if node.op == "call_function" and node in self.needed:
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
            outputs.append(helper.make_tensor_value_info(name, *type_and_shape(meta)))
            self.complex_results.append(meta.dtype.is_complex)
        return self.model(onnx, inputs, outputs)

    def model(self, onnx: Any, inputs: list[Any], outputs: list[Any]) -> Any:
        """The parts as ONNX has them; what nothing takes is left out."""
        helper, b = onnx.helper, self.builder
        used = {value.name for value in outputs}
        nodes = nodes_of(helper, b.nodes, used)
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
        """Translate one operator; OnnxExporterError names its line."""
        try:
            self.translate(node)
        except Untranslated as error:
            where = node.meta.get("line", "")
            raise OnnxExporterError(f"{error}{f' ({where})' if where else ''}") from error

    def translate(self, node: Node) -> None:
        """Translate one operator by its translation, or through its kernel."""
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
        val = node.meta.get("val")
        metas = list(val) if isinstance(val, tuple) and not isinstance(val, TensorMeta) else [val]
        b.operator, b.results = plain, [written[0].meta["val"] if written and m is None else m for m in metas]
        b.writes_weights = any(each.meta.get("same", each) in self.weights for each in written)
        args, kwargs = map_nodes((node.args, node.kwargs), self.memories.read)
        own = node.target in self.table or name in self.table
        if not own and any(
            v.dtype.is_complex
            for v in (*values_in((args, kwargs)), *[m for m in b.results if isinstance(m, TensorMeta)])
        ):
            known = None
        if written and not (plain != name or name == "__setitem__"):
            known = known if own or b.writes_weights else None
        reason = f"there is no translation to ONNX of the operator {node.target}"
        made: Any = None
        if known is not None:
            try:
                if not own:
                    refuse_unknown(known, kwargs)
                made = known(b, *args, **kwargs)
            except Refused:
                raise
            except Untranslated as error:
                reason = str(error)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                reason = f"this use of the operator {node.target} has no translation to ONNX: {error}"
        if isinstance(made, (list, tuple)) and not isinstance(made, Value):
            taken = [n.args[1] for n in node.users if n.target is operator.getitem and n in self.needed]
            if any(at >= len(made) or made[at] is None for at in taken):
                made, reason = None, f"this use of the operator {node.target} has no translation to ONNX"
        if made is None:
            self.through_kernel(node, args, kwargs, metas, reason)
        elif written:
            whole: Any = made
            self.memories.write(written[0], b.cast(whole, written[0].meta["val"].dtype))
            if isinstance(val, TensorMeta) and "same" not in node.meta:
                self.memories.made(node, self.memories.read(written[0]))
        elif isinstance(val, TensorMeta):
            made = made[0] if isinstance(made, tuple) and not isinstance(made, Value) else made
            if isinstance(made, Value):
                self.memories.made(node, b.cast(made, val.dtype)._replace(shape=val.shape))
        else:
            self.keep(node, metas, made)

    def keep(self, node: Node, metas: Sequence[Any], made: Sequence[Any]) -> None:
        """Keep an operator's several results."""
        b = self.builder
        self.several[node] = [
            b.cast(v, m.dtype)._replace(shape=m.shape)
            if isinstance(v, Value) and isinstance(m, TensorMeta)
            else v
            for v, m in zip([*made, *[None] * len(metas)], metas)
        ]

    def through_kernel(self, node: Node, args: Any, kwargs: Any, metas: Sequence[Any], reason: str) -> None:
        """Translate an operator by what its kernel is made of. OnnxExporterError with the reason why it has no translation of its own."""
        written = node.meta.get("writes", ())
        try:
            made, left = by_kernel(self.builder, node, args, kwargs, self.program.range_constraints)
        except (Untranslated, NotImplementedError) as error:
            raise Untranslated(f"{reason}; {error}") from error
        for each, value in zip(written, left, strict=True):
            self.memories.write(each, value)
        if isinstance(node.meta.get("val"), TensorMeta):
            if "same" not in node.meta:
                self.memories.made(node, made[0]._replace(shape=metas[0].shape))
        elif node.meta.get("val") is not None:
            found = iter(made)
            self.keep(node, metas, [next(found) if isinstance(m, TensorMeta) else m for m in metas])

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


def values_in(value: Any) -> list[Value]:
    """The tensors in nested arguments."""
    found: list[Value] = []
    map_nodes(value, found.append, Value)
    return found


def type_and_shape(meta: TensorMeta | Value) -> tuple[int, list[Any]]:
    """ONNX's type and sizes of a tensor; complex ones have a last dimension of two."""
    return type_number(real_type(meta.dtype)), [
        *map(told, meta.shape),
        *([2] if meta.dtype.is_complex else []),
    ]


def as_real(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A complex array with a last dimension of two; others as they are."""
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def as_complex(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The complex array of one with a last dimension of two."""
    kind = np.complex64 if array.dtype == np.float32 else np.complex128
    return np.ascontiguousarray(array).view(kind).reshape(array.shape[:-1])


def nodes_of(helper: Any, steps: Sequence[Step], used: set[str]) -> list[Any]:
    """The nodes whose results are used, as ONNX has them; `used` gets what they take."""
    kept = []
    for step in reversed(steps):
        if used & set(step.outputs):
            used.update(step.inputs)
            attributes = {
                n: body_of(helper, v, used) if isinstance(v, Body) else v for n, v in step.attributes.items()
            }
            kept.append(helper.make_node(step.type, step.inputs, step.outputs, **attributes))
    return kept[::-1]


def body_of(helper: Any, body: Body, used: set[str]) -> Any:
    """A program within a node."""
    used.update(v.name for v in body.outputs)
    nodes = nodes_of(helper, body.nodes, used)
    ends = [
        [
            helper.make_tensor_value_info(v.name, type_number(v.dtype), list(map(told, v.shape)))
            for v in values
        ]
        for values in (body.inputs, body.outputs)
    ]
    return helper.make_graph(nodes, "body", *ends)


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
    translator = Translator(program, opset, custom_translation_table or {})
    made = translator.run(input_names or (), output_names or ())
    return ONNXProgram(made, program, translator.complex_results)
