"""Functions run once on tensors: the operators that they come to below autograd become a graph."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer as JaxTracer

from ...compat.overrides import TorchFunctionMode
from ...compat.symbolic import sym_max, sym_min
from ...dtypes import contiguous_format
from ...engine.modes import state
from ...export.dims import Size, evaluate
from ...geometry import contiguous_strides
from ...lowering import Recipe
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...operators.below.aten import packet
from ...operators.below.dispatching import below, flat, without_modes
from ...operators.generator import levels_apart
from ...operators.levels.crossing import new_level
from ...storage import AGE, Storage, births
from ...tensor import Tensor, array_of, wrap
from ...trees import tree_map
from ...utils._python_dispatch import TorchDispatchMode
from ...xla.levels import KINDS, Batched, Dual, Level, batches_of, ground, layers, tracing
from ...xla.pending import Pending
from ...xla.symbolic import is_open
from ...xla.transformed import has_tangent, lowered, still_batched
from ...xla.x64 import call
from ..graph_module import GraphModule
from ..node import Argument
from ..proxy import Proxy
from ..tracer import PH, Tracer
from .abstract import abstractly
from .primitives import as_tensor, evaluated, filled, held
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


FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": sym_max, "min": sym_min}
"""What expressions of sizes call."""


class PythonKeyTracer(Tracer):
    """A tracer for operators: modules are entered, parameters are themselves."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.root = Module()
        self.born = births.now = births.now + AGE
        self.places: dict[Any, tuple[Proxy, Storage]] = {}
        """By storage and geometry, the proxy of what lies there; writes leave it, as they do when the graph runs."""
        self.values: dict[int, list[Seen]] = {}
        """By array, where it was seen: what the backward pass gets are arrays."""
        self.opened: dict[str, tuple[Proxy, int]] = {}
        """By the name of a size left open, an input and the dimension that has it."""
        self.sizes: dict[str, Any] = {}
        """By the text of such a size, the proxy of its value."""
        self.real = self.mixes = True
        """Whether tensors have values; whether there may be constants that do."""
        self.before: dict[int, tuple[Storage, Any, int]] = {}
        """What is in the storages of constants that a function traced without values might write."""

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val

    def create_arg(self, a: Any) -> Argument:
        if isinstance(a, Recipe):
            return a
        if is_open(a):
            return self.create_arg(self.size(str(a)))
        if isinstance(a, Tensor) and (found := self.proxy_of(a)) is not None:
            return found.node
        if isinstance(a, Parameter) and all(a is not p for p in self.root.parameters()):
            setattr(self.root, self.get_fresh_qualname("_param_constant"), a)
        return super().create_arg(a)

    def proxy_of(self, tensor: Tensor) -> Proxy | None:
        """The proxy of a tensor's values, None for values that this tracer has not seen made."""
        found = self.places.get(place(tensor))
        if found is not None:
            return found[0]
        if tensor._xt_storage.writes < self.born:  # another constant may share the array
            return None
        seen = self.values.get(id(read_already(tensor)), ())
        return next((one.proxy for one in seen if one.storage.writes == one.writes), None)

    def size(self, text: str) -> Any:
        """The proxy of a size left open: an input's, or computed from those."""
        if text not in self.sizes:
            if text in self.opened:
                proxy, dim = self.opened[text]
                sym_size = packet("sym_size").overload("int")
                self.sizes[text] = self.create_proxy(
                    "call_function", sym_size, (proxy, dim), {}, name="sym_size_int"
                )
            else:
                names = dict.fromkeys(
                    name for name in re.findall(r"\b[a-z]\w*\b", text) if name in self.opened
                )
                known = {name: self.size(name) for name in names}
                self.sizes[text] = evaluate(Size(text), known, FUNCTIONS)
        return self.sizes[text]

    def standing_for(self, value: Any) -> Any:
        """The proxy of a tensor's values, where there is one; else the value itself."""
        found = self.proxy_of(value) if isinstance(value, Tensor) else None
        return value if found is None else found

    def keep(self, tensor: Tensor, proxy: Proxy) -> None:
        """Know a tensor by a proxy: the place where it lies, and the array of its values."""
        self.places[place(tensor)] = proxy, tensor._xt_storage
        self.see(read_already(tensor), tensor)

    def see(self, array: Any, tensor: Tensor, first: bool = False) -> None:
        """Know an array as a tensor's values; `first`: rather than as those that it is known as."""
        storage, proxy = tensor._xt_storage, self.proxy_of(tensor)
        if array is not None and proxy is not None:
            known = self.values.setdefault(id(array), [])
            known.insert(0 if first else len(known), Seen(array, proxy, storage, storage.writes))

    def meet(self, tensor: Tensor, func: Any) -> None:
        """Know an operator's argument: one that nobody has made is a constant."""
        if tensor._xt_view is None and place(tensor) in self.places:
            self.written(tensor)
        known = self.proxy_of(tensor)
        if known is None and tensor._xt_storage.writes >= self.born and not is_one(tensor):
            raise NotImplementedError(
                f"make_fx: {func} of a tensor that was made within the function by something that is no operator, so that the "
                "graph cannot say where it is from."
            )
        if known is None and not self.real and tensor._xt_storage.writes < self.born:
            self.refuse_real(tensor, func)
        self.keep(tensor, self.proxy(self.create_arg(tensor)) if known is None else known)

    def refuse_real(self, tensor: Tensor, func: Any) -> None:
        """AssertionError for a constant where tensors have no values, unless those are allowed."""
        if not self.mixes:
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {func}(...) a Tensor of size {tuple(tensor.shape)}"
            )
        storage = tensor._xt_storage
        self.before.setdefault(id(storage), (storage, storage.array, storage.version))

    def constant(self, array: Any) -> Tensor:
        """A tensor of an array that a program holds, which becomes an attribute."""
        with jax.ensure_compile_time_eval():
            tensor = wrap(call(jnp.asarray, array))
        self.keep(tensor, self.proxy(self.create_arg(tensor)))
        return tensor

    def written(self, tensor: Tensor) -> None:
        """Have the graph write what a function has put into a tensor: the values of another one, that an operator gave."""
        storage = tensor._xt_storage
        seen = self.values.get(id(read_already(tensor)), ())
        if not seen or any(one.storage is storage and one.writes == storage.writes for one in seen):
            return  # an operator wrote it
        given = self.places.get(place(tensor))
        target = self.proxy(self.create_arg(tensor)) if given is None else given[0]
        detach, copy = packet("detach").overload("default"), packet("copy_").overload("default")
        values = self.create_proxy("call_function", detach, (seen[-1].proxy,), {}, name="detach")
        self.keep(tensor, self.create_proxy("call_function", copy, (target, values), {}, name="copy_"))

    def forget(self) -> None:
        """Let go of all tensors; what was written to those from before while there were no values is undone."""
        for storage, array, version in self.before.values():
            storage.array, storage.version = array, version
        self.before.clear()
        self.places.clear()
        self.values.clear()


