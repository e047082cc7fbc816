"""Mistakes that people make, and what the two libraries say to them: `python -m tests.mistakes` prints the table."""

from typing import Any

from . import networks, shapes, values
from .case import Cases, Verdict, said

__all__ = ["MISTAKES", "judge"]

GROUPS: dict[str, Cases] = {
    "elementwise": shapes.ELEMENTWISE,
    "products": shapes.PRODUCTS,
    "shapes": shapes.SHAPES,
    "dims": shapes.DIMS,
    "indices": shapes.INDICES,
    "layers": networks.LAYERS,
    "modules": networks.MODULES,
    "losses": networks.LOSSES,
    "optimizers": networks.OPTIMIZERS,
    "data": networks.DATA,
    "dtypes": values.DTYPES,
    "arguments": values.ARGUMENTS,
    "gradients": values.GRADIENTS,
    "conversions": values.CONVERSIONS,
}
MISTAKES: Cases = {f"{group}.{name}": case for group, cases in GROUPS.items() for name, case in cases.items()}


def judge(torch: Any, xtensor: Any, names: str = "") -> list[Verdict]:
    """A verdict on every mistake whose name has `names` in it."""
    return [
        Verdict(name, said(case, torch), said(case, xtensor))
        for name, case in MISTAKES.items()
        if names in name
    ]
