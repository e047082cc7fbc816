"""`torch.library` and `torch.ops`: operators that programs add, with a kernel per device and a derivative.

Calls go through `torch.ops.<namespace>.<name>`. `torch.ops.aten.<name>` is the operator here of that name.
Differs from PyTorch: nothing is compiled around an operator, so the shapes given by `register_fake` serve meta tensors alone.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import devices
from .autograd.function import Function
from .autograd.levels import levels_in, run_rule
from .engine import enable_grad, is_grad_enabled, modes, no_grad, record_function
from .engine.modes import DISPATCH_MODE, state
from .operators.below.aten import OpOverloadPacket, known, packet
from .operators.below.custom import AddedOverload, asked_below
from .operators.below.dispatching import dispatching
from .operators.operator import REGISTRY
from .operators.overriding import answer, armed, claimed
from .operators.views import VIEWS
from .quantized.functions import OPERATORS as QUANTISED
from .tensor import Tensor, asks_grad

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "infer_schema",
    "ops",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

NAME = re.compile(
    r"\s*(?:(?P<namespace>\w+)::)?(?P<name>\w+)(?:\.(?P<overload>\w+))?\s*(?P<rest>\(.*)?$", re.S
)
# Keys whose kernels are Python over tensors: the derivative is that of what they call.
COMPOSITE = ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA")
# Compiled extensions of PyTorch's packages, by folder and file, whose operators are written here: module, table, and namespace.
EXTENSIONS = {
    ("torchvision", "_C"): ("compat.vision", "OPERATORS", "torchvision"),
    ("torchvision", "_C_stable"): ("compat.vision", "OPERATORS", "torchvision"),
    ("lib", "_torchaudio"): ("compat.audio", "ABOUT", "_torchaudio"),
    ("lib", "libtorchaudio"): ("compat.audio", "OPERATORS", "torchaudio"),
}
BUILT_IN = frozenset("_c10d_functional aten c10d higher_order inductor prim prims quantized".split())
ANY = ("CompositeExplicitAutograd", "", None)


class CustomOperator(OpOverloadPacket):
    """One operator, `torch.ops.<namespace>.<name>`: its kernels by device, and what belongs to them."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(namespace, name)
        self.schema: str | None = None
        self.kernels: dict[Any, Callable[..., Any]] = {}
        self.composite: Callable[..., Any] | None = None
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.mutated: frozenset[str] = frozenset()
        self.signature: inspect.Signature | None = None
        self.rules: dict[type, Callable[..., Any]] = {}

    @property
    def qualified(self) -> str:
        return self._qualified_op_name

    def overload(self, name: str) -> AddedOverload:
        """The form of that name, always the same object."""
        forms: Any = self._overloads
        return forms[name] if name in forms else forms.setdefault(name, AddedOverload(self, name))

    def overloads(self) -> list[str]:
        """The names of the overloads; there is one."""
        return ["default"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.asked(self, args, kwargs)

    def asked(self, function: Any, args: Any, kwargs: Any) -> Any:
        """A call of this operator or of one of its forms: classes and modes are asked first."""
        if armed and (found := claimed((*args, *kwargs.values()))) is not None:
            return answer(function, found, args, kwargs)
        if self.composite is not None:
            return self.composite(*args, **kwargs)
        if kwargs and self.signature is not None:
            self.check_names(kwargs)
        tensors = list(_tensors([*args, *kwargs.values()]))
        if is_grad_enabled() and any(asks_grad(t) for t in tensors):
            return _recorded(self, args, kwargs)
        return self.run(tensors, args, kwargs)

    def check_names(self, kwargs: Any) -> None:
        """RuntimeError for an argument that the operator has not."""
        assert self.signature is not None
        for name in kwargs:
            if name not in self.signature.parameters:
                schema = self.overload("default")._schema
                raise RuntimeError(
                    f"Unknown keyword argument '{name}' for operator '{self.qualified}'. Schema: {schema}"
                )

    def run(self, tensors: Sequence[Tensor], args: Any, kwargs: Any) -> Any:
        """The kernel for where the tensors are; for batches, the rule of `register_vmap` where there is one."""
        if state.mode & DISPATCH_MODE or dispatching:
            made = asked_below(self.overload("default"), self.rules, args, kwargs)
            if made is not NotImplemented:
                return made
        if self.vmap is not None and modes.state.transforms:
            batches = [level for level in levels_in(tensors) if level.size is not None]
            if batches:
                return run_rule(self.vmap, batches[0], args, kwargs)
        return self.kernel(tensors)(*args, **kwargs)

    def kernel(self, tensors: Sequence[Tensor]) -> Callable[..., Any]:
        place = tensors[0].device.type if tensors else devices.current().type
        if place == "meta" and self.fake is not None:
            return self.fake
        for key in (place, None):
            if key in self.kernels:
                return self.kernels[key]
        if place == "meta" and self.kernels:
            raise NotImplementedError(
                f"{self.qualified}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta "
                "kernel registered."
            )
        raise NotImplementedError(
            f"Could not run '{self.qualified}' with arguments from the '{place.upper()}' backend."
        )


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


class _Recorded(Function):
    """An operator's call in the graph; tensors that lie in lists are spread, for a Function sees only its own arguments."""

    generate_vmap_rule = True
    _of_library = True

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Any) -> Any:
        ctx.call = call
        args, kwargs = call.filled(tensors)
        with no_grad():
            made = call.operator.run(list(tensors), args, kwargs)
        if call.operator.mutated:
            bound = call.bound(args, kwargs)
            ctx.mark_dirty(*_tensors(bound[name] for name in call.operator.mutated))
        if call.operator.setup_context is not None:
            call.context = _Context(ctx, call)
            call.set_up(args, kwargs, made)
        return tuple(made) if isinstance(made, list) else made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx.call
        if call.operator.backward is None:
            raise RuntimeError(
                f"Trying to backward through {call.operator.qualified}.default but no autograd formula was registered. "
                "Please use register_autograd to add one."
            )
        with enable_grad() if is_grad_enabled() else no_grad():
            found = call.operator.backward(call.context or ctx, *grads)
        found = tuple(found) if isinstance(found, (list, tuple)) else (found,)
        return (None, *call.spread(found))


