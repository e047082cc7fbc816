"""Programs as JSON, and back: nodes with their operators by name, arguments with a word for each type. Nothing of a file is ever run.

An operator is found by its name among those that the library declares and a list of functions; a file that names another one is refused.
"""

from __future__ import annotations

import json
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import devices, dtypes
from ..operators.below.aten import ALSO, BESIDES, OpOverload, packet, pulled_back
from ..operators.operator import REGISTRY
from ..operators.overriding import LEAVES
from ..operators.views import VIEWS
from ..serialization.errors import FileFormatError
from .calls import Modules
from .dims import Size, evaluate
from .graph import Graph, Node, Subgraph, TensorMeta
from .higher_order import HIGHER_ORDER, HigherOrder
from .tracing import Slot

__all__ = ["Unkept", "decode", "encode", "graph_from", "graph_to", "meta_from", "meta_to", "wrong"]

LIBRARY = __name__.partition(".")[0]
WRITTEN = frozenset(
    "__setitem__ clone contiguous to bernoulli bernoulli_ normal normal_ uniform_ exponential_ log_normal_ geometric_ cauchy_ "
    "random_ multinomial randperm index_put index_put_ scatter scatter_ masked_fill_ one_hot embedding_renorm_ type "
    "float double half bfloat16 int long short bool requires_grad_ resolve_conj resolve_neg data set_ resize_ where "
    "rrelu rrelu_ poisson binomial dropout".split()
)
"""Functions written in Python that a program may have as one step, beside those that are declared."""
FUNCTIONAL = frozenset(
    "batch_norm instance_norm embedding embedding_bag rrelu gumbel_softmax fractional_max_pool2d fractional_max_pool3d "
    "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices ctc_loss scaled_dot_product_attention one_hot pad".split()
)
"""Of `nn.functional`, likewise."""
FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
FORMS_OF = frozenset((*ALSO, *ALSO.values()))
DEPTH = 64
LARGEST_NODES = 1 << 20


class Unkept(Exception):
    """A value or an operator that a file has no word for."""


def encode(value: Any) -> Any:
    """A value as JSON has it; Unkept where there is no word for it."""
    if value is None or (isinstance(value, (bool, str)) and not isinstance(value, Size)):
        return value
    if type(value) is int:
        return value
    match value:
        case float():
            return value if math.isfinite(value) else {"float": repr(float(value))}
        case complex():
            return {"complex": [encode(value.real), encode(value.imag)]}
        case Size():
            return {"size": str(value)}
        case Node():
            return {"node": value.name}
        case Slot():
            return {"slot": value.index}
        case Subgraph():
            inputs = [[n.name, meta_to(n.meta["val"])] for n in value.graph.nodes if n.op == "placeholder"]
            inner = [value.name, inputs, graph_to(value.graph), encode(value.graph.results)]
            return {"graph": inner}
        case slice():
            return {"slice": [encode(value.start), encode(value.stop), encode(value.step)]}
        case dict():
            return {"dict": [[encode(k), encode(v)] for k, v in value.items()]}
        case list():
            return {"list": list(map(encode, value))}
        case tuple():
            return {"tuple": list(map(encode, value))}
        case dtypes.dtype():
            return {"dtype": str(value).rpartition(".")[2]}
        case devices.device():
            return {"device": "meta" if value.type == "meta" else "here"}
    if value is Ellipsis:
        return {"ellipsis": True}
    for name in FORMATS:
        if value is getattr(dtypes, name):
            return {"format": name}
    if value is dtypes.strided:
        return {"layout": "strided"}
    raise Unkept(f"a value of type {type(value).__name__}")


def wrong(what: str) -> FileFormatError:
    """The error of a file that says something else than it may."""
    return FileFormatError(f"the file is no exported program: {what}")


