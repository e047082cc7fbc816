"""Parameter and Buffer: the tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

import types
import weakref
from typing import Any, Self

from .. import capture, devices, dtypes
from ..operators.below.dispatching import dispatches, twin
from ..operators.operator import REGISTRY
from ..operators.overriding import DISABLED, SubclassesOff, asks, by_default, is_foreign
from ..operators.views import VIEWS
from ..ops.create.creation import empty
from ..ops.tensor.export import deepcopy as deepcopy_tensor
from ..storage import WrapperArray
from ..tensor import Tensor, make_view, meta_of, sizes_of, strides_of, tensor_over

__all__ = ["Buffer", "Parameter", "adopt", "register_empty", "share"]


def share(cls: type[Any], data: Tensor) -> Any:
    """A leaf of class `cls` over the same memory and version as `data`, unknown to autograd so far."""
    storage, view = data._xt_storage, data._xt_view
    made = tensor_over(storage, view, kind=cls)
    if view is None:
        # The new one takes its sizes from the array, which is the fast way; the old one keeps them itself.
        data._pin_geometry()
        storage.cover = weakref.ref(made)
    else:
        made._xt_view = make_view(
            storage,
            view.counter,
            view.dtype,
            tuple(sizes_of(data)),
            tuple(strides_of(data)),
            view.offset,
            view.conj,
            view.neg,
        )
    if data.is_inference():
        meta_of(made).inference = True
    return made


def adopt(tensor: Tensor, source: Tensor) -> None:
    """`tensor.data = source`; a fresh `source` gives its memory away, so that `tensor` covers it."""
    fresh = source._xt_view is None and source._xt_edge is None and source._xt_storage.cover is None
    if not fresh or type(source) is not Tensor or source._xt_storage is tensor._xt_storage:
        tensor.data = source
        return
    storage = source._xt_storage
    capture.moved(False)
    source._pin_geometry()
    tensor._xt_storage, tensor._xt_view = storage, None
    storage.cover = weakref.ref(tensor)


def require(tensor: Tensor, requires_grad: bool) -> None:
    if requires_grad:
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor._ask_grad(True)


class _ParameterMeta(type):
    """Tensors of other classes count as Parameters once they are marked `_is_param`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and instance.__dict__.get("_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that a Module lists among its parameters when it is assigned as an attribute.

    It shares memory and version with `data`, and requires grad unless told otherwise.

    Shape: that of `data`.

    Raises: RuntimeError for tensors of integers, unless `requires_grad=False`.

    >>> nn.Parameter(xtensor.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()
    __torch_function__ = DISABLED
    _prints_as = "tensor"
    _prints_within = "Parameter"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            if is_foreign(type(data)):
                raise TypeError(
                    "Parameter: a tensor of PyTorch's was given to xtensor: convert it by xtensor.interop.torch.from_torch"
                )
            raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach'")
        kind = type(data)
        if dispatches(kind) or (asks(kind) and not by_default(kind)):
            made = data.detach()
            if type(made) is not kind:
                raise RuntimeError(
                    f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() returns an "
                    f"instance of the same type, but return type {type(made).__name__} was found instead. To use the type "
                    "as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                    "implementation."
                )
        elif type(data._xt_storage.raw) is WrapperArray:
            made = twin(data)
        else:
            made = share(cls if kind is Tensor or isinstance(data, _PLAIN) else kind, data)
        if asks(type(made)):
            with SubclassesOff():  # one that is being made has nothing to answer with
                require(made, requires_grad)
        else:
            require(made, requires_grad)
        if not isinstance(made, cls):
            made.__dict__["_is_param"] = True
        return made  # pyright: ignore[reportReturnType] (of a subclass's kind, which counts as a Parameter)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = memo.get(id(self))
        if found is None:
            found = deepcopy_tensor(self, memo)
            if found._xt_meta is not None:
                found.grad = None
        return found

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__()


_PLAIN = (Parameter,)


class _BufferMeta(type):
    """Buffers are plain tensors that are marked `_is_buffer`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and instance.__dict__.get("_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a Module lists among its buffers when it is assigned as an attribute.

    `persistent` says whether it goes into the module's `state_dict`.

    Shape: that of `data`.

    >>> module = nn.Module()
    >>> module.mean = nn.Buffer(xtensor.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    __slots__ = ()
    __torch_function__ = DISABLED

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Tensor:
        if data is None:
            data = empty(0)
        made = share(Tensor if type(data) is Tensor or isinstance(data, _PLAIN) else type(data), data)
        require(made, data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no sizes yet."""
    return isinstance(param, UninitializedTensorMixin)


ALLOWED = frozenset(
    "size copy_ is_complex is_floating_point half float double char short int long cuda cpu to get_device detach requires_grad_ "
    "register_hook register_post_accumulate_grad_hook retain_grad is_shared share_memory_ materialize".split()
)
"""The methods that a parameter without sizes has."""
EXPRESSIONS = frozenset(
    f"__{reflected}{name}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor neg abs invert getitem setitem len iter bool float int index".split()
    for reflected in ("", "r", "i")
)


class UninitializedTensorMixin:
    """A parameter or buffer whose sizes are not known yet."""

    __slots__ = ()
    __torch_function__ = DISABLED
    cls_to_become: type[Tensor]

    @staticmethod
    def refuse_methods() -> None:
        """Once there is such a parameter: methods of tensors that it must not be asked for raise ValueError, as in PyTorch."""
        if "numel" in vars(UninitializedTensorMixin):
            return

        def refused(name: str) -> Any:
            def method(self: Any, *args: Any, **kwargs: Any) -> Any:
                raise ValueError(
                    f"Attempted to use an uninitialized parameter in <method '{name.strip('_')}' of 'torch._C.TensorBase' objects>. "
                    "This error happens when you are using a `LazyModule` or explicitly manipulating "
                    "`torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` with a dummy batch "
                    "to initialize the parameters before calling torch functions"
                )

            method.__name__ = name
            return method

        for name, value in vars(Tensor).items():
            computes = (
                name.rstrip("_") in REGISTRY or name in VIEWS or name in ("numel", "dim", "item", "tolist")
            )
            public = not name.startswith("_") and name not in ALLOWED and computes
            if (public or name in EXPRESSIONS) and isinstance(value, types.FunctionType):
                setattr(UninitializedTensorMixin, name, refused(name))

    def materialize(
        self: Any, shape: Any, device: devices.DeviceLike = None, dtype: dtypes.dtype | None = None
    ) -> None:
        """Give it memory of these sizes, and the class it stands for; device and dtype stay unless given."""
        data = self.data
        made = empty(shape, device=data.device if device is None else device, dtype=dtype or data.dtype)
        self.data = made
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return found

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        return (type(self), (self.requires_grad, self.data.device, self.data.dtype))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A Parameter that gets its sizes from the first input of its (lazy) module.

    Shape: none before `materialize`.

    >>> weight = nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    xtensor.Size([2, 3])
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        UninitializedTensorMixin.refuse_methods()
        made = share(cls, empty(0, device=device, dtype=dtype))
        require(made, requires_grad)
        return made


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A buffer that gets its sizes from the first input of its (lazy) module.

    Shape: none before `materialize`.

    >>> count = nn.UninitializedBuffer()
    >>> count.materialize((2,))
    >>> count.shape
    xtensor.Size([2])
    """

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Self:
        UninitializedTensorMixin.refuse_methods()
        made = share(cls, empty(0, device=device, dtype=dtype))
        require(made, requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def register_empty(module: Any, device: Any, dtype: Any, **shapes: int | tuple[int, ...] | None) -> None:
    """Register parameters of these shapes, for `reset_parameters` to fill; None where there is none."""
    for name, shape in shapes.items():
        made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, made)
