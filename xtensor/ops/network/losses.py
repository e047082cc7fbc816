"""Losses of predictions against targets of the same shape, element by element: squared, absolute, binary, divergences.

Each is one program, its reduction included. Arguments `size_average` and `reduce` are deprecated spellings of
`reduction`, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...engine import modes
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.promotion import common_dtype
from ...operators.refusals import refuse_negative_variance, refuse_no_probabilities
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ...xla.number_arrays import size_as
from ..pointwise.accurate import log1p
from ..pointwise.arithmetic import check_subtraction
from ..reduce.reductions import mean_dtype
from ..shape.joining import joined_shape

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]


# ---- shared by all losses ------------------------------------------------------------------------------------------


def check_reduction(reduction: Any) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the deprecated flags ask for, with PyTorch's warning, or else `reduction`."""
    if size_average is None and reduce is None:
        return reduction
    by_mean = size_average is None or size_average
    found = "none" if reduce is not None and not reduce else "mean" if by_mean else "sum"
    checks.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
    )
    return found


def reduced(values: Any, reduction: str) -> Any:
    """The values, their mean or their sum; short floats are added in float32."""
    if reduction == "none":
        return values
    own = values.dtype
    if reduction == "mean":
        mean_dtype("mean", values, None)
    wide = values.astype(dtypes.compute_type(dtype_of(values)).numpy)
    total = jnp.sum(wide)
    if reduction == "mean":
        total = total / size_as(wide.size, wide.dtype)
    return total.astype(np.int64 if own.kind in "iu" else own)


def together(*arrays: Any) -> list[Any]:
    """The arrays in their common dtype, with PyTorch's error where they do not broadcast."""
    joined_shape(*[a.shape for a in arrays if a is not None])
    dtype = common_dtype(*arrays).numpy
    return [None if a is None else a.astype(dtype) for a in arrays]


def warn_sizes(input: Tensor, target: Tensor) -> None:
    """PyTorch's warning for a target that would be broadcast."""
    a, b = tuple(sizes_of(input)), tuple(sizes_of(target))
    if a != b:
        checks.warn(
            f"Using a target size ({checks.spelled('Size')}({list(b)})) that is different to the input size ({checks.spelled('Size')}({list(a)})). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        )


def clamped(x: Any) -> Any:
    """`max(x, 0)` whose derivative at 0 is 1, as `clamp_min`'s is."""
    return jnp.where(x >= 0, x, jnp.zeros_like(x))


def magnitude(x: Any) -> Any:
    """`abs(x)` whose derivative at 0 is 0, as PyTorch's is and JAX's is not."""
    if not jnp.iscomplexobj(x):
        return x * jnp.sign(x)
    zero = x == 0
    return jnp.where(zero, jnp.zeros((), jnp.real(x).dtype), jnp.abs(jnp.where(zero, jnp.ones_like(x), x)))


def refuse_gradient(function: str, name: str, tensor: Tensor | None) -> None:
    """RuntimeError where a gradient is asked for an argument that has none."""
    if tensor is not None and modes.is_grad_enabled() and tensor.requires_grad:
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have "
            "requires_grad True."
        )


def xlogy(x: Any, y: Any) -> Any:
    """`x * log(y)`, zero where x is."""
    safe = jnp.where(x == 0, jnp.ones_like(y), y)
    return jnp.where(x == 0, jnp.zeros_like(x), x * jnp.log(safe))


def refuse_integers(kernel: str, x: Any) -> None:
    own = dtype_of(x)
    if not own.is_floating_point:
        raise checks.not_implemented_for(kernel, own)


# ---- squares and absolute values -----------------------------------------------------------------------------------


def _weighted(values: Any, weight: Any, reduction: str) -> Any:
    if weight is None:
        return reduced(values, reduction)
    total = reduced(values * weight, "none" if reduction == "none" else "sum")
    return total / jnp.sum(weight) if reduction == "mean" else total


@general(elementwise="reduction", autocast="float32", name="mse_loss", derivatives=FROM_KERNEL)
def squared_error(input: Array, target: Array, weight: Array | None = None, reduction: str = "mean") -> Array:
    """The squared differences, reduced."""
    check_reduction(reduction)
    a, b = together(input, target)
    refuse_integers("mse_cpu", a)
    difference = a - b
    return _weighted(difference * difference, weight, reduction)