class _Context:
    """The `ctx` of a derivative: the Function's, but `needs_input_grad` follows the operator's own arguments."""

    def __init__(self, ctx: Any, call: _Call) -> None:
        self.__dict__["_ctx"] = ctx
        self.__dict__["needs_input_grad"] = call.wants()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_ctx"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_ctx"], name, value)


class _Place:
    """Where a tensor stood in the arguments."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Call:
    def __init__(self, operator: CustomOperator, args: Any, kwargs: Any) -> None:
        self.operator = operator
        self.tensors: list[Tensor] = []
        self.context: Any = None
        self.args = tuple(map(self.taken, args))
        self.kwargs = {name: self.taken(value) for name, value in kwargs.items()}

    def taken(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return _Place(len(self.tensors) - 1)
        if isinstance(value, (list, tuple)):
            return type(value)([self.taken(v) for v in value])
        return value

    def filled(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def fill(value: Any) -> Any:
            if isinstance(value, _Place):
                return tensors[value.index]
            return type(value)([fill(v) for v in value]) if isinstance(value, (list, tuple)) else value

        return tuple(map(fill, self.args)), {name: fill(value) for name, value in self.kwargs.items()}

    def bound(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The arguments by name, defaults filled in."""
        signature = self.operator.signature
        if signature is None:
            return {str(i): value for i, value in enumerate(args)} | kwargs
        found = signature.bind(*args, **kwargs)
        found.apply_defaults()
        return dict(found.arguments)

    def set_up(self, args: Any, kwargs: Any, made: Any) -> None:
        values = self.bound(args, kwargs)
        signature = self.operator.signature
        only = (
            [n for n, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
            if signature is not None
            else []
        )
        inputs = tuple(value for name, value in values.items() if name not in only)
        given: dict[str, Any] = {"keyword_only_inputs": {n: values[n] for n in only}} if only else {}
        assert self.operator.setup_context is not None
        self.operator.setup_context(self.context, inputs, made, **given)

    def wants(self) -> tuple[Any, ...]:
        def one(value: Any) -> Any:
            if isinstance(value, _Place):
                return self.tensors[value.index].requires_grad
            return [one(v) for v in value] if isinstance(value, (list, tuple)) else False

        return tuple(one(value) for value in self.bound(self.args, self.kwargs).values())

    def spread(self, found: tuple[Any, ...]) -> list[Any]:
        """The gradients of the arguments as gradients of the tensors in them."""
        grads: list[Any] = [None] * len(self.tensors)

        def put(value: Any, grad: Any) -> None:
            if isinstance(value, _Place):
                grads[value.index] = grad
            elif isinstance(value, (list, tuple)) and grad is not None:
                for part, of in zip(value, grad, strict=True):
                    put(part, of)

        for value, grad in zip(self.bound(self.args, self.kwargs).values(), found, strict=False):
            put(value, grad)
        return grads


def _recorded(operator: CustomOperator, args: Any, kwargs: Any) -> Any:
    call = _Call(operator, args, kwargs)
    return _Recorded.apply(call, *call.tensors)


class Namespace(types.ModuleType):
    """`torch.ops.<namespace>`: the operators of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self._operators: dict[str, CustomOperator] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._operators:
            return self._operators[name]
        namespace = self.__name__.rpartition(".")[2]
        if namespace == "aten" or (namespace, name) in known:
            return packet(name, namespace)
        if namespace in BUILT_IN:
            # One that is not here is there for tables of operators; it has no kernel that a call could run.
            made = self._operators[name] = CustomOperator(namespace, name)
            made.composite = QUANTISED.get(name) if namespace == "quantized" else None
            made.composite = made.composite or _builtin(name)
            return made
        raise AttributeError(f"'_OpNamespace' '{namespace}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        """For completion: the operators that were declared or given."""
        declared = {*REGISTRY, *VIEWS} if self.__name__ == "torch.ops.aten" else ()
        return sorted({*self._operators, *declared})


def _builtin(name: str) -> Callable[..., Any] | None:
    library = sys.modules[__name__.partition(".")[0]]
    functional = library.nn.functional
    for holder in (library, functional, Tensor, library.special):
        found = getattr(holder, name, None)
        if callable(found):
            return found
    return None


class _Ops(types.ModuleType):
    """`torch.ops`: the namespaces, made when first asked for."""

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Namespace(name)
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        """For completion: the namespaces that have operators."""
        return sorted({"aten", *(n for n, held in vars(self).items() if isinstance(held, Namespace))})

    def present(self, name: str) -> Namespace | None:
        """The namespace of a name, where it has operators."""
        return getattr(self, name) if name in self.__dict__ or name in BUILT_IN else None

    def load_library(self, path: str | pathlib.PurePath) -> None:
        """Give the operators of an extension that has XLA kernels here; refuse every other with an OSError."""
        file = pathlib.PurePath(path)
        known = EXTENSIONS.get((file.parent.name, file.stem.split(".")[0]))
        if known is not None:
            module, table, namespace = known
            for name, kernel in getattr(importlib.import_module(f"{__package__}.{module}"), table).items():
                _operator(f"{namespace}::{name}").composite = kernel
            self.loaded_libraries.add(str(path))
            return
        raise OSError(f"{path}: compiled extensions of PyTorch cannot be loaded")

    def import_module(self, module: str) -> None:
        """Import a module that registers operators."""
        __import__(module)


ops = _Ops()


def _operator(qualified: str) -> CustomOperator:
    found = NAME.match(qualified)
    if found is None or not found["namespace"]:
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {qualified}")
    namespace: Namespace = getattr(ops, found["namespace"])
    name = found["name"]
    if name not in namespace._operators:
        namespace._operators[name] = CustomOperator(found["namespace"], name)
    return namespace._operators[name]


def _existing(op: Any) -> CustomOperator:
    if isinstance(op, CustomOpDef):
        return op._operator
    if isinstance(op, AddedOverload):
        op = op.overloadpacket
    if isinstance(op, CustomOperator):
        return op
    return _operator(op)


def _parameters(rest: str | None) -> inspect.Signature | None:
    """The parameters that a schema such as `(Tensor x, int n=1, *, float eps) -> Tensor` names."""
    if not rest:
        return None
    inside, keyword, made = rest[1 : rest.rindex("->")].strip().rstrip(")"), False, []
    for part in filter(None, (p.strip() for p in re.split(r",(?![^\[(]*[\])])", inside))):
        if part == "*":
            keyword = True
            continue
        declared, equals, default = part.partition("=")
        kind = inspect.Parameter.KEYWORD_ONLY if keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
        value = _default(default.strip()) if equals else inspect.Parameter.empty
        made.append(inspect.Parameter(declared.split()[-1], kind, default=value))
    return inspect.Signature(made)


def _default(text: str) -> Any:
    known = {"None": None, "True": True, "False": False}
    if text in known:
        return known[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return [] if text == "[]" else text.strip("\"'")


def _keys(device_types: Any) -> list[str | None]:
    if device_types is None or device_types == "default":
        return [None]
    return [device_types] if isinstance(device_types, str) else _list(device_types)


_list = list


class Library:
    """A set of operators in one namespace: `kind` is "DEF", "FRAGMENT" or "IMPL"."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self.defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its schema, `name(Tensor x) -> Tensor`; its name comes back."""
        found = NAME.match(schema)
        if found is None or not found["rest"]:
            raise RuntimeError(f"could not parse the schema {schema!r}")
        self.defined.append(found["name"])
        operator = _operator(f"{self.ns}::{found['name']}")
        operator.schema, operator.signature = schema, _parameters(found["rest"])
        operator.mutated = frozenset(re.findall(r"\(\w+!\)\S*\s+(\w+)", found["rest"]))
        return found["name"] + (f".{found['overload']}" if found["overload"] else "")

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        **options: Any,
    ) -> None:
        """Give an operator its function for a dispatch key.

        Raises: TypeError for what is no function; RuntimeError for another key than the library's own.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if self.dispatch_key and dispatch_key not in ("", self.dispatch_key):
            raise RuntimeError(
                f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the dispatch key of the enclosing "
                f"TORCH_LIBRARY_IMPL block ({self.dispatch_key})"
            )
        name = op_name if isinstance(op_name, str) else op_name.__name__
        name = name if "::" in name else f"{self.ns}::{name}"
        operator, key = _operator(name), dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if operator.signature is None:
            operator.signature = inspect.signature(fn)
        if key in COMPOSITE:
            operator.composite = fn
        elif key == "Meta":
            operator.fake = fn
        elif key in ANY:
            operator.kernels[None] = fn
        else:
            operator.kernels[key.lower()] = fn

    def fallback(self, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Nothing happens: there is no dispatcher that could fall back."""

    def _register_fake(
        self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **options: Any
    ) -> None:
        _operator(op_name if "::" in op_name else f"{self.ns}::{op_name}").fake = fn

    def _destroy(self) -> None:
        """The operators that were named through it are there no more; calls of those that a program holds still run."""
        for name in self.defined:
            getattr(ops, self.ns)._operators.pop(name, None)
        self.defined.clear()


