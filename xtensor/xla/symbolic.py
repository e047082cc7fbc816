"""Sizes that are open while a program is traced: JAX's symbolic ones, beside ints, and what is decided where they cannot be compared."""

from __future__ import annotations

import operator
from typing import Any

from jax import export
from jax.core import max_dim, min_dim
from jax.extend.core import InconclusiveDimensionOperation

__all__ = [
    "Inconclusive",
    "as_size",
    "at_least",
    "at_most",
    "clamped",
    "is_above",
    "is_below",
    "is_open",
    "is_size",
]

Inconclusive = InconclusiveDimensionOperation


def is_open(value: Any) -> bool:
    """Whether this is an open size."""
    return export.is_symbolic_dim(value)


def as_size(value: Any) -> Any:
    """An int of what stands for one, an open size as it is; TypeError for what is neither."""
    try:
        return operator.index(value)
    except TypeError:
        if is_open(value):
            return value
        raise


def is_size(value: Any) -> bool:
    """Whether this stands for an int, or is an open size."""
    return hasattr(value, "__index__") or is_open(value)


def at_most(size: Any, bound: Any) -> bool:
    """Whether a size is surely not larger: False where that is open."""
    try:
        return bool(size <= bound)
    except Inconclusive:
        return False


def is_below(part: Any, whole: Any) -> bool:
    """Whether a product of some sizes is less than that of more of them, which may be open."""
    try:
        return bool(part < whole)
    except Inconclusive:
        return bool(part != whole)


def is_above(whole: Any, part: Any) -> bool:
    """Whether a product of sizes is more than another; where that is open, whether it is a multiple."""
    try:
        return bool(whole > part)
    except Inconclusive:
        return bool(whole != part and whole % part == 0)


def at_least(size: Any, bound: Any) -> Any:
    """The larger one of a size and a bound."""
    try:
        return size if size >= bound else bound
    except Inconclusive:
        return max_dim(size, bound)


def clamped(value: Any, size: Any) -> Any:
    """A bound of a slice, counted from the end where it is negative, within a dimension, where either may be open."""
    try:
        if value < 0:
            value = value + size
    except Inconclusive:
        return max_dim(min_dim(value, size), 0)
    try:
        return size if value >= size else 0 if value < 0 else value
    except Inconclusive:
        return max_dim(min_dim(value, size), 0)
