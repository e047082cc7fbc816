"""Activations."""

from __future__ import annotations

from typing import Any

from ... import checks
from ...ops.create.creation import empty
from ...ops.pointwise.elementwise import sigmoid, tanh
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _MayBeInplace(Module):
    """An activation whose one option is to write its result over its input."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class Inplace(_MayBeInplace):
    """One that says so."""

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def also_inplace(module: Any) -> str:
    return ", inplace=True" if module.inplace else ""


class Threshold(Module):
    """Values above `threshold` as they are, `value` for the others.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.threshold` when called.

    >>> nn.Threshold(0.5, 9.0)(xtensor.tensor([0.2, 0.8]))
    tensor([9.0000, 0.8000])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{also_inplace(self)}"


class ReLU(Inplace):
    """`max(x, 0)` (Nair and Hinton, 2010).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.relu` when called.

    Source: Nair and Hinton 2010, International Conference on Machine Learning.

    >>> nn.ReLU()(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(Module):
    """Negative values times a random slope from [lower, upper), in evaluation its middle (Xu et al., 2015).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.rrelu` when called.

    Source: Xu et al. 2015, arXiv:1505.00853.

    >>> nn.RReLU()(xtensor.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{also_inplace(self)}"


class Hardtanh(Module):
    """Values clamped to [min_val, max_val].

    Shape: input `(*)`, output `(*)`.

    Raises: AssertionError where `min_val` is not below `max_val`.

    Source: Collobert 2004, Large Scale Machine Learning.

    >>> nn.Hardtanh()(xtensor.tensor([-2.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new, given in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if given is not None:
                checks.warn(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`",
                    FutureWarning,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{also_inplace(self)}"


class ReLU6(Hardtanh):
    """`min(max(x, 0), 6)` (Krizhevsky, 2010).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.relu6` when called.

    Source: Krizhevsky 2010, Convolutional Deep Belief Networks on CIFAR-10.

    >>> nn.ReLU6()(xtensor.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`.

    Shape: input `(*)`, output `(*)`.

    Raises: as `sigmoid` when called.

    >>> nn.Sigmoid()(xtensor.tensor([-2.0, 0.0, 2.0]))
    tensor([0.1192, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return sigmoid(input)


class Hardsigmoid(_MayBeInplace):
    """`x / 6 + 1/2`, clamped to [0, 1] (Courbariaux et al., 2015).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.hardsigmoid` when called.

    Source: Courbariaux, Bengio and David 2015, arXiv:1511.00363.

    >>> nn.Hardsigmoid()(xtensor.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent.

    Shape: input `(*)`, output `(*)`.

    Raises: as `tanh` when called.

    Source: DLMF 4.28.

    >>> nn.Tanh()(xtensor.tensor([-2.0, 0.0, 2.0]))
    tensor([-0.9640,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return tanh(input)


class SiLU(Inplace):
    """`x * sigmoid(x)` (Elfwing et al., 2017).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.silu` when called.

    Source: Elfwing, Uchibe and Doya 2018, arXiv:1702.03118.

    >>> nn.SiLU()(xtensor.tensor([-2.0, 0.0, 2.0]))
    tensor([-0.2384,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(Inplace):
    """`x * tanh(softplus(x))` (Misra, 2019).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.mish` when called.

    Source: Misra 2019, arXiv:1908.08681.

    >>> nn.Mish()(xtensor.tensor([-2.0, 0.0, 2.0]))
    tensor([-0.2525,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(_MayBeInplace):
    """`x * hardsigmoid(x)` (Howard et al., 2019).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.hardswish` when called.

    Source: Howard et al. 2019, arXiv:1905.02244.

    >>> nn.Hardswish()(xtensor.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class _WithAlpha(Module):
    """An activation whose negative side has a scale."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{also_inplace(self)}"


class ELU(_WithAlpha):
    """`x` where positive, else `alpha * (exp(x) - 1)` (Clevert et al., 2015).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.elu` when called.

    Source: Clevert, Unterthiner and Hochreiter 2016, arXiv:1511.07289.

    >>> nn.ELU()(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_WithAlpha):
    """`x` where positive, else `alpha * (exp(x / alpha) - 1)` (Barron, 2017).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.celu` when called.

    Source: Barron 2017, arXiv:1704.07483.

    >>> nn.CELU(alpha=2.0)(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.7869,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(Inplace):
    """ELU with the scale and alpha that keep mean 0 and variance 1 (Klambauer et al., 2017).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.selu` when called.

    Source: Klambauer et al. 2017, arXiv:1706.02515.

    >>> nn.SELU()(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """The first half of a dimension times the sigmoid of the second (Dauphin et al., 2016).

    Shape: input `(*, 2 * N, *)`, output `(*, N, *)`, at dimension `dim`.

    Raises: RuntimeError where the size of `dim` is odd.

    Source: Dauphin et al. 2017, arXiv:1612.08083.

    >>> nn.GLU()(xtensor.tensor([1.0, 2.0, 0.0, 0.0]))
    tensor([0.5000, 1.0000])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """`x` times the normal distribution function at `x`, or its "tanh" form (Hendrycks and Gimpel, 2016).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.gelu` when called.

    Source: Hendrycks and Gimpel 2016, arXiv:1606.08415.

    >>> nn.GELU()(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Shrink(Module):
    """An activation that is zero within a bound."""

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """Zero within [-lambd, lambd], values as they are outside.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.hardshrink` when called.

    Source: Donoho and Johnstone 1994, Biometrika 81.

    >>> nn.Hardshrink()(xtensor.tensor([-1.0, 0.3, 1.0]))
    tensor([-1.,  0.,  1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class LeakyReLU(Module):
    """`x` where positive, else `negative_slope * x` (Maas et al., 2013).

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.leaky_relu` when called.

    Source: Maas, Hannun and Ng 2013, International Conference on Machine Learning.

    >>> nn.LeakyReLU(0.1)(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1000,  0.0000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{also_inplace(self)}"


class LogSigmoid(Module):
    """The logarithm of the sigmoid.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.logsigmoid` when called.

    >>> nn.LogSigmoid()(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.3133, -0.6931, -0.3133])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """`log(1 + exp(beta * x)) / beta`; `x` itself where `beta * x` is above `threshold`.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.softplus` when called.

    Source: Dugas et al. 2001, Advances in Neural Information Processing Systems 13.

    >>> nn.Softplus()(xtensor.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(_Shrink):
    """Values moved towards zero by `lambd`, and zero within it.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.softshrink` when called.

    Source: Donoho and Johnstone 1994, Biometrika 81.

    >>> nn.Softshrink()(xtensor.tensor([-1.0, 0.3, 1.0]))
    tensor([-0.5000,  0.0000,  0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class PReLU(Module):
    """LeakyReLU with a learned slope: one, or one for each channel (He et al., 2015).

    Shape: input `(N, C, *)` with `num_parameters` C, or `(*)` with one; output as the input.

    Raises: RuntimeError where there is neither one slope nor one a channel.

    Source: He et al. 2015, arXiv:1502.01852.

    >>> nn.PReLU()(xtensor.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    __constants__ = ["num_parameters"]
    weight: Tensor

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set every slope to the initial one."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """`x / (1 + |x|)`.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.softsign` when called.

    Source: Glorot and Bengio 2010, Artificial Intelligence and Statistics.

    >>> nn.Softsign()(xtensor.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """`x - tanh(x)`.

    Shape: input `(*)`, output `(*)`.

    Raises: as `functional.tanhshrink` when called.

    >>> nn.Tanhshrink()(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2384,  0.0000,  0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """The softmax of `-x` along a dimension.

    Shape: input `(*)`, output `(*)`, which sums to one along `dim`.

    Raises: IndexError where `dim` is out of range.

    Source: Bridle 1990, Neurocomputing.

    >>> nn.Softmin(dim=0)(xtensor.tensor([0.0, 0.0, 1.0]))
    tensor([0.4223, 0.4223, 0.1554])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax(_AlongDim):
    """Exponentials along a dimension, scaled to sum to one.

    Shape: input `(*)`, output `(*)`, which sums to one along `dim`.

    Raises: IndexError where `dim` is out of range.

    Source: Bridle 1990, Neurocomputing.

    >>> nn.Softmax(dim=0)(xtensor.tensor([1.0, 1.0, 2.0]))
    tensor([0.2119, 0.2119, 0.5761])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of images.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output as the input.

    Raises: ValueError for an input of other dimensions.

    Source: Bridle 1990, Neurocomputing.

    >>> nn.Softmax2d()(xtensor.zeros(1, 4, 1, 2))[0, :, 0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax along a dimension.

    Shape: input `(*)`, output `(*)`.

    Raises: IndexError where `dim` is out of range.

    Source: Bridle 1990, Neurocomputing.

    >>> nn.LogSoftmax(dim=0)(xtensor.tensor([1.0, 1.0, 2.0]))
    tensor([-1.5514, -1.5514, -0.5514])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)
