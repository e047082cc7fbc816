"""What a captured function does on the host at every call, besides the program: schedulers' steps, GradScaler, `print`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..amp.grad_scaler import GradScaler
from ..dtypes import dtype
from ..optim.lr_scheduler.plateau import ReduceLROnPlateau
from ..optim.lr_scheduler.scheduler import LRScheduler
from ..tensor import Size, Tensor, wrap
from .watch import Trace

__all__ = ["print_later", "scaler_call", "scheduler_call"]

PRINTED = (str, int, float, bool, type(None), Size, dtype)


def print_later(trace: Trace) -> Callable[..., None]:
    """`print`, of what is known, again at every call once the program was started."""

    def run(*args: Any, **kwargs: Any) -> None:
        if not all(isinstance(a, PRINTED) for a in args) or kwargs.keys() - {"sep", "end", "flush"}:
            trace.refuse("it prints a value that is not known in a capture")
        trace.effects.append((print, args, kwargs))

    return run


def scheduler_call(trace: Trace, scheduler: LRScheduler, method: Any) -> Callable[..., Any]:
    """A method of a scheduler: a step is made after the program was started, at every call."""

    def run(*args: Any, **kwargs: Any) -> None:
        name = method.__name__
        if name != "step" or isinstance(scheduler, ReduceLROnPlateau):
            trace.refuse(f"it calls {type(scheduler).__name__}.{name}")
        if any(not isinstance(a, (int, float, type(None))) for a in (*args, *kwargs.values())):
            trace.refuse("it steps a scheduler by a value that is not known in a capture")
        trace.rate_changed = True
        trace.effects.append((method, args, kwargs))

    return run


class TracedScaler:
    """A GradScaler within a capture: its scale is a value of the program, and a step is made or not by `where`."""

    def __init__(self, trace: Trace, scaler: GradScaler) -> None:
        if "_factor" in scaler.__dict__ and scaler._factor is None:
            trace.refuse("a GradScaler is used for the first time")
        if scaler._stages or scaler._finite:
            trace.refuse("a GradScaler is in the middle of an iteration")
        self.trace = trace
        self.scaler = scaler
        self.scale_now = trace.host(lambda: scaler.operands()[0], (), np.float32)
        self.tracker = trace.host(lambda: scaler.operands()[1], (), np.int64)
        self.finite: dict[int, Any] = {}
        self.stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """See GradScaler."""
        if isinstance(outputs, Tensor):
            return outputs * wrap(self.scale_now.astype(outputs.dtype.numpy))
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(o) for o in outputs])
        self.trace.refuse("a GradScaler scales what is no tensor")

    def unscale_(self, optimizer: Any) -> None:
        """See GradScaler."""
        if id(optimizer) in self.finite:
            self.trace.refuse("GradScaler.unscale_ is called twice")
        inverse = (1.0 / self.scale_now.astype(np.float64)).astype(np.float32)
        self.finite[id(optimizer)] = jnp.stack(self.scaler._unscale_grads(optimizer, inverse)).all()

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """See GradScaler."""
        if args or kwargs or id(optimizer) in self.stepped:
            self.trace.refuse("GradScaler.step is called with a closure, or twice")
        if id(optimizer) not in self.finite:
            self.unscale_(optimizer)
        self.stepped.add(id(optimizer))
        written = [p._xt_storage for group in optimizer.param_groups for p in group["params"]]
        for own in optimizer.state.values():
            written += [v._xt_storage for v in own.values() if isinstance(v, Tensor)]
        before = [storage.array for storage in written]
        optimizer.step()
        chosen: dict[tuple[int, int], Any] = {}
        for storage, old in zip(written, before, strict=True):
            key = (id(storage.array), id(old))
            if key not in chosen:
                chosen[key] = (jnp.where(self.finite[id(optimizer)], storage.array, old), storage.array)
            storage.array = chosen[key][0]

    def update(self, new_scale: Any = None) -> None:
        """See GradScaler."""
        if new_scale is not None or not self.finite:
            self.trace.refuse("GradScaler.update is given a scale, or has no step before it")
        scaler, scale = self.scaler, self.scale_now
        good = jnp.stack(list(self.finite.values())).all()
        grown = scale * np.float32(scaler._growth_factor)
        full = self.tracker + 1 == scaler._growth_interval
        larger = jnp.where(full & jnp.isfinite(grown), grown, scale)
        self.scale_now = jnp.where(good, larger, scale * np.float32(scaler._backoff_factor))
        self.tracker = jnp.where(good & ~full, self.tracker + 1, 0)
        self.finite.clear()
        self.stepped.clear()


def scaler_call(trace: Trace, scaler: GradScaler, name: str) -> Callable[..., Any]:
    """A method of a GradScaler, within a capture."""
    if name == "is_enabled" or (not scaler.is_enabled() and name in TRACED):
        return getattr(scaler, name)
    if name not in TRACED:
        trace.refuse(f"it calls GradScaler.{name}")
    found = trace.scalers.get(id(scaler))
    if found is None:
        found = trace.scalers[id(scaler)] = TracedScaler(trace, scaler)
    return getattr(found, name)


TRACED = ("scale", "unscale_", "step", "update")
