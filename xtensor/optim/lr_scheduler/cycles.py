"""Rates that go up and down, with momentum the other way: cycles, and one cycle over a whole run."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any

from ..optimizer import Optimizer
from .scheduler import LRScheduler, check_annealing, check_optimizer, copied, per_group, set_value

__all__ = ["CyclicLR", "OneCycleLR"]


class _WithMomentum(LRScheduler):
    """A scheduler that can move momentum (or Adam's first beta) against the learning rate."""

    use_beta1 = False

    def _set_momentums(self, base: Any, most: Any, last_epoch: int) -> tuple[list[Any], list[Any]]:
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        lows = per_group("base_momentum", optimizer, base)
        highs = per_group("max_momentum", optimizer, most)
        if last_epoch == -1:
            for high, low, group in zip(highs, lows, optimizer.param_groups):
                self._set_momentum(group, copied(high))
                group["max_momentum"] = high
                group["base_momentum"] = low
        return lows, highs

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """Up from `base_lr` to `max_lr` and down again, step by step (Smith, 2017).

    Source: Smith 2017, arXiv:1506.01186.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            found = self._set_momentums(base_momentum, max_momentum, last_epoch)
            self.base_momentums, self.max_momentums = found
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"
        if self.mode == "exp_range":
            self._scale_fn_ref: Any = partial(math.pow, self.gamma)
        else:
            self._scale_fn_ref = halving if self.mode == "triangular2" else constant_one

    def scale_fn(self, x: float) -> float:
        """The height of a cycle (or at an iteration) as a fraction."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = part * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums)
            for group, (low, high) in zip(self.optimizer.param_groups, pairs):
                self._set_momentum(group, high - (high - low) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and a plain scale function."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else function.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        saved = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)
        self._init_scale_fn()


def constant_one(x: float) -> float:
    return 1.0


def halving(x: float) -> float:
    return 1 / 2.0 ** (x - 1)


def along_cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def along_line(start: float, end: float, part: float) -> float:
    return (end - start) * part + start


class OneCycleLR(_WithMomentum):
    """Up to `max_lr` and down to nearly nothing, in one cycle of `total_steps` steps (Smith and Topin, 2019).

    Source: Smith and Topin 2018, arXiv:1708.07120.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for name, value in (
            ("total_steps", total_steps),
            ("epochs", epochs),
            ("steps_per_epoch", steps_per_epoch),
        ):
            if value is not None and (not isinstance(value, int) or value <= 0):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
            if total_steps is not None:
                break
        if total_steps is not None:
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(pct_start, float) or pct_start < 0 or pct_start > 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        check_annealing(anneal_strategy)
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = one_cycle_phases(pct_start, self.total_steps, three_phase)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, per_group("max_lr", optimizer, max_lr)):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._set_momentums(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    _annealing_cos = staticmethod(along_cosine)
    _annealing_linear = staticmethod(along_line)

    def _anneal_func(self, start: Any, end: Any, part: float) -> Any:
        # States of older versions hold the function, those of newer ones its name.
        kind = vars(self).get("_anneal_func_type", "")
        found = {"cos": along_cosine, "linear": along_line}.get(kind) or vars(self)["anneal_func"]
        return found(start, end, part)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        start, phase = 0.0, self._schedule_phases[-1]
        for candidate in self._schedule_phases:
            if step <= candidate["end_step"] or candidate is phase:
                phase = candidate
                break
            start = candidate["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        along = self._anneal_func
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(along(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                self._set_momentum(
                    group, along(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                )
        return rates


def one_cycle_phases(pct_start: float, total: int, three: bool) -> list[dict[str, Any]]:
    """The phases of a cycle: where each ends, and between which options of the groups it goes."""
    ends = [float(pct_start * total) - 1]
    if three:
        ends.append(float(2 * pct_start * total) - 2)
    ends.append(total - 1)
    rates = ["initial_lr", "max_lr", "initial_lr", "min_lr"] if three else ["initial_lr", "max_lr", "min_lr"]
    momentums = ["max_momentum", "base_momentum", "max_momentum", "max_momentum"][: len(rates)]
    return [
        dict(
            end_step=end,
            start_lr=rates[i],
            end_lr=rates[i + 1],
            start_momentum=momentums[i],
            end_momentum=momentums[i + 1],
        )
        for i, end in enumerate(ends)
    ]
