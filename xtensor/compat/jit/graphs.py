"""`torch.jit._get_trace_graph`: the operators of a call in their order, with shapes and the scopes that hooks name, as counters of
operations read them (fvcore's).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...nn.modules.module import Module
from ...tensor import Tensor
from ...utils._python_dispatch import TorchDispatchMode
from .tracing import tracing

__all__ = ["Graph", "Node", "Value", "get_trace_graph", "tracing_state"]


class TensorType:
    """What is known of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self._sizes, self._strides = list(tensor.shape), list(tensor.stride())
        self._dtype, self._device, self._wants = tensor.dtype, tensor.device, tensor.requires_grad

    def kind(self) -> str:
        """That it is of a tensor."""
        return "TensorType"

    def sizes(self) -> list[int]:
        """The sizes."""
        return list(self._sizes)

    def strides(self) -> list[int]:
        """The strides."""
        return list(self._strides)

    def dim(self) -> int:
        """How many dimensions there are."""
        return len(self._sizes)

    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    def scalarType(self) -> str:
        """The name of the dtype in PyTorch's C++."""
        return self._dtype.scalar_name

    def device(self) -> Any:
        """The device."""
        return self._device

    def requires_grad(self) -> bool:
        """Whether a gradient is asked for."""
        return self._wants


class Value:
    """A tensor, a constant, or a list of values, made by a node."""

    def __init__(self, held: Any, node: Node, name: str) -> None:
        self._type = TensorType(held) if isinstance(held, Tensor) else None
        self._constant = None if isinstance(held, Tensor) else held
        self._node, self._name = node, name

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor, of which all is known."""
        return self._type is not None

    def type(self) -> TensorType | None:
        """What is known of a tensor; None for what is none."""
        return self._type

    def toIValue(self) -> Any:
        """A constant; None for a tensor, and for a list that holds some."""
        return self._constant

    def node(self) -> Node:
        """The node that made it."""
        return self._node

    def debugName(self) -> str:
        """Its name in the text of the graph."""
        return self._name

    def __repr__(self) -> str:
        told = (
            ""
            if self._type is None
            else f" : {self._type.scalarType()}({', '.join(map(str, self._type.sizes()))})"
        )
        return f"%{self._name}{told}"


class Node:
    """A call of an operator."""

    def __init__(self, kind: str, scope: str) -> None:
        self._kind, self._scope = kind, scope
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def kind(self) -> str:
        """The operator, `aten::name`; `prim::Constant`, `prim::ListConstruct` and `prim::Param` for values of their own."""
        return self._kind

    def inputs(self) -> Iterator[Value]:
        """The arguments."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The results."""
        return iter(self._outputs)

    def scopeName(self) -> str:
        """The scopes that were open, by `/`."""
        return self._scope

    def __repr__(self) -> str:
        made, given = (
            ", ".join(map(repr, self._outputs)),
            ", ".join([f"%{v.debugName()}" for v in self._inputs]),
        )
        scope = f", scope: {self._scope}" if self._scope else ""
        return f"{made} = {self._kind}({given}){scope}"


class Graph:
    """The calls, in order. Differs from PyTorch: operators are those that are declared here, where PyTorch's trace has others."""

    def __init__(self, inputs: Sequence[Value], nodes: Sequence[Node], outputs: Sequence[Value]) -> None:
        self._inputs, self._nodes, self._outputs = list(inputs), list(nodes), list(outputs)

    def nodes(self) -> Iterator[Node]:
        """The calls."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """The tensors of the arguments."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """The tensors of the result."""
        return iter(self._outputs)

    def __repr__(self) -> str:
        given, made = (
            ", ".join(map(repr, self._inputs)),
            ", ".join([f"%{v.debugName()}" for v in self._outputs]),
        )
        lines = "".join(f"  {node!r}\n" for node in self._nodes)
        return f"graph({given}):\n{lines}  return ({made})\n"


# ---- operators as TorchScript has them

Spelled = tuple[str, list[Any]]
"""An operator's name in TorchScript, and its arguments there."""


def convolution(n: int, transposed: bool) -> Callable[..., Spelled]:
    """Of a convolution over `n` dimensions."""
    names = ("output", "groups", "dilation") if transposed else ("dilation", "groups")

    def spell(x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, *rest: Any) -> Spelled:
        given = dict(zip(names, rest, strict=False))

        def sizes(value: Any) -> list[int]:
            return [value] * n if isinstance(value, int) else list(value)

        steps, apart, groups = sizes(stride), sizes(given.get("dilation", 1)), given.get("groups", 1)
        if isinstance(padding, str):
            return "_convolution_mode", [x, w, bias, steps, padding, apart, groups]
        own = [sizes(padding), apart, transposed, sizes(given.get("output", 0)), groups]
        return "_convolution", [x, w, bias, steps, *own, False, False, True, True]

    return spell


