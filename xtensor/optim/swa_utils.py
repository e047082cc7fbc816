"""Averages of weights over a training run: stochastic weight averaging (Izmailov et al., 2018) and moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import capture, dtypes
from ..engine import no_grad
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..ops.create.ingest import tensor as make_tensor
from ..ops.index.masks import where
from ..tensor import Tensor
from .lr_scheduler.scheduler import LRScheduler, check_annealing, per_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """The function that moves a list of averages by `1 - decay` towards the parameters, in place."""
    check_decay(decay)

    @no_grad()
    def ema_update(averages: list[Tensor], params: list[Tensor], _: Any) -> None:
        for average, param in zip(averages, params, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(param, 1 - decay)
            else:
                average.copy_(average * decay + param * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The function that takes parameters into the plain means of a list, in place."""

    @no_grad()
    def swa_update(averages: list[Tensor], params: list[Tensor], num_averaged: Any) -> None:
        captured = isinstance(num_averaged, Tensor) and capture.running() is not None
        weight: Any = 1 / ((num_averaged if captured else float(num_averaged)) + 1)
        for average, param in zip(averages, params, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(param, weight.to(average.device, average.dtype) if captured else weight)
            else:
                average.copy_(average + (param - average) * weight)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """The function that gives an average moved by `1 - decay` towards the parameter."""
    check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, param: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """The function that gives the mean with one more parameter in it."""

    @no_grad()
    def swa_update(average: Tensor, param: Tensor, num_averaged: Any) -> Tensor:
        return average + (param - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of that model's over the calls of `update_parameters`.

    `avg_fn(average, parameter, count)` gives the next average (the plain mean unless given); `multi_avg_fn` writes the
    averages of lists. With `use_buffers` buffers are averaged as well, else they are copied.

    Source: Izmailov et al. 2018, arXiv:1803.05407.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", make_tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's parameters into the averages; the first call copies them."""
        if self.use_buffers:
            own = list(chain(self.module.parameters(), self.module.buffers()))
            others = list(chain(model.parameters(), model.buffers()))
        else:
            own, others = list(self.parameters()), list(model.parameters())
        averages = [tensor.detach() for tensor in own]
        params = [other.detach().to(mine.device) for mine, other in zip(own, others)]
        count = self.n_averaged
        captured = capture.running() is not None
        if not captured and count == 0:
            for average, param in zip(averages, params):
                average.copy_(param)
        else:
            if captured:
                averages = [average.clone() for average in averages]
            self._update(averages, params, count)
        if captured:  # how many there were is not known: the program chooses
            for mine, average, param in zip(own, averages, params):
                mine.detach().copy_(where(count.to(average.device) == 0, param, average))
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(other.detach().to(mine.device))
        self.n_averaged += 1

    def _update(self, averages: list[Tensor], params: list[Tensor], count: Tensor) -> None:
        """Take parameters into averages that are there."""
        if self.avg_fn is not None:
            for average, param in zip(averages, params):
                average.copy_(self.avg_fn(average, param, count.to(average.device)))
            return
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        for pairs in alike(averages, params):
            update([a for a, _ in pairs], [p for _, p in pairs], count.to(pairs[0][0].device))


def alike(averages: list[Tensor], params: list[Tensor]) -> list[list[tuple[Tensor, Tensor]]]:
    """The pairs, grouped by device and dtype."""
    found: dict[Any, list[tuple[Tensor, Tensor]]] = {}
    for average, param in zip(averages, params):
        found.setdefault((average.device, average.dtype), []).append((average, param))
    return list(found.values())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the statistics of all batch normalisations anew, in one pass over the batches of `loader`."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    for batch in loader:
        value = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(value if device is None else value.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rate of every group to `swa_lr` over `anneal_epochs`, by a cosine or a line; then it stays.

    Source: Izmailov et al. 2018, arXiv:1803.05407.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        check_annealing(anneal_strategy)
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """How far the rate has come at a part `t` of the way."""
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        length = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0.0, min(1.0, (step - 1) / length)))
        now = self.anneal_func(max(0.0, min(1.0, step / length)))
        rates = []
        for group in self.optimizer.param_groups:
            last, goal = group["lr"], group["swa_lr"]
            start = goal if before == 1 else (last - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
