"""The derivatives that PyTorch's dispatcher has as operators: what a custom function's `backward` calls by `torch.ops.aten`.

Each is the derivative of the function of the same name, found by autograd or by its formula, and is itself differentiable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..engine import enable_grad, is_grad_enabled
from ..operators.below.aten import BESIDES
from ..ops.index.masks import where
from ..tensor import Tensor
from . import functional as F
from .grad import pulled_back

__all__ = ["pulled"]

REDUCTIONS = ("none", "mean", "sum")


def pulled(
    function: Callable[..., Tensor], values: Sequence[Tensor], seed: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of a function with respect to each of the values; None for those that it does not depend on."""
    graph = is_grad_enabled() and any(v.requires_grad for v in (*values, seed))
    with enable_grad():
        places = [v.view_as(v) if graph and v.requires_grad else v.detach()._ask_grad(True) for v in values]
        return grad(function(*places), places, seed, create_graph=graph, allow_unused=True)


def one(function: Callable[[Tensor], Tensor], value: Tensor, seed: Tensor) -> Any:
    return pulled(function, (value,), seed)[0]


def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    wanted = [(i, v) for i, v in enumerate((input, weight)) if output_mask[i]]

    def run(*values: Tensor) -> Tensor:
        given = dict(zip([i for i, _ in wanted], values, strict=True))
        x, w = given.get(0, input), given.get(1, weight)
        if transposed:
            turned = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[input.dim() - 3]
            return turned(x, w, None, stride, padding, output_padding, groups, dilation)
        return (F.conv1d, F.conv2d, F.conv3d)[input.dim() - 3](x, w, None, stride, padding, dilation, groups)

    found: list[Any] = [None, None, None]
    if wanted:
        for (i, _), value in zip(wanted, pulled(run, [v for _, v in wanted], grad_output), strict=True):
            found[i] = value
    if output_mask[2]:
        found[2] = grad_output.sum([d for d in range(grad_output.dim()) if d != 1])
    return tuple(found)


def linear_backward(
    self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    rows, grads = self.reshape(-1, self.shape[-1]), grad_output.reshape(-1, grad_output.shape[-1])
    return (
        grad_output @ weight if output_mask[0] else None,
        grads.t() @ rows if output_mask[1] else None,
        grads.sum(0) if output_mask[2] else None,
    )


def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Tensor:
    return where(self > threshold, grad_output, 0)


def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (output * (1 - output)).conj()


def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output).conj()


def elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> Tensor:
    x = self_or_result
    below = x + alpha * scale if is_result else (x * input_scale).exp() * (alpha * scale)
    return grad_output * where(x <= 0, below * input_scale, scale)


def leaky_relu_backward(
    grad_output: Tensor, self: Tensor, negative_slope: Any, self_is_result: bool
) -> Tensor:
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. "
            "This is caused by calling in-place forward function with a negative slope, "
            "please call out-of-place version instead."
        )
    return where(self > 0, grad_output, grad_output * negative_slope)


def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    return one(lambda x: F.gelu(x, approximate=approximate), self, grad_output)


def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: Any, max_val: Any) -> Tensor:
    return where((self > min_val) & (self < max_val), grad_output, 0)


def softplus_backward(grad_output: Tensor, self: Tensor, beta: Any, threshold: Any) -> Tensor:
    return one(lambda x: F.softplus(x, beta, threshold), self, grad_output)


def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    return one(F.logsigmoid, self, grad_output)


def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    return one(lambda x: F.glu(x, dim), self, grad_output)


def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return one(lambda x: F.mse_loss(x, target, reduction=REDUCTIONS[reduction]), self, grad_output)


def smooth_l1_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    return one(
        lambda x: F.smooth_l1_loss(x, target, reduction=REDUCTIONS[reduction], beta=beta), self, grad_output
    )


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    loss = F.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])
    if not reduction and self.dim() > 1:
        return loss, self.new_zeros(())
    kept = target != ignore_index
    if weight is None:
        return loss, kept.sum().to(self.dtype)
    return loss, where(kept, weight[where(kept, target, 0)], 0).sum()


def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    return one(
        lambda x: F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]),
        self,
        grad_output,
    )


def native_layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    inner = list(range(input.dim() - len(normalized_shape), input.dim()))
    outer = list(range(inner[0]))
    normal = (input - mean) * rstd
    scaled = grad_out if weight is None else grad_out * weight
    level = scaled.mean(inner, keepdim=True)
    slope = (scaled * normal).mean(inner, keepdim=True)
    weights, biases = grad_out * normal, grad_out
    return (
        rstd * (scaled - level - normal * slope) if output_mask[0] else None,
        (weights.sum(outer) if outer else weights) if output_mask[1] else None,
        (biases.sum(outer) if outer else biases) if output_mask[2] else None,
    )


def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    def run(rows: Tensor) -> Tensor:
        padding = padding_idx if padding_idx >= 0 else None
        return F.embedding(indices, rows, padding, scale_grad_by_freq=scale_grad_by_freq)

    return pulled_back(run, (num_weights, grad_output.shape[-1]), grad_output, grad_output)


def select_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    return pulled_back(lambda x: x.select(dim, index), input_sizes, grad_output, grad_output)


def slice_backward(
    grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    def run(x: Tensor) -> Tensor:
        return x.movedim(dim, 0)[start:end:step].movedim(0, dim)

    return pulled_back(run, input_sizes, grad_output, grad_output)


def avg_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    def run(x: Tensor) -> Tensor:
        return F.avg_pool2d(
            x, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override
        )

    return pulled_back(run, self.shape, grad_output, grad_output)


def upsample_nearest2d_backward(
    grad_output: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    return pulled_back(
        lambda x: F.interpolate(x, list(output_size)), tuple(input_size), grad_output, grad_output
    )


def pointwise(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda grad_output, self: one(function, self, grad_output)


KERNELS = (
    convolution_backward,
    linear_backward,
    threshold_backward,
    sigmoid_backward,
    tanh_backward,
    elu_backward,
    leaky_relu_backward,
    gelu_backward,
    hardtanh_backward,
    softplus_backward,
    log_sigmoid_backward,
    glu_backward,
    mse_loss_backward,
    smooth_l1_loss_backward,
    nll_loss_forward,
    nll_loss_backward,
    native_layer_norm_backward,
    embedding_dense_backward,
    select_backward,
    slice_backward,
    avg_pool2d_backward,
    upsample_nearest2d_backward,
)
BESIDES.update({kernel.__name__: kernel for kernel in KERNELS})
BESIDES.update(
    silu_backward=pointwise(F.silu),
    mish_backward=pointwise(F.mish),
    hardswish_backward=pointwise(F.hardswish),
    hardsigmoid_backward=pointwise(F.hardsigmoid),
)