def batch_norm(training: bool) -> Callable[..., Spelled]:
    """Of batch norm of either kind."""

    def spell(x: Any, *args: Any, momentum: float = 0.1, eps: float = 1e-5) -> Spelled:
        vectors = [*args, *[None] * 4][:4]
        own = (
            vectors if training else [*vectors[2:], *vectors[:2]]
        )  # running statistics come first where they are needed
        return "batch_norm", [x, *own, training, momentum, eps, True]

    return spell


def renamed(name: str) -> Callable[..., Spelled]:
    """Of an operator that has another name alone."""
    return lambda *args, **kwargs: (name, [*args, *kwargs.values()])


SPELLED: dict[str, Callable[..., Spelled]] = {
    **{f"conv{n}d": convolution(n, False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": convolution(n, True) for n in (1, 2, 3)},
    "batch_norm_training": batch_norm(True),
    "batch_norm_inference": batch_norm(False),
    "native_layer_norm": renamed("layer_norm"),
    "native_group_norm": renamed("group_norm"),
    "grid_sampler_2d": renamed("grid_sampler"),
    "grid_sampler_3d": renamed("grid_sampler"),
    "einsum": lambda operands, equation, path=None: ("einsum", [equation, operands, path]),
}
"""What TorchScript calls operators that have other names or arguments here."""
UNSEEN = frozenset(("detach", "new_empty"))
"""What is called beside the operators that a program names."""


# ---- recording


class State:
    """What `torch._C._get_tracing_state` gives while a graph is made: hooks of modules name their scopes."""

    def __init__(self) -> None:
        self.scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Begin a scope."""
        self.scopes.append(name)

    def pop_scope(self) -> None:
        """End the last one."""
        self.scopes.pop()


_running: list[State] = []


def tracing_state() -> State | None:
    """The state of the graph that is being made, None where there is none."""
    return _running[-1] if _running else None


class Recorder(TorchDispatchMode):
    """Writes down every operator. by: the values of tensors, which it keeps so that none takes another's place."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.nodes: list[Node] = []
        self.by: dict[int, tuple[Tensor, Value]] = {}
        self.count = 0

    def value(self, held: Any, node: Node | None = None) -> Value:
        """The value of an argument, or of a result of a node."""
        if isinstance(held, Tensor):
            found = self.by.get(id(held))
            if found is not None and node is None:
                return found[1]
        self.count += 1
        parts = held if isinstance(held, (list, tuple)) and any(isinstance(v, Tensor) for v in held) else None
        kind = (
            "prim::ListConstruct"
            if parts
            else "prim::Param"
            if isinstance(held, Tensor)
            else "prim::Constant"
        )
        maker = node or Node(kind, "/".join(self.state.scopes))
        made = Value(None if parts else held, maker, str(self.count))
        if node is None:
            maker._inputs += [self.value(part) for part in parts or ()]
        maker._outputs.append(made)
        if isinstance(held, Tensor):
            self.by[id(held)] = held, made
        return made

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        namespace, _, name = func._schema.name.partition("::")
        if name not in UNSEEN:
            name, given = SPELLED.get(name, renamed(name))(*args, **(kwargs or {}))
            node = Node(f"{namespace}::{name}", "/".join(self.state.scopes))
            node._inputs += map(self.value, given)
            for made in out if isinstance(out, (tuple, list)) else (out,):
                self.value(made, node)
            self.nodes.append(node)
        return out


def get_trace_graph(
    f: Module | Callable[..., Any],
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """The graph of a call, and what it gives; with `return_inputs` the arguments, too."""
    given = args if isinstance(args, tuple) else (args,)
    state = State()
    recorder = Recorder(state)
    inputs = [recorder.value(a) for a in given if isinstance(a, Tensor)]
    _running.append(state)
    try:
        with tracing(), recorder:
            out = f(*given, **(kwargs or {}))
    finally:
        _running.pop()
    leaves = out if isinstance(out, (tuple, list)) else (out,)
    graph = Graph(inputs, recorder.nodes, [recorder.value(v) for v in leaves if isinstance(v, Tensor)])
    return (graph, out, given) if return_inputs else (graph, out)
