"""Values that are not there yet: what is done with a `Proxy` is written down as nodes of a graph."""

from __future__ import annotations

import copy
import dataclasses
import dis
import enum
import inspect
import operator
import os
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from .. import checks
from ..devices import device
from ..dtypes import dtype, layout, memory_format
from ..nn.parameter import Parameter
from ..operators.below.aten import OpOverload
from ..operators.overriding import arm, armed
from ..tensor import Size, Tensor
from . import traceback as fx_traceback
from .graph import Graph
from .names import as_recorded, is_method_only
from .node import Argument, Node, Target, map_aggregate
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "BASE_TYPES",
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
    "find_proxy",
]

BASE_TYPES = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout, OpOverload)
UNASKED = frozenset(
    "__torch_dispatch__ __array_interface__ __array_struct__ __array__ __index__ __wrapped__".split()
)
FX = __name__.rpartition(".")[0]
LIBRARY = __name__.partition(".")[0]


class TraceError(ValueError):
    """What a program does with a value that tracing cannot follow."""


@dataclasses.dataclass
class Scope:
    """The submodule that is being traced: its path, and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """A block within another submodule."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self.scope, self.before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self.scope

    def __exit__(self, *error: object) -> None:
        self.scope.module_path, self.scope.module_type = self.before.module_path, self.before.module_type


