"""L-BFGS: quasi-Newton steps from the last gradients (Nocedal, 1980), with a line search on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine import enable_grad, no_grad
from ..ops.shape.joining import cat
from ..ops.shape.reinterpret import view_as_real
from ..tensor import Tensor
from .line_search import strong_wolfe
from .optimizer import Optimizer, ParamsT, as_float, check_options, options_of

__all__ = ["LBFGS"]


def as_real(tensor: Tensor) -> Tensor:
    return view_as_real(tensor) if tensor.is_complex() else tensor


class LBFGS(Optimizer):
    """Limited-memory BFGS: `step` calls the closure several times. There can be one group of parameters only.

    Source: Liu and Nocedal 1989, Mathematical Programming 45.
    """

    options = "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_options(lr=lr)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options_of(locals(), self.options))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self) -> Tensor:
        """All gradients in one vector, complex ones as pairs; zeros where there is none."""
        grads = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in self._params]
        return cat([as_real(grad).reshape(-1) for grad in grads], 0)

    def _add_grad(self, step_size: Any, update: Tensor) -> None:
        """Move all parameters along a direction."""
        offset = 0
        for param in self._params:
            real = as_real(param)
            count = real.numel()
            real.add_(update[offset : offset + count].view_as(real) * step_size)
            offset += count

    def _directional_evaluate(
        self, closure: Callable[[], Any], start: list[Tensor], step: Any, direction: Tensor
    ) -> tuple[float, Tensor]:
        """The loss and the gradient a step away from `start`, where the parameters are left."""
        self._add_grad(step, direction)
        loss = float(closure())
        grad = self._gather_flat_grad()
        for param, value in zip(self._params, start, strict=True):
            param.copy_(value)
        return loss, grad

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` iterations; `closure` clears the gradients, computes them anew and returns the loss."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with no_grad():
            return self._step(closure)

    def _step(self, plain: Callable[[], Any]) -> Any:
        def closure() -> Any:
            with enable_grad():
                return plain()

        group = self.param_groups[0]
        lr, max_iter, max_eval = as_float(group["lr"]), group["max_iter"], group["max_eval"]
        small, change = group["tolerance_grad"], group["tolerance_change"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = float(first_loss)
        evals = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if grad.abs().max() <= small:
            return first_loss
        for name in ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss"):
            state.setdefault(name, None)
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, grad, group["history_size"])
            if state["prev_flat_grad"] is None:
                state["prev_flat_grad"] = grad.clone()
            else:
                state["prev_flat_grad"].copy_(grad)
            state["prev_loss"] = last_loss = loss
            begin = state["n_iter"] == 1
            step: Any = min(1.0, 1.0 / grad.abs().sum()) * lr if begin else lr
            state["t"] = step
            slope = grad.dot(direction)
            if slope > -change:
                break
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [param.clone() for param in self._params]
                loss, grad, step, used = strong_wolfe(
                    lambda t, x=start, d=direction: self._directional_evaluate(closure, x, t, d),
                    direction,
                    step,
                    loss,
                    grad,
                    slope,
                    limit=max_eval - evals,
                )
                state["t"] = step
                self._add_grad(step, direction)
            else:
                self._add_grad(step, direction)
                if iteration != max_iter:
                    loss = float(closure())
                    grad = self._gather_flat_grad()
                    used = 1
            evals += used
            state["func_evals"] += used
            if iteration == max_iter or evals >= max_eval or grad.abs().max() <= small:
                break
            if (direction * step).abs().max() <= change or abs(loss - last_loss) < change:
                break
        return first_loss

    @staticmethod
    def _direction(state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
        """Minus the gradient times the approximate inverse Hessian: the two loops over the history."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        y = grad.sub(state["prev_flat_grad"])
        s = state["d"].mul(state["t"])
        ys = y.dot(s)
        if ys > 1e-10:
            if len(changes) == history_size:
                for kept in (changes, steps, inverses):
                    kept.pop(0)
            changes.append(y)
            steps.append(s)
            inverses.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        weights = state.setdefault("al", [None] * history_size)
        q = grad.neg()
        for i in range(len(changes) - 1, -1, -1):
            weights[i] = steps[i].dot(q) * inverses[i]
            q = q - changes[i] * weights[i]
        found = q * state["H_diag"]
        for i in range(len(changes)):
            found = found + steps[i] * (weights[i] - changes[i].dot(found) * inverses[i])
        return found
