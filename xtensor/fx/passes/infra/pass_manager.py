"""Passes one after another, in an order that their constraints allow."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ....nn.modules.module import Module
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable[..., Any]) -> Callable[[Module], PassResult | None]:
    """A function of a module, which changes it and gives None or gives a PassResult, as a pass."""

    @functools.wraps(fn)
    def wrapped(gm: Module) -> PassResult | None:
        made = fn(gm)
        if made is None:
            return PassResult(gm, True)
        return made if isinstance(made, PassResult) else PassResult(made, True)

    if wrapped.__name__ is None:
        wrapped.__name__ = str(type(fn))
    return wrapped


def this_before_that_pass_constraint(this: Any, that: Any) -> Callable[[Any, Any], bool]:
    """The constraint that one pass comes before another: a function of two passes, whether they may stand in this order."""
    return lambda a, b: not (a == that and b == this)


class PassManager:
    """Runs passes, up to `steps` times while any changes the module.

    constraints: functions of two passes, whether the first may stand before the second.
    """

    def __init__(
        self,
        passes: list[Callable[[Module], Any]] | None = None,
        constraints: list[Callable[[Any, Any], bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints = list(passes or []), list(constraints or [])
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self.checks: list[Callable[[Module], None]] = []
        self._solved = False

    def add_pass(self, _pass: Callable[[Module], Any]) -> None:
        """A further pass."""
        self.passes.append(_pass)
        self._solved = False

    def add_constraint(self, constraint: Callable[[Any, Any], bool]) -> None:
        """A further constraint."""
        self.constraints.append(constraint)
        self._solved = False

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """A check of the module; ValueError where it does not take one argument."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.checks.append(check)

    def check(self, module: Module) -> None:
        """Run the checks."""
        for one in self.checks:
            one(module)

    def validate_constraints(self) -> None:
        """RuntimeError where the passes stand in an order that is not allowed."""
        for constraint in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1 :]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {first} before {second} but found {first} at index {i} "
                            f"and {second} at index{self.passes.index(second)} in pass list."
                        )

    def solve_constraints(self) -> None:
        """Put the passes in an order that is allowed; RuntimeError where there is none."""
        left, done = list(self.passes), []
        while left:
            fit = next(
                (p for p in left if all(c(p, q) for c in self.constraints for q in left if q is not p)), None
            )
            if fit is None:
                raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
            left.remove(fit)
            done.append(fit)
        self.passes = done
        self._solved = True

    def __call__(self, module: Module) -> PassResult:
        """Run all passes."""
        if not self._solved:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            modified = False
            for one in self.passes:
                made = one(module)
                if not isinstance(made, PassResult):
                    raise TypeError(
                        f"The result of the pass {getattr(one, '__name__', one)} should be type PassResult."
                        "Please wrap it with pass_result_wrapper()"
                    )
                module, modified = made.graph_module, modified or made.modified
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)
