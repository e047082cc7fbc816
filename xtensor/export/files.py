"""Exported programs in one file: StableHLO, weights as safetensors, and a signature as JSON, which plain JAX and others read as well.

A file is a zip archive of stored records: `export/program.jax` (what `jax.export.deserialize` reads), `export/module.stablehlo` (the
StableHLO alone, as a portable artifact), `export/weights.safetensors` and `export/signature.json`. Loading runs nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import os
import re
from collections.abc import Sequence
from contextlib import nullcontext
from typing import IO, Any

import jax
import numpy as np
from jax import export as jax_export

from ..devices.extras import missing
from ..nn.parameter import Parameter
from ..serialization.archive import Archive, is_zip
from ..serialization.archive_writer import ArchiveWriter
from ..serialization.atomic import replacing
from ..serialization.errors import FileFormatError
from ..serialization.safetensors import DTYPES
from ..serialization.source import Source
from ..tensor import Tensor, array_of, host_array, wrap
from ..xla.x64 import call, x64
from .call_codec import calls_from, calls_to, stacks_from
from .calls import ModuleCallEntry
from .codec import Unkept, decode, encode, graph_from, graph_to, meta_from, meta_to, wrong
from .dims import NAME, Range
from .graph import Graph
from .lowering import PLATFORMS, random_words
from .program import ExportedProgram
from .signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from .tracing import Slot, Traced

__all__ = ["Lowered", "load", "save"]

FORMAT, VERSION = "xtensor.export", 1
STEP = "xtensor.export.step"
ROOT = "export"
LARGEST_TEXT = 1 << 28
SAFE_CALLS = re.compile(
    r"(lapack_\w+|cusolver_\w+|cublas\w*|cu_?\w+_ffi|hipsolver_\w+|Sharding|shape_assertion|Qr|Eigh|LuDecomposition|"
    r"ProductOfElementaryHouseholderReflectors|ApproxTopK|stablehlo\.\w+|mhlo\.\w+|chlo\.\w+|annotate_device_placement|"
    r"householder_product_\w+|xla\.\w+|tf\.\w+|\w*eigh?_\w*|\w*qr\w*|\w*lu\w*)\Z"
)
UNSAFE_CALLS = re.compile(r"callback|python|triton|pallas|mosaic|infeed|outfeed", re.IGNORECASE)
NAMES = {dtype: name for name, dtype in DTYPES.items()}


# ---- weights


def weights_to(tensors: dict[str, Tensor]) -> bytes:
    """Tensors as safetensors has them."""
    header: dict[str, Any] = {}
    data: list[bytes] = []
    at = 0
    for name, tensor in tensors.items():
        kind = NAMES.get(tensor.dtype)
        if kind is None:
            raise RuntimeError(f"{name}: safetensors has no type for {tensor.dtype}")
        raw = np.ascontiguousarray(host_array(tensor.detach())).tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def weights_from(raw: Any) -> dict[str, Any]:
    """The arrays in the bytes of safetensors, checked to lie one behind the other."""
    size = int.from_bytes(bytes(raw[:8]), "little")
    if len(raw) < 8 or size > len(raw) - 8:
        raise wrong("its weights are truncated")
    header = parsed(bytes(raw[8 : 8 + size]))
    if not isinstance(header, dict):
        raise wrong("its weights have no names")
    header.pop("__metadata__", None)
    found: dict[str, Any] = {}
    body = raw[8 + size :]
    at = 0
    for name, told in header.items():
        match told:
            case {"dtype": str(kind), "shape": list(shape), "data_offsets": [int(start), int(end)]}:
                good = all(type(s) is int and 0 <= s < 1 << 62 for s in shape)
                if (
                    kind in DTYPES
                    and good
                    and start == at
                    and start + math.prod(shape) * DTYPES[kind].itemsize == end
                ):
                    if end <= len(body):
                        array = np.frombuffer(body[start:end], DTYPES[kind].numpy).reshape(shape)
                        found[name] = array
                        at = end
                        continue
        raise wrong(f"the weight {str(name)[:80]!r} is not what it claims to be")
    if at != len(body):
        raise wrong("its weights are not all named")
    return found


def parsed(raw: bytes) -> Any:
    """JSON; FileFormatError where it is none."""
    if len(raw) > LARGEST_TEXT:
        raise wrong("its text is too long")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise wrong("its text is no JSON") from error


# ---- what runs where operators have no names


class Lowered:
    """A program that runs as StableHLO, where a graph cannot be kept: `weights` and `inputs` go in one row, results and what was written come out."""

    __name__ = "stablehlo"

    def __init__(self, exported: Any, targets: list[str], written: list[str], draws: int) -> None:
        self.exported = exported
        self.targets = targets
        self.written = written
        self.draws = draws

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        count = len(self.targets)
        weights = {t: array_of(v.detach()) for t, v in zip(self.targets, tensors[:count], strict=True)}
        inputs = [array_of(t.detach()) for t in tensors[count:]]
        with x64():
            results, written = call(self.exported.call, weights, inputs, *random_words(self.draws))
        return tuple(map(wrap, [*[written[name] for name in self.written], *results]))


def check_calls(exported: Any) -> None:
    """FileFormatError where a program would call anything but kernels of linear algebra."""
    try:
        text = exported.mlir_module()
    except Exception as error:  # what MLIR says of bytes that are none of its own
        raise wrong("JAX cannot read its program") from error
    for name in re.findall(r'custom_call\s+@"?([\w.$]+)', text):
        if UNSAFE_CALLS.search(name) or not SAFE_CALLS.match(name):
            raise FileFormatError(
                f"the program calls {name!r}, which is no kernel that an exported program may call"
            )


# ---- saving


def specs_to(signature: ExportGraphSignature, graph: Graph) -> dict[str, Any]:
    """Inputs and outputs as JSON."""
    metas: dict[str, Any] = {node.name: node.meta.get("val") for node in graph.nodes}
    metas |= {n.meta["same"].name: n.meta["same"].meta["val"] for n in graph.nodes if "same" in n.meta}

    def arg(value: TensorArgument | ConstantArgument) -> dict[str, Any]:
        if isinstance(value, ConstantArgument):
            return {"name": value.name, "value": encode(value.value)}
        return {"name": value.name, "val": meta_to(metas[value.name])}

    return {
        "inputs": [
            {"kind": s.kind.name, "target": s.target, "persistent": s.persistent, **arg(s.arg)}
            for s in signature.input_specs
        ],
        "outputs": [{"kind": s.kind.name, "target": s.target, **arg(s.arg)} for s in signature.output_specs],
    }


def serialized(exported: Any) -> bytes:
    """What `jax.export.deserialize` reads; ImportError says how to get what that needs."""
    try:
        return bytes(exported.serialize())
    except ImportError as error:
        raise missing("an exported program in a file", "flatbuffers", "export") from error


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    platforms: Sequence[str] = PLATFORMS,
) -> None:
    """Write an exported program to one file, a path or a stream; `extra_files` are texts or bytes that are kept with it.

    platforms: where the program is to run, all of which are lowered for now. RuntimeError where an argument or a result is of a type that a
    file has no word for. A path is replaced at the end, so that it is whole or what it was.

    >>> program = xtensor.export.export(xtensor.nn.ReLU(), (xtensor.zeros(2),))
    >>> xtensor.export.save(program, "relu.xtx")  # doctest: +SKIP
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    exported = ep.stablehlo(platforms)
    try:
        told = {
            "format": FORMAT,
            "version": VERSION,
            **specs_to(ep.graph_signature, ep.graph),
            "arguments": encode(ep._traced.arguments),
            "result": encode(ep._traced.result),
            "sizes": {
                name: [r.lower, None if math.isinf(r.upper) else r.upper]
                for name, r in ep.range_constraints.items()
            },
            "random": ep.draws,
            "platforms": list(exported.platforms),
        }
    except Unkept as error:
        raise RuntimeError(f"the program cannot be saved: there is no word for {error} in a file") from error
    stacks: dict[str, int] = {}
    try:
        told["graph"] = graph_to(ep.graph, stacks)
        told["results"] = encode(ep.graph.results)
        told["stacks"] = list(map(json.loads, stacks))
        told["modules"] = calls_to(ep.module_call_graph)
    except Unkept:
        told["graph"] = None
    tensors = ep._tensors()
    program = serialized(exported)
    told["digest"] = hashlib.sha256(program).hexdigest()
    with replacing(f) if isinstance(f, (str, os.PathLike)) else nullcontext(f) as stream:
        writer = ArchiveWriter(stream, ROOT)
        writer.write("signature.json", json.dumps(told).encode())
        writer.write("program.jax", program)
        writer.write("module.stablehlo", exported.mlir_module_serialized)
        writer.write("weights.safetensors", weights_to(tensors))
        for name, data in (extra_files or {}).items():
            writer.write(f"extra/{name}", data.encode() if isinstance(data, str) else data)
        writer.close()


