"""PyTorch's kernels behind private names, which packages call directly: each is an operator or two of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import checks, dtypes
from ..engine import no_grad
from ..nested.construct import as_nested_tensor
from ..nn.functional import conv2d, conv3d, relu
from ..operators.below.aten import OpOverload, packet
from ..ops.pointwise.activations import softmax
from ..ops.pointwise.arithmetic import add
from ..ops.reduce.reductions import var, var_mean
from ..sparse.construct import validate_compressed_args, validate_coo_args
from ..sparse.elementwise import broadcast_to
from ..tensor import Tensor, sizes_of

__all__ = ["KERNELS"]


def add_relu(input: Tensor, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """`add`, and 0 where that is negative."""
    made = relu(add(input, other, alpha=alpha))
    return made if out is None else out.copy_(made)


def add_relu_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`add_`, and 0 where that is negative."""
    return relu(input.add_(other, alpha=alpha), inplace=True)


def masked_softmax(
    input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """The softmax of what a mask does not hide, 0 elsewhere; NaN where it hides all.

    A mask has the input's shape; one of kind 0 is (L, L) and one of kind 1 (B, L), for inputs (B, heads, L, L).
    """
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if not input.dtype.is_floating_point:
        raise checks.not_implemented_for("masked_softmax", input.dtype)
    shape, given = tuple(sizes_of(input)), tuple(sizes_of(mask))
    if given != shape:
        if len(shape) == 4 and mask_type is None:
            raise RuntimeError("Mask Type should be defined")
        if len(shape) != 4 or mask_type not in (0, 1):
            raise RuntimeError("For mask_type == 2 mask shape should match input shape")
        if given != (shape[2] if mask_type == 0 else shape[0], shape[2]):
            raise RuntimeError(
                f"For mask_type == {mask_type} mask shape should be ({'BL'[mask_type == 0]}, L)"
            )
        mask = mask if mask_type == 0 else mask[:, None, None]
    return softmax(input.masked_fill(mask, float("-inf")), -1 if dim is None else dim)


def check_padding_mask(t: Tensor, mask: Tensor) -> None:
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(
            f"Expected mask to be of ScalarType Bool, but got {mask.dtype.scalar_name} instead."
        )
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if sizes_of(mask) != sizes_of(t)[:2]:
        raise RuntimeError("Mask size should match input size")


def is_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether every row of a padding mask begins with what it keeps."""
    check_padding_mask(t, mask)
    return bool((mask[:, 1:] <= mask[:, :-1]).all())


def nested_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """The rows of `(N, L, D)` as a nested tensor, each as long as its mask has True."""
    check_padding_mask(t, mask)
    if mask_check and not is_left_aligned(t, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    lengths = mask.sum(1).tolist()
    return as_nested_tensor([row[:n] for row, n in zip(t.unbind(), lengths, strict=True)])


def update_statistics(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance by channel; the running ones, which may be None, go towards them."""
    if not input.numel():
        raise RuntimeError(
            f"input tensor must have at least one element, but got input_sizes = {list(sizes_of(input))}"
        )
    dims = [d for d in range(input.dim()) if d != 1]
    with no_grad():
        variance, mean = var_mean(input, dims, correction=0)
        unbiased = variance if running_var is None else var(input, dims, correction=1)
        for running, new in ((running_mean, mean), (running_var, unbiased)):
            if running is not None:
                running.lerp_(new, momentum)
    return mean, variance


def whole_convolution(dims: int, wrong: Any) -> Any:
    """A convolution whose arguments PyTorch's kernel wants for every dimension."""
    convolve = {2: conv2d, 3: conv3d}[dims]

    def run(
        input: Tensor,
        weight: Tensor,
        kernel_size: Any,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
    ) -> Tensor:
        given = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
        for name, sizes in given.items():
            if not isinstance(sizes, int) and len(sizes) != dims:
                raise RuntimeError(wrong(name, len(sizes)))
        return convolve(input, weight, bias, stride, padding)

    return run


# What `out_dtype` computes; PyTorch's list.
WITH_DTYPE = (
    "linear.default",
    "mm.default",
    "conv2d.default",
    "convolution.default",
    "mul.Tensor",
    "mul.Scalar",
    "div.Tensor",
    "div.Scalar",
)


def out_dtype(op: Any, output_dtype: dtypes.dtype, *args: Any) -> Tensor:
    """An operator's result in a dtype, which takes part in the promotion of the arguments too."""
    if not isinstance(op, OpOverload):
        raise ValueError("out_dtype's first argument must be an OpOverload")
    if op._schema.is_mutable:
        raise ValueError("out_dtype's first argument needs to be a functional operator")
    if len(op._schema.returns) != 1:
        returns = ", ".join(["Tensor"] * len(op._schema.returns))
        raise ValueError(
            f"out_dtype's can only apply to ops that return a single tensorInstead got [{returns}]"
        )
    allowed = [packet(name).overload(form) for name, form in (each.split(".") for each in WITH_DTYPE)]
    if str(op) not in [str(each) for each in allowed]:
        raise ValueError(f"out_dtype only allows the following operators: {allowed}.")
    operands = [(output_dtype, dtypes.DIM)]
    for value in args:
        if isinstance(value, Tensor):
            operands.append((value.dtype, dtypes.DIM if value.dim() else dtypes.ZERO_DIM))
        elif isinstance(value, int | float | complex):
            operands.append((dtypes.scalar_dtype(value), dtypes.WRAPPED))
    common = dtypes.result_type_of(operands)
    cast = [value.to(common) if isinstance(value, Tensor) else value for value in args]
    return op(*cast).to(output_dtype)


def by_int8(input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """The product of rows with those of an int8 matrix, each times its scale: in float32, rounded once."""
    if mat2.dtype is not dtypes.int8:
        raise RuntimeError("_weight_int8pack_mm_cpu : expect B to be int8 tensor.")
    return ((input.float() @ mat2.float().t()) * scales.float()).to(input.dtype)


@no_grad()
def check_and_unscale(grads: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by the inverse of a scale, in place; `found_inf` becomes 1 where one of their values is not finite."""
    for tensor, name in ((inv_scale, "inv_scale"), (found_inf, "found_inf")):
        if tensor.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if tensor.dtype is not dtypes.float32:
            raise RuntimeError(f"{name} must be a float tensor.")
    for grad in grads:
        finite = grad.isfinite().all()
        grad.copy_(
            grad.float() * inv_scale if grad.dtype.itemsize < 4 else grad * inv_scale.to(grad.dtype.to_real())
        )
        found_inf.copy_(found_inf.where(finite, 1.0))


@no_grad()
def update_scale(
    scale: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    growth_factor: float,
    backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """The scale of mixed precision after a step, in place: less after an overflow, more after `growth_interval` steps without one."""
    failed = found_inf != 0
    good = growth_tracker + 1
    due = good == growth_interval
    grown = scale * growth_factor
    kept = grown.where(due & grown.isfinite(), scale)
    scale.copy_((scale * backoff_factor).where(failed, kept))
    growth_tracker.copy_(good.where(~(failed | due), 0))
    return scale


def validator(layout: dtypes.layout) -> Callable[..., None]:
    """What refuses parts of which no tensor in a layout can be made."""
    return lambda first, second, values, size: validate_compressed_args(first, second, values, size, layout)


KERNELS: dict[str, Any] = {
    "_sparse_broadcast_to": broadcast_to,
    "_validate_sparse_coo_tensor_args": validate_coo_args,
    "_validate_sparse_compressed_tensor_args": validate_compressed_args,
    **{
        f"_validate_{str(layout).partition('.')[2]}_tensor_args": validator(layout)
        for layout in (dtypes.sparse_csr, dtypes.sparse_csc, dtypes.sparse_bsr, dtypes.sparse_bsc)
    },
    "_amp_foreach_non_finite_check_and_unscale_": check_and_unscale,
    "_amp_update_scale_": update_scale,
    "_weight_int8pack_mm": by_int8,
    "_C._nn.slow_conv3d": whole_convolution(
        3, lambda name, count: f"It is expected {name} equals to 3, but got size {count}"
    ),
    "_C._nn.thnn_conv2d": whole_convolution(2, lambda name, count: f"2D {name} expected"),
    "_higher_order_ops.out_dtype": out_dtype,
    "_higher_order_ops.out_dtype.out_dtype": out_dtype,
    "_add_relu": add_relu,
    "_add_relu_": add_relu_,
    "_masked_softmax": masked_softmax,
    "_nested_tensor_from_mask": nested_from_mask,
    "_nested_tensor_from_mask_left_aligned": is_left_aligned,
    "batch_norm_update_stats": update_statistics,
}