class TracerBase:
    """What makes nodes of what is done with proxies; `graph` is the graph that they go to."""

    graph: Graph
    record_stack_traces: bool = False
    """Whether nodes keep where in the program they were made."""
    check_mutable_operations: bool = False
    """Whether writes are refused."""
    trace_asserts: bool = False
    """Whether `assert` of a proxy becomes a node."""
    proxy_buffer_attributes: bool = False
    """Whether buffers are proxies, as parameters are."""
    traced_func_name: str = "forward"
    """The method of the root module that is traced."""
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A node of the graph, with where it is from."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # pyright: ignore[reportArgumentType]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            kept = fx_traceback.get_current_meta()
            node.meta.update({key: value for key, value in kept.items() if key not in node.meta})
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = user_stack()
        return node

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:
        """A node whose arguments may hold proxies, and the proxy of its value."""
        made = self.create_arg(args)
        named = self.create_arg(kwargs)
        if not isinstance(made, tuple) or not isinstance(named, dict):
            raise AssertionError(f"Expected a tuple and a dict, got {type(made)} and {type(named)}")
        node = self.create_node(kind, target, made, named, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """What stands for a value among a node's arguments; NotImplementedError for what a graph cannot hold."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(part) for part in a]
            if hasattr(a, "_fields"):
                return self.create_node("call_function", type(a), tuple(parts), {})
            return tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(part) for part in a]
        if isinstance(a, dict):
            return self._dict_arg(a)
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            given = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), given)
        if a is None or a is ... or isinstance(a, (*BASE_TYPES, Node, enum.Enum)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _dict_arg(self, a: dict[Any, Any]) -> Argument:
        made: dict[Any, Any] = {}
        for key, value in a.items():
            if not isinstance(key, str):
                key = self.create_arg(key)
                map_aggregate(key, refuse_key)
            made[key] = self.create_arg(value)
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy, which a tracer that knows it may give; TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The parts of a proxy that is unpacked into several names; TraceError where it is walked otherwise."""
        frame = sys._getframe()
        while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{FX}."):
            frame = frame.f_back
        if frame is not None:
            count = unpacked(frame)
            if count is not None:
                return iter([obj[i] for i in range(count)])  # pyright: ignore[reportIndexIssue]
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy: what its method `keys` gives."""
        return Attribute(obj, "keys")()


def refuse_key(key: Argument) -> Argument:
    if isinstance(key, Node):
        raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
    return key


def unpacked(frame: FrameType) -> int | None:
    """Into how many names a frame unpacks a value now; None where it does something else."""
    now = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
    return now.argval if now is not None and now.opname == "UNPACK_SEQUENCE" else None


def user_stack() -> str:
    """The lines of the program that led to here: not the library's own."""
    folder = __file__.rpartition("fx")[0]
    ours, layers = (folder, f"<{LIBRARY}", "<frozen"), f"{folder}nn{os.sep}modules"
    stack = traceback.extract_stack()
    kept = [line for line in stack if not line.filename.startswith(ours) or line.filename.startswith(layers)]
    return "".join(traceback.format_list(kept)).strip()


class GraphAppendingTracer(TracerBase):
    """A tracer that puts nodes at the end of a graph that is there already."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


class Proxy:
    """The value of a node: functions, methods and operators on it become nodes, and give proxies.

    It has no truth, no length and no parts to walk, for its value is not known: TraceError says so.

    >>> graph = xtensor.fx.Graph()
    >>> x = xtensor.fx.Proxy(graph.placeholder("x"))
    >>> y = xtensor.relu(x).sum(dim=0) * 2
    >>> print([node.name for node in graph.nodes])
    ['x', 'relu', 'sum_1', 'mul']
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if Proxy not in armed:
            arm(Proxy)
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        # Nothing that Python and its libraries ask of any object becomes a node.
        if k.startswith("_xt_") or k in UNASKED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {k!r}", name=k, obj=self)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = Proxy.__new__(type(self))
        made.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and asserted(sys._getframe(1), self):
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What `**proxy` asks for."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            f"{checks.spelled('fx.wrap')}('len') at module scope"
        )

    @staticmethod
    def _xt_operator(name: str, input: Tensor, other: Proxy) -> Proxy:
        """The node of an operator, or of a method that writes, of a tensor on the left and a proxy: a method's, as PyTorch's."""
        return other.tracer.create_proxy("call_method", METHODS.get(name, name), (input, other), {})

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def look(value: Any) -> Any:
            if isinstance(value, Proxy):
                tracers.setdefault(value.tracer)
            return value

        map_aggregate(args, look)
        map_aggregate(kwargs, look)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        name = orig_method.__name__
        if is_method_only(orig_method) or inspect.ismethoddescriptor(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        function, args, kwargs = as_recorded(orig_method, args, kwargs)
        wish = tracer.graph._target_to_str(function.__name__)
        return tracer.create_proxy("call_function", function, args, kwargs, name=wish)


def asserted(frame: FrameType, condition: Proxy) -> bool:
    """Whether a frame asks for a proxy's truth in an `assert`, which then is a node."""
    code = list(dis.get_instructions(frame.f_code))
    now = next((i for i, step in enumerate(code) if step.offset == frame.f_lasti), None)
    if now is None:
        return False
    # From Python 3.13 on the step before the jump asks; from 3.14 on the error is one of several constants.
    jump = next((i for i in (now, now + 1) if "JUMP" in code[i].opname), now)
    following = code[jump + 1 : jump + 3]
    if "JUMP" not in code[jump].opname or not any(
        s.opname == "LOAD_ASSERTION_ERROR" or s.argval is AssertionError for s in following
    ):
        return False
    condition.tracer.create_proxy("call_function", assert_fn, (condition,), {})
    return True


def assert_fn(x: Any) -> None:
    """`assert x`."""
    if not x:
        raise AssertionError(f"assertion failed: {x}")


class Attribute(Proxy):
    """An attribute of a proxy: a method's name until it is called, a node when it is used as a value."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The node of the attribute's value, made when it is first asked for."""
        found = self._node
        if found is None:
            found = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
            self._node = found
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, whose sizes are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        """The parameter's sizes."""
        return self.param.shape

    def size(self) -> Size:
        """The parameter's sizes."""
        return self.param.size()

    def dim(self) -> int:
        """The number of the parameter's dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of the parameter's dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The number of the parameter's elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The number of the parameter's elements."""
        return self.param.numel()


def find_proxy(*values: Any) -> Proxy | None:
    """The first proxy among values and what lies in them."""
    found: list[Proxy] = []

    def look(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(values, look)
    return found[0] if found else None


# ---- Python's operators --------------------------------------------------------------------------------------------

COMPARISONS = "eq ne lt gt le ge".split()
PLAIN = [
    *COMPARISONS,
    *"pos neg invert add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor getitem matmul".split(),
]
REFLECTED: dict[str, str] = dict(
    add="add", sub="sub", mul="mul", floordiv="__floordiv__", truediv="div", mod="remainder", pow="pow", lshift="__lshift__",
    rshift="__rshift__", and_="__and__", or_="__or__", xor="__xor__", matmul="matmul",
)  # fmt: skip
"""Operators that have a reflected form, and the method that a tensor on the left records them as."""
METHODS = {f"__{n.strip('_')}__": method for n, method in (REFLECTED | {n: n for n in COMPARISONS}).items()}


def plain(target: Callable[..., Any]) -> Callable[..., Any]:
    def impl(*args: Any, **kwargs: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    return impl


def reflected(target: Callable[..., Any]) -> Callable[..., Any]:
    def impl(self: Proxy, rhs: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    return impl


for _name in PLAIN:
    setattr(Proxy, f"__{_name.strip('_')}__", plain(getattr(operator, _name)))
for _name in REFLECTED:
    setattr(Proxy, f"__r{_name.strip('_')}__", reflected(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # pyright: ignore[reportAttributeAccessIssue]