@contextlib.contextmanager
def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A `Library` whose operators are there inside the block alone."""
    made = Library(ns, kind, dispatch_key)
    try:
        yield made
    finally:
        made._destroy()


class _Region:
    """A region of a profile that is open, as `torch.ops.profiler` hands it on."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.function = record_function(name, args)
        self.function.__enter__()

    def end(self) -> None:
        """Close it."""
        self.function.__exit__(None, None, None)


# The regions of profiles as operators.
for _name, _kernel in {"enter": _Region, "enter_new": _Region, "exit": _Region.end}.items():
    _operator(f"profiler::_record_function_{_name}").composite = _kernel


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Name an operator, `namespace::name`, with the schema of its arguments and results."""
    namespace, _, name = qualname.partition("::")
    if not name:
        raise ValueError(
            f"torch.library.define(qualname, schema): expected qualname to be of the form namespace::name, got {qualname}"
        )
    (lib or Library(namespace, "FRAGMENT")).define(name + schema, tags=tags)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Give an operator its function for devices ("cpu", "cuda", "default"), or as a decorator."""
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def as_key(fn: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, fn, key)
            return fn

        return as_key

    def register(fn: Callable[..., Any]) -> None:
        operator = _operator(qualname)
        for key in _keys(types):
            if key in COMPOSITE:
                operator.composite = fn
            else:
                operator.kernels[None if key in ANY else str(key).lower()] = fn

    return register if func is None else register(func)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """An operator over a Python function, in which nothing is recorded; a decorator where `fn` is not given."""

    def make(function: Callable[..., Any]) -> CustomOpDef:
        return CustomOpDef(name, function, mutates_args, device_types, schema)

    return make if fn is None else make(fn)