def is_one(tensor: Tensor) -> bool:
    """Whether a tensor is the number 1, as what a backward pass begins with."""
    if tensor.dim() or tensor._xt_view is not None or isinstance(tensor._xt_storage.array, JaxTracer):
        return False
    return bool(np.asarray(tensor._xt_storage.array) == 1)


class Seen(NamedTuple):
    """An array, the proxy of its values, and the storage that it was of after so many writes."""

    array: Any
    proxy: Proxy
    storage: Storage
    writes: int


def place(tensor: Tensor) -> Any:
    """Which part of which memory a tensor is."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if view is None:
        shape = storage.array.shape
        return id(storage), shape, contiguous_strides(shape), 0, tensor.dtype, False, False
    return id(storage), view.sizes, view.strides, view.offset, view.dtype, bool(view.conj), bool(view.neg)


def read_already(tensor: Tensor) -> Any:
    """The array of a tensor's values; None for a view that was not read."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if view is None:
        return storage.array
    return view.cached if view.cached_at == storage.writes and type(view.cached) is not Pending else None


def is_leveled(value: Any) -> bool:
    """Whether a value is a tensor that a transform holds."""
    return isinstance(value, Tensor) and type(value._xt_storage.raw) in KINDS


LIKE = {f"{name}_like": f"new_{name}" for name in ("empty", "zeros", "ones", "full")}
MAKING = {*LIKE, *LIKE.values(), "new_tensor"}
"""Functions that make tensors, whose values are none of their arguments'."""
FILLS = frozenset(("fill_", "zero_"))
DRAWN: dict[str, Callable[..., Any]] = {
    "rand": lambda new, size: new("rand", size),
    "randn": lambda new, size: new("randn", size),
    "normal_": lambda new, size, mean=0.0, std=1.0: new("randn", size) * std + mean,
    "uniform_": lambda new, size, low=0.0, high=1.0: new("rand", size) * (high - low) + low,
    "bernoulli": lambda new, size, p: (rand := new("rand", size)).lt(p).to(rand.dtype),
    "bernoulli_": lambda new, size, p=0.5: new("rand", size).lt(p),
}
"""Draws of random numbers of some sizes, by functions that make tensors."""
OPTIONS = frozenset("dtype device layout pin_memory requires_grad".split())


