"""What public programs and packages take from PyTorch's private modules, as far as it means something here."""

from __future__ import annotations

import copy
import os
import types
from typing import Any, Final

import jax
import jaxlib.version

from ..amp.autocast_mode import autocast
from ..autograd.function import Function
from ..compat import cuda
from ..compat.jit.annotations import BroadcastingList2
from ..compat.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    handle_torch_function,
    has_torch_function,
)
from ..compiler import disable, is_compiling, reset
from ..nn import init
from ..nn.functional import linear
from ..nn.modules.container import ModuleList
from ..nn.modules.module import Module
from ..nn.modules.transformer import activation_named
from ..nn.state import IncompatibleKeys
from ..ops.shape.joining import cat
from ..tensor import Size, Tensor
from ..utils.data.dataloader import Batches, PooledBatches
from .private_engine import ENGINE, module

__all__ = ["MODULES", "NAMES", "DispatchKeySet", "Switches"]


class DispatchKeySet:
    """Some of PyTorch's dispatch keys, by name; of their meaning, autocasting is here."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.names, *other.names)

    def has(self, key: str) -> bool:
        """Whether a key is among them."""
        return key in self.names


class _Keys(type):
    """`DispatchKey.CPU` and the like: the names themselves."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class DispatchKey(metaclass=_Keys):
    """The names of PyTorch's dispatch keys."""


class ExcludeDispatchKeyGuard:
    """A block without the operators' treatment under some keys: without autocasting, if its keys are among them."""

    def __init__(self, keys: DispatchKeySet) -> None:
        places = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda"}
        self.blocks = [autocast(place, enabled=False) for key, place in places.items() if keys.has(key)]

    def __enter__(self) -> None:
        for block in self.blocks:
            block.__enter__()

    def __exit__(self, *error: Any) -> None:
        for block in reversed(self.blocks):
            block.__exit__(*error)


class Switches(types.ModuleType):
    """Settings of PyTorch's compilers: they can be set and read, and change nothing here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Switches(f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made

    def __bool__(self) -> bool:
        return False


def is_compile_supported(device_type: str) -> bool:
    """Whether operators of PyTorch's packages are to go through its compiler: no."""
    return False


def same_function(fn: Any = None, **options: Any) -> Any:
    """A decorator that changes nothing, with or without parentheses."""
    return fn if callable(fn) else lambda function: function


def clones(module: Module, count: int) -> ModuleList:
    """Copies of a module."""
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def indented(text: str, spaces: int) -> str:
    """All lines but the first moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def flatten_dense_tensors(tensors: Any) -> Tensor:
    """Tensors in one row, one after the other."""
    return cat([t.contiguous().view(-1) for t in tensors])


def unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """A row cut into the shapes of tensors."""
    parts, start = [], 0
    for t in tensors:
        parts.append(flat.narrow(0, start, t.numel()).view_as(t))
        start += t.numel()
    return tuple(parts)


def trunc_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    """`nn.init.trunc_normal_` with all its arguments in place."""
    return init.trunc_normal_(tensor, mean, std, a, b, generator)


def input_projections(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Query, key and value times their thirds of a packed weight."""
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    return [linear(x, one, bias) for x, one, bias in zip((q, k, v), weights, biases, strict=True)]


class Reduction:
    """The older spelling of losses' reductions."""

    @staticmethod
    def get_enum(reduction: str) -> int:
        """PyTorch's number of a reduction."""
        if reduction not in ("none", "mean", "elementwise_mean", "sum"):
            raise ValueError(f"{reduction} is not a valid value for reduction")
        return ("none", "mean", "sum").index(reduction.removeprefix("elementwise_"))

    @staticmethod
    def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
        """The reduction that two older arguments mean."""
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"


# Private names inside public modules, by what they mean here.
NAMES: dict[str, Any] = {
    "autograd.function._SingleLevelFunction": Function,
    "cuda.amp.common.amp_definitely_not_available": lambda: not cuda.is_available(),
    "nn.functional._Reduction": Reduction,
    "nn.functional._in_projection_packed": input_projections,
    "nn.functional.handle_torch_function": handle_torch_function,
    "nn.functional.has_torch_function": has_torch_function,
    "nn.init._no_grad_fill_": lambda tensor, val: init.constant_(tensor, val),
    "nn.init._no_grad_normal_": lambda tensor, mean, std, generator=None: init.normal_(
        tensor, mean, std, generator
    ),
    "nn.init._no_grad_trunc_normal_": trunc_normal,
    "nn.init._no_grad_uniform_": lambda tensor, a, b, generator=None: init.uniform_(tensor, a, b, generator),
    "nn.init._no_grad_zero_": lambda tensor: init.zeros_(tensor),
    "nn.modules.module._IncompatibleKeys": IncompatibleKeys,
    "nn.modules.module._addindent": indented,
    "nn.modules.normalization._shape_t": int | list[int] | Size,
    "nn.modules.transformer._get_activation_fn": activation_named,
    "nn.modules.transformer._get_clones": clones,
    "utils.data.dataloader._BaseDataLoaderIter": Batches,
    "utils.data.dataloader._MultiProcessingDataLoaderIter": PooledBatches,
    "utils.data.dataloader._SingleProcessDataLoaderIter": Batches,
}

MODULES: dict[str, types.ModuleType] = {
    "_C": module(
        "_C",
        **ENGINE,
        DispatchKey=DispatchKey,
        DispatchKeySet=DispatchKeySet,
        DisableTorchFunction=DisableTorchFunction,
        DisableTorchFunctionSubclass=DisableTorchFunctionSubclass,
        _ExcludeDispatchKeyGuard=ExcludeDispatchKeyGuard,
        _get_tracing_state=lambda: None,
        _log_api_usage_once=lambda event: None,
    ),
    "_dynamo": module(
        "_dynamo",
        config=Switches("torch._dynamo.config"),
        utils=module("_dynamo.utils", is_compile_supported=is_compile_supported),
        disable=disable,
        is_compiling=is_compiling,
        reset=reset,
        allow_in_graph=same_function,
        mark_dynamic=lambda *args, **options: None,
        mark_static=lambda *args, **options: None,
        graph_break=lambda *args, **options: None,
    ),
    "_inductor": module("_inductor", config=Switches("torch._inductor.config")),
    "_functorch": module("_functorch", config=Switches("torch._functorch.config")),
    "_logging": module("_logging", set_logs=lambda **levels: None),
    "_utils": module(
        "_utils",
        _flatten_dense_tensors=flatten_dense_tensors,
        _unflatten_dense_tensors=unflatten_dense_tensors,
    ),
    "_tensor": module("_tensor", Tensor=Tensor),
    "_jit_internal": module(
        "_jit_internal",
        BroadcastingList1=BroadcastingList2,
        BroadcastingList2=BroadcastingList2,
        BroadcastingList3=BroadcastingList2,
        Final=Final,
        _overload=same_function,
        _overload_method=same_function,
        export=same_function,
        ignore=same_function,
        unused=same_function,
    ),
    "__config__": module(
        "__config__",
        show=lambda: f"xtensor on JAX {jax.__version__} (jaxlib {jaxlib.version.__version__})\n",
        parallel_info=lambda: f"at::get_num_threads() : {os.cpu_count()}\n",
    ),
}