@general(elementwise="reduction", autocast="float32", name="l1_loss", derivatives=FROM_KERNEL, copies=True)
def absolute_error(
    input: Array, target: Array, weight: Array | None = None, reduction: str = "mean"
) -> Array:
    """The absolute differences, reduced."""
    check_reduction(reduction)
    a, b = together(input, target)
    check_subtraction(a, b)
    return _weighted(magnitude(a - b), weight, reduction)


@general(elementwise="reduction", autocast="float32", name="smooth_l1_loss", derivatives=FROM_KERNEL)
def smooth_error(input: Array, target: Array, beta: float = 1.0, reduction: str = "mean") -> Array:
    """Squared differences below `beta`, absolute ones above, reduced."""
    check_reduction(reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    a, b = together(input, target)
    if beta == 0:
        return reduced(magnitude(a - b), reduction)
    refuse_integers("smooth_l1_cpu", a)
    difference = a - b
    distance = magnitude(difference)
    values = jnp.where(distance < beta, 0.5 * difference * difference / beta, distance - 0.5 * beta)
    return reduced(values.astype(a.dtype), reduction)


@general(elementwise="reduction", autocast="float32", name="huber_loss", derivatives=FROM_KERNEL)
def huber_error(
    input: Array, target: Array, weight: Array | None = None, delta: float = 1.0, reduction: str = "mean"
) -> Array:
    """Squared differences up to `delta`, scaled absolute ones above, reduced."""
    check_reduction(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    a, b = together(input, target)
    # PyTorch's kernel writes its result in the dtype of `input`.
    refuse_integers("huber_cpu", a)
    difference = a - b
    distance = magnitude(difference)
    values = jnp.where(distance < delta, 0.5 * difference * difference, delta * (distance - 0.5 * delta))
    values = values.astype(input.dtype)
    return reduced(values if weight is None else values * weight, reduction)


def _check_weight(input: Tensor, weight: Tensor | None) -> None:
    if weight is not None and tuple(sizes_of(weight)) != tuple(sizes_of(input)):
        raise ValueError("Weights and input must have the same size.")


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference, element by element, reduced.

    Shape: `input` and `target` broadcast together; result `()`, or their broadcast shape with reduction
    "none".

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.

    >>> F.mse_loss(xtensor.tensor([1.0, 2.0]), xtensor.tensor([1.0, 4.0]))
    tensor(2.)
    """
    warn_sizes(input, target)
    _check_weight(input, weight)
    return squared_error(input, target, weight, legacy(size_average, reduce, reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference, element by element, reduced.

    Shape: `input` and `target` broadcast together; result `()`, or their broadcast shape with reduction
    "none".

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.

    >>> F.l1_loss(xtensor.tensor([1.0, 2.0]), xtensor.tensor([1.0, 5.0]))
    tensor(1.5000)
    """
    warn_sizes(input, target)
    _check_weight(input, weight)
    return absolute_error(input, target, weight, legacy(size_average, reduce, reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The squared difference over `2 * beta` where it is below `beta`, else the absolute one less half of it.

    Shape: `input` and `target` broadcast together; result `()`, or their broadcast shape with reduction
    "none".

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.

    Source: Girshick 2015, arXiv:1504.08083.

    >>> F.smooth_l1_loss(xtensor.zeros(2), xtensor.tensor([0.5, 3.0]))
    tensor(1.3125)
    """
    warn_sizes(input, target)
    return smooth_error(input, target, float(beta), legacy(size_average, reduce, reduction))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference where it is at most `delta`, else `delta` times the absolute one less `delta / 2`.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` if not reduced.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.

    Source: Huber 1964, Annals of Mathematical Statistics 35.

    >>> F.huber_loss(xtensor.tensor([0.0, 3.0]), xtensor.tensor([1.0, 0.0]))
    tensor(1.5000)
    """
    warn_sizes(input, target)
    _check_weight(input, weight)
    return huber_error(input, target, weight, float(delta), reduction)


@general(
    elementwise="reduction", autocast="float32", name="soft_margin_loss", derivatives=dict(input=FROM_KERNEL)
)
def soft_margin(input: Array, target: Array, reduction: str = "mean") -> Array:
    """`log(1 + exp(-target * input))`, reduced."""
    check_reduction(reduction)
    a, b = together(input, target)
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        name = dtypes.get_default_dtype().scalar_name
        raise RuntimeError(
            f"result type {name} can't be cast to the desired output type {dtype_of(input).scalar_name}"
        )
    return reduced(jnp.log1p(jnp.exp(-b * a)).astype(input.dtype), reduction)


@of_tensors()
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The logistic loss of scores against targets of 1 or -1.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool and
    integer tensors.
    """
    reduction = legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    refuse_gradient("soft_margin_loss", "target", target)
    return soft_margin(input, target, reduction)


# ---- binary targets ------------------------------------------------------------------------------------------------


def _bce_each(grad: Array, input: Array, weight: Any, reduction: str) -> Array:
    each = grad / size_as(input.size, grad.dtype) if reduction == "mean" else grad
    return each if weight is None else each * weight


def _bce_input(grad: Array, input: Array, target: Array, weight: Any, reduction: str) -> Array:
    each = _bce_each(grad, input, weight, reduction)
    return each * (input - target) / jnp.maximum((1 - input) * input, np.asarray(1e-12, input.dtype))


def _bce_target(grad: Array, input: Array, weight: Any, reduction: str) -> Array:
    return _bce_each(grad, input, weight, reduction) * (jnp.log(1 - input) - jnp.log(input))


@general(
    elementwise="reduction",
    autocast=dict(cpu="float32", accelerator="banned"),
    name="binary_cross_entropy",
    refuses=refuse_no_probabilities,
    derivatives=dict(input=_bce_input, target=_bce_target),
)
def probability_cross_entropy(
    input: Array, target: Array, weight: Array | None = None, reduction: str = "mean"
) -> Array:
    """The cross entropy of probabilities against binary targets, reduced."""
    check_reduction(reduction)
    refuse_integers("binary_cross_entropy", input)
    a, b = dtype_of(input), dtype_of(target)
    if a is not b:
        raise RuntimeError(f"Found dtype {b.scalar_name} but expected {a.scalar_name}")
    x = input.astype(dtypes.compute_type(a).numpy)
    t = target.astype(x.dtype)
    floor = np.asarray(-100, x.dtype)
    values = (t - 1) * jnp.maximum(log1p(-x), floor) - t * jnp.maximum(jnp.log(x), floor)
    if weight is not None:
        values = values * weight
    return reduced(values.astype(input.dtype), reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities against binary targets; logarithms are at least -100.

    RuntimeError on a CPU for probabilities and targets outside [0, 1]; elsewhere they give NaN.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where sizes do not fit; ValueError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    >>> F.binary_cross_entropy(xtensor.tensor([0.5, 0.9]), xtensor.tensor([1.0, 0.0]))
    tensor(1.4979)
    """
    a, b = tuple(sizes_of(input)), tuple(sizes_of(target))
    if a != b:
        raise ValueError(
            f"Using a target size ({checks.spelled('Size')}({list(b)})) that is different to the input size "
            f"({checks.spelled('Size')}({list(a)})) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = expanded(weight, a)
    return probability_cross_entropy(input, target, weight, legacy(size_average, reduce, reduction))


def expanded(weight: Tensor, shape: tuple[int, ...]) -> Tensor:
    sizes = tuple(sizes_of(weight))
    for d in range(1, len(sizes) + 1):
        if d > len(shape) or sizes[-d] not in (1, shape[-d]):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {sizes[-d]} at -{d}! Mismatching argument at index 1 had "
                f"{checks.spelled('Size')}({list(sizes)}); but expected shape should be broadcastable to {list(shape)}"
            )
    return weight.expand(shape)


@general(
    elementwise="reduction",
    autocast="float32",
    name="binary_cross_entropy_with_logits",
    derivatives=FROM_KERNEL,
)
def logit_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    pos_weight: Array | None = None,
    reduction: str = "mean",
) -> Array:
    """The cross entropy of the sigmoid of logits against binary targets, reduced."""
    check_reduction(reduction)
    refuse_integers("log_sigmoid_cpu", input)
    x, t = together(input, target)
    one = np.asarray(1, x.dtype)
    minus_log = jax.nn.softplus(-x)
    if pos_weight is not None:
        joined_shape(pos_weight.shape, t.shape)
        minus_log = minus_log * ((pos_weight.astype(x.dtype) - one) * t + one)
    values = (one - t) * x + minus_log
    if weight is not None:
        values = values * weight
    return reduced(values, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of the sigmoid of logits against binary targets, without overflow.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` with reduction "none".

    Raises: RuntimeError where sizes do not fit; ValueError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    >>> F.binary_cross_entropy_with_logits(xtensor.tensor([0.0, 2.0]), xtensor.tensor([1.0, 0.0]))
    tensor(1.4100)
    """
    reduction = legacy(size_average, reduce, reduction)
    a, b = tuple(sizes_of(input)), tuple(sizes_of(target))
    if a != b:
        raise ValueError(
            f"Target size ({checks.spelled('Size')}({list(b)})) must be the same as input size ({checks.spelled('Size')}({list(a)}))"
        )
    return logit_cross_entropy(input, target, weight, pos_weight, reduction)


# ---- divergences and likelihoods -----------------------------------------------------------------------------------


@general(elementwise="reduction", autocast="float32", name="kl_div", derivatives=FROM_KERNEL)
def divergence(input: Array, target: Array, reduction: str = "mean", log_target: bool = False) -> Array:
    """The pointwise Kullback-Leibler divergence of log-probabilities, reduced."""
    check_reduction(reduction)
    if not (jnp.issubdtype(input.dtype, jnp.inexact) and jnp.issubdtype(target.dtype, jnp.inexact)):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    t, x = together(target, input)
    values = jnp.exp(t) * (t - x) if log_target else xlogy(t, t) - t * x
    return reduced(values, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence of `target` from log-probabilities; `batchmean` divides by the batch size.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` with reduction "none".

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool
    and integer tensors.

    Source: Kullback and Leibler 1951, Annals of Mathematical Statistics 22.

    >>> log_p, q = xtensor.tensor([[0.5, 0.5]]).log(), xtensor.tensor([[0.9, 0.1]])
    >>> F.kl_div(log_p, q, reduction="batchmean")
    tensor(0.3681)
    """
    reduction = legacy(size_average, reduce, reduction)
    if reduction == "mean" and (size_average is None and reduce is None):
        checks.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
        )
    if reduction != "batchmean":
        return divergence(input, target, reduction, log_target)
    total = divergence(input, target, "sum", log_target)
    return total / sizes_of(input)[0] if input.dim() else total


@general(
    elementwise="reduction", autocast="float32", name="poisson_nll_loss", derivatives=FROM_KERNEL, copies=True
)
def poisson_error(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:
    """The negative log-likelihood of counts under Poisson distributions, reduced."""
    check_reduction(reduction)
    t, x = together(target, input)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        t, x = (v.astype(dtypes.get_default_dtype().numpy) for v in (t, x))
    small = np.asarray(eps, x.dtype)
    values = jnp.exp(x) - t * x if log_input else x - t * jnp.log(x + small)
    if full:
        safe = jnp.where(t > 1, t, jnp.ones_like(t))
        stirling = safe * jnp.log(safe) - safe + 0.5 * jnp.log(2 * math.pi * safe)
        values = values + jnp.where(t > 1, stirling, jnp.zeros_like(t)).astype(values.dtype)
    return reduced(values, reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts under Poisson distributions; `full` adds Stirling's term.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit.
    """
    reduction = legacy(size_average, reduce, reduction)
    check_reduction(reduction)
    return poisson_error(input, target, log_input, full, eps, reduction)


@general(
    elementwise="reduction",
    name="gaussian_nll_loss",
    derivatives=FROM_KERNEL,
    refuses=refuse_negative_variance,
    copies=True,
)
def gaussian_error(
    input: Array, target: Array, var: Array, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """The negative log-likelihood under Gaussian distributions, reduced; a negative variance gives NaN."""
    dtype = common_dtype(input, target, var).numpy
    x, t, v = (a.astype(dtype) for a in (input, target, var))
    floor = np.asarray(eps, dtype)
    # PyTorch clamps outside autograd: the gradient passes through.
    clamp = v + lax.stop_gradient(jnp.maximum(v, floor) - v)
    clamp = jnp.where(v < 0, jnp.full_like(v, jnp.nan), clamp)
    difference = x - t
    values = 0.5 * (jnp.log(clamp) + difference * difference / clamp)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return reduced(values.astype(dtype), reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of `target` under Gaussians of mean `input` and variance `var`, at least `eps`.

    Shape: `input` and `target` `(*)`, `var` the same or with size 1 or nothing last; result `()`, or `(*)` if
    not reduced.
    Differs from PyTorch: on an accelerator a negative variance in a tensor gives NaN instead of an error.

    Raises: ValueError where sizes do not fit; RuntimeError where sizes do not fit; ValueError where sizes do not fit
    or a variance is negative; RuntimeError for bool and integer tensors.

    Source: Nix and Weigend 1994, IEEE International Conference on Neural Networks.
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input.detach().new_full((1,) if input.dim() == 0 else tuple(sizes_of(input)), float(var))
    shape, given = tuple(sizes_of(input)), tuple(sizes_of(var))
    if given != shape:
        if shape[:-1] == given:
            var = var.unsqueeze(-1)
        elif not (shape[:-1] == given[:-1] and given[-1:] == (1,)) and not _spreads(given, shape):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return gaussian_error(input, target, var, full, eps, reduction)


def _spreads(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether `given` differs from `shape` in one dimension of size one."""
    return (
        len(given) == len(shape)
        and sum(a != b for a, b in zip(given, shape, strict=True)) == 1
        and 1 in given
    )


# ---- margins -------------------------------------------------------------------------------------------------------


@general(autocast="float32", name="hinge_embedding_loss", derivatives=dict(input=FROM_KERNEL), copies=True)
def hinge_error(input: Array, target: Array, margin: float = 1.0, reduction: str = "mean") -> Array:
    """The input where the target is 1, what it lacks to the margin where it is -1, reduced."""
    check_reduction(reduction)
    joined_shape(target.shape, input.shape)
    zero = jnp.zeros((), input.dtype)
    apart = jnp.where(target != 1, clamped((margin - input).astype(input.dtype)), zero)
    values = apart + jnp.where(target != -1, input, zero)
    return reduced(values, reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances pulled to zero for targets of 1 and beyond a margin for targets of -1.

    Shape: `input` and `target` `(*)`; result `()`, or `(*)` if not reduced.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; RuntimeError for bool
    and integer tensors.
    """
    return hinge_error(input, target, float(margin), legacy(size_average, reduce, reduction))


@general(autocast="float32", name="margin_ranking_loss", derivatives=FROM_KERNEL, copies=True)
def ranking_error(
    input1: Array, input2: Array, target: Array, margin: float = 0.0, reduction: str = "mean"
) -> Array:
    """`max(0, -target * (input1 - input2) + margin)`, reduced."""
    check_reduction(reduction)
    a, b, t = together(input1, input2, target)
    apart = -t * (a - b)
    kind = apart.dtype if jnp.issubdtype(apart.dtype, jnp.inexact) else dtypes.get_default_dtype().numpy
    return reduced(clamped((apart + margin).astype(kind)), reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far `input1` fails to rank above (target 1) or below (-1) `input2` by the margin.

    Shape: `input1`, `input2` and `target` broadcast to `(*)`; result `()`, or `(*)` if not reduced.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool tensors.
    """
    if not input1.dim() == input2.dim() == target.dim():
        shapes = [
            f"{n}: {checks.spelled('Size')}({list(sizes_of(t))})"
            for n, t in zip(("input1", "input2", "target"), (input1, input2, target), strict=True)
        ]
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"{shapes[0]}, {shapes[1]}, {shapes[2]} "
        )
    return ranking_error(input1, input2, target, float(margin), legacy(size_average, reduce, reduction))