# ---- loading


def load(
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: Any = None,
) -> ExportedProgram:
    """An exported program from a file; `extra_files` are filled with what was kept under their names.

    FileFormatError for a file that is damaged, or not what it claims to be. Nothing of it runs while it is loaded, and `module()` runs
    operators of the library alone.
    """
    with Source.open(f) as source:
        if not is_zip(source):
            raise FileFormatError("the file is no exported program: it is no zip archive")
        archive = Archive(source)
        if archive.root != ROOT or "signature.json" not in archive:
            raise FileFormatError(
                "the file is no exported program of xtensor's: a .pt2 or TorchScript file of PyTorch's holds its own "
                "operators; load its weights with xtensor.load, and export the module here"
            )
        told = parsed(archive.read("signature.json"))
        if isinstance(told, dict) and told.get("format") == STEP:
            raise FileFormatError(
                "the file holds a training step, which JAX calls: jax.export.deserialize reads its program"
            )
        program = archive.read("program.jax")
        # JAX reads much that is damaged without a word. Files of before have no digest.
        if (
            isinstance(told, dict)
            and told.get("digest", found := hashlib.sha256(program).hexdigest()) != found
        ):
            raise wrong("its program is not the one that was saved")
        exported = deserialized(program)
        # Told before MLIR reads it, whose reader is not safe from bytes that are none of its own.
        if archive.read("module.stablehlo") != exported.mlir_module_serialized:
            raise wrong("its StableHLO is not that of its program")
        check_calls(exported)
        weights = weights_from(archive.read_array(archive.record("weights.safetensors")))
        for name in extra_files or {}:
            assert extra_files is not None
            extra_files[name] = archive.read(f"extra/{name}").decode("utf-8", "replace")
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise wrong("its signature is none")
    if told.get("version") != VERSION:
        raise wrong(f"its version is {told.get('version')!r}, and this library reads {VERSION}")
    try:
        return assembled(told, exported, weights)
    except FileFormatError:
        raise
    except Exception as error:  # values of types that no signature has
        raise wrong("its signature") from error


