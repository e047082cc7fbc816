"""What both libraries' runs of a program agree on: weights and inputs from NumPy, and figures printed as one line."""

import json
import math
import sys

import numpy as np
import torch


def numbers(*shape, seed=0, scale=1.0):
    """Normal numbers as a tensor."""
    return torch.from_numpy((np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32))


def integers(high, *shape, seed=0, low=0):
    """Whole numbers below a bound as a tensor."""
    return torch.from_numpy(np.random.default_rng(seed).integers(low, high, shape))


def fill(module, seed=1, scale=None):
    """Give every parameter of a module numbers that depend on the order of the parameters alone."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            values = rng.standard_normal(tuple(parameter.shape))
            if parameter.dim() > 1:
                values *= scale or 1 / math.sqrt(max(parameter[0].numel(), 1))
            else:
                values = (
                    1 + 0.1 * values
                    if parameter.dim() and float(parameter.detach().float().mean()) > 0.5
                    else 0.1 * values
                )
            parameter.copy_(torch.from_numpy(np.asarray(values, np.float32)).to(parameter.dtype))
    return module


def draw_from_numpy(seed=0):
    """Let torch's own random functions draw NumPy's numbers: what packages draw inside agrees."""
    rng = np.random.default_rng(seed)

    def shape_of(size, options):
        size = options.pop("size", size)
        return (
            tuple(size[0])
            if len(size) == 1 and isinstance(size[0], (tuple, list, torch.Size))
            else tuple(size)
        )

    def made(values, options):
        dtype = options.get("dtype") or torch.get_default_dtype()
        wants = options.get("requires_grad", False)
        return torch.from_numpy(np.asarray(values)).to(dtype).requires_grad_(wants)

    def randn(*size, **options):
        return made(rng.standard_normal(shape_of(size, options)), options)

    def rand(*size, **options):
        return made(rng.random(shape_of(size, options)), options)

    def randint(*bounds, **options):
        size = options.pop("size", None)
        if size is None:
            *bounds, size = bounds
        low = options.pop("low", bounds[0] if len(bounds) == 2 else 0)
        high = options.pop("high", bounds[-1] if bounds else None)
        return made(rng.integers(low, high, tuple(size)), {"dtype": torch.int64, **options})

    def randperm(n, **options):
        return made(rng.permutation(n), {"dtype": torch.int64, **options})

    def like(function):
        return lambda x, **options: function(tuple(x.shape), dtype=options.pop("dtype", None) or x.dtype)

    def filled(draw):
        def method(self, *arguments, generator=None, **options):
            with torch.no_grad():
                values = np.asarray(draw(tuple(self.shape), *arguments, **options))
                return self.copy_(torch.from_numpy(values).to(self.dtype))

        return method

    torch.randn, torch.rand, torch.randint, torch.randperm = randn, rand, randint, randperm
    torch.randn_like, torch.rand_like = like(randn), like(rand)
    torch.normal = lambda mean, std, size=None, **options: (
        mean
        + std
        * randn(*(size or torch.broadcast_tensors(torch.as_tensor(mean), torch.as_tensor(std))[0].shape))
    )
    torch.bernoulli = lambda p, **options: (rand(tuple(p.shape)) < p).to(p.dtype)
    torch.Tensor.normal_ = filled(lambda shape, mean=0.0, std=1.0: rng.normal(mean, std, shape))
    torch.Tensor.uniform_ = filled(
        lambda shape, a=0.0, b=1.0, **o: rng.uniform(o.get("from", a), o.get("to", b), shape)
    )
    torch.Tensor.exponential_ = filled(lambda shape, lambd=1.0: rng.exponential(1 / lambd, shape))
    torch.Tensor.bernoulli_ = filled(lambda shape, p=0.5: rng.random(shape) < np.asarray(p))
    D = torch.distributions
    D.Normal.rsample = lambda self, shape=(): (
        self.loc + randn(tuple(self._extended_shape(shape))) * self.scale
    )
    D.Uniform.rsample = lambda self, shape=(): (
        self.low + rand(tuple(self._extended_shape(shape))) * (self.high - self.low)
    )
    D.Exponential.rsample = lambda self, shape=(): (
        -(1 - rand(tuple(self._extended_shape(shape)))).log() / self.rate
    )
    D.Bernoulli.sample = lambda self, shape=(): (rand(tuple(self._extended_shape(shape))) < self.probs).to(
        self.probs.dtype
    )
    D.Normal.sample = lambda self, shape=(): self.rsample(shape).detach()
    return rng


figures = {}


def show(name, value):
    """A figure to compare: a number, or a tensor by its sum, its norm and its first eight values."""
    if isinstance(value, torch.Tensor):
        values = value.detach().cpu().double().numpy().reshape(-1)
        value = values.tolist() if values.size <= 16 else [values.sum(), np.abs(values).sum(), *values[:8]]
    elif isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist()
    elif not isinstance(value, (list, tuple)):
        value = [value]
    figures[name] = [float(v) for v in value]


def done():
    """Print all figures, as the last line."""
    sys.stdout.flush()
    print("\n" + json.dumps(figures))


def steps(module, loss_of, count=3, optimizer=None):
    """Train a few steps; the losses, and the sum of the gradients' norms of the first."""
    optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.01)
    losses = []
    for step in range(count):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        if step == 0:
            show("gradients", sum(float(p.grad.norm()) for p in module.parameters() if p.grad is not None))
        optimizer.step()
        losses.append(float(loss))
    show("train losses", losses)