def decode(value: Any, nodes: dict[str, Node], depth: int = 0, sizes: dict[str, Any] | None = None) -> Any:
    """A value from JSON, whose nodes and open sizes are these; FileFormatError where there is no such word."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth > DEPTH or not isinstance(value, dict) or len(value) != 1:
        raise wrong("an argument that is none")
    ((kind, inner),) = value.items()

    def several(count: int | None = None) -> list[Any]:
        if not isinstance(inner, list) or (count is not None and len(inner) != count):
            raise wrong(f"a {kind} that is none")
        return [decode(each, nodes, depth + 1, sizes) for each in inner]

    match kind, inner:
        case "float", str() if inner in ("nan", "inf", "-inf"):
            return float(inner)
        case "complex", list():
            return complex(*several(2))
        case "size", str() if len(inner) < 1000:
            return Size(inner)
        case "node", str() if inner in nodes:
            return nodes[inner]
        case "slot", int() if 0 <= inner < LARGEST_NODES:
            return Slot(inner)
        case "slice", list():
            return slice(*several(3))
        case "list", list():
            return several()
        case "tuple", list():
            return tuple(several())
        case "dict", list():
            pairs = [pair for pair in inner if isinstance(pair, list) and len(pair) == 2]
            if len(pairs) == len(inner) and all(isinstance(k, (str, int)) for k, _ in pairs):
                return {k: decode(v, nodes, depth + 1, sizes) for k, v in pairs}
        case "graph", [str(name), list(inputs), list(entries), results] if sizes is not None:
            return subgraph_from(name, inputs, entries, results, sizes, depth + 1)
        case "dtype", str() if any(inner == str(d).rpartition(".")[2] for d in dtypes.ALL):
            return getattr(dtypes, inner)
        case "device", "meta" | "here":
            return devices.device("meta") if inner == "meta" else devices.current()
        case "ellipsis", True:
            return Ellipsis
        case "format", str() if inner in FORMATS:
            return getattr(dtypes, inner)
        case "layout", "strided":
            return dtypes.strided
    raise wrong(f"an argument that is none: {kind[:40]!r}")


# ---- operators


def is_operator(name: str) -> bool:
    """Whether this is an operator's name, or that of a function that a program may have as a step."""
    plain = name.removesuffix("_")
    tables = (REGISTRY, VIEWS, BESIDES, FORMS_OF, LEAVES, WRITTEN)
    return any(each in table for each in (name, plain, name.removeprefix("native_")) for table in tables)


def functional() -> Any:
    """`nn.functional`, which the library has imported."""
    return sys.modules[f"{LIBRARY}.nn.functional"]


def target_to(target: Any) -> str:
    """An operator by name."""
    if target is operator.getitem:
        return "getitem"
    if isinstance(target, HigherOrder):
        return f"higher_order.{target.__name__}"
    if isinstance(target, OpOverload):
        name, own = target._opname, target._overloadpacket.operator
        if own is not None and REGISTRY.get(name) is own:  # whose function of that name gives something else
            return f"operator.{name}"
        if target.namespace == "aten" and target.of is None and is_operator(name):
            return f"aten.{name}.{target._overloadname}"
    else:
        name = getattr(target, "__name__", "")
        if name in FUNCTIONAL and getattr(functional(), name, None) is target:
            return f"functional.{name}"
    raise Unkept(f"the operator {target}")


def target_from(text: Any) -> Callable[..., Any]:
    """The operator of a name; FileFormatError where a program may not have it."""
    if text == "getitem":
        return operator.getitem
    parts = text.split(".") if isinstance(text, str) else []
    match parts:
        case ["aten", name, overload] if (
            is_operator(name) and name.isidentifier() and overload.isidentifier()
        ):
            return packet(name).overload(overload)
        case ["operator", name] if name in REGISTRY:
            return pulled_back(REGISTRY[name])
        case ["higher_order", name] if name in HIGHER_ORDER:
            return HIGHER_ORDER[name]
        case ["functional", name] if name in FUNCTIONAL:
            return getattr(functional(), name)
    raise wrong(f"there is no operator {str(text)[:80]!r}")


# ---- graphs


