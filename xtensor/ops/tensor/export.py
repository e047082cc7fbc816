"""Values on their way out: NumPy, DLPack, JAX, pickles and copies.

What NumPy gets of a small tensor on the CPU is shared memory; another export never changes under its holder, and what is done to it
never changes a tensor.
"""

from __future__ import annotations

import copy as copying
import copyreg
import enum
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ... import devices, dtypes
from ...copied_storage import CopiedStorage, watch
from ...dtypes import FROM_NUMPY
from ...engine import modes
from ...geometry import contiguous_strides
from ...lowering.sharded import ShardedStorage
from ...operators.attach import attach_methods
from ...operators.below.dispatching import dispatches, slots_of, wrapper
from ...operators.functions.overloads import of_tensors
from ...shared_storage import HostStorage, SharedStorage, exported
from ...storage import LazyStorage, MetaArray, Storage, WrapperStorage, cell, claimable, twin_of, unclaimed
from ...tensor import (
    Tensor,
    array_of,
    edge_of,
    host_array,
    make_view,
    meta_of,
    sizes_of,
    strides_of,
    tensor_over,
    wrap,
)
from ...xla.x64 import call, jit
from ..create.ingest import Capsule, from_array, from_host
from .scalars import asked_by_plotting

__all__ = ["from_dlpack", "to_dlpack"]


# ---- NumPy ---------------------------------------------------------------------------------------------------------


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """The values as a NumPy array; on the CPU it shares the tensor's memory, so that a write to the one shows in the other.

    Shape: an array of the tensor's shape.
    Differs from PyTorch: memory of more than 1 MiB (the whole storage, if the tensor is a view) is not shared. The array is read-only
    then, costs no copy, and keeps its values. What a graph has saved keeps the values of the forward pass whatever NumPy writes.
    `force` detaches, brings to the CPU and resolves the conjugate bit first.

    Raises: RuntimeError for a tensor that requires grad.

    >>> xtensor.ones(2).numpy()
    array([1., 1.], dtype=float32)
    """
    if force:
        tensor = self.detach() if self.requires_grad else self
        return host_values(tensor)
    device = self.device.type
    if device != "cpu" and devices.redirected("cpu") is None:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if edge_of(self) is not None and modes.is_grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    for bit, what in ((self.is_conj(), "conj"), (self.is_neg(), "neg")):
        if bit:
            word = "conjugate" if what == "conj" else "negative"
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {word} bit set. "
                f"Use tensor.resolve_{what}().numpy() instead."
            )
    return host_values(self)


def host_values(tensor: Tensor) -> np.ndarray[Any, Any]:
    storage, view = tensor._xt_storage, tensor._xt_view
    dtype = FROM_NUMPY[cell.__get__(storage).dtype] if view is None else view.dtype
    if dtype is dtypes.bfloat16 or dtype in dtypes.FLOAT8:
        raise TypeError(f"Got unsupported ScalarType {dtype.scalar_name}")
    if isinstance(storage, WrapperStorage):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    if storage.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    place = storage.device
    if place.sharding is not None and not storage.array.is_fully_addressable:
        raise RuntimeError(
            f"can't convert a tensor on {place} to numpy: other processes hold parts of it. Use full_tensor(), or to_local() "
            "for the part that is here."
        )
    own = (view is None or not (view.conj or view.neg)) and place.type == "cpu" and place.sharding is None
    memory = exported(storage) if own else None
    if memory is not None:
        if view is None:
            return memory
        size = dtype.itemsize
        raw = memory.reshape(-1).view(np.uint8)
        strides = tuple([s * size for s in view.strides])
        return np.ndarray(view.sizes, dtype.numpy, raw, view.offset * size, strides)
    storage.shared = True
    values = host_array(tensor)
    if not own or not values.size:
        return values.copy()
    values = values.view()
    watch(storage, values)
    return values


