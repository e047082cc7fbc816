"""Graphs as Python: the text of a `forward` that does what a graph says, and the names that it needs."""

from __future__ import annotations

import enum
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import checks, dtypes, trees
from ..devices import device
from ..lowering import Recipe
from ..operators.below.aten import OpOverload, OpOverloadPacket
from ..tensor import Tensor
from .names import CUSTOM_BUILTINS, Namespace, is_ours, qualified_name, type_repr
from .node import Argument, Node, map_arg

__all__ = ["CodeGen", "PyTreeCodeGen", "PyTreeInfo", "PythonCode", "reached"]

BINARY = dict(
    eq="==", ne="!=", lt="<", gt=">", le="<=", ge=">=", add="+", sub="-", mul="*", floordiv="//", truediv="/", mod="%", pow="**",
    lshift="<<", rshift=">>", and_="&", or_="|", xor="^", matmul="@",
)  # fmt: skip
INFIX: dict[Any, str] = {getattr(operator, name): "{} " + sign + " {}" for name, sign in BINARY.items()}
INFIX |= {operator.pos: "+{}", operator.neg: "-{}", operator.invert: "~{}", operator.getitem: "{}[{}]"}
INPLACE: dict[Any, str] = {
    getattr(operator, f"i{name}"): f"{sign}="
    for name, sign in dict(
        add="+", sub="-", mul="*", floordiv="//", truediv="/", mod="%", pow="**", lshift="<<", rshift=">>", xor="^", matmul="@",
        and_="&", or_="|",
    ).items()
    if hasattr(operator, f"i{name}")
} | {operator.iand: "&=", operator.ior: "|="}  # fmt: skip
ORIGINS: dict[Any, Any] = {
    kind: getattr(typing, name)
    for kind, name in (
        (list, "List"),
        (dict, "Dict"),
        (set, "Set"),
        (frozenset, "FrozenSet"),
        (tuple, "Tuple"),
    )
}
"""Python's containers, and what `typing` calls them."""
SHORT = {
    dtypes.bfloat16: "bf16", dtypes.float64: "f64", dtypes.float32: "f32", dtypes.float16: "f16", dtypes.complex64: "c64",
    dtypes.complex128: "c128", dtypes.int8: "i8", dtypes.int16: "i16", dtypes.int32: "i32", dtypes.int64: "i64",
    dtypes.bool: "b8", dtypes.uint8: "u8", dtypes.uint16: "u16", dtypes.uint32: "u32", dtypes.uint64: "u64",
}  # fmt: skip
FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)')


@dataclass
class PythonCode:
    """Source text, and the global names that it uses."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class PyTreeInfo(NamedTuple):
    """How inputs and outputs that are containers are taken apart and put together."""

    orig_args: list[str]
    in_spec: trees.TreeSpec
    out_spec: trees.TreeSpec | None


def reached(base: str, target: str) -> str:
    """An expression for a dotted path below an object: `self.a.b`, `getattr(self.a, "0")`."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


