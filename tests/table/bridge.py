"""The two libraries behind one interface: tensors from the same memory, calls, results as NumPy arrays."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xtensor
from xtensor import devices, dtypes, gradients
from xtensor.explain.catalog import about_tensors, declared, families
from xtensor.storage import MetaArray
from xtensor.tensor import Tensor, alias, array_of, wrap

from .samples import BFLOAT16, Dtype, Memory, Sample, T, memory_of

try:
    import torch
except ImportError:
    torch: Any = None

__all__ = [
    "OURS",
    "THEIRS",
    "Library",
    "composites",
    "declared",
    "families",
    "flat",
    "operator_named",
    "reference_of",
    "torch",
]


def composites() -> dict[str, Callable[..., Any]]:
    """Every function of tensors that a family exports and that is no declared operator's: the composites, by name."""
    found = {}
    for family, module in families().items():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value) and not hasattr(value, "operator") and about_tensors(value):
                found[f"{family}.{name}"] = value
    return found


def operator_named(name: str) -> Callable[..., Any]:
    """Our function for a row's name: exported by a family, or a method alone."""
    family, _, last = name.rpartition(".")
    for module_name, module in families().items():
        if family in ("", module_name) and last in module.__all__:
            return getattr(module, last)
    if family:  # a public namespace: `fft.fft2`
        return operator.attrgetter(name)(xtensor)
    op = declared(last)
    if op is not None:
        return op.function
    method = vars(Tensor).get(last)
    if method is None:
        raise LookupError(f"no operator is called {name!r}")
    return method.fget if isinstance(method, property) else method


TORCH_PLACES = ("", "nn.functional.", "special.", "linalg.", "fft.", "Tensor.")


@functools.cache
def torch_named(name: str) -> Any:
    for place in TORCH_PLACES:
        try:
            found = operator.attrgetter(place + name)(torch)
        except AttributeError:
            continue
        # torch.cpu is a module and torch.int a dtype; the methods are meant.
        if callable(found):
            return found
        if inspect.isdatadescriptor(found):
            return found.__get__
    raise LookupError(f"PyTorch has no {name!r}; give the row a reference")


def reference_of(row: Any) -> Callable[..., Any]:
    """PyTorch's function for a row."""
    if callable(row.reference):
        return row.reference
    return torch_named(row.reference or row.name.rpartition(".")[2])


def flat(result: Any) -> list[Any]:
    """The tensors and plain values of a result, in order."""
    if isinstance(result, (list, tuple)) and not isinstance(result, xtensor.Size):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


class Library:
    """What the facets need of a library."""

    tensor: type

    def make(self, memory: Memory, dtype: str) -> Any:
        raise NotImplementedError

    def dtype(self, name: str) -> Any:
        raise NotImplementedError

    def grad(
        self, outputs: list[Any], inputs: list[Any], cotangents: list[Any], create_graph: bool
    ) -> list[Any]:
        raise NotImplementedError

    def values(self, tensor: Any) -> np.ndarray:
        raise NotImplementedError

    def arguments(
        self, sample: Sample, key: str, dtype: str, grad: bool = False, made: list[Any] | None = None
    ) -> tuple[list[Any], dict[str, Any], list[Any]]:
        """Positional and keyword arguments, and the tensors among them that ask for a gradient, in order."""
        count = 0
        leaves: list[Any] = []

        def convert(value: Any) -> Any:
            nonlocal count
            if isinstance(value, T):
                name = value.dtype or dtype
                count += 1
                tensor = self.make(memory_of(value, name, f"{key}/{count}/{name}"), name)
                if grad and value.grad and name in GRADABLE:
                    tensor.requires_grad_()
                    leaves.append(tensor)
                if made is not None:
                    made.append(tensor)
                return tensor
            if isinstance(value, Dtype):
                return self.dtype(value.name)
            if type(value) in (list, tuple):
                return type(value)([convert(item) for item in value])
            return value

        args = [convert(a) for a in sample.args]
        kwargs = {k: convert(v) for k, v in sample.kwargs.items()}
        return args, kwargs, leaves

    def describe(self, value: Any) -> tuple[Any, ...]:
        """Dtype, shape and the strides that mean something, or the type of a plain value."""
        if not isinstance(value, self.tensor):
            return (type(value).__name__, repr(value) if isinstance(value, (str, bool, int)) else "")
        shape = tuple(value.shape)
        strides = tuple(value.stride()) if 0 not in shape else ()
        return (
            str(value.dtype).rpartition(".")[2],
            shape,
            tuple(s if n > 1 else "-" for n, s in zip(shape, strides, strict=bool(strides))),
        )


GRADABLE = {"float16", "bfloat16", "float32", "float64", "complex64", "complex128"}


class Ours(Library):
    tensor = Tensor

    def make(self, memory: Memory, dtype: str) -> Tensor:
        place = devices.device("cpu")
        if memory.contiguous:
            return wrap(devices.put(memory.flat.reshape(memory.sizes), place))
        return alias(wrap(devices.put(memory.flat, place)), memory.sizes, memory.strides, memory.offset)

    def dtype(self, name: str) -> Any:
        return getattr(dtypes, name)

    def grad(
        self, outputs: list[Any], inputs: list[Any], cotangents: list[Any], create_graph: bool
    ) -> list[Any]:
        return list(
            gradients.grad(
                outputs, inputs, cotangents, create_graph=create_graph, retain_graph=True, allow_unused=True
            )
        )

    def values(self, tensor: Any) -> np.ndarray:
        array = np.asarray(array_of(tensor))
        return array.astype(np.float32) if array.dtype == BFLOAT16 else array


class Meta(Ours):
    """Our tensors on the meta device."""

    def make(self, memory: Memory, dtype: str) -> Tensor:
        if memory.contiguous:
            return wrap(MetaArray(memory.sizes, memory.flat.dtype))
        return alias(
            wrap(MetaArray(memory.flat.shape, memory.flat.dtype)), memory.sizes, memory.strides, memory.offset
        )


class Theirs(Library):
    @property
    def tensor(self) -> type:  # pyright: ignore[reportIncompatibleVariableOverride]
        return torch.Tensor

    def make(self, memory: Memory, dtype: str) -> Any:
        foreign = memory.flat.dtype.kind == "V" or memory.flat.dtype.name.startswith("float8")
        # A clone owns its memory, so that `out=` can resize it.
        data = torch.from_numpy(memory.flat.astype(np.float32) if foreign else memory.flat).clone()
        data = data.to(getattr(torch, memory.flat.dtype.name)) if foreign else data
        return torch.as_strided(data, memory.sizes, memory.strides, memory.offset)

    def dtype(self, name: str) -> Any:
        return getattr(torch, name)

    def grad(
        self, outputs: list[Any], inputs: list[Any], cotangents: list[Any], create_graph: bool
    ) -> list[Any]:
        return list(
            torch.autograd.grad(
                outputs, inputs, cotangents, create_graph=create_graph, retain_graph=True, allow_unused=True
            )
        )

    def values(self, tensor: Any) -> np.ndarray:
        tensor = tensor.detach().resolve_conj().resolve_neg()
        if tensor._is_zerotensor():
            tensor = tensor.clone()
        return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy().copy()


OURS, META, THEIRS = Ours(), Meta(), Theirs()


def tensors_of(library: Library, result: Any) -> Iterator[Any]:
    return (leaf for leaf in flat(result) if isinstance(leaf, library.tensor))