def deserialized(raw: bytes) -> Any:
    """JAX's program in these bytes."""
    try:
        return jax_export.deserialize(bytearray(raw))
    except ImportError as error:
        raise missing("an exported program in a file", "flatbuffers", "export") from error
    except Exception as error:
        raise wrong("JAX cannot read its program") from error


def ranges_from(told: Any) -> dict[str, Range]:
    """The open sizes."""
    if not isinstance(told, dict):
        raise wrong("its sizes")
    found = {}
    for name, bounds in told.items():
        match bounds:
            case [int(lower), int() | None as upper] if NAME.match(name) and lower >= 0:
                found[name] = Range(lower, math.inf if upper is None else upper)
            case _:
                raise wrong("the range of a size")
    return found


def assembled(told: dict[str, Any], exported: Any, weights: dict[str, Any]) -> ExportedProgram:
    """The program, everything checked against everything."""
    ranges = ranges_from(told.get("sizes"))
    graph, signature = Graph(), ExportGraphSignature()
    state: dict[str, Tensor] = {}
    constants: dict[str, Tensor] = {}
    shared: dict[str, Tensor] = {}
    inputs, outputs = told.get("inputs"), told.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise wrong("it has no inputs and outputs")
    for entry in inputs:
        kind, target, argument = spec_from(entry, InputKind)
        persistent = entry.get("persistent")
        if isinstance(argument, TensorArgument):
            node = graph.placeholder(argument.name)
            if node.name != argument.name:
                raise wrong("two inputs of one name")
            node.meta["val"] = meta_from(entry.get("val"), ranges)
            if kind is not InputKind.USER_INPUT:
                array = weights.get(target)
                if array is None or (array.shape, array.dtype) != (
                    node.meta["val"].shape,
                    node.meta["val"].dtype.numpy,
                ):
                    raise wrong(f"the weight {str(target)[:80]!r} is not there, or another")
        signature.input_specs.append(InputSpec(kind, argument, target, persistent))
    specs = {s.target: s for s in signature.input_specs if s.target is not None}
    for name, array in weights.items():
        tensor = wrap(call(jax.numpy.array, array))
        spec = specs.get(name)
        if spec is not None and spec.kind is InputKind.PARAMETER:
            floating = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            tensor = Parameter(tensor, requires_grad=floating)
        is_constant = spec is not None and (
            spec.kind is InputKind.CONSTANT_TENSOR or spec.persistent is False
        )
        (constants if is_constant else state)[name] = shared.setdefault(name, tensor)
    arguments, result = decode(told.get("arguments"), {}), decode(told.get("result"), {})
    match arguments:
        case (tuple(), dict()):
            pass
        case _:
            raise wrong("its arguments")
    for entry in outputs:
        kind, target, argument = spec_from(entry, OutputKind)
        signature.output_specs.append(OutputSpec(kind, argument, target))
    check_program(exported, signature, graph, told)
    calls: list[ModuleCallEntry] = []
    if told.get("graph") is None:
        lowered_graph(graph, signature, exported, told)
    else:
        graph_from(graph, told["graph"], ranges, stacks=stacks_from(told.get("stacks", [])))
        nodes = {node.name: node for node in graph.nodes}
        results = decode(told.get("results"), nodes)
        if not isinstance(results, tuple) or len(results) != len(outputs):
            raise wrong("its results")
        graph.output(results)
        calls = calls_from(told.get("modules", []), nodes)
    traced = Traced(graph, signature, arguments, result, constants, draws_of(told), calls)
    check_slots(traced)
    return ExportedProgram(traced, state, ranges, None, exported)