def as_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """NumPy's protocol: `np.asarray(tensor)` is `tensor.numpy()`, `np.array(tensor)` a copy to write to.

    Differs from PyTorch: a plotting library gets the values of any tensor, on any device and of any dtype, one that
    requires grad included: a picture is no place for a gradient to get lost in.
    """
    try:
        values = numpy(self)
    except (TypeError, RuntimeError):
        if not asked_by_plotting():
            raise
        values = plain_values(self)
    if dtype is not None and values.dtype != dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return values.astype(dtype)
    return values.copy() if copy else values


def plain_values(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The values in a dtype that NumPy itself has."""
    with modes.no_grad():
        dtype = tensor.dtype
        narrow = dtype is dtypes.bfloat16 or dtype in dtypes.FLOAT8
        return host_values(tensor.detach().float() if narrow else tensor.detach())


def wrap_array(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """NumPy's protocol: the result of a ufunc on tensors as a tensor."""
    return from_host(np.asarray(array), None, devices.device("cpu"))


# ---- DLPack --------------------------------------------------------------------------------------------------------


class DLDeviceType(enum.IntEnum):
    """The kinds of device that DLPack numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLROCM = 10


def cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """The protocol by which CuPy, Numba and others read an array on an NVIDIA GPU where it lies.

    AttributeError for tensors elsewhere, so that `hasattr` is False; RuntimeError where they require gradients.

    Differs from PyTorch: what others write there is not seen in a view, which lends a copy.
    """
    if self.device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} "  # type: ignore[attr-defined]
            "Use tensor.cuda() if CUDA tensor is needed."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use var.detach() "
            "to get Variable that doesn't require grad."
        )
    array = array_of(self)
    if self._xt_view is None:
        self._xt_storage.shared = True
    else:
        weakref.finalize(self, id, array)  # it lives as long as the tensor
    return array.__cuda_array_interface__


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """DLPack's protocol: kind and index of the tensor's device."""
    if self.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    kind, index = array_of(self).__dlpack_device__()
    return DLDeviceType(int(kind)), int(index)


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """DLPack's protocol: a capsule with the values, of at most the version `max_version`, on the device `dl_device`.

    BufferError for a device that is neither the tensor's nor the CPU, and for another one where `copy=False`.
    Differs from PyTorch: a copy, which its consumer may write to, unless `copy=False`: then memory is shared, the
    consumer must not write to it, and later writes to the tensor do not show in it.
    """
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    if dl_device is not None and (int(dl_device[0]), dl_device[1]) != dlpack_device(self):
        if int(dl_device[0]) != DLDeviceType.kDLCPU or copy is False:
            raise BufferError(
                f"Can't export a tensor on {self.device} to the DLPack device {tuple(dl_device)}"
            )
        return dlpack(self.cpu(), max_version=max_version, copy=False)
    if copy is False:
        self._xt_storage.shared = True
        array = array_of(self)
    else:
        array = call(copied, array_of(self))
    options: dict[str, Any] = {}
    if stream is not None and self.device.type != "cpu":
        options["stream"] = stream
    # A consumer of the times before versions gets a capsule without one.
    if max_version is not None and max_version >= (1, 0):
        options["max_version"] = max_version
    return array.__dlpack__(**options)


copied = jit(lambda array: jnp.copy(array))


@of_tensors("_to_dlpack")
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule with a copy of the values of `tensor`.

    Raises: TypeError for arguments of other kinds.
    """
    return dlpack(tensor)


def from_dlpack(ext_tensor: Any, *, device: devices.DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor with the values of another library's array; ValueError where they are on another device and `copy=False`.

    Differs from PyTorch: a copy, unless the values cannot change (a JAX array, a tensor of ours) or `copy=False`
    says that their owner will not write to them.
    """
    if isinstance(ext_tensor, Tensor):
        made = ext_tensor.clone() if copy else ext_tensor.detach()
    elif isinstance(ext_tensor, jax.Array):
        made = from_array(ext_tensor, None, None)
        made = made.clone() if copy else made
    else:
        if type(ext_tensor).__name__ == "PyCapsule":
            ext_tensor = Capsule(ext_tensor)
        if not hasattr(ext_tensor, "__dlpack__"):
            raise AttributeError(f"'{type(ext_tensor).__name__}' object has no attribute '__dlpack__'")
        if isinstance(ext_tensor, np.ndarray) and not ext_tensor.flags.writeable:
            # NumPy says so to newer consumers only. device_put takes it as it is where it is aligned.
            array = call(jax.device_put, ext_tensor, devices.jax_device(devices.device("cpu")))
        else:
            array = call(jax.dlpack.from_dlpack, ext_tensor)
        place = next(iter(array.devices()))
        made = wrap(call(jax.device_put, array, place) if not array.committed else array, shared=True)
        if copy is not False:
            made = wrap(call(copied, made._xt_storage.array))
            made._xt_storage.array.block_until_ready()
    place = made.device if device is None else devices.resolve(device)
    if copy is False and place != made.device:
        raise ValueError(f"from_dlpack(copy=False) cannot bring an array from {made.device} to {place}")
    return made.to(place)


# ---- JAX -----------------------------------------------------------------------------------------------------------


def jax_array(self: Tensor) -> jax.Array:
    """JAX's protocol: the values as an immutable array, without a copy; later writes to the tensor do not show."""
    if self.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    array = array_of(self)
    if isinstance(array, Tracer):  # inside a traced function JAX keeps the history
        return array
    if edge_of(self) is not None:
        raise RuntimeError(
            "Can't use a Tensor that requires grad as a jax.Array. Use tensor.detach() instead."
        )
    self._xt_storage.shared = True
    return array


# ---- pickles and copies --------------------------------------------------------------------------------------------


def reduce_storage(storage: Storage) -> Any:
    """A storage as its values and its device; tensors pickled together keep sharing it."""
    array = storage.array
    if type(array) is MetaArray:
        return rebuild_meta_storage, (tuple(array.shape), dtypes.FROM_NUMPY[array.dtype])
    values = np.asarray(array)
    dtype = dtypes.FROM_NUMPY[array.dtype]
    # NumPy's pickles know no bfloat16; bytes they all know.
    raw = np.frombuffer(values.tobytes(), np.uint8)
    place = storage.device
    # Another process may have no such mesh: what lies on one arrives on a single device.
    name = str(place) if place.sharding is None else place.type
    return rebuild_storage, (raw, tuple(array.shape), dtype, name)


copyreg.pickle(Storage, reduce_storage)  # type: ignore[arg-type]
copyreg.pickle(LazyStorage, reduce_storage)  # type: ignore[arg-type]
copyreg.pickle(CopiedStorage, reduce_storage)  # type: ignore[arg-type]
copyreg.pickle(HostStorage, reduce_storage)  # type: ignore[arg-type]
copyreg.pickle(SharedStorage, reduce_storage)  # type: ignore[arg-type]
copyreg.pickle(ShardedStorage, reduce_storage)  # type: ignore[arg-type]


def rebuild_storage(raw: Any, shape: tuple[int, ...], dtype: dtypes.dtype, place: str) -> Storage:
    """The storage of a pickle, on the device that it was on."""
    values = np.frombuffer(raw.tobytes(), dtype.numpy).reshape(shape)
    return claimable(devices.put(values, devices.device(place)))


def rebuild_meta_storage(shape: tuple[int, ...], dtype: dtypes.dtype) -> Storage:
    """The storage of a pickled meta tensor."""
    return claimable(MetaArray(shape, dtype.numpy))


def reduce_tensor(self: Tensor) -> Any:
    """Pickle's protocol: the storage, the geometry, and what Python knows of the tensor; never the graph."""
    if isinstance(self._xt_storage, WrapperStorage):
        dtype, geometry, _, requires_grad = described(self)
        return rebuild_wrapper, (
            type(self),
            dtype,
            geometry,
            str(self.device),
            requires_grad,
            attributes(self),
        )
    return rebuild_tensor, (type(self), self._xt_storage, *described(self), self.__dict__ or None)


def attributes(tensor: Tensor) -> dict[str, Any]:
    """What a tensor's class keeps in it, slots as well."""
    slots = [name for name in slots_of(type(tensor)) if hasattr(tensor, name)]
    return {**tensor.__dict__, **{name: getattr(tensor, name) for name in slots}}


def rebuild_wrapper(
    kind: type[Tensor],
    dtype: dtypes.dtype,
    geometry: tuple[Any, Any, int],
    place: str,
    requires_grad: bool,
    state: dict[str, Any],
) -> Tensor:
    """The tensor of a pickle whose class keeps its values elsewhere."""
    made = wrapper(kind, *geometry, dtype, devices.device(place))
    for name, value in state.items():
        setattr(made, name, value)
    return made._ask_grad(True) if requires_grad else made


def described(tensor: Tensor) -> tuple[Any, Any, Any, bool]:
    """What makes a tensor out of its storage."""
    geometry = (tuple(sizes_of(tensor)), tuple(strides_of(tensor)), tensor.storage_offset())
    return tensor.dtype, geometry, (tensor.is_conj(), tensor.is_neg()), tensor.requires_grad


def rebuild_tensor(
    kind: type[Tensor],
    storage: Storage,
    dtype: dtypes.dtype,
    geometry: tuple[Any, Any, int],
    bits: tuple[bool, bool],
    requires_grad: bool,
    state: dict[str, Any] | None,
) -> Tensor:
    """The tensor of a pickle."""
    made = tensor_over(storage, kind=kind)
    if storage.cover is unclaimed and tuple(storage.array.shape) == geometry[0] and not any(bits):
        if FROM_NUMPY[storage.array.dtype] is dtype and geometry[1:] == (contiguous_strides(geometry[0]), 0):
            storage.cover = weakref.ref(made)
            return finished(made, requires_grad, state)
    made._xt_view = make_view(storage, storage, dtype, *geometry, *bits)
    return finished(made, requires_grad, state)


def finished(made: Tensor, requires_grad: bool, state: dict[str, Any] | None) -> Tensor:
    if requires_grad:
        made._ask_grad(True)
    if state:
        made.__dict__.update(state)
    return made


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a leaf with memory of its own; tensors that shared memory share its copy."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if isinstance(self._xt_storage, WrapperStorage) and dispatches(type(self)):
        made = cloned(self)
    else:
        made = rebuild_tensor(type(self), twin_of(self._xt_storage, memo), *described(self), state=None)
    if self.grad is not None:
        meta_of(made).grad = copying.deepcopy(self.grad, memo)
    memo[id(self)] = made
    for name, value in attributes(self).items():
        setattr(made, name, copying.deepcopy(value, memo))
    return made


def cloned(tensor: Tensor) -> Tensor:
    """The copy that the class of a tensor makes whose values lie elsewhere."""
    with modes.no_grad():
        made = tensor.clone()
    if type(made) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
            "implement clone() and for which cloning returns another instance of the same subclass. You should either "
            "properly implement clone() for your subclass or override __deepcopy__() if it is intended behavior for "
            "clone() to return an instance of a different type."
        )
    return made.requires_grad_() if tensor.requires_grad else made


Tensor._reduce = reduce_tensor

attach_methods(numpy)
attach_methods(
    __array__=as_array,
    __array_wrap__=wrap_array,
    __dlpack__=dlpack,
    __dlpack_device__=dlpack_device,
    __cuda_array_interface__=property(cuda_array_interface),
    __jax_array__=jax_array,
    __deepcopy__=deepcopy,
)
