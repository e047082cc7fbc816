"""GradScaler: the loss multiplied before backward, the gradients divided before the step, and the factor adapted."""

from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import checks, devices, dtypes
from ..operators.write import bump, store
from ..ops.create.ingest import tensor
from ..tensor import Tensor, array_of
from ..xla.x64 import call, jit

__all__ = ["GradScaler", "OptState"]

FIX = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class OptState(enum.Enum):
    """How far an optimizer is in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


@jit
def unscaled(arrays: list[Any], inverse: Any) -> Any:
    """The arrays times `inverse`, and whether all their values were finite."""
    wide = [a.astype(jnp.float32) if a.dtype.itemsize < 4 else a for a in arrays]
    finite = jnp.stack([jnp.all(jnp.isfinite(a)) for a in wide])
    made = [(a * inverse.astype(a.real.dtype)).astype(b.dtype) for a, b in zip(wide, arrays, strict=True)]
    return made, jnp.all(finite)


class GradScaler:
    """Scales losses so that float16 gradients do not vanish, and skips steps whose gradients are not finite.

    The scale is halved after such a step and doubled after `growth_interval` others.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and device == "cuda" and not devices.is_available("cuda"):
            checks.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            enabled = False
        self._enabled = enabled
        if enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._factor: float | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._good = 0
        self._stages: dict[int, OptState] = {}
        self._finite: dict[int, list[Any]] = {}

    def _started(self, doing: str) -> float:
        if self._factor is None:
            raise AssertionError(f"Attempted {doing} but _scale is None.  {FIX}")
        return self._factor

    @property
    def _scale(self) -> Tensor | None:
        """The scale as a tensor, as programs read it that look into PyTorch's; None before its first use."""
        return (
            None if self._factor is None else tensor(self._factor, dtype=dtypes.float32, device=self._device)
        )

    @_scale.setter
    def _scale(self, value: Any) -> None:
        self._factor = None if value is None else float(value)

    @property
    def _growth_tracker(self) -> Tensor | None:
        """How many good steps were made since the scale changed, as a tensor."""
        return None if self._factor is None else tensor(self._good, dtype=dtypes.int32, device=self._device)

    @_growth_tracker.setter
    def _growth_tracker(self, value: Any) -> None:
        self._good = 0 if value is None else int(value)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in containers, times the scale."""
        if not self._enabled:
            return outputs
        if self._factor is None:
            self._factor = float(self._init_scale)
        if isinstance(outputs, Tensor):
            return outputs * self._factor
        if isinstance(outputs, Iterable):
            made = map(self.scale, outputs)
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else made  # pyright: ignore[reportCallIssue]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place: to clip them, say."""
        if not self._enabled:
            return
        scale = self._started("unscale_")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._finite[id(optimizer)] = self._unscale_grads(optimizer, 1.0 / scale)
        self._stages[id(optimizer)] = OptState.UNSCALED

    def operands(self) -> tuple[Any, Any]:
        """The scale and the count of good steps, as a program takes them."""
        later = self.__dict__.get("_later")
        if later is not None:
            return later
        return np.float32(self._started("scale")), np.int64(self._good)

    def settle_later(self, scale: Any, tracker: Any) -> None:
        """Take over what a program is computing: it is waited for when it is first asked for."""
        self.__dict__.pop("_factor", None)
        self.__dict__.pop("_good", None)
        self._later = (scale, tracker)

    def __getattr__(self, name: str) -> Any:
        later = self.__dict__.get("_later")
        if later is None or name not in ("_factor", "_good"):
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self
            )
        self._factor, self._good = float(later[0]), int(later[1])
        del self._later
        return self.__dict__[name]

    def _unscale_grads(self, optimizer: Any, inverse: Any) -> list[Any]:
        by_device: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device.setdefault(param.grad.device, []).append(param.grad)
        finite = []
        factor = inverse if isinstance(inverse, jax.Array) else np.float32(inverse)
        for grads in by_device.values():
            made, all_finite = call(unscaled, [array_of(g) for g in grads], factor)
            for grad, array in zip(grads, made, strict=True):
                store(grad, array)
                bump(grad, "unscale_")
            finite.append(all_finite)
        return finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(...)` on unscaled gradients, unless one of them is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        stage = self._stages.get(id(optimizer), OptState.READY)
        if stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_itself(optimizer, args, kwargs)
            self._stages[id(optimizer)] = OptState.STEPPED
            return result
        if stage is OptState.READY:
            self.unscale_(optimizer)
        finite = self._finite[id(optimizer)]
        if not finite:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = optimizer.step(*args, **kwargs) if all(bool(f) for f in finite) else None
        self._stages[id(optimizer)] = OptState.STEPPED
        return result

    def _step_itself(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """The step of an optimizer that unscales gradients, and asks whether they are finite, itself."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            checks.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                "optimizer use them directly.",
                FutureWarning,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        unscaled = id(optimizer) in self._finite
        if not unscaled:
            self._finite[id(optimizer)] = self._all_finite(optimizer)
        found = not all(bool(f) for f in self._finite[id(optimizer)])
        optimizer.grad_scale = None if unscaled else tensor(self._started("step"))
        optimizer.found_inf = tensor(float(found))
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _all_finite(self, optimizer: Any) -> list[Any]:
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        return [g.isfinite().all() for g in grads]

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale by what the steps since the last update found, or set it."""
        if not self._enabled:
            return
        scale = np.float32(self._started("update"))
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (
                new_scale.numel() != 1 or new_scale.requires_grad or new_scale.dtype is not dtypes.float32
            ):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            self._factor = float(new_scale)
        else:
            found = [f for checks in self._finite.values() for f in checks]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if not all(bool(f) for f in found):
                self._factor, self._good = float(scale * np.float32(self._backoff_factor)), 0
            else:
                self._good += 1
                if self._good == self._growth_interval:
                    with np.errstate(over="ignore"):
                        grown = float(scale * np.float32(self._growth_factor))
                    self._factor = grown if math.isfinite(grown) else float(scale)
                    self._good = 0
        self._stages.clear()
        self._finite.clear()

    def get_scale(self) -> float:
        """The scale; 1 where scaling is off."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._factor is None else self._factor

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after `growth_interval` steps without an overflow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose what the scale is multiplied by after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many steps without an overflow make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose how many steps without an overflow make the scale grow."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and how many good steps were made; empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._factor is not None:
            self._factor = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good = state_dict["_growth_tracker"]
        self.__dict__.pop("_later", None)

    def __getstate__(self) -> dict[str, Any]:
        if self._enabled and self._finite:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        return self.__dict__ | {"_init_scale": self.get_scale(), "_factor": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        older = {
            "_scale": "_factor",
            "_growth_tracker": "_good",
        }  # as they were pickled before these showed tensors
        self.__dict__.update({older.get(name, name): value for name, value in state.items()})
