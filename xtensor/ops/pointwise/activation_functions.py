"""Activations as `nn.functional` has them: with `inplace`, checks of their arguments, and random ones."""

from __future__ import annotations

from typing import Any

from ... import checks, dtypes
from ...engine import modes
from ...operators.attach import attach_methods
from ...operators.autocast import cast_for
from ...operators.functions.overloads import of_tensors
from ...tensor import Tensor
from ..create.creation import empty_like, zeros_like
from ..index.masks import where
from . import activations
from .arithmetic import abs, div, sub
from .elementwise import tanh

__all__ = ["celu", "celu_", "prelu", "relu_", "rrelu", "rrelu_", "selu", "selu_", "threshold", "threshold_"]

gelu, glu, logsigmoid, softplus = (
    activations.gelu,
    activations.glu,
    activations.logsigmoid,
    activations.softplus,
)


def inplace_of(function: Any) -> Any:
    return function.operator.inplace


celu_kernel, celu_inplace = activations.celu, inplace_of(activations.celu)
elu_kernel, elu_inplace = activations.elu, inplace_of(activations.elu)
hardtanh_kernel, hardtanh_ = activations.hardtanh, inplace_of(activations.hardtanh)
leaky_relu_kernel, leaky_relu_inplace = activations.leaky_relu, inplace_of(activations.leaky_relu)
relu_kernel, relu_ = activations.relu, inplace_of(activations.relu)
selu_kernel, selu_ = activations.selu, inplace_of(activations.selu)
threshold_kernel, threshold_ = activations.threshold, inplace_of(activations.threshold)
hardsigmoid_kernel, hardsigmoid_inplace = activations.hardsigmoid, inplace_of(activations.hardsigmoid)
hardswish_kernel, hardswish_inplace = activations.hardswish, inplace_of(activations.hardswish)
mish_kernel, mish_inplace = activations.mish, inplace_of(activations.mish)
silu_kernel, silu_inplace = activations.silu, inplace_of(activations.silu)


