"""Functions at the top of PyTorch's namespace that repeat what tensors and modules have: imported when asked for."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from .. import checks, devices, dtypes
from ..engine import set_detect_anomaly
from ..linalg import matrix_norm, vector_norm
from ..nn import functional as F
from ..ops.create.creation import full
from ..ops.create.distributions import bernoulli
from ..ops.create.ingest import frombuffer
from ..shared_storage import MOST
from ..storage import UntypedStorage
from ..tensor import Tensor, typename
from .cuda import Event, OutOfMemoryError, Stream

__all__ = [
    "AcceleratorError",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "UntypedStorage",
    "alpha_dropout",
    "alpha_dropout_",
    "convolution",
    "dropout",
    "dropout_",
    "embedding_renorm_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
    "frobenius_norm",
    "from_file",
    "get_device",
    "get_device_module",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "norm_except_dim",
    "nuclear_norm",
    "set_anomaly_enabled",
    "typename",
]

has_lapack = has_spectral = True
has_mkl = has_openmp = False

# `torch.abs_(x)` is `x.abs_()`.
INPLACE = frozenset(
    """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_ as_strided_
    ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_ erfc_ exp2_ exp_
    expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_
    negative_ rad2deg_ reciprocal_ resize_as_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_
    tanh_ trunc_ xlogy_
    """.split()
)


def __getattr__(name: str) -> Any:
    if name in INPLACE:
        return getattr(Tensor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


class AcceleratorError(RuntimeError):
    """Named by programs that handle errors of a device; XLA's own are RuntimeErrors."""


def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 on a CPU."""
    return input.get_device()


def get_device_module(device: Any = None) -> Any:
    """The module of functions for a kind of device: `xtensor.cuda`, `xtensor.cpu`."""
    kind = devices.resolve(device).type
    found = getattr(sys.modules[__name__.partition(".")[0]], kind, None)
    if found is None:
        raise RuntimeError(f"Invalid device_module '{kind}' for torch.get_device_module")
    return found


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off."""
    set_detect_anomaly(mode, check_nan)


def frobenius_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The square root of the sum of squares, over all dimensions or some."""
    return vector_norm(input, 2.0, dim if dim not in ((), []) else None, keepdim, out=out)


def nuclear_norm(
    input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The sum of singular values."""
    dims = (dim, dim) if isinstance(dim, int) else tuple(dim)
    return matrix_norm(input, "nuc", dims, keepdim, out=out)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm of each slice along a dimension; of the whole where it is -1."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim]
    return vector_norm(v, pow, others, True) if others else v.abs()


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`."""
    return F.dropout(input, p, train)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` in place."""
    return F.dropout(input, p, train, inplace=True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.alpha_dropout`."""
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` in place."""
    return F.alpha_dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Whole channels dropped."""
    return _by_channel(input, p, train)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` in place."""
    return input.copy_(_by_channel(input, p, train))


def _by_channel(input: Tensor, p: float, train: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not train or p == 0 or input.numel() == 0:
        return input * 1
    checks.check(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input")
    mask = full((*input.shape[:2], *(1,) * (input.dim() - 2)), 1 - p, dtype=input.dtype, device=input.device)
    return input * (bernoulli(mask) / (1 - p) if p < 1 else mask)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`."""
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout` in place."""
    return F.feature_alpha_dropout(input, p, train, inplace=True)


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """Any convolution, by the number of dimensions of its weight."""
    kind = f"conv{'_transpose' if transposed else ''}{weight.dim() - 2}d"
    function = getattr(F, kind)
    if transposed:
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return function(input, weight, bias, stride, padding, dilation, groups)


def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale down, in place, the rows that are named and longer than `max_norm`."""
    rows = indices.flatten().unique()
    found = weight.detach()[rows]
    norms = found.norm(norm_type, 1, True)
    weight.detach()[rows] = (found * (max_norm / (norms + 1e-7))).where(norms > max_norm, found)
    return weight


def shared_file(filename: Any, nbytes: int) -> UntypedStorage:
    """The bytes of a file as a storage over its own memory."""
    return from_file(filename, True, nbytes, dtype=dtypes.uint8).untyped_storage()


UntypedStorage.shared_file = staticmethod(shared_file)


def from_file(
    filename: Any, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """The values of a file as a flat tensor of `size` elements; `shared`: over the file's own memory, made or made longer where it
    must be, so that a write to the one shows in the other.

    Differs from PyTorch: what is not shared is copied, and at most 1 MiB is shared.

    Raises: RuntimeError where the file cannot be read, is shorter, or is too long to be shared.
    """
    kind = dtype or dtypes.get_default_dtype()
    count = size or 0
    length = count * kind.itemsize
    if shared:
        if length > MOST:
            raise RuntimeError(
                f"from_file(): at most {MOST} bytes of a file are shared in xtensor, not {length}; use shared=False"
            )
        with open(filename, "ab") as file:
            file.truncate(max(file.tell(), length))
    try:
        with open(filename, "r+b" if shared else "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found < length:
                raise RuntimeError(
                    f"file <{filename}> size <{found}> is smaller than the required mapping size <{length}>"
                )
            if not count:
                return full((0,), 0, dtype=kind, **options)
            if shared:
                mapped = np.memmap(file, np.uint8, "r+", shape=(length,))
                return frombuffer(mapped, dtype=kind).to(**options)
            return frombuffer(bytearray(file.read(length)), dtype=kind).to(**options)
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})"
        ) from error
