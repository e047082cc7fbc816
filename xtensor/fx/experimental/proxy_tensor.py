"""Functions run once on tensors: the operators that they come to below autograd become a graph."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...compat.overrides import TorchFunctionMode
from ...engine.modes import state
from ...lowering import Recipe
from ...nn.modules.module import Module
from ...operators.below.aten import packet
from ...operators.below.dispatching import flat, without_modes
from ...operators.generator import levels_apart
from ...tensor import Tensor
from ...trees import tree_map
from ...utils._python_dispatch import TorchDispatchMode
from ...xla.levels import tracing
from ...xla.symbolic import is_open
from ..graph_module import GraphModule
from ..proxy import Proxy
from ..tracer import PH, Tracer
from .abstract import abstractly
from .beneath import DRAWN, FILLS, MAKING, Beneath, differs, is_leveled
from .key_tracer import PythonKeyTracer
from .symbolic_shapes import GuardOnDataDependentSymNode

__all__ = [
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "disable_proxy_modes_tracing",
    "dispatch_trace",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "make_fx",
]


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A block whose operators become nodes of a tracer's graph.

    decomposition_table: by operator, a function that says it by others.
    """

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        pre_dispatch: bool = False,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    ) -> None:
        self.tracer, self.tracing_mode = tracer, tracing_mode
        self.decomposition_table = dict(decomposition_table or {})
        self.beneath = Beneath(tracer)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, tracer = kwargs or {}, self.tracer
        rule = self.decomposition_table.get(func)
        if rule is not None:
            with self:
                made = rule(*args, **kwargs)
            if made is not NotImplemented:
                return made
        given = [value for value in flat((*args, *kwargs.values())) if isinstance(value, Tensor)]
        leveled = any(map(is_leveled, given))
        if func._opname == "_local_scalar_dense" and (leveled or tracer.proxy_of(args[0]) is not None):
            if not tracer.real:
                raise GuardOnDataDependentSymNode(
                    f"Could not guard on data-dependent expression: {func} asks for a value, and there is none while a function is "
                    "traced without values"
                )
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's likely "
                "that this is caused by data-dependent control flow or similar.  It may be possible to trace this with dynamic "
                "shapes; try setting tracing_mode='symbolic' in your make_fx call."
            )
        if leveled:
            name, writes = func._opname, func._schema.is_mutable
            if name in MAKING:
                return self.beneath.made(name, args, kwargs)
            if name.removesuffix("_like") in DRAWN:
                return self.beneath.drawn(name, args, kwargs)
            if name in FILLS:
                value = kwargs.get("value", args[1] if len(args) > 1 else 0)
                return self.beneath.copied(args[0], value)
            with self.beneath.taking(given, target=args[0] if writes else None):
                if func.is_view or writes or any(map(differs, given)):
                    return func(*args, **kwargs)
            return self.beneath.whole(func, given, args, kwargs)
        if func._opname.removesuffix("_like") in DRAWN and levels_apart():
            return self.beneath.drawn(func._opname, args, kwargs)
        if tracer.opened and (func.of is not None or any(type(v) is Recipe for v in flat(kwargs.values()))):
            # The operator of a derivative, or of a view's, is for the sizes that it was made for.
            return self.beneath.by_primitives(func, given, args, kwargs)
        if func.is_view and self.beneath.without_views():
            func = packet(f"{func._opname}_copy").overload(func._overloadname)
        name = tracer.graph._target_to_str(func.overloadpacket.__name__)
        for value in given:
            tracer.meet(value, func)
        proxy = tracer.create_proxy("call_function", func, args, kwargs, name=name)
        made = func(*args, **kwargs)
        if func._schema.is_mutable and args and isinstance(args[0], Tensor):
            tracer.keep(args[0], proxy)
        self._keep(made, proxy)
        return made

    def _keep(self, made: Any, proxy: Proxy) -> None:
        if isinstance(made, Tensor):
            self.tracer.keep(made, proxy)
        elif isinstance(made, (tuple, list)):
            for i, part in enumerate(made):
                if isinstance(part, Tensor):
                    self.tracer.keep(part, proxy[i])  # pyright: ignore[reportIndexIssue]


WRITES = frozenset("__setitem__ index_put_ fill_diagonal_".split())
"""Functions that write, of which nobody is asked below autograd."""


