"""Tensors and states to and from PyTorch, which need not be installed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import devices, dtypes
from ..devices.extras import missing
from ..nn.parameter import Parameter
from ..ops.create.ingest import tensor as copied
from ..ops.tensor.export import from_dlpack
from ..tensor import Tensor, alias, array_of, sizes_of, strides_of

__all__ = ["from_torch", "to_torch"]


def from_torch(tensor: Any, device: devices.DeviceLike = None) -> Any:
    """A tensor with a copy of the values of a `torch.Tensor`, without its graph; a leaf that wants a gradient too.

    Dicts, lists and tuples are taken with everything in them, such as the `state_dict` of a module or an optimizer:
    tensors that share memory in there share it here, Parameters become Parameters, and what is no tensor stays.
    """
    if is_torch_tensor(tensor):
        return one_from_torch(tensor, device)
    shared: dict[Any, Any] = dict.fromkeys(repeated(map(torch_memory, leaves(tensor, is_torch_tensor))))

    def convert(source: Any) -> Any:
        memory = torch_memory(source)
        if memory not in shared or source.is_conj() or source.is_neg():
            made = one_from_torch(source, device)
        else:
            if shared[memory] is None:
                count = source.untyped_storage().nbytes() // source.element_size()
                shared[memory] = one_from_torch(source.detach().as_strided((count,), (1,), 0), device)
            made = seen(shared[memory], source)
            made = made.requires_grad_() if source.requires_grad else made
        return (
            Parameter(made.detach(), source.requires_grad) if type(source).__name__ == "Parameter" else made
        )

    return mapped(tensor, is_torch_tensor, convert)


def seen(whole: Tensor, source: Any) -> Tensor:
    """The part of the memory of `whole` that `source` is of its own."""
    dtype = getattr(dtypes, str(source.dtype).removeprefix("torch."))
    sizes, strides = tuple(source.shape), tuple(source.stride())
    return alias(whole, sizes, strides, source.storage_offset(), dtype)


def one_from_torch(tensor: Any, device: devices.DeviceLike) -> Tensor:
    source = tensor.detach()
    if source.is_conj() or source.is_neg():
        source = source.resolve_conj().resolve_neg()
    if str(source.dtype) == "torch.bool" and source.device.type == "cpu":
        made = copied(source.numpy(), device="cpu")
    else:
        made = from_dlpack(source.contiguous(), copy=True)
    made = made if device is None else made.to(devices.resolve(device))
    return made.requires_grad_() if tensor.requires_grad else made


def to_torch(tensor: Any) -> Any:
    """A CPU `torch.Tensor` with a copy of the values, without the graph; it wants a gradient if `tensor` does.

    Dicts, lists and tuples are taken with everything in them, as `from_torch` takes them.
    """
    if isinstance(tensor, Tensor):
        return one_to_torch(tensor)
    shared: dict[Any, Any] = dict.fromkeys(repeated(id(t._xt_storage) for t in leaves(tensor, is_tensor)))

    def convert(source: Tensor) -> Any:
        torch = package()
        memory = id(source._xt_storage)
        if memory not in shared or source.is_conj() or source.is_neg() or source.is_meta:
            made = one_to_torch(source)
        else:
            if shared[memory] is None:
                shared[memory] = one_to_torch(flat(source))
            whole = shared[memory]
            kind = getattr(torch, source.dtype.name)
            part = whole if whole.dtype == kind else whole.view(kind)
            made = part.as_strided(sizes_of(source), strides_of(source), source.storage_offset())
            made = made.requires_grad_() if source.requires_grad else made
        if isinstance(source, Parameter):
            return torch.nn.Parameter(made.detach(), source.requires_grad)
        return made

    return mapped(tensor, is_tensor, convert)


def flat(tensor: Tensor) -> Tensor:
    """All the memory under a tensor as one row."""
    source = tensor.detach()
    storage = source._xt_storage
    dtype = dtypes.FROM_NUMPY[storage.array.dtype]
    count = storage.nbytes() // dtype.itemsize
    return alias(source, (count,), (1,), 0, dtype, False, False)


def package() -> Any:
    """PyTorch itself; ImportError says how to get it."""
    try:
        import torch
    except ImportError as error:
        raise missing("a conversion to PyTorch", "torch", "parity") from error
    return torch


def one_to_torch(tensor: Tensor) -> Any:
    torch = package()
    values = np.array(array_of(tensor.detach().cpu()))
    kind = getattr(torch, tensor.dtype.name)
    if tensor.dtype is dtypes.bfloat16:
        made = torch.from_numpy(values.view(np.int16)).view(kind)
    elif tensor.dtype in dtypes.FLOAT8:
        made = torch.from_numpy(values.view(np.uint8)).view(kind)
    else:
        made = torch.from_numpy(values)
    wants = tensor.requires_grad and (made.is_floating_point() or made.is_complex())
    return made.requires_grad_() if wants else made


# ---- containers ----------------------------------------------------------------------------------------------------


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def is_torch_tensor(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch's, told by what it can do: PyTorch is not imported to ask."""
    return not isinstance(value, Tensor) and hasattr(value, "untyped_storage") and hasattr(value, "grad_fn")


def torch_memory(tensor: Any) -> Any:
    """What names the memory of a tensor of PyTorch's: where it is, and how long."""
    storage = tensor.untyped_storage()
    return str(tensor.device), storage.data_ptr() or id(tensor), storage.nbytes()


def repeated(keys: Iterator[Any]) -> set[Any]:
    once: set[Any] = set()
    return {key for key in keys if key in once or once.add(key)}


def leaves(value: Any, is_leaf: Callable[[Any], bool]) -> Iterator[Any]:
    """The tensors in nested dicts, lists and tuples."""
    if is_leaf(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item, is_leaf)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item, is_leaf)


def mapped(value: Any, is_leaf: Callable[[Any], bool], convert: Callable[[Any], Any]) -> Any:
    """The same containers with other tensors in them; a state_dict keeps its `_metadata`."""
    if is_leaf(value):
        return convert(value)
    if isinstance(value, dict):
        made = type(value)() if type(value) in (dict, OrderedDict) else {}
        made.update((key, mapped(item, is_leaf, convert)) for key, item in value.items())
        if type(made) is OrderedDict:
            made.__dict__.update(value.__dict__)
        return made
    if isinstance(value, (list, tuple)):
        items = [mapped(item, is_leaf, convert) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
