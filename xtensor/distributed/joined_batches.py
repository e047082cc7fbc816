"""What modules and samplers ask of the processes: the world's size, and batches normalised together."""

from __future__ import annotations

from typing import Any

from ..nn.modules import batchnorm
from ..ops.create.creation import full
from ..ops.shape.joining import cat
from ..tensor import Tensor
from ..utils.data import distributed as sampling
from .group import chosen, get_rank, get_world_size, is_initialized
from .nn import functional

__all__ = ["normalised"]


def normalised(module: Any, input: Tensor) -> Tensor | None:
    """The input of a SyncBatchNorm normalised by the batches of all processes; None where there is only one."""
    if not is_initialized() or chosen(module.process_group).size() == 1 or input.device.sharding is not None:
        return None
    module._check_input_dim(input)
    dims = [0, *range(2, input.dim())]
    wide = input.float() if input.dtype.itemsize < 4 else input
    count = full((1,), float(input.numel() // input.shape[1]), dtype=wide.dtype, device=input.device)
    sums = cat([wide.sum(dims), (wide * wide).sum(dims), count])
    total = functional.all_reduce(sums, group=module.process_group)
    features = input.shape[1]
    every = total[-1].detach()
    mean = total[:features] / every
    variance = total[features : 2 * features] / every - mean * mean
    if module.track_running_stats:
        update(module, mean.detach(), variance.detach() * (every / (every - 1)))
    shape = [1, features] + [1] * (input.dim() - 2)
    made = (wide - mean.reshape(shape)) * (variance + module.eps).rsqrt().reshape(shape)
    if module.affine:
        made = made * module.weight.reshape(shape)
        if module.bias is not None:
            made = made + module.bias.reshape(shape)
    return made.to(input.dtype)


def update(module: Any, mean: Tensor, variance: Tensor) -> None:
    """Bring the running statistics on."""
    factor = module.momentum
    if module.num_batches_tracked is not None:
        module.num_batches_tracked.add_(1)
        if factor is None:
            factor = 1.0 / float(module.num_batches_tracked)
    for running, value in ((module.running_mean, mean), (module.running_var, variance)):
        running.mul_(1 - factor).add_(value.to(running.dtype) * factor)


def of_world() -> tuple[int, int]:
    """The rank of this process, and the number of processes."""
    return get_rank(), get_world_size()


batchnorm.normalised_by_all[:] = [normalised]
sampling.in_world[:] = [of_world]
