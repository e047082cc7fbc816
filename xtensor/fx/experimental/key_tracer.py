"""A tracer of operators: which value of the program each tensor is."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer as JaxTracer

from ...compat.symbolic import sym_max, sym_min
from ...export.dims import Size, evaluate
from ...geometry import contiguous_strides
from ...lowering import Recipe
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...operators.below.aten import packet
from ...storage import AGE, Storage, births
from ...tensor import Tensor, wrap
from ...xla.pending import Pending
from ...xla.symbolic import is_open
from ...xla.x64 import call
from ..node import Argument
from ..proxy import Proxy
from ..tracer import Tracer

__all__ = ["PythonKeyTracer", "place", "read_already"]


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
        return id(storage), shape, steps(shape, contiguous_strides(shape)), 0, tensor.dtype, False, False
    own = steps(view.sizes, view.strides)
    return id(storage), view.sizes, own, view.offset, view.dtype, bool(view.conj), bool(view.neg)


def steps(sizes: tuple[Any, ...], strides: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides, those that are of no account aside."""
    return tuple([0 if n == 1 else s for n, s in zip(sizes, strides, strict=True)])


def read_already(tensor: Tensor) -> Any:
    """The array of a tensor's values; None for a view that was not read."""
    view, storage = tensor._xt_view, tensor._xt_storage
    if view is None:
        return storage.array
    return view.cached if view.cached_at == storage.writes and type(view.cached) is not Pending else None
