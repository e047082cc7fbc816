"""Branches and loops as steps of a program: what a node runs that holds programs of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control_flow import cond, map, scan, while_loop

__all__ = ["HIGHER_ORDER", "NAMES", "HigherOrder"]

Function = Callable[..., tuple[Any, ...]]


class HigherOrder:
    """A step that calls functions, which are programs within the program."""

    def __init__(self, name: str, run: Function) -> None:
        self.__name__ = name
        self.qualified = f"torch.ops.higher_order.{name}"
        self.run = run

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return self.run(*args, **kwargs)

    def __repr__(self) -> str:
        return self.qualified


def run_cond(pred: Any, true_graph: Function, false_graph: Function, operands: Any) -> tuple[Any, ...]:
    """What the function gives that is chosen."""
    return tuple(cond(pred, true_graph, false_graph, tuple(operands)))


def run_scan(
    combine_graph: Function, init: Any, xs: Any, operands: Any, *, dim: int, reverse: bool
) -> tuple[Any, ...]:
    """The last state, and then the stacked results."""
    carried = len(init)

    def step(carry: Any, parts: Any) -> Any:
        made = combine_graph(*carry, *parts, *operands)
        return list(made[:carried]), list(made[carried:])

    last, results = scan(step, list(init), list(xs), dim=dim, reverse=reverse)
    return (*last, *results)


def run_map(body_graph: Function, xs: Any, operands: Any) -> tuple[Any, ...]:
    """The stacked results."""
    return tuple(map(lambda parts: body_graph(*parts, *operands), list(xs)))


def run_while_loop(
    cond_graph: Function, body_graph: Function, carried: Any, operands: Any
) -> tuple[Any, ...]:
    """The last values of what is carried."""
    return while_loop(
        lambda *values: cond_graph(*values, *operands)[0],
        lambda *values: body_graph(*values, *operands),
        tuple(carried),
    )


HIGHER_ORDER = {
    name: HigherOrder(name, run)
    for name, run in (
        ("cond", run_cond),
        ("scan", run_scan),
        ("map", run_map),
        ("while_loop", run_while_loop),
    )
}
NAMES = {
    "cond": ("true_graph", "false_graph"),
    "scan": ("scan_combine_graph",),
    "map": ("body_graph",),
    "while_loop": ("while_loop_cond_graph", "while_loop_body_graph"),
}
"""How the programs within a step are called."""
