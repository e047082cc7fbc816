"""Typed storages, PyTorch's older view of a tensor's memory: `Tensor.storage()`, `torch.FloatStorage` and the like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import devices, dtypes
from ...operators.attach import attach_methods
from ...storage import UntypedStorage
from ...tensor import Tensor, alias
from ..create.creation import empty
from ..create.ingest import as_tensor

__all__ = ["TypedStorage"]


class TypedStorage:
    """All the elements of a tensor's memory, in a row; what is written here shows in the tensors over it."""

    dtype_here: dtypes.dtype | None = None

    def __init__(
        self, *args: Any, dtype: dtypes.dtype | None = None, device: Any = None, wrap: Any = None
    ) -> None:
        kind = dtype or self.dtype_here or dtypes.get_default_dtype()
        if isinstance(wrap, Tensor):
            self._row = wrap
        elif len(args) == 1 and not isinstance(args[0], int):
            self._row = as_tensor(list(args[0]), dtype=kind, device=device)
        elif len(args) <= 1:
            self._row = empty(args[0] if args else 0, dtype=kind, device=device)
        else:
            raise TypeError(f"{type(self).__name__}() takes a size or a sequence (got {len(args)} arguments)")

    @property
    def dtype(self) -> dtypes.dtype:
        return self._row.dtype

    @property
    def device(self) -> devices.device:
        return self._row.device

    @property
    def is_cuda(self) -> bool:
        return self._row.is_cuda

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._row.untyped_storage()

    _untyped_storage = property(untyped)

    @property
    def _cdata(self) -> int:
        """A number that tells this storage from any other."""
        return self.untyped()._cdata

    def data_ptr(self) -> int:
        """A number that tells this memory from any other."""
        return self.untyped().data_ptr()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self.untyped().nbytes()

    def element_size(self) -> int:
        """How many bytes an element has."""
        return self._row.element_size()

    def size(self) -> int:
        """How many elements there are."""
        return self._row.numel()

    __len__ = size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        return self._row.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._row[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self._row.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take over the elements of another storage."""
        self._row.copy_(source._row)
        return self

    def clone(self) -> TypedStorage:
        """A copy in memory of its own."""
        return type(self)(dtype=self.dtype, wrap=self._row.clone())

    def cpu(self) -> TypedStorage:
        """The same elements on the CPU."""
        return type(self)(dtype=self.dtype, wrap=self._row.cpu())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr()

    def __hash__(self) -> int:
        return hash(self.untyped())

    def __repr__(self) -> str:
        lines = "\n".join(f" {value}" for value in self.tolist())
        return f"{lines}\n[{type(self).__name__}(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def storage_of(tensor: Tensor) -> TypedStorage:
    """`Tensor.storage()`: the elements of the whole memory under a tensor, in its dtype.

    Raises: NotImplementedError for sparse tensors.
    """
    memory = tensor.untyped_storage()
    count = memory.nbytes() // tensor.element_size()
    row = alias(tensor.detach(), (count,), (1,), 0, tensor.dtype, False, False)
    return TypedStorage(dtype=tensor.dtype, wrap=row)


def _made(name: str, dtype: dtypes.dtype) -> type[TypedStorage]:
    doc = f"Elements of {dtype.name} in a row."
    return type(name, (TypedStorage,), {"dtype_here": dtype, "__doc__": doc, "__module__": __name__})


for dtype in dtypes.TYPED:
    name = f"{dtype.scalar_name}Storage"
    globals()[name] = _made(name, dtype)

attach_methods(storage=storage_of)