def graph_to(graph: Graph, stacks: dict[str, int] | None = None) -> list[Any]:
    """The nodes after the inputs as JSON; Unkept where one has no name. stacks: is told the calls of modules, by their text, with a number for each."""
    found = []
    for node in graph.nodes:
        if node.op == "call_function":
            entry = {"name": node.name, "target": target_to(node.target), "args": encode(node.args)}
            if node.kwargs:
                entry["kwargs"] = encode(node.kwargs)
            if isinstance(node.meta.get("val"), TensorMeta):
                entry["val"] = meta_to(node.meta["val"])
            if stacks is not None and node.meta.get("nn_module_stack"):
                text = json.dumps([[key, *named] for key, named in node.meta["nn_module_stack"].items()])
                entry["stack"] = stacks.setdefault(text, len(stacks))
            found.append(entry)
    return found


def meta_to(meta: TensorMeta) -> Any:
    """Sizes and dtype as JSON."""
    return [
        [str(s) if isinstance(s, Size) else int(s) for s in meta.shape],
        str(meta.dtype).rpartition(".")[2],
    ]


def meta_from(value: Any, sizes: dict[str, Any]) -> TensorMeta:
    """Sizes and dtype; FileFormatError where they are none."""
    match value:
        case [list() as shape, str() as dtype] if len(shape) <= 64:
            known = decode({"dtype": dtype}, {})
            made = []
            for size in shape:
                if isinstance(size, str):
                    try:
                        evaluate(Size(size), dict.fromkeys(sizes, 2))
                    except ValueError as error:
                        raise wrong(str(error)) from error
                    size = Size(size)
                elif type(size) is not int or not 0 <= size < 1 << 62:
                    raise wrong("a size that is none")
                made.append(size)
            return TensorMeta(tuple(made), known)
    raise wrong("a tensor without sizes and dtype")


def subgraph_from(
    name: str, inputs: list[Any], entries: list[Any], results: Any, sizes: dict[str, Any], depth: int
) -> Subgraph:
    """A program within a program."""
    graph = Graph()
    if not name.isidentifier():
        raise wrong("a function without a name")
    for each in inputs:
        match each:
            case [str(own), told]:
                node = graph.placeholder(own)
                node.meta["val"] = meta_from(told, sizes)
                if node.name != own:
                    raise wrong("two inputs of one name")
            case _:
                raise wrong("an input of a function that is none")
    graph_from(graph, entries, sizes, depth)
    made = decode(results, {node.name: node for node in graph.nodes}, depth)
    if not isinstance(made, tuple) or not all(isinstance(each, Node) for each in made):
        raise wrong("the results of a function")
    graph.output(made)
    return Subgraph(name, graph)


def graph_from(
    graph: Graph, entries: Any, sizes: dict[str, Any], depth: int = 0, stacks: Sequence[Modules] = ()
) -> None:
    """Add nodes from JSON to a graph that has its inputs."""
    if not isinstance(entries, list) or len(entries) > LARGEST_NODES:
        raise wrong("its operators are no list")
    nodes = {node.name: node for node in graph.nodes}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or entry["name"] in nodes:
            raise wrong("an operator without a name of its own")
        args = decode(entry.get("args"), nodes, depth, sizes)
        kwargs = decode(entry.get("kwargs", {"dict": []}), nodes, depth)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise wrong(f"the arguments of {entry['name'][:40]!r}")
        if not all(isinstance(name, str) for name in kwargs):
            raise wrong(f"the arguments of {entry['name'][:40]!r}")
        node = graph.call_function(target_from(entry.get("target")), args, kwargs, name=entry["name"])
        if "val" in entry:
            node.meta["val"] = meta_from(entry["val"], sizes)
        match entry.get("stack"):
            case int() as at if 0 <= at < len(stacks):
                node.meta["nn_module_stack"] = stacks[at]
            case None:
                pass
            case _:
                raise wrong(f"the modules of {entry['name'][:40]!r}")
        nodes[entry["name"]] = node
