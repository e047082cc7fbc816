"""Initial values of parameters: functions that fill a tensor in place, unknown to autograd, and return it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from .. import checks
from ..engine import no_grad
from ..ops.create.creation import empty, zeros
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call, jit

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity changes the standard deviation of what goes through it."""
    if nonlinearity in {
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
    }:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with values drawn uniformly from [a, b).

    Raises: RuntimeError where `a` is above `b`.

    >>> nn.init.uniform_(xtensor.empty(2, 3)).shape
    xtensor.Size([2, 3])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with values drawn from a normal distribution.

    Raises: RuntimeError for a negative `std`.

    >>> nn.init.normal_(xtensor.empty(2, 3)).shape
    xtensor.Size([2, 3])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with values of a normal distribution between `a` and `b`, by its inverse on uniform ones.

    Raises: RuntimeError where `a` is above `b`; NotImplementedError for integer tensors.

    >>> bool((nn.init.trunc_normal_(xtensor.empty(8)).abs() <= 2).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        checks.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values "
            "may be incorrect.",
        )

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with no_grad():
        low, high = below((a - mean) / std), below((b - mean) / std)
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0))
        tensor.add_(mean)
        return tensor.clamp_(min=a, max=b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Raises: AttributeError for what is no tensor; TypeError for a value that is no number.

    >>> nn.init.constant_(xtensor.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    Raises: AttributeError for what is no tensor.

    >>> nn.init.ones_(xtensor.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    Raises: AttributeError for what is no tensor.

    >>> nn.init.zeros_(xtensor.empty(2))
    tensor([0., 0.])
    """
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight so that it passes its input channels on, as many as there are, in each group.

    Source: Zagoruyko and Komodakis 2017, arXiv:1706.00388.
    """
    dimensions = tensor.dim()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    with no_grad():
        tensor.zero_()
        middle = tuple(n // 2 for n in sizes[2:])
        for group in range(groups):
            for d in range(min(per_group, sizes[1])):
                place = tensor[group * per_group + d][d]
                for index in middle:
                    place = place[index]
                place.fill_(1)
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    sizes = tuple(tensor.shape)
    field = math.prod(sizes[2:])
    return sizes[1] * field, sizes[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    valid = ["fan_in", "fan_out"]
    if mode not in valid:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill uniformly so that variance is kept forward and backward (Glorot and Bengio, 2010).

    Raises: ValueError for fewer than two dimensions.

    Source: Glorot and Bengio 2010, Artificial Intelligence and Statistics.

    >>> nn.init.xavier_uniform_(xtensor.empty(2, 3)).shape
    xtensor.Size([2, 3])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from a normal distribution so that variance is kept forward and backward (Glorot and Bengio, 2010).

    Raises: ValueError for fewer than two dimensions.

    Source: Glorot and Bengio 2010, Artificial Intelligence and Statistics.

    >>> nn.init.xavier_normal_(xtensor.empty(2, 3)).shape
    xtensor.Size([2, 3])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        checks.warn("Initializing zero-element tensors is a no-op")
        return True
    return False


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill uniformly so that variance is kept through a rectifier (He et al., 2015).

    Raises: ValueError for fewer than two dimensions.

    Source: He et al. 2015, arXiv:1502.01852.

    >>> nn.init.kaiming_uniform_(xtensor.empty(2, 3)).shape
    xtensor.Size([2, 3])
    """
    if _is_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill from a normal distribution so that variance is kept through a rectifier (He et al., 2015).

    Raises: ValueError for fewer than two dimensions.

    Source: He et al. 2015, arXiv:1502.01852.

    >>> nn.init.kaiming_normal_(xtensor.empty(2, 3)).shape
    xtensor.Size([2, 3])
    """
    if _is_empty(tensor):
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def draw_by_inputs(weight: Tensor, bias: Tensor | None) -> None:
    """Fill a layer's weight and bias uniformly within 1/sqrt(number of inputs to one output)."""
    kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = _calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        uniform_(bias, -bound, bound)


@jit
def _orthonormal(matrix: Any) -> Any:
    q, r = jnp.linalg.qr(matrix)
    # With the signs of R's diagonal the distribution is uniform (Mezzadri, 2007).
    return q * jnp.sign(jnp.diagonal(r))


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix, dimensions after the first taken as one (Saxe et al., 2013).

    Raises: ValueError for fewer than two dimensions.

    Source: Saxe, McClelland and Ganguli 2014, arXiv:1312.6120.

    >>> w = nn.init.orthogonal_(xtensor.empty(2, 2))
    >>> xtensor.allclose(w @ w.T, xtensor.eye(2), atol=1e-5)
    True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with no_grad():
        drawn = empty(rows, columns, dtype=tensor.dtype, device=tensor.device).normal_(
            0, 1, generator=generator
        )
        wide = rows < columns
        q = wrap(call(_orthonormal, array_of(drawn.t() if wide else drawn)))
        tensor.view_as(tensor).copy_((q.t() if wide else q).reshape(tensor.shape))
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix from a normal distribution, with this fraction of every column zero.

    Source: Martens 2010, International Conference on Machine Learning.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    count = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        # The rows that come first in a random order, column by column.
        order = (
            zeros(rows, columns, device=tensor.device)
            .uniform_(generator=generator)
            .argsort(dim=0)
            .argsort(dim=0)
        )
        return tensor.mul_((order >= count).to(tensor.dtype))


def deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The old name of a function, without the underscore."""
    new_name = function.__name__
    old_name = new_name[:-1]

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        checks.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.",
            FutureWarning,
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = old_name
    return old


constant = deprecated(constant_)
dirac = deprecated(dirac_)
eye = deprecated(eye_)
kaiming_normal = deprecated(kaiming_normal_)
kaiming_uniform = deprecated(kaiming_uniform_)
normal = deprecated(normal_)
orthogonal = deprecated(orthogonal_)
sparse = deprecated(sparse_)
uniform = deprecated(uniform_)
xavier_normal = deprecated(xavier_normal_)
xavier_uniform = deprecated(xavier_uniform_)
