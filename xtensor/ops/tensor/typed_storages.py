"""Typed storages, PyTorch's older view of a tensor's memory: `Tensor.storage()`, `torch.FloatStorage` and the like."""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import checks, devices, dtypes
from ...operators.attach import attach_methods
from ...storage import UntypedStorage
from ...tensor import Tensor, alias, wrap
from ..create.creation import empty
from ..create.ingest import as_tensor, row_over

__all__ = ["TypedStorage"]

CASTS = (
    ("double", "float64"),
    ("float", "float32"),
    ("half", "float16"),
    ("bfloat16", "bfloat16"),
    ("long", "int64"),
    ("int", "int32"),
    ("short", "int16"),
    ("char", "int8"),
    ("byte", "uint8"),
    ("bool", "bool"),
    ("complex_float", "complex64"),
    ("complex_double", "complex128"),
)
FORMS = """
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""
LEGACY_FORMS = """
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""


def _refused(who: str, forms: str, why: str) -> str:
    return f"{who} received an invalid combination of arguments. Expected one of:{forms}{why}"


def is_count(value: Any) -> bool:
    """Whether a value is a whole number, of Python's or NumPy's."""
    return isinstance(value, (int, np.integer))


class TypedStorage:
    """All the elements of a tensor's memory, in a row; what is written here shows in the tensors over it.

    Raises: TypeError and RuntimeError for arguments that do not go together.
    """

    is_sparse = False
    filename = None
    _row: Tensor

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        who = "TypedStorage.__init__"

        def refuse(error: type[Exception], why: str) -> Exception:
            return error(_refused(who, FORMS, why))

        if wrap_storage is not None:
            if args:
                raise refuse(
                    RuntimeError, "No positional arguments should be given when using 'wrap_storage'"
                )
            if dtype is None:
                raise refuse(RuntimeError, "Argument 'dtype' must be specified")
            if not isinstance(dtype, dtypes.dtype):
                raise refuse(TypeError, f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise refuse(
                    RuntimeError,
                    "Argument 'device' should not be specified when 'wrap_storage' is given",
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise refuse(
                    TypeError,
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}",
                )
            self._row = row_over(wrap_storage, dtype)
            return
        kind = dtype or dtypes.get_default_dtype()
        if len(args) > 1:
            raise refuse(RuntimeError, "Too many positional arguments")
        if not args or is_count(args[0]):
            self._row = empty(operator.index(args[0]) if args else 0, dtype=kind, device=device)
        elif isinstance(args[0], Sequence):
            if isinstance(args[0], str):
                raise TypeError("new(): invalid data type 'str'")
            self._row = as_tensor(list(args[0]), dtype=kind, device=device)
        else:
            raise refuse(TypeError, f"Argument type not recognized: {type(args[0])}")

    @classmethod
    def _of(cls, row: Tensor) -> TypedStorage:
        made = TypedStorage.__new__(TypedStorage)
        made._row = row
        return made

    @property
    def dtype(self) -> dtypes.dtype:
        return self._row.dtype

    @property
    def device(self) -> devices.device:
        return self._row.device

    @property
    def is_cuda(self) -> bool:
        return self._row.is_cuda

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self._row.untyped_storage()

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    def data_ptr(self) -> int:
        """A number that tells this memory from any other."""
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """How many bytes an element has."""
        return self._row.element_size()

    def size(self) -> int:
        """How many elements there are."""
        return self._row.numel()

    __len__ = size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def pickle_storage_type(self) -> str:
        """The name of the class that checkpoints have for elements of this dtype."""
        return f"{self.dtype.scalar_name}Storage"

    _data_ptr, _nbytes, _element_size, _size = data_ptr, nbytes, element_size, size
    _pickle_storage_type = pickle_storage_type

    def type(self, dtype: Any = None) -> Any:
        """The name of the class of such storages; given a dtype, the elements as such."""
        if dtype is None:
            home = "torch" if self.device.type == "cpu" else f"torch.{self.device.type}"
            return f"{home}.{self.pickle_storage_type()}"
        return self._cast(getattr(dtype, "dtype", dtype))

    def _cast(self, dtype: dtypes.dtype) -> TypedStorage:
        return self._of(self._row.to(dtype, copy=True))

    def get_device(self) -> int:
        """The index of the device; -1 on a CPU."""
        return self._row.get_device()

    def is_shared(self) -> bool:
        """Whether other processes see the memory: never."""
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned: never."""
        return False

    def resizable(self) -> bool:
        """Whether the number of elements can be changed."""
        return True

    def resize_(self, size: int) -> None:
        """Change the number of elements; what was there keeps its place, what is new is zero."""
        storage = self._untyped_storage
        storage.resize_(size * self.element_size())
        self._row = row_over(storage, self.dtype)

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        self._untyped_storage._refuse_meta()
        return self._row.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._untyped_storage._refuse_meta()
        count = self.size()
        if not -count <= index < count:
            raise IndexError(f"index {index} out of range for storage of size {count}")
        return self._row[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if is_storage(value):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._row[index] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take over the elements of another storage."""
        self._row.copy_(source._row if isinstance(source, TypedStorage) else row_over(source, self.dtype))
        return self

    def clone(self) -> TypedStorage:
        """A copy in memory of its own."""
        return self._of(self._row.clone())

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return memo.setdefault(id(self), self._of(copy.deepcopy(self._row, memo)))

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The same elements on another device."""
        return self._of(self._row.to(device))

    def cpu(self) -> TypedStorage:
        """The same elements on the CPU."""
        return self._of(self._row.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """The same elements on a GPU."""
        return self._of(self._row.cuda(device))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        lines = "\n".join(f" {value}" for value in self.tolist())
        name = checks.spelled("storage.TypedStorage")
        return f"{lines}\n[{name}(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def _caster(name: str, dtype: dtypes.dtype) -> Any:
    def cast(self: TypedStorage) -> TypedStorage:
        return self._cast(dtype)

    cast.__name__, cast.__doc__ = name, f"The elements as `{dtype.name}`."
    return cast


for method, dtype_name in CASTS:
    setattr(TypedStorage, method, _caster(method, getattr(dtypes, dtype_name)))


class LegacyMeta(type):
    """The type of `FloatStorage` and its like: a storage is one of it by its elements' dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.__dict__.get("dtype")


class LegacyStorage(metaclass=LegacyMeta):
    """What `FloatStorage` and its like have in common; calling one makes a `TypedStorage`."""

    def __new__(cls, *args: Any, wrap_storage: Any = None, _internal: bool = False, **options: Any) -> Any:
        if cls is LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        who = f"<class '{checks.spelled(cls.__name__)}'>.__new__"
        for name in ("device", "dtype"):
            if name in options:
                why = f"Keyword argument '{name}' cannot be specified"
                raise RuntimeError(_refused(who, LEGACY_FORMS, why))
        if options:
            raise TypeError(
                f"TypedStorage.__new__() got an unexpected keyword argument '{next(iter(options))}'"
            )
        if wrap_storage is not None:
            if args:
                why = "No positional arguments should be given when using 'wrap_storage'"
                raise RuntimeError(_refused(who, LEGACY_FORMS, why))
            if not isinstance(wrap_storage, UntypedStorage):
                why = f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
                raise TypeError(_refused(who, LEGACY_FORMS, why))
        elif len(args) > 1:
            raise RuntimeError(_refused(who, LEGACY_FORMS, "Too many positional arguments"))
        elif args and not (is_count(args[0]) or isinstance(args[0], Sequence)):
            raise TypeError(_refused(who, LEGACY_FORMS, f"Argument type not recognized: {type(args[0])}"))
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None) -> TypedStorage:
        """The elements in a buffer's bytes, as a copy; `byte_order` is "native", "little" or "big".

        Raises: ValueError where the bytes are no whole number of elements, or for other orders.
        """
        data = np.frombuffer(memoryview(buffer).cast("B"), np.uint8)
        kind = cls.dtype
        if kind.itemsize > 1:
            if byte_order is None:
                raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
            if byte_order not in ("big", "little", "native"):
                raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
            if data.size % kind.itemsize:
                raise ValueError(
                    f"buffer size ({data.size}) must be a multiple of element size ({kind.itemsize})"
                )
            if byte_order not in ("native", sys.byteorder):
                size = kind.itemsize // 2 if kind.is_complex else kind.itemsize
                data = data.reshape(-1, size)[:, ::-1].reshape(-1)
        values = data != 0 if kind is dtypes.bool else np.ascontiguousarray(data).view(kind.numpy)
        return TypedStorage._of(wrap(devices.put(np.array(values), devices.device("cpu"))))

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file, as `UntypedStorage.from_file` has its bytes."""
        bytes_of = UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize)
        return TypedStorage(wrap_storage=bytes_of, dtype=cls.dtype)


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage, of either kind."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def storage_of(tensor: Tensor) -> TypedStorage:
    """`Tensor.storage()`: the elements of the whole memory under a tensor, in its dtype.

    Raises: NotImplementedError for sparse tensors.
    """
    memory = tensor.untyped_storage()
    count = memory.nbytes() // tensor.element_size()
    return TypedStorage._of(alias(tensor.detach(), (count,), (1,), 0, tensor.dtype, False, False))


def _made(name: str, dtype: dtypes.dtype) -> type[LegacyStorage]:
    doc = f"Elements of {dtype.name} in a row."
    return LegacyMeta(name, (LegacyStorage,), {"dtype": dtype, "__doc__": doc, "__module__": __name__})


LEGACY: dict[dtypes.dtype, type[LegacyStorage]] = {}
for kind in dtypes.TYPED:
    name = f"{kind.scalar_name}Storage"
    globals()[name] = LEGACY[kind] = _made(name, kind)


def storage_type(tensor: Tensor) -> type[LegacyStorage]:
    """The class of the storages of a tensor's dtype.

    Raises: NotImplementedError for sparse tensors.

    >>> xtensor.ones(2).storage_type().__name__
    'FloatStorage'
    """
    return LEGACY[tensor.dtype]


attach_methods(storage_type, storage=storage_of, _typed_storage=storage_of)
