"""From PyTorch to our library: tensors through their memory, other values and functions by their names."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch

import xtensor
from xtensor import devices
from xtensor.tensor import alias, array_of, wrap

__all__ = ["Unsupported", "copied", "described", "leaves", "named", "numpy_of", "ours", "rebind", "widened"]


class Unsupported(Exception):
    """A value of PyTorch's that has no counterpart: a sparse layout, a quantised dtype."""


class Missing(LookupError):
    """A name that our library does not have."""


def named(path: str) -> Any:
    """What our library calls by a dotted name."""
    try:
        return operator.attrgetter(path)(xtensor)
    except AttributeError:
        raise Missing(f"missing: xtensor.{path}") from None


def memory(tensor: torch.Tensor) -> np.ndarray:
    """A copy of the whole storage of a tensor, as a vector of its elements."""
    size = tensor.element_size()
    count = tensor.untyped_storage().nbytes() // size
    flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage(), 0, (count,), (1,))
    if tensor.dtype is torch.bfloat16:
        return flat.view(torch.int16).numpy().copy().view(ml_dtypes.bfloat16)
    return flat.numpy().copy()


def tensor_of(tensor: torch.Tensor) -> Any:
    """Our tensor with the same memory, strides and wish for a gradient: a leaf."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Unsupported(f"layout {tensor.layout}")
    name = str(tensor.dtype).rpartition(".")[2]
    if not hasattr(xtensor, name):
        raise Unsupported(f"dtype {tensor.dtype}")
    source = tensor.detach()
    if source.is_meta:
        made = xtensor.empty_strided(
            tuple(source.shape), tuple(source.stride()), dtype=getattr(xtensor, name), device="meta"
        )
        return made.requires_grad_() if tensor.requires_grad else made
    if source.is_conj():
        return tensor_of(source.conj()).conj()
    if source.is_neg():
        source = source.resolve_neg()
    flat = wrap(devices.put(memory(source), devices.device("cpu")))
    if source.is_contiguous() and source.storage_offset() == 0 and source.numel() == flat.numel():
        made = flat if source.dim() == 1 else wrap(array_of(flat.view(tuple(source.shape))))
    else:
        made = alias(flat, tuple(source.shape), tuple(source.stride()), source.storage_offset())
    return made.requires_grad_() if tensor.requires_grad else made


def ours(value: Any) -> Any:
    """The counterpart of any argument."""
    match value:
        case torch.Tensor():
            return tensor_of(value)
        case torch.Size():
            return xtensor.Size(value)
        case torch.dtype():
            name = str(value).rpartition(".")[2]
            if not hasattr(xtensor, name):
                raise Unsupported(f"dtype {value}")
            return getattr(xtensor, name)
        case torch.device():
            return xtensor.device(str(value))
        case torch.memory_format() | torch.layout():
            return named(str(value).rpartition(".")[2])
        case slice():
            return slice(ours(value.start), ours(value.stop), ours(value.step))
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*map(ours, value))
        case list() | tuple():
            return type(value)(map(ours, value))
        case dict():
            return {key: ours(item) for key, item in value.items()}
        case torch.nn.Module():
            raise Unsupported("a module as an argument")
        case torch.Generator():
            return xtensor.Generator()
        case _ if callable(value):
            return rebind(value)
        case _:
            return value


def seeded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """PyTorch's `wrapper_set_seed`, for us."""
    xtensor.manual_seed(42)
    return function(*args, **kwargs)


def rebind(function: Any) -> Any:
    """A function written against PyTorch, meaning our library: the same code with other globals."""
    if isinstance(function, type | types.BuiltinFunctionType | types.FunctionType):
        module = getattr(function, "__module__", None) or ""
        if module.startswith("torch.testing") and function.__name__ == "wrapper_set_seed":
            return seeded
        if isinstance(function, types.FunctionType) and module.startswith("torch.testing"):
            return rebuilt(function)
        if module.startswith("torch.nn.functional") or module == "torch._C._nn":
            return named(f"nn.functional.{function.__name__}")
        if module.split(".")[0] == "torch":
            return named(function.__name__)
    if isinstance(function, types.MethodDescriptorType):
        return method_named(function.__name__)
    return function


def method_named(name: str) -> Any:
    """Our tensor's method of a name."""
    try:
        return getattr(xtensor.Tensor, name)
    except AttributeError:
        raise Missing(f"missing: xtensor.Tensor.{name}") from None


def names_in(code: types.CodeType) -> set[str]:
    """The global names that code uses, nested functions included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found


def rebuilt(function: types.FunctionType) -> types.FunctionType:
    """The function with every global and closed-over name of PyTorch's replaced."""
    scope = dict(function.__globals__)
    for name in names_in(function.__code__) & scope.keys():
        scope[name] = replaced(scope[name])
    cells = tuple(types.CellType(replaced(cell.cell_contents)) for cell in function.__closure__ or ())
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def replaced(value: Any) -> Any:
    """A global of a function of PyTorch's tests, meaning our library."""
    if isinstance(value, types.ModuleType):
        path = value.__name__
        if path == "torch":
            return xtensor
        return named(path.removeprefix("torch.")) if path.startswith("torch.nn") else value
    if value is torch.Tensor:
        return xtensor.Tensor
    if isinstance(value, types.FunctionType | torch.dtype | torch.Tensor):
        return ours(value)
    return value


def tree(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """The value with every tensor of it mapped."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(tree(function, item) for item in value))
    if type(value) in (list, tuple):
        return type(value)(tree(function, item) for item in value)
    if type(value) is dict:
        return {key: tree(function, item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(tree(function, value.start), tree(function, value.stop), tree(function, value.step))
    return value


def copied(value: Any) -> Any:
    """A copy of every tensor in a value, strides kept, as leaves."""

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is not torch.strided:
            raise Unsupported(f"layout {tensor.layout}")
        source = tensor.detach()
        if source.is_meta:
            return source.clone().requires_grad_(tensor.requires_grad)
        storage = source.untyped_storage().clone()
        made = torch.empty(0, dtype=source.dtype).set_(
            storage, source.storage_offset(), source.size(), source.stride()
        )
        if source.is_conj():
            made = made.conj()
        if source.is_neg():
            made = torch._neg_view(made)
        return made.requires_grad_(tensor.requires_grad)

    return tree(copy, value)


WIDER = {
    torch.float32: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex64: torch.complex128,
}


def widened(value: Any) -> Any:
    """Every tensor in double precision."""

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.detach().to(WIDER.get(tensor.dtype, tensor.dtype), copy=True)
        return made.requires_grad_(tensor.requires_grad)

    return tree(widen, value)


def leaves(value: Any, kind: type) -> list[Any]:
    """The tensors of a value, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, slice):
        return leaves((value.start, value.stop, value.step), kind)
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item, kind)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item, kind)]
    return []


def numpy_of(tensor: Any) -> np.ndarray:
    """The values of a tensor of either library; half floats as float32, complex numbers of halves as complex64."""
    if str(tensor.dtype).endswith("complex32"):
        tensor = tensor.detach().to(
            torch.complex64 if isinstance(tensor, torch.Tensor) else xtensor.complex64
        )
    if isinstance(tensor, torch.Tensor):
        tensor = tensor.detach().resolve_conj().resolve_neg()
        if tensor.is_sparse:
            tensor = tensor.to_dense()
        if tensor._is_zerotensor():
            tensor = tensor.clone()
        return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    array = np.asarray(array_of(tensor.detach()))
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


def described(tensor: Any) -> str:
    """Dtype and shape."""
    return f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)}"