def draws_of(told: dict[str, Any]) -> int:
    """How many times the program draws random numbers."""
    found = told.get("random")
    if type(found) is not int or not 0 <= found < 1 << 20:
        raise wrong("how often it draws random numbers")
    return found


def spec_from(entry: Any, kinds: Any) -> tuple[Any, Any, Any]:
    """Kind, target and argument of an input or output."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise wrong("an input or output without a name")
    kind, target = entry.get("kind"), entry.get("target")
    if kind not in kinds.__members__ or not (target is None or isinstance(target, str)):
        raise wrong("an input or output of no kind")
    if "value" in entry:
        return kinds[kind], target, ConstantArgument(entry["name"], decode(entry["value"], {}))
    return kinds[kind], target, TensorArgument(entry["name"])


def check_slots(traced: Traced) -> None:
    """FileFormatError where arguments or results name tensors that are not there."""
    users = [
        s for s in traced.signature.input_specs
        if s.kind is InputKind.USER_INPUT and isinstance(s.arg, TensorArgument)
    ]  # fmt: skip
    results = [
        s for s in traced.signature.output_specs
        if s.kind is OutputKind.USER_OUTPUT and isinstance(s.arg, TensorArgument)
    ]  # fmt: skip

    def slots(value: Any) -> list[int]:
        if isinstance(value, Slot):
            return [value.index]
        if isinstance(value, dict):
            value = list(value.values())
        return [i for each in value for i in slots(each)] if isinstance(value, (list, tuple)) else []

    if slots(traced.arguments) != list(range(len(users))):
        raise wrong("its arguments are not its inputs")
    if any(i >= len(results) for i in slots(traced.result)):
        raise wrong("its result is not among its outputs")


def check_program(exported: Any, signature: ExportGraphSignature, graph: Graph, told: dict[str, Any]) -> None:
    """FileFormatError where JAX's program takes something else than the signature says."""
    metas = {node.name: node.meta["val"] for node in graph.nodes}
    wanted = {
        s.target: metas[s.arg.name] for s in signature.input_specs if s.kind is not InputKind.USER_INPUT
    }
    users = [
        metas[s.arg.name]
        for s in signature.input_specs
        if s.kind is InputKind.USER_INPUT and s.arg.name in metas
    ]
    ordered = [wanted[name] for name in sorted(wanted, key=str)] + users
    avals = list(exported.in_avals)[: len(exported.in_avals) - (2 if told.get("random") else 0)]
    if len(avals) != len(ordered):
        raise wrong("its program takes other inputs than its signature says")
    for aval, meta in zip(avals, ordered, strict=True):
        same = len(aval.shape) == len(meta.shape) and all(
            str(a) == str(b) for a, b in zip(aval.shape, meta.shape, strict=True)
        )
        if not same or aval.dtype != meta.dtype.numpy:
            raise wrong("its program takes other inputs than its signature says")


def lowered_graph(graph: Graph, signature: ExportGraphSignature, exported: Any, told: dict[str, Any]) -> None:
    """A graph of one step, the program as JAX has it."""
    inputs = {node.name: node for node in graph.nodes}
    weights = [s for s in signature.input_specs if s.kind is not InputKind.USER_INPUT]
    users = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT and s.arg.name in inputs]
    written = [str(s.target) for s in signature.output_specs if s.kind is not OutputKind.USER_OUTPUT]
    step = Lowered(exported, [str(s.target) for s in weights], written, draws_of(told))
    node = graph.call_function(step, tuple([inputs[s.arg.name] for s in [*weights, *users]]))
    results, count = [], 0
    for spec in signature.output_specs:
        if isinstance(spec.arg, ConstantArgument):
            results.append(spec.arg.value)
            continue
        results.append(graph.call_function(operator.getitem, (node, count), name="result"))
        count += 1
    graph.output(tuple(results))