class CodeGen:
    """How a graph becomes the text of a function; subclasses give it another head, other inputs or outputs.

    `process_inputs` and `process_outputs` are what such a function does to them, for those who run the graph themselves.
    """

    _body_transformer: Callable[[list[str]], list[str]] | None = None
    _func_name = "forward"

    def __init__(self) -> None:
        self._body_transformer = None
        self._func_name = "forward"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The function's head; free_vars: its parameters, with types and defaults."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            inner = "".join([f"    {name},\n" for name in free_vars])
            return f"def {self._func_name}(\n{inner}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        """The statement that gives the results."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """What the graph's placeholders get when the function is called with `args`."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function gives when the graph's output is `outputs`."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names and values that the text needs besides those of the graph."""
        return []

    def _gen_python_code(
        self,
        nodes: Iterable[Node],
        root_module: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        return Writer(
            self, list(nodes), root_module, namespace, verbose, include_stride, include_device
        ).written(expanded_def)


class PyTreeCodeGen(CodeGen):
    """The text of a function whose inputs or outputs are nested containers."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """The leaves of the inputs."""
        return trees.tree_leaves(inputs)

    def process_outputs(self, outputs: Any) -> Any:
        """The container that the leaves belong in."""
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return outputs
        leaves = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        return trees.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The head with the parameters as they were, and a line that takes them apart."""
        info = self.pytree_info
        if not info.orig_args:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        params = list(info.orig_args)
        if params[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(list(params), maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return head
        bare = [name.split("=")[0].strip() for name in free_vars]
        without = [name.split(":")[0].strip() for name in bare]
        typed = "".join([f"{name}\n    " for name in bare if ":" in name])
        given = f"[{', '.join(params)}]"
        in_spec = "self._in_spec"
        if self._named():
            given = f"([{', '.join(params[: info.in_spec.child(0).num_children])}], {self._named()})"
        line = f"{', '.join([*without, ''])}= fx_pytree.tree_flatten_spec({given}, {in_spec})"
        return f"{head}\n    {typed}{line}".rstrip()

    def _named(self) -> str:
        """The parameters by name as a dict's text, where the inputs' shape is of arguments and of arguments by name."""
        spec, params = self.pytree_info.in_spec, [n for n in self.pytree_info.orig_args if n != "self"]
        whole = spec.type is tuple and spec.num_children == 2
        if not whole or spec.child(0).type is not tuple or spec.child(1).type is not dict:
            return ""
        first = spec.child(0).num_children
        named = [f"'{key}':{name}" for key, name in zip(spec.child(1).context, params[first:], strict=False)]
        return "{" + ", ".join(named) + "}" if len(params) == first + len(named) else ""

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        """The statement that puts the results into their container."""
        shown = (repr_fn or repr)(output_args)
        if self.pytree_info is not None and self.pytree_info.out_spec is not None:
            return f"return pytree.tree_unflatten({shown}, self._out_spec)"
        return f"return {shown}"


class Writer:
    """One graph on its way to text."""

    def __init__(
        self,
        codegen: CodeGen,
        nodes: list[Node],
        root: str,
        namespace: Namespace,
        verbose: bool,
        strides: bool,
        places: bool,
    ) -> None:
        self.codegen, self.nodes, self.root, self.namespace = codegen, nodes, root, namespace
        self.verbose, self.strides, self.places = verbose, strides, places
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.params: list[str] = []
        self.body: list[str] = []
        self.returned = ""
        self.above = ""

    # -- names

    def global_name(self, hint: str, value: Any) -> str:
        """The name by which the text reaches a value."""
        if is_ours(value) and value is not device:
            return qualified_name(value)
        name = self.namespace.create_name(hint, value)
        self.globals.setdefault(name, value)
        return name

    def type_name(self, value: Any) -> str:
        """A type's text, with all that it is made of among the globals."""
        if isinstance(value, types.UnionType):
            return "|".join([self.type_name(part) for part in value.__args__])
        if value in ORIGINS.values():
            return self.global_name(f"typing.{value._name}", value)
        origin = getattr(value, "__origin__", None)
        if origin is not None:
            older = not isinstance(value, types.GenericAlias)
            outer = self.type_name(ORIGINS.get(origin, origin) if older else origin)
            inner = ",".join([self.type_name(part) for part in getattr(value, "__args__", ())])
            return f"{outer}[{inner}]" if inner else outer
        shown = type_repr(value)
        if isinstance(value, type) and value.__module__ == "builtins":
            self.globals.setdefault(shown, value)
            return shown
        return self.global_name(shown, value)

    def annotation(self, value: Any) -> str:
        return "" if value is None else f" : {self.type_name(value)}"

    # -- arguments

    def shown(self, value: Any) -> str:
        """An argument's text."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            name = self.global_name(f"{type(value).__module__}.{type(value).__name__}", type(value))
            return f"{name}{self.sequence(value, '(', ',)' if len(value) == 1 else ')')}"
        if isinstance(value, tuple):
            return self.sequence(value, "(", ",)" if len(value) == 1 else ")")
        if isinstance(value, list):
            return self.sequence(value, "[", "]")
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.shown(k)}: {self.shown(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.shown(value.start)}, {self.shown(value.stop)}, {self.shown(value.step)})"
        if isinstance(value, enum.Enum):
            return f"{self.global_name(type(value).__name__, type(value))}.{value.name}"
        if isinstance(value, (OpOverload, OpOverloadPacket)):
            return qualified_name(value)
        if isinstance(value, Recipe):
            return self.global_name("geometry", value)
        if isinstance(value, device):
            self.global_name("device", device)
            return repr(value)
        return repr(value)

    def sequence(self, values: Iterable[Any], start: str, end: str) -> str:
        return start + ", ".join([self.shown(v) for v in values]) + end

    def call(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.shown, args), *(f"{key} = {self.shown(v)}" for key, v in kwargs.items())])

    # -- statements

    def statement(self, node: Node) -> str:
        """What a node does."""
        kind = self.annotation(node.type)
        if self.verbose and (seen := self.metadata(node)):
            kind = f': "{seen}"'
        args = node.args
        if node.op == "placeholder":
            return self.parameter(node, kind)
        if node.op == "get_attr":
            return f"{node!r}{kind} = {reached(self.root, str(node.target))}"
        if node.op == "call_method":
            target = reached(self.shown(args[0]), str(node.target))
            return f"{node!r}{kind} = {target}({self.call(args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{node!r}{kind} = {reached(self.root, str(node.target))}({self.call(args, node.kwargs)})"
        if node.op == "output":
            self.returned = "" if node.type is None else f" -> {self.type_name(node.type)}"
            return self.codegen.generate_output(args[0], repr_fn=self.shown)
        if node.op != "call_function":
            raise NotImplementedError(f"node: {node.op} {node.target}")
        return self.function(node, kind)

    def parameter(self, node: Node, kind: str) -> str:
        name = str(node.target)
        default = f" = {self.shown(node.args[0])}" if node.args else ""
        self.params.append(f"{name}{kind}{default}")
        bare = name.replace("*", "")
        return "" if bare == repr(node) else f"{node!r} = {bare}"

    def function(self, node: Node, kind: str) -> str:
        target, args = node.target, node.args
        if target in INFIX:
            return f"{node!r}{kind} = {INFIX[target].format(*map(self.shown, args))}"
        if target in INPLACE:
            return f"{self.shown(args[0])} {INPLACE[target]} {self.shown(args[1])};  {node!r}{kind} = {self.shown(args[0])}"
        if target is operator.setitem:
            at = f"{self.shown(args[0])}[{self.shown(args[1])}]"
            return f"{at} = {self.shown(args[2])};  {node!r}{kind} = {self.shown(args[0])}"
        name = self.global_name(qualified_name(target), target)
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{node!r}{kind} = {reached(self.shown(args[0]), args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{node!r}{kind} = {name}({self.call(args, node.kwargs)})"

    def metadata(self, node: Node) -> str:
        """Dtype and sizes of a node's value, where a pass has left them: `f32[2, 3]`."""
        found: Any = node.meta.get("val", node.meta.get("tensor_meta"))
        shape: Any = getattr(found, "shape", None)
        if shape is not None and hasattr(found, "dtype"):
            shown = f"{SHORT.get(found.dtype, str(found.dtype))}{list(shape)}"
            if self.strides:
                strides: Any = found.stride
                given: Any = strides() if callable(strides) else strides
                shown += str(list(given))
            if self.places and isinstance(found, Tensor):
                shown += str(found.device)
            return shown
        return f"Sym({found})" if isinstance(found, int) else ""

    def origin(self, node: Node) -> str:
        """A comment that says where a node is from, where that is another place than the node's before it."""
        if not self.verbose or node.op in ("placeholder", "output"):
            return ""
        trace = node.stack_trace
        text = "# No stacktrace found for following nodes"
        if trace:
            lines = trace.strip().split("\n")
            found = next((i for i in range(len(lines) - 2, -1, -1) if FRAME.match(lines[i])), None)
            if found is not None and (match := FRAME.match(lines[found])) is not None:
                text = f"# File: {match['file']}:{match['line']} in {match['name']}, code: {lines[found + 1].strip()}"
        if text == self.above:
            return ""
        self.above = text
        return f"\n{text}\n"

    # -- the whole

    def last_uses(self) -> dict[Node, list[Node]]:
        """By node, the nodes whose values nobody needs behind it."""
        seen: set[Node] = set()
        found: dict[Node, list[Node]] = {}

        def last(node: Node, user: Node) -> None:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)

        for user in reversed(self.nodes):
            map_arg((user.args, user.kwargs), lambda n, user=user: last(n, user))
        return found

    def written(self, expanded: bool) -> PythonCode:
        for name, value in self.codegen.additional_globals():
            self.global_name(name, value)
        for name, builtin in CUSTOM_BUILTINS.items():
            if name not in self.globals:
                self.global_builtin(name, builtin.obj)
        done = self.last_uses()
        for node in self.nodes:
            if comment := self.origin(node):
                self.body.append(comment)
            text = self.statement(node)
            if node.op in ("placeholder", "output"):
                self.body.extend([f"{text}\n"] if text else [])
                continue
            gone = [*done.get(node, []), *(() if node.users else (node,))]
            freed = ";  " + " = ".join([*map(repr, gone), "None"]) if gone else ""
            self.body.append(f"{text}{freed}\n")
        if not self.body:
            self.body.append("pass\n")
        if self.codegen._body_transformer is not None:
            self.body = self.codegen._body_transformer(self.body)
        wraps = "\n".join(f'{checks.spelled("fx._symbolic_trace.wrap")}("{name}")' for name in self.wrapped)
        head = self.codegen.gen_fn_def(self.params, self.returned, expanded_def=expanded)
        whole = "".join(self.body).lstrip("\n")
        code = "\n".join(f"    {line}" for line in whole.split("\n"))
        before = f"\n{wraps}\n\n{head}\n"
        return PythonCode(f"{before}{code}", self.globals, None, before.count("\n"))

    def global_builtin(self, name: str, value: Any) -> None:
        self.namespace.create_name(name, value)
        self.globals[name] = value