class Above(TorchFunctionMode):
    """A block whose functions become nodes themselves where they do more than the operators that they come to."""

    def __init__(self, mode: ProxyTorchDispatchMode) -> None:
        self.mode = mode

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, name, tracer = kwargs or {}, getattr(func, "__name__", ""), self.mode.tracer
        if get_proxy_mode() is not self.mode:
            return func(*args, **kwargs)
        given = [value for value in flat((*args, *kwargs.values())) if isinstance(value, Tensor)]
        if any(map(is_leveled, given)):
            beneath = self.mode.beneath
            if name not in WRITES:
                with beneath.taking(given):
                    return func(*args, **kwargs)
            others = beneath.raised(given, args[1:])
            with beneath.taking(given, True, args[0]), without_modes():
                return func(args[0], *others, **kwargs)
        if name in WRITES:
            target = operator.setitem if name == "__setitem__" else packet(name).overload("default")
            proxy = tracer.create_proxy("call_function", target, args, kwargs, name=name.strip("_"))
            with without_modes():
                made = func(*args, **kwargs)
            tracer.keep(args[0], proxy)
            return made
        before = [tensor._xt_storage.array for tensor in given]
        made = func(*args, **kwargs)
        for tensor, array in zip(given, before, strict=True):
            if tensor._xt_storage.array is not array:
                tracer.written(tensor)
        if isinstance(made, Tensor) and tracer.proxy_of(made) is None and name not in ("__get__", "__set__"):
            if any(tracer.proxy_of(value) is not None for value in given):
                tracer.keep(made, tracer.create_proxy("call_function", func, args, kwargs))
        return made


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost mode that records now; None where none does."""
    modes = [mode for mode in state.dispatch_modes if isinstance(mode, ProxyTorchDispatchMode)]
    return modes[-1] if modes else None


@contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """A block in which nothing is recorded."""
    before, tracing.recorder = tracing.recorder, None
    try:
        with without_modes():
            yield
    finally:
        tracing.recorder = before


def dispatch_trace(root: Any, tracer: Tracer, concrete_args: Any = None) -> GraphModule:
    """The graph that a tracer makes, as a module."""
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def plain_signature(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function with so many parameters `arg0`, `arg1`, ..."""
    names = ", ".join([f"arg{i}" for i in range(count)])
    return eval(f"lambda {names}: function({names})", {"function": function})


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    **options: Any,
) -> Callable[..., GraphModule]:
    """A function that runs `f` on its inputs, and gives the operators that ran as a graph.

    Derivatives that `f` asks for are in the graph, as operators `<name>_backward`; of transforms (`vmap`, `jvp`, `functionalize`, ...)
    what their programs come to, on all samples together.
    decomposition_table: by operator, a function that says it by others. tracing_mode: "real" runs `f` on the inputs, "fake" on tensors
    without values, "symbolic" with sizes left open, too: the graph is for other sizes, as far as `shape_env` of the module says.
    _allow_non_fake_inputs: whether these two may meet tensors from around `f`. Differs from PyTorch: operators are those declared here,
    of which some are made of others there, and below transforms the primitives of their kernels; numbers among the inputs are fixed, and
    sizes are equal only where they are for all.

    >>> from xtensor.fx.experimental.proxy_tensor import make_fx
    >>> traced = make_fx(lambda x: (x * 2).sin().sum())(xtensor.ones(3))
    >>> print(traced.code.strip())
    def forward(self, x_1):
        mul = xtensor.ops.aten.mul.Tensor(x_1, 2);  x_1 = None
        sin = xtensor.ops.aten.sin.default(mul);  mul = None
        sum_1 = xtensor.ops.aten.sum.default(sin);  sin = None
        return sum_1
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        if tracing_mode == "real":
            return traced(f, args, PythonKeyTracer(), decomposition_table)

        def without_values(given: tuple[Any, ...]) -> GraphModule:
            tracer = PythonKeyTracer()
            tracer.real, tracer.mixes = False, _allow_non_fake_inputs
            return traced(f, given, tracer, decomposition_table)

        module, shape_env = abstractly(without_values, args, tracing_mode == "symbolic")
        if shape_env is not None:
            module.shape_env = shape_env
        return module

    return wrapped


def traced(f: Callable[..., Any], args: tuple[Any, ...], tracer: PythonKeyTracer, table: Any) -> GraphModule:
    """The graph of a function for arguments, as a module."""
    places = tree_map(lambda _: PH, args)
    analysed = inspect.unwrap(f)
    code = getattr(analysed, "__code__", None)
    named = code is not None and not code.co_flags & inspect.CO_VARARGS and not code.co_kwonlyargcount
    if code is None or not named or inspect.ismethod(analysed) or code.co_argcount != len(args):
        function = plain_signature(f, len(args))
    else:
        function = f
    mode = ProxyTorchDispatchMode(tracer, decomposition_table=table)

    @functools.wraps(function)
    def recorded(*proxies: Any) -> Any:
        def known(proxy: Any, value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            if tracer.proxy_of(value) is not None:  # given twice: each is an input of its own
                value = value.detach().clone().requires_grad_(value.requires_grad)
            tracer.keep(value, proxy)
            for dim, size in enumerate(value.shape):
                if is_open(size):
                    tracer.opened.setdefault(str(size), (proxy, dim))
            return value

        values = tree_map(known, proxies, args)
        with mode, Above(mode), mode.beneath:
            made = f(*values)
        return tree_map(tracer.standing_for, made)

    try:
        graph = tracer.trace(recorded, places)
    finally:
        tracer.forget()
    name = type(f).__name__ if isinstance(f, Module) else getattr(f, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
) -> GraphModule:
    """The operators of one call as a graph, whatever is being recorded around it."""
    with disable_proxy_modes_tracing():
        return make_fx(lambda *given: func(*given, **kwargs), decomposition_table, tracing_mode)(*args)