def triton_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, schema: str | None = None
) -> Any:
    """`custom_op` for a function that may launch kernels of Triton's; here one that has another way to compute as well."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """A kernel of Triton's for `triton_op`.

    Differs from PyTorch: RuntimeError, since such kernels read memory that XLA holds.

    Raises: RuntimeError always.
    """
    raise RuntimeError(
        f"the Triton kernel {getattr(triton_kernel, '__name__', triton_kernel)!r} cannot run here: XLA holds the memory of tensors. "
        "Write it in jax.experimental.pallas, or call what computes the same on other devices"
    )


class CustomOpDef:
    """What `custom_op` makes: call it, or give it more kernels, a derivative and shapes."""

    def __init__(self, name: str, fn: Any, mutates: Any, device_types: Any, schema: str | None) -> None:
        self._operator = operator = _operator(name)
        self._init_fn, self.__name__, self.__doc__ = fn, operator.__name__, fn.__doc__
        operator.__init__(operator.namespace, operator.__name__)
        operator.signature = inspect.signature(fn)
        operator.schema = schema or infer_schema(fn, mutates_args=mutates)
        named = [n for n, p in operator.signature.parameters.items() if "Tensor" in str(p.annotation)]
        operator.mutated = frozenset(named if mutates == "unknown" else mutates)
        self._opoverload = operator.overload("default")
        for key in _keys(device_types):
            operator.kernels[key] = fn

    @property
    def _qualname(self) -> str:
        return self._operator.qualified

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._operator.asked(self._opoverload, args, kwargs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """What answers for a class or mode that is asked below autograd: see `register_torch_dispatch`."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """The function for one or several types of device."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """The function for meta tensors."""
        self._operator.fake = fn
        return fn

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        """The derivative, as a `Function` has it."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Any = None) -> Any:
        """What runs for batches: see `register_vmap`."""
        return register_vmap(self, func)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """The function of an operator for one or several types of device; a decorator where `func` is not given."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        for key in _keys(device_types):
            _existing(op).kernels[key] = fn
        return fn

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Any = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """The function of an operator for meta tensors; a decorator where `func` is not given."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        _existing(op).fake = fn
        return fn

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Library | None = None
) -> None:
    """The derivative: `setup_context(ctx, inputs, output)` saves, `backward(ctx, *grads)` gives the arguments' gradients."""
    operator = _existing(op)
    operator.backward, operator.setup_context = backward, setup_context


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Refused: what `autocast` casts is fixed here."""
    raise NotImplementedError(
        "torch.library.register_autocast: autocast does not reach operators that programs add"
    )


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """What runs for batches, `func(info, in_dims, *args, **kwargs)`, which gives the results and where samples lie in them.

    Without one, `vmap` goes through what the operator's function calls. A decorator where `func` is not given.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        _existing(op).vmap = fn
        return fn

    return register if func is None else register(func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """What answers for an operator in place of a class's, or mode's, `__torch_dispatch__`; a decorator where `func` is not given.

    It is called as that is: with the class, or the mode, the operator, types, arguments and keywords.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        _existing(op).rules[torch_dispatch_class] = fn
        return fn

    return register if func is None else register(func)


def get_ctx() -> Any:
    """Refused: results whose shape depends on values have no meta kernel here."""
    raise RuntimeError(
        "get_ctx() can only be called inside a fake kernel of a traced program; nothing is traced here"
    )


def fallthrough_kernel() -> None:
    """A kernel that is never called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


SCHEMA_TYPES = {
    "Tensor": "Tensor", "int": "SymInt", "float": "float", "bool": "bool", "str": "str", "dtype": "ScalarType",
    "device": "Device", "Number": "Scalar",
}  # fmt: skip
LISTED = ("Tensor", "int", "float", "bool", "Number")


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None
) -> str:
    """The schema that a function's annotations spell; ValueError for an argument without one."""
    parts, keyword = [], False
    signature = inspect.signature(prototype_function)
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.annotation is inspect.Parameter.empty:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            keyword = True
            parts.append("*")
        kind = _schema_type(parameter.annotation, name)
        if (mutates_args == "unknown" or name in mutates_args) and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{index}!)", 1)
        default = (
            ""
            if parameter.default is inspect.Parameter.empty
            else f"={parameter.default!r}".replace("'", '"')
        )
        parts.append(f"{kind} {name}{default}")
    result = signature.return_annotation
    made = "()" if result in (None, "None") else _schema_result(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {made}"


def _spelled(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text).replace(" ", "")


def _schema_type(annotation: Any, name: str) -> str:
    text, optional = _optional(
        re.sub(r"int\|float\|bool|Union\[int,float,bool\]", "Number", _spelled(annotation))
    )
    many = re.fullmatch(r"(?:Sequence|List|list)\[(.*)\]", text)
    inner, missing = _optional(many[1]) if many else (text, "")
    if inner not in (LISTED if many else SCHEMA_TYPES) or (missing and inner != "Tensor"):
        advice = " We do not support Tuple inputs in schema. As a workaround, please try to use List instead. For example, list[int]."
        raise ValueError(
            f"infer_schema(func): Parameter {name} has unsupported type {annotation}."
            + (advice if re.match(r"[Tt]uple\b", inner) else "")
        )
    return f"{SCHEMA_TYPES[inner]}{missing}{'[]' if many else ''}{optional}"


def _optional(text: str) -> tuple[str, str]:
    """What a spelled annotation stands for besides None, and a question mark where it has None."""
    found = re.fullmatch(r"Optional\[(.*)\]|(.*)\|None|Union\[(.*),None(?:Type)?\]", text)
    if not found:
        return text, ""
    inner = next(filter(None, found.groups()))
    return ("Number" if inner == "int,float,bool" else inner), "?"


def _schema_result(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        raise ValueError("infer_schema(func): No return type annotation was provided. Please add one.")
    text = _spelled(annotation)
    several = re.fullmatch(r"[Tt]uple\[(.*)\]", text)
    if several:
        return f"({', '.join(_schema_type(part, 'return') for part in several[1].split(','))})"
    return _schema_type(annotation, "return")
