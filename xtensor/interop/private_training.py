"""What optimizers and packages of gradients by sample take of PyTorch's private modules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import devices, dtypes
from ..engine import no_grad
from ..func import functional_call, vmap
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor, sizes_of
from ..trees import tree_leaves, tree_map

__all__ = ["TRAINING"]

Grouped = dict[tuple[devices.device, dtypes.dtype], tuple[list[list[Tensor | None]], list[int]]]
STEPS = (dtypes.float32, dtypes.float64)
FOREACH = ("cpu", "cuda", "xpu", "mtia", "tpu")


def improvable(condition: str) -> RuntimeError:
    return RuntimeError(
        f"Expected {condition} to be true, but got false.  (Could this error message be improved?  If so, please report "
        "an enhancement request to PyTorch.)"
    )


def belongs(tensor: Tensor | None, place: devices.device, dtype: dtypes.dtype) -> bool:
    """Whether a tensor may lie beside one of that device and dtype: counts of steps, and short states, are of their own."""
    if tensor is None:
        return True
    if tensor.device == place:
        return tensor.dtype in (dtype, *STEPS, dtypes.bfloat16)
    return tensor.device.type == "cpu" and tensor.dtype in STEPS


@no_grad()
def group_tensors(tensorlistlist: list[list[Tensor | None]], with_indices: bool = False) -> Grouped:
    """Lists side by side, split by the device and dtype of the first one's tensors; with the places that they had."""
    if not tensorlistlist:
        raise improvable("!nested_tensorlist.empty()")
    if not tensorlistlist[0]:
        raise improvable("!nested_tensorlist[0].empty()")
    count = len(tensorlistlist[0])
    if any(len(tensors) not in (0, count) for tensors in tensorlistlist):
        raise improvable(
            "std::all_of( nested_tensorlist.cbegin(), nested_tensorlist.cend(), [&](const auto& tensorlist) -> bool { "
            "return tensorlist.size() == num_tensors || tensorlist.size() == 0; })"
        )
    groups: Grouped = {}
    for i, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but the "
                f"{i}-th Tensor is not."
            )
        key = first.device, first.dtype
        if not all(belongs(tensors[i], *key) for tensors in tensorlistlist if tensors):
            raise RuntimeError(
                "Tensors of the same index must be on the same device and the same dtype except `step` tensors that can "
                "be CPU and float32/64, and optimizer states that can be bfloat16 for mixed-precision training"
            )
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for into, tensors in zip(lists, tensorlistlist, strict=True):
            into += tensors[i : i + 1]
        indices += [i] if with_indices else []
    return groups


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """The module as a function whose backward pass leaves every sample's gradients in `grad_sample` of its parameters.

    Each sample is computed with weights of its own, whose gradients those are; with "mean" they are times the batch.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not isinstance(batch_size, int | None):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without "
                f"clearing gradients. Please clear out the grad_sample parameter of {weight} or post an issue to "
                "pytorch/pytorch to prioritize correct behavior"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        count = batch_size or batch_of(tree_leaves((args, kwargs)), dim)
        own = {
            name: own_weights(weight, count, count if loss_reduction == "mean" else 1)
            for name, weight in module.named_parameters()
            if weight.requires_grad
        }
        dims = tree_map(lambda a: dim if is_batch(a, dim, count) else None, (args, kwargs))

        def one(weights: Any, given: Any) -> Any:
            values, named = tree_map(
                lambda a, at: a if at is None else a.unsqueeze(at), given, dims, is_leaf=lambda a: a is None
            )
            return tree_map(lambda o: o.squeeze(dim), functional_call(module, weights, values, named))

        return vmap(one, (0, dims), dim, randomness="different")(own, (args, kwargs))

    return forward


def is_batch(value: Any, dim: int, count: int) -> bool:
    return isinstance(value, Tensor) and value.dim() > dim and sizes_of(value)[dim] == count


def batch_of(values: list[Any], dim: int) -> int:
    """The batch that all tensors among arguments are of."""
    found = None
    for size in [sizes_of(value)[dim] for value in values if isinstance(value, Tensor)]:
        if found not in (None, size):
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {found} and one with batch size "
                f"{size}. Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
        found = size
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights "
            "cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    return found


def own_weights(weight: Any, count: int, scale: int) -> Tensor:
    """A weight as often as there are samples, whose gradients go to the weight's `grad_sample`."""

    def keep(grad: Tensor) -> None:
        before, more = getattr(weight, "grad_sample", None), grad.detach() * scale
        weight.grad_sample = more if before is None else before + more

    own = weight.detach().expand(count, *sizes_of(weight)).requires_grad_()
    own.register_hook(keep)
    return own


TRAINING: dict[str, Any] = {
    "_C._group_tensors_by_device_and_dtype": group_tensors,
    "nn.utils._per_sample_grad.call_for_per_sample_grads": call_for_per_sample_grads,
    "utils._foreach_utils._device_has_foreach_support": lambda device: device.type in FOREACH,
    "utils._foreach_utils._get_foreach_kernels_supported_devices": lambda: [*FOREACH[1:]],
    "utils._foreach_utils._get_fused_kernels_supported_devices": lambda: [*FOREACH],
    "utils._foreach_utils._group_tensors_by_device_and_dtype": group_tensors,
    "utils._foreach_utils._has_foreach_support": lambda tensors, device: (
        device.type in FOREACH and all(t is None or type(t) in (Tensor, Parameter) for t in tensors)
    ),
}
