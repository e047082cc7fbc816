"""Modules that take the sizes of their parameters from the first input they see."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ... import dtypes
from ...engine import no_grad
from ...ops.create.ingest import tensor as make_tensor
from ...tensor import Tensor
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin:
    """Makes a module lazy: `initialize_parameters` gives the parameters their sizes before the first `forward`.

    Afterwards the module becomes one of class `cls_to_become`.

    >>> layer = nn.LazyLinear(2)
    >>> layer.has_uninitialized_params()
    True
    """

    cls_to_become: type[Any] | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # pyright: ignore[reportCallIssue]
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        members = {n: p for n, p in self._parameters.items() if p is not None}
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                members[name] = buffer
        for name, member in members.items():
            destination[prefix + name] = member if is_lazy(member) or keep_vars else member.detach()

    def _lazy_load_hook(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Give parameters the sizes of those that are about to be loaded into them."""
        for name, member in chain(self._parameters.items(), self._buffers.items()):
            source = state_dict.get(prefix + name)
            if member is not None and source is not None and is_lazy(member) and not is_lazy(source):
                with no_grad():
                    member.materialize(source.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their sizes, from the arguments of the first call; every lazy module defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer has no size yet."""
        return any(is_lazy(member) for member in chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose `in_features` is the last size of its first input.

    Shape: input `(*, F)`, output `(*, out_features)`; F becomes `in_features`.

    Raises: IndexError for an input without dimensions.

    >>> layer = nn.LazyLinear(2)
    >>> layer(xtensor.zeros(3, 5)).shape
    xtensor.Size([3, 2])
    >>> layer
    Linear(in_features=5, out_features=2, bias=True)
    """

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                materialize(self.weight, (self.out_features, self.in_features))
                materialize(self.bias, (self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


def materialize(member: Any, shape: tuple[int, ...]) -> None:
    if is_lazy(member):
        member.materialize(shape)


# ---- convolutions ---------------------------------------------------------------------------------------------------


class _LazyConv(LazyModuleMixin):
    """A convolution whose `in_channels` is that of its first input; `out_channels` comes first."""

    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)

    def _make_lazy(self: Any, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self: Any) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # pyright: ignore[reportAttributeAccessIssue]

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        with no_grad():
            first, second = self.out_channels, self.in_channels
            if self.transposed:
                first, second = second, first
            materialize(self.weight, (first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                materialize(self.bias, (self.out_channels,))
            self.reset_parameters()

    def _get_in_channels(self: Any, input: Tensor) -> int:
        spatial = len(self.kernel_size)
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(
                f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == spatial + 2 else input.shape[0]


class _LazyConvTranspose(_LazyConv):
    """A transposed convolution whose `in_channels` is that of its first input; `out_channels` comes first."""

    def __init__(
        self: Any,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        LazyModuleMixin.__init__(
            self, 0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that learns `in_channels` from its first input.

    Shape: as `Conv1d`; C_in becomes `in_channels`.

    Raises: RuntimeError for an input of other dimensions.

    >>> layer = nn.LazyConv1d(8, kernel_size=3)
    >>> layer(xtensor.zeros(2, 4, 9)).shape
    xtensor.Size([2, 8, 7])
    >>> layer.in_channels
    4
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that learns `in_channels` from its first input.

    Shape: as `Conv2d`; C_in becomes `in_channels`.

    Raises: RuntimeError for an input of other dimensions.

    >>> layer = nn.LazyConv2d(8, kernel_size=3)
    >>> layer(xtensor.zeros(2, 4, 9, 9)).shape
    xtensor.Size([2, 8, 7, 7])
    >>> layer.in_channels
    4
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that learns `in_channels` from its first input.

    Shape: as `Conv3d`; C_in becomes `in_channels`.

    Raises: RuntimeError for an input of other dimensions.

    >>> layer = nn.LazyConv3d(8, kernel_size=3)
    >>> layer(xtensor.zeros(2, 4, 5, 5, 5)).shape
    xtensor.Size([2, 8, 3, 3, 3])
    >>> layer.in_channels
    4
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that learns `in_channels` from its first input.

    Shape: as `ConvTranspose1d`; C_in becomes `in_channels`.

    Raises: RuntimeError for an input of other dimensions.

    >>> layer = nn.LazyConvTranspose1d(8, kernel_size=3)
    >>> layer(xtensor.zeros(2, 4, 9)).shape
    xtensor.Size([2, 8, 11])
    >>> layer.in_channels
    4
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that learns `in_channels` from its first input.

    Shape: as `ConvTranspose2d`; C_in becomes `in_channels`.

    Raises: RuntimeError for an input of other dimensions.

    >>> layer = nn.LazyConvTranspose2d(8, kernel_size=3)
    >>> layer(xtensor.zeros(2, 4, 9, 9)).shape
    xtensor.Size([2, 8, 11, 11])
    >>> layer.in_channels
    4
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that learns `in_channels` from its first input.

    Shape: as `ConvTranspose3d`; C_in becomes `in_channels`.

    Raises: RuntimeError for an input of other dimensions.

    >>> layer = nn.LazyConvTranspose3d(8, kernel_size=3)
    >>> layer(xtensor.zeros(2, 4, 5, 5, 5)).shape
    xtensor.Size([2, 8, 7, 7, 7])
    >>> layer.in_channels
    4
    """

    cls_to_become = ConvTranspose3d


# ---- normalisations -------------------------------------------------------------------------------------------------


class _LazyNorm(LazyModuleMixin):
    """A normalisation whose `num_features` is the second size of its first input."""

    def __init__(
        self: Any,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        factory = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**factory)
            self.bias = UninitializedParameter(**factory) if bias else None
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = make_tensor(0, dtype=dtypes.int64, device=device)

    def reset_parameters(self: Any) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # pyright: ignore[reportAttributeAccessIssue]

    def initialize_parameters(self: Any, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        with no_grad():
            for member in (self.weight, self.bias, self.running_mean, self.running_var):
                materialize(member, (self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d that learns `num_features` from its first input.

    Shape: as `BatchNorm1d`; C becomes `num_features`.

    Raises: IndexError for an input of other dimensions.

    >>> layer = nn.LazyBatchNorm1d()
    >>> layer(xtensor.ones(2, 4, 9)).shape
    xtensor.Size([2, 4, 9])
    >>> layer.num_features
    4
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d that learns `num_features` from its first input.

    Shape: as `BatchNorm2d`; C becomes `num_features`.

    Raises: IndexError for an input of other dimensions.

    >>> layer = nn.LazyBatchNorm2d()
    >>> layer(xtensor.ones(2, 4, 9, 9)).shape
    xtensor.Size([2, 4, 9, 9])
    >>> layer.num_features
    4
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d that learns `num_features` from its first input.

    Shape: as `BatchNorm3d`; C becomes `num_features`.

    Raises: IndexError for an input of other dimensions.

    >>> layer = nn.LazyBatchNorm3d()
    >>> layer(xtensor.ones(2, 4, 5, 5, 5)).shape
    xtensor.Size([2, 4, 5, 5, 5])
    >>> layer.num_features
    4
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d that learns `num_features` from its first input; scale and statistics are on by default.

    Shape: as `InstanceNorm1d`; C becomes `num_features`.

    Raises: IndexError for an input of other dimensions.

    >>> layer = nn.LazyInstanceNorm1d()
    >>> layer(xtensor.ones(2, 4, 9)).shape
    xtensor.Size([2, 4, 9])
    >>> layer.num_features
    4
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d that learns `num_features` from its first input; scale and statistics are on by default.

    Shape: as `InstanceNorm2d`; C becomes `num_features`.

    Raises: IndexError for an input of other dimensions.

    >>> layer = nn.LazyInstanceNorm2d()
    >>> layer(xtensor.ones(2, 4, 9, 9)).shape
    xtensor.Size([2, 4, 9, 9])
    >>> layer.num_features
    4
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d that learns `num_features` from its first input; scale and statistics are on by default.

    Shape: as `InstanceNorm3d`; C becomes `num_features`.

    Raises: IndexError for an input of other dimensions.

    >>> layer = nn.LazyInstanceNorm3d()
    >>> layer(xtensor.ones(2, 4, 5, 5, 5)).shape
    xtensor.Size([2, 4, 5, 5, 5])
    >>> layer.num_features
    4
    """

    cls_to_become = InstanceNorm3d