def differs(tensor: Tensor) -> bool:
    """Whether a tensor has other values for other samples of a transform, or a tangent."""
    array = tensor._xt_storage.array
    return bool(batches_of(array)) or has_tangent(array)


def laid_out(tensor: Tensor) -> Tensor:
    """A tensor that lies in memory as the array of its values does, so that the same views are possible when a graph runs."""
    return tensor if tensor.is_contiguous() else packet("clone")(tensor, memory_format=contiguous_format)


class Beneath:
    """Records what programs come to beneath all levels of transforms: operators on the tensors that lie there."""

    def __init__(self, mode: ProxyTorchDispatchMode) -> None:
        self.tracer = mode.tracer
        self.modes: tuple[Any, ...] = ()
        self.making = self.copies = False

    def __enter__(self) -> None:
        self.before, tracing.recorder = tracing.recorder, self
        self.modes = state.dispatch_modes

    def __exit__(self, *error: object) -> None:
        tracing.recorder = self.before

    @contextmanager
    def taking(self, given: list[Tensor], making: bool = False, target: Any = None) -> Iterator[None]:
        """A block that calls an operator of some tensors. making: whether other arrays, too, are no values of tensors from around it.
        target: what it writes.
        """
        for tensor in given:
            self.take(tensor)
            if tensor is target and not is_leveled(tensor):
                own = wrap(
                    array_of(tensor), shared=True
                )  # the array stays the value that it was when the storage has another
                self.tracer.keep(own, self.tracer.proxy(self.tracer.create_arg(tensor)))
        before, self.making = self.making, making
        try:
            yield
        finally:
            self.making = before

    @contextmanager
    def recording(self) -> Iterator[None]:
        """A block beneath all transforms, whose operators are recorded."""
        transforms, copies = state.transforms, self.copies
        self.copies = copies or any(t.name == "functionalize(mutations_and_views)" for t in transforms)
        state.transforms = ()
        try:
            with below(self.modes):
                yield
        finally:
            state.transforms, self.copies = transforms, copies

    def take(self, tensor: Tensor) -> None:
        """Know the array of a tensor that enters a level, or meets one that is at a level."""
        if not is_leveled(tensor):
            self.tracer.meet(tensor, "a transform")
            with self.recording():
                self.array(tensor)

    def run(self, program: Any, args: tuple[Any, ...]) -> Any:
        """The value of a program for arrays: each of its primitives is an operator."""
        leaves = jax.tree.leaves(args)
        closed, form = call(functools.partial(jax.make_jaxpr, return_shape=True)(program._fun), *args)
        with self.recording():
            values = [self.value(leaf) for leaf in leaves]
            made = evaluated(closed.jaxpr, closed.consts, values, self.tracer.constant)
            avals = [v.aval for v in closed.jaxpr.outvars]
            found = [
                self.array(filled(v, aval, self.tracer.constant)) for v, aval in zip(made, avals, strict=True)
            ]
        return jax.tree.unflatten(jax.tree.structure(form), found)

    def whole(self, func: Any, given: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The value of an operator that no transform changes, which is one beneath them, too."""

        def grounded(value: Any) -> Any:
            return wrap(ground(array_of(value)), shared=True) if is_leveled(value) else value

        with self.recording():
            made = func(*tree_map(grounded, args), **tree_map(grounded, kwargs))
            return self.raised(given, made)

    def made(self, name: str, args: tuple[Any, ...], kwargs: Any) -> Tensor:
        """What a function makes in the likeness of a tensor that is at a level: each sample has its own, which may be written."""
        like, *rest = args
        if name in LIKE:
            name, rest = LIKE[name], [list(like.shape), *rest]
        like_array = array_of(like)
        with self.recording():
            given = {key: value for key, value in kwargs.items() if key != "memory_format"}
            array = self.array(packet(name)(wrap(ground(like_array), shared=True), *rest, **given))
        return wrap(still_batched(like_array, array))

    def copied(self, target: Tensor, value: Any) -> Tensor:
        """A tensor that is at a level, filled with a number, or with a tensor's values."""
        if not isinstance(value, Tensor):
            value = self.made("new_full", (target, [], value), {})
        with self.taking([target, value], target=target):
            return target.copy_(self.raised([target], value))

    def drawn(self, name: str, args: tuple[Any, ...], kwargs: Any) -> Tensor:
        """Random numbers, of each sample its own where a transform says so."""
        target = args[0] if args and isinstance(args[0], Tensor) else None
        if name == "bernoulli" and len(args) + ("p" in kwargs) == 1:
            with below(self.modes):
                return packet("lt")(self.drawn("rand_like", args, {}), target).to(target.dtype)
        apart = levels_apart()
        if target is not None:
            name, size, given = name.removesuffix("_like"), list(target.shape), args[1:]
        else:
            flat_sizes = args[0] if args and isinstance(args[0], (tuple, list)) else args
            size, given = list(flat_sizes), ()
        writes = name.endswith("_")
        options = {key: kwargs[key] for key in ("dtype", "device") if kwargs.get(key) is not None}
        more = {key: value for key, value in kwargs.items() if key not in OPTIONS}
        if target is not None:
            options.setdefault("dtype", target.dtype)

        def new(function: str, size: Any, *more: Any) -> Tensor:
            return packet(function)(*more, [*[level.size for level in apart], *size], **options)

        with self.recording():
            array = self.array(DRAWN[name](new, size, *given, **more))
        for level in apart:
            array = Batched(level, array)
        return self.copied(target, wrap(array)) if writes and target is not None else wrap(array)

    def by_primitives(self, func: Any, given: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The value of an operator, whose primitives are recorded in its place: as beneath a level."""
        level = new_level("make_fx", 1)

        def plain(value: Any) -> Any:
            return wrap(lowered(level, array_of(value))) if isinstance(value, Tensor) else value

        with self.taking(given):
            args, kwargs = [self.raised([], tree, (level,)) for tree in (args, kwargs)]
            return tree_map(plain, func(*args, **kwargs))

    def raised(self, given: list[Tensor], tree: Any, more: tuple[Level, ...] = ()) -> Any:
        """Tensors from beneath the levels of some tensors, and more levels, the same for all samples there."""
        levels = {at.level.number: at.level for t in given for at in layers(t._xt_storage.array)}
        levels.update({level.number: level for level in more})

        def raised(value: Any) -> Any:
            if not isinstance(value, Tensor) or is_leveled(value):
                return value
            self.take(value)
            array = array_of(value)
            for number in sorted(levels):
                level = levels[number]
                array = Dual(level, array, None) if level.size is None else Batched(level, array, False)
            return wrap(array)

        return tree_map(raised, tree)

    def value(self, leaf: Any) -> Any:
        """An operand: a tensor, or a number that the program or an operator's call has."""
        if is_open(leaf):
            return as_tensor(leaf)
        if not isinstance(leaf, jax.Array) or leaf.aval.weak_type:
            return held(leaf, self.tracer.constant)
        tensor = wrap(leaf, shared=True)
        new = self.making and self.tracer.proxy_of(tensor) is None
        return held(leaf, self.tracer.constant) if new else tensor

    def array(self, made: Tensor) -> Any:
        """The array of a result, by which it is known from now on."""
        array, other = array_of(made), laid_out(made)
        self.tracer.see(array, other, first=other is not made)
        return array


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
        self.beneath = Beneath(self)

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
        if self.beneath.copies and func.is_view:
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

    Sizes and conditions are those of these inputs. Derivatives that `f` asks for are in the graph, as operators `<name>_backward`.
    decomposition_table: by operator, a function that says it by others. Differs from PyTorch: sizes are numbers in every
    `tracing_mode`, and operators are those declared here, of which some are made of others there.

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