def one_way(kind: str, slope: float, made: Tensor) -> Tensor:
    """The result of an activation in place, whose gradient PyTorch refuses where it cannot tell the sides apart any more."""
    if slope < 0 and made.requires_grad:

        def refuse(grad: Tensor) -> None:
            raise RuntimeError(
                f"In-place {kind} backward calculation is triggered with a negative slope which is not supported. This is "
                "caused by calling in-place forward function with a negative slope, please call out-of-place version instead."
            )

        made.register_hook(refuse)
    return made


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Every element, or 0 where it is negative.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex tensors; RuntimeError for bool
    tensors.

    Source: Nair and Hinton 2010, International Conference on Machine Learning.

    >>> F.relu(xtensor.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    return relu_(input) if inplace else relu_kernel(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Every element brought to [0, 6].

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex tensors; RuntimeError for bool
    tensors.

    Source: Krizhevsky 2010, Convolutional Deep Belief Networks on CIFAR-10.
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Every element, times `negative_slope` where it is not positive.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Maas, Hannun and Ng 2013, International Conference on Machine Learning.

    >>> F.leaky_relu(xtensor.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return leaky_relu_(input, negative_slope) if inplace else leaky_relu_kernel(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place version of `leaky_relu`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad, and in the backward pass where the slope is negative; else as
    `leaky_relu`.
    """
    return one_way("leakyReLu", negative_slope, leaky_relu_inplace(input, negative_slope))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element itself where it is positive, `alpha * (exp(x) - 1)` elsewhere.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Clevert, Unterthiner and Hochreiter 2016, arXiv:1511.07289.

    >>> F.elu(xtensor.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return elu_(input, alpha) if inplace else elu_kernel(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `elu`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad, and in the backward pass where `alpha` is negative; else as `elu`.
    """
    return one_way("elu", alpha, elu_inplace(input, alpha))


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the scales under which activations keep mean 0 and variance 1.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Klambauer et al. 2017, arXiv:1706.02515.
    """
    return selu_(input) if inplace else selu_kernel(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element itself where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere; `alpha` must not be 0.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Barron 2017, arXiv:1704.07483.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return one_way("elu", alpha, celu_inplace(input, alpha)) if inplace else celu_kernel(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `celu`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad, and in the backward pass where `alpha` is negative; else as `celu`.
    """
    return celu(input, alpha, True)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * sigmoid(x)`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for bool and integer tensors.

    Source: Elfwing, Uchibe and Doya 2018, arXiv:1702.03118.

    >>> F.silu(xtensor.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return silu_inplace(input) if inplace else silu_kernel(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * tanh(softplus(x))`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Misra 2019, arXiv:1908.08681.
    """
    return mish_inplace(input) if inplace else mish_kernel(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Every element brought to [min_val, max_val]; ValueError where the bounds cross.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex tensors; RuntimeError for bool
    tensors; ValueError where the bounds cross.

    >>> F.hardtanh(xtensor.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("hardtanh", "input", 1, "Tensor", input)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.dtype is dtypes.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return hardtanh_(input, min_val, max_val) if inplace else hardtanh_kernel(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`relu6(x + 3) / 6`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Courbariaux, Bengio and David 2015, arXiv:1511.00363.
    """
    return hardsigmoid_inplace(input) if inplace else hardsigmoid_kernel(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * relu6(x + 3) / 6`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Howard et al. 2019, arXiv:1905.02244.
    """
    return hardswish_inplace(input) if inplace else hardswish_kernel(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Every element, or `value` where it is at most `threshold`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex and bool tensors.
    """
    return threshold_(input, threshold, value) if inplace else threshold_kernel(input, threshold, value)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Every element moved towards 0 by `lambd`, and 0 where it lies in [-lambd, lambd].

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors;
    RuntimeError where `lambd` is negative, or more than the dtype holds.

    Source: Donoho and Johnstone 1994, Biometrika 81.
    """
    if isinstance(input, Tensor) and input.is_floating_point():
        most = dtypes.finfo(input.dtype).max
        if not 0 <= lambd <= most:
            kind = input.dtype.scalar_name
            raise RuntimeError(
                f"lambda must be in range [0, {most:g}] for input dtype {kind}, but found {float(lambd):g}"
            )
    return activations.softshrink(input, lambd, out=out)


def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for bool tensors.

    Source: Glorot and Bengio 2010, Artificial Intelligence and Statistics.
    """
    return div(input, abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool tensors.
    """
    return sub(input, tanh(input))


@of_tensors()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Every element, times the weight of its channel (dimension 1) where it is not positive.

    Shape: `input` `(N, C, *)`, `weight` `(C)` or `(1)`, result `(N, C, *)`.
    weight: a single number, or one per channel.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    Source: He et al. 2015, arXiv:1502.01852.
    """
    if modes.state.mode & modes.AUTOCAST:
        input, weight = cast_for(input, weight, cpu="short", accelerator="short")
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    if weight.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    if weight.numel() != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.dim() > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} "
                f"and channel size = {channels}."
            )
    if weight.dim() == 1:
        shape = [1] * input.dim()
        if input.dim() > 1:
            shape[1] = weight.numel()
        weight = weight.reshape(shape)
    return activations.prelu_kernel(input, weight)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """Every element, times a random slope from [lower, upper) where it is not positive (its mean unless `training`).

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.

    Source: Xu et al. 2015, arXiv:1505.00853.
    """
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, but got {lower} > {upper}"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    blank: Any = empty_like(input, requires_grad=False)
    slope = blank.uniform_(lower, upper, generator=generator)
    factor = where(input.detach() <= 0, slope, 1.0)
    return input.mul_(factor) if inplace else input * factor


def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    *,
    generator: Any = None,
) -> Tensor:
    """In-place version of `rrelu`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that requires grad; else as `rrelu`.
    """
    return rrelu(input, lower, upper, training, True, generator=generator)


# ---- along a dimension ---------------------------------------------------------------------------------------------


def explicit(name: str, input: Tensor, dim: int | None) -> int:
    """The dimension that is asked for, or the one that was used before there was an argument for it."""
    if dim is not None:
        return dim
    checks.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """`exp(input)` over its sum along `dim`, the input first converted to `dtype`.

    Shape: `input` `(*)`, result `(*)`, which sums to one along `dim`.

    Raises: IndexError where `dim` is out of range.

    Source: Bridle 1990, Neurocomputing.

    >>> F.softmax(xtensor.tensor([[1.0, 1.0], [0.0, 1.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.2689, 0.7311]])
    """
    return activations.softmax(input, explicit("softmax", input, dim), dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """`softmax(-input, dim)`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: IndexError where `dim` is out of range.
    """
    return activations.softmax(-input, explicit("softmin", input, dim), dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """`log(softmax(input, dim))` without overflow.

    Shape: `input` `(*)`, result `(*)`.

    Raises: IndexError where `dim` is out of range.

    Source: Bridle 1990, Neurocomputing.

    >>> F.log_softmax(xtensor.tensor([[1.0, 1.0]]), dim=1)
    tensor([[-0.6931, -0.6931]])
    """
    return activations.log_softmax(input, explicit("log_softmax", input, dim), dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution; with `hard`, one-hot forward and soft backward.

    Shape: `logits` `(*)`, result `(*)`.
    tau: the temperature. eps: unused, as in PyTorch.

    Raises: IndexError where `dim` is out of range.

    Source: Jang, Gu and Poole 2017, arXiv:1611.01144.

    >>> F.gumbel_softmax(xtensor.ones(2, 3), hard=True).sum(-1)
    tensor([1., 1.])
    """
    if eps != 1e-10:
        checks.warn("`eps` parameter is deprecated and has no effect.", UserWarning)
    blank: Any = empty_like(logits, requires_grad=False)
    noise = -blank.exponential_().log()
    soft = activations.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


attach_methods(prelu)
