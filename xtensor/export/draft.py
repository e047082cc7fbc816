"""A program at any price, and what stood in the way of a sound one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .. import checks, trees
from ..jax.pure import line_of_user
from ..nn.modules.module import Module
from ..tensor import Tensor
from .dims import AUTO, STATIC
from .dynamic_shapes import AdditionalInputs, ShapesCollection
from .program import ExportedProgram, export, program_with_weights
from .recorder import CONSTANT
from .tracing import trace

__all__ = ["DraftExportReport", "FailureReport", "FailureType", "draft_export"]


class FailureType(IntEnum):
    """What is unsound. The numbers are PyTorch's; kernels without a meaning for shapes, which it also reports, do not exist here."""

    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3


@dataclass
class FailureReport:
    """One thing that is unsound. data: "reason", and "line" of the code where it is known."""

    failure_type: FailureType
    data: dict[str, Any]

    def print(self) -> str:
        """The thing in words, with what to do."""
        line = f"\n    This occurred at: {self.data['line']}" if self.data.get("line") else ""
        if self.failure_type is FailureType.GUARD_ADDED:
            return (
                f"Guard Added.\n    A size that dynamic_shapes leaves open is fixed by the code: {self.data['reason']}{line}\n"
                "    The program has that size closed. Leave it out of dynamic_shapes, or change the code."
            )
        return (
            f"Data dependent error.\n    The code asks for a value of a tensor ({self.data['reason']}).{line}\n"
            "    The program has the value that the example gives. Use xtensor.cond, where, or masks instead."
        )


@dataclass
class DraftExportReport:
    """What `draft_export` had to take for granted; printed as text."""

    failures: list[FailureReport] = field(default_factory=list)

    def successful(self) -> bool:
        """Whether nothing is unsound."""
        return not self.failures

    def __repr__(self) -> str:
        return f"DraftExportReport({self.failures})"

    def __str__(self) -> str:
        if not self.failures:
            return (
                "No issues are found during export, and it was able to soundly produce a graph.\n"
                "You can now change back to torch.export.export()\n"
            )
        said = "".join(f"\n{at}. {failure.print()}\n" for at, failure in enumerate(self.failures, 1))
        return (
            f"{len(self.failures)} issue(s) found during export, and it was not able to soundly produce a graph.\n"
            f"Please follow the instructions to fix the errors.\n{said}"
        )


def draft_export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: Sequence[str] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """`export`, but for what it would refuse: sizes that the code fixes are closed, values that the code asks for are the example's.

    The program's `_report` tells of all that (`successful()`, `failures`, as text); a warning says that there is something. Errors that have
    another cause, as those of the module's own code, are raised as `export` raises them.

    Differs from PyTorch: a program that took values for granted has all sizes closed, and no colours are printed.

    >>> class Sign(xtensor.nn.Module):
    ...     def forward(self, x):
    ...         return x if x.sum() > 0 else -x
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     program = xtensor.export.draft_export(Sign(), (xtensor.ones(2),))
    >>> program._report.successful(), len(program._report.failures)
    (False, 1)
    """
    given = dict(kwargs or {})
    options: Any = {"preserve_module_call_signature": preserve_module_call_signature}
    report = DraftExportReport()
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, given)
    try:
        program = export(mod, args, given, dynamic_shapes=dynamic_shapes, **options)
    except Exception as error:
        try:
            program = export(mod, args, given, dynamic_shapes=automatic(dynamic_shapes), **options)
            failure = {"reason": str(error), "line": line_of_user(error.__traceback__)}
            report.failures.append(FailureReport(FailureType.GUARD_ADDED, failure))
        except Exception:
            found = by_values(mod, args, given, preserve_module_call_signature, report)
            if found is None:
                raise error from None
            program = found
    program._report = report
    if report.failures:
        checks.warn(
            f"{len(report.failures)} issue(s) found during export, and it was not able to soundly produce a graph. "
            "They are listed by print(program._report).",
            UserWarning,
        )
    return program


def automatic(wish: Any) -> Any:
    """What is told of open sizes, as far as the code leaves them open."""
    if isinstance(wish, dict):
        return {key: automatic(part) for key, part in wish.items()}
    if isinstance(wish, (list, tuple)):
        return type(wish)([automatic(part) for part in wish])
    return wish if wish is None or wish is STATIC or isinstance(wish, int) else AUTO


def by_values(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserved: Sequence[str],
    report: DraftExportReport,
) -> ExportedProgram | None:
    """The program in which what the code asks for is as the example has it; None where it asks for nothing, or fails all the same."""
    asked: dict[tuple[str, str], None] = {}

    def reading(what: str) -> None:
        asked.setdefault((what, line_of_user()))

    sizes = [tuple(v.shape) for v in trees.tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
    try:
        traced = trace(mod, args, kwargs, sizes, {}, reading, preserved)
    except Exception:
        return None
    values = [(what, line) for what, line in asked if what != CONSTANT]
    if not values:
        return None
    for what, line in values:
        report.failures.append(
            FailureReport(FailureType.DATA_DEPENDENT_ERROR, {"reason": what, "line": line})
        )
    return program_with_weights(mod, traced, {}, (args, kwargs))
