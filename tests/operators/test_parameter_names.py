"""What a call must give is called as PyTorch calls it: programs pass arguments by name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import xtensor

PREFIXES = {"": "", "linalg": "linalg_", "special": "special_", "fft": "fft_", "nn.functional": ""}
SPREAD = frozenset("dims_ indices_or_sections indices_or_sections_ options sizes".split())
"""Of functions whose sizes may come one by one, or that take what no schema names."""


def names(torch: Any) -> dict[str, set[str]]:
    """Of the parameters of PyTorch's operators, by operator."""
    found: dict[str, set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten":
            own = {"input" if a.name == "self" else a.name for a in schema.arguments}
            found.setdefault(name, set()).update(own)
    return found


def required(function: Any) -> Iterator[str]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            yield parameter.name


@pytest.mark.parametrize("space", PREFIXES)
def test_required_arguments_are_named_as_pytorchs(torch: Any, space: str) -> None:
    known, wrong, seen = names(torch), {}, 0
    ours = importlib.import_module(f"xtensor.{space}") if space else xtensor
    theirs = importlib.import_module(f"torch.{space}") if space else torch
    for name in dir(theirs):
        there, here = getattr(theirs, name), getattr(ours, name, None)
        if name.endswith("_") or not callable(here) or isinstance(there, type) or inspect.isfunction(there):
            continue
        declared = known.get(PREFIXES[space] + name)
        if declared is None or name.startswith("_"):
            continue
        try:
            given = [n for n in required(here) if n not in declared | SPREAD]
        except ValueError:
            continue
        seen += 1
        if given:
            wrong[name] = given
    assert seen > 5
    assert wrong == {}
