"""The same numbers for every library: weights and inputs drawn by NumPy."""

import numpy as np
import torch


def numbers(*shape, seed=0, scale=1.0):
    return (scale * np.random.RandomState(seed).standard_normal(shape)).astype(np.float32)


def tensor(*shape, seed=0, scale=1.0):
    return torch.from_numpy(numbers(*shape, seed=seed, scale=scale))


def classes(*shape, count, seed=0):
    return torch.from_numpy(np.random.RandomState(seed).randint(0, count, shape).astype(np.int64))


def fill(module, seed=0, gain=1.0):
    """Give a module's parameters values that depend on their order and shapes alone."""
    random = np.random.RandomState(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = random.standard_normal(tuple(parameter.shape))
            if parameter.dim() > 1:
                values *= gain / np.sqrt(np.prod(parameter.shape[1:]))
            elif name.endswith("weight"):
                values = 1 + 0.1 * values
            else:
                values *= 0.1
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    return module
