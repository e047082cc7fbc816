"""A function or module run once on proxies: what it does becomes a graph."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import checks, trees
from ..compat.assertions import _assert
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .codegen import PyTreeCodeGen, PyTreeInfo
from .graph import Graph
from .node import Argument, Node
from .patching import Patcher, recording, recording_method, wrapped_functions, wrapped_methods
from .proxy import BASE_TYPES, ParameterProxy, Scope, ScopeContextManager, TracerBase, find_proxy

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "assert_is_none",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
]

HAS_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
LIBRARY = __name__.partition(".")[0]
proxyable: dict[type, None] = {}
tracing = [0]


def is_fx_tracing() -> bool:
    """Whether a tracer runs a program now."""
    return tracing[0] > 0


is_fx_symbolic_tracing = is_fx_tracing


# ---- stand-ins for arguments ---------------------------------------------------------------------------------------


class PHBase:
    """What stands in `concrete_args` for an argument that is an input."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """A stand-in whose attributes go to its placeholder."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


PH = PHBase()


class ProxyableClassMeta(type):
    """The type of classes whose instances, where they are made of proxies, become nodes that make them."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        proxyable.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = find_proxy(args, kwargs)
        if found is None:
            return super().__call__(*args, **kwargs)
        return found.tracer.create_proxy("call_function", cls, args, kwargs)


def assert_is_none(value: Any, msg: str) -> None:
    """AssertionError for anything but None."""
    if value is not None:
        raise AssertionError(msg)


assert_is_none.__name__ = assert_is_none.__qualname__ = "_assert_is_none"
assert_is_none.__module__ = f"{LIBRARY}.fx._symbolic_trace"


# ---- the tracer ----------------------------------------------------------------------------------------------------


class Tracer(TracerBase):
    """What turns a module or function into a graph: `Tracer().trace(module)`; to be subclassed.

    autowrap_modules: modules whose functions become nodes where they get proxies. autowrap_functions: further such functions.
    param_shapes_constant: parameters' sizes are numbers, not nodes.

    >>> class Deep(xtensor.fx.Tracer):
    ...     def is_leaf_module(self, module, path):
    ...         return False
    >>> print(Deep().trace(xtensor.nn.Sequential(xtensor.nn.ReLU())))
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %relu : [num_users=1] = call_function[target=xtensor.nn.functional.relu](args = (%input_1,), kwargs = {inplace: False})
        return relu
    """

    root: Module

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_function_ids: set[int] = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update([id(f) for f in autowrap_functions])
        self._autowrap_search: list[types.ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self.num_calls: dict[str, int] = defaultdict(int)
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}
        self.tensor_attrs: dict[int, tuple[str, Any]] = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root module has not: the prefix with a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """What stands for a value among a node's arguments: a tensor becomes an attribute of the root module."""
        if isinstance(a, Parameter):
            for name, value in self.root.named_parameters():
                if a is value:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._constant(a), (), {})
        if type(a) in proxyable:
            path = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    def _constant(self, tensor: Tensor) -> str:
        for name, value in self.root.named_buffers():
            if tensor is value:
                return name
        if id(tensor) not in self.tensor_attrs:
            path = self.get_fresh_qualname("_tensor_constant")
            setattr(self.root, path, tensor)
            self.tensor_attrs[id(tensor)] = path, tensor
        return self.tensor_attrs[id(tensor)][0]

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a submodule's call is one node, and it is not entered: those of `nn` but `Sequential`."""
        home = type(m).__module__
        return home.startswith((f"{LIBRARY}.nn", "torch.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted path of a submodule; NameError for one that is none."""
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a submodule's call gives: a node for a leaf, and for any other what `forward`, its own call, does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            count = self.num_calls[path]
            key = f"{scope.module_path}@{count}" if count else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = count + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem(last=True)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module is while it is traced: a proxy for a parameter."""
        if isinstance(attr_val, Parameter):
            for name, value in self.root.named_parameters():
                if attr_val is value:
                    return self._attribute_proxy(name, value, parameter_proxy_cache)
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            for name, value in self.root.named_buffers():
                if attr_val is value:
                    return self._attribute_proxy(name, value, parameter_proxy_cache)
        return attr_val

    def _attribute_proxy(self, name: str, value: Tensor, cache: dict[str, Any]) -> Any:
        if name not in cache:
            options: dict[str, Any] = {}  # subclasses may have a `create_proxy` that takes no factory
            if self.param_shapes_constant and isinstance(value, Parameter):
                options["proxy_factory_fn"] = functools.partial(self._shaped, name, value)
            cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
        return cache[name]

    def _shaped(self, name: str, param: Parameter, node: Node) -> ParameterProxy:
        return ParameterProxy(self, node, name, param)

    # -- inputs

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function to call, and its arguments: a placeholder's proxy for each, but for those in `concrete_args`."""
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        taken = names[len(args) : total]
        if isinstance(concrete_args, tuple):
            if len(taken) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(taken)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(taken, concrete_args, strict=True))
        signature = inspect.signature(analysed)
        args.extend([self._placeholder(name, concrete_args, signature, analysed) for name in taken])
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_REST:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._placeholder(f"*{next(rest)}", concrete_args, signature, analysed))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._placeholder(f"**{next(rest)}", concrete_args, signature, analysed))
            root_fn = positional(root_fn, len(args))
        flat, spec = trees.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        codegen = PyTreeCodeGen(PyTreeInfo(names[:total], spec, None))
        self.graph._codegen = codegen

        def flattened(*leaves: Any) -> Any:
            results, shape = trees.tree_flatten(root_fn(*trees.tree_unflatten(list(leaves), spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=shape)
            return results

        return flattened, flat

    def _placeholder(
        self,
        name: str,
        concrete_args: Mapping[str, Any] | None,
        signature: inspect.Signature,
        analysed: Callable[..., Any],
    ) -> Any:
        default: tuple[Any, ...] = ()
        if name[0] != "*":
            value = signature.parameters[name].default
            default = () if value is inspect.Parameter.empty else (value,)
        if concrete_args is None or name not in concrete_args:
            kind = annotations_of(analysed).get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def specialised(x: Any) -> Any:
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(x, PHBase):
                if x is not PH:
                    for key, value in vars(x).items():
                        setattr(made.node, key, value)
                return made
            said = f"{name} has been specialized to have value {x} but got another value"
            if x is None:
                self.create_proxy("call_function", assert_is_none, (made, said), {})
            elif isinstance(x, BASE_TYPES) and not isinstance(x, Tensor):
                self.create_proxy("call_function", _assert, (made == x, said), {})
            else:
                checks.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                    "user to make sure that your inputs match the inputs you specialized the function with.",
                )
            return x

        return trees.tree_map(specialised, concrete_args[name])

    # -- running

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        concrete_args: values of arguments that are not inputs, by name; `PH` in a container stands for an input.
        """
        tracing[0] += 1
        try:
            return self._traced(root, concrete_args)
        finally:
            tracing[0] -= 1

    def _traced(self, root: Module | Callable[..., Any], concrete_args: Any) -> Graph:
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                )
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = Module()
            function = root
        self.graph = Graph(tracer_cls=type(self))
        if code := getattr(function, "__code__", None):
            self.graph._co_fields = {
                "co_name": code.co_name, "co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno
            }  # fmt: skip
        self.tensor_attrs = {}
        self._collect(self.root, "")
        names = getattr(inspect.unwrap(function), "__globals__", {})
        returned = annotations_of(inspect.unwrap(function))
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        cache: dict[str, Any] = {}
        with Patcher() as patcher, self._patched(patcher, cache):
            self._wrap_names(patcher, names)
            result = self.create_arg(function(*args))
            self.create_node("output", "output", (result,), {}, type_expr=returned.get("return"))
        self.submodule_paths = None
        return self.graph

    def _collect(self, module: Module, prefix: str) -> None:
        """Know the tensors that stand in attributes of modules, which are constants by their paths."""
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                self.tensor_attrs[id(value)] = f"{prefix}{name}", value
        for name, child in module.named_children():
            self._collect(child, f"{prefix}{name}.")

    @contextmanager
    def _patched(self, patcher: Patcher, cache: dict[str, Any]) -> Iterator[None]:
        """A block in which modules' calls and attributes go through the tracer."""
        tracer, attribute, call = self, Module.__getattr__, Module.__call__

        @functools.wraps(attribute)
        def traced_attribute(mod: Module, attr: str) -> Any:
            return tracer.getattr(attr, attribute(mod, attr), cache)

        @functools.wraps(call)
        def traced_call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*inner: Any, **options: Any) -> Any:
                return call(mod, *inner, **options)

            tracer._autowrap(patcher, getattr(getattr(mod, "forward", mod), "__globals__", {}))
            return tracer.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", traced_attribute)
        patcher.patch_method(Module, "__call__", traced_call)
        yield

    def _wrap_names(self, patcher: Patcher, names: dict[str, Any]) -> None:
        for (_, name), frame in list(wrapped_functions.items()):
            function = frame.get(name, getattr(builtins, name, None))
            if function is not None:
                patcher.patch(frame, name, recording(function))
        for kind, name in wrapped_methods:
            patcher.patch_method(kind, name, recording_method(kind, name))
        self._autowrap(patcher, names)
        for module in self._autowrap_search:
            self._autowrap(patcher, vars(module))

    def _autowrap(self, patcher: Patcher, names: dict[str, Any]) -> None:
        if patcher.visit_once(names):
            for name, value in list(names.items()):
                if not name.startswith("_") and callable(value) and id(value) in self._autowrap_function_ids:
                    patcher.patch(names, name, recording(value))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            kept = name == "_autowrap_search"
            made.__dict__[name] = copy.copy(value) if kept else copy.deepcopy(value, memo)
        return made


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types that a program gives its parameters and results; the library's own are of no use in a graph."""
    home = str(getattr(function, "__module__", ""))
    return {} if home.startswith(f"{LIBRARY}.nn.") else getattr(function, "__annotations__", {})


def positional(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function with all parameters positional, `*args` and `**kwargs` too: each takes one value."""
    code = function.__code__
    code = code.replace(
        co_flags=code.co_flags & ~HAS_REST, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    made = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = dict(function.__kwdefaults__ or {})
    return made
