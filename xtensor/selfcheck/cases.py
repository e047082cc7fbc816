"""What an operator is tried on: arguments by the order of its schema, and who says what is right."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "FLOATS",
    "INTEGERS",
    "Case",
    "Cases",
    "Drawn",
    "Fixed",
    "booleans",
    "case",
    "drawn",
    "fixed",
    "indices",
]

FLOATS = ("float32", "bfloat16", "float64")
INTEGERS = ("int32", "int64")


@dataclass(frozen=True)
class Drawn:
    """An array of random values between two bounds, of the dtype that is tried where it names none."""

    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0
    dtype: str | None = None

    def make(self, dtype: str, key: str) -> np.ndarray:
        """The values in their dtype: the same ones for every device, from a seed that the key makes."""
        rng = np.random.default_rng(zlib.crc32(key.encode()))
        name = self.dtype or dtype
        if name == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if name.startswith(("int", "uint")):
            low = (
                int(np.ceil(self.low if self.low > 0 else 4 * self.low))
                if self.dtype is None
                else int(self.low)
            )
            high = int(np.floor(4 * self.high)) if self.dtype is None else int(self.high) - 1
            return rng.integers(low, max(high, low) + 1, self.shape).astype(name)
        made = rng.uniform(self.low, self.high, self.shape)
        if name.startswith("complex"):
            made = made + 1j * rng.uniform(self.low, self.high, self.shape)
        return made.astype(np.dtype(name))


@dataclass(frozen=True, eq=False)
class Fixed:
    """An array of these values; of the dtype that is tried where they are floats."""

    values: np.ndarray

    def make(self, dtype: str, key: str) -> np.ndarray:
        """The values in their dtype."""
        return self.values.astype(np.dtype(dtype)) if self.values.dtype.kind == "f" else self.values


@dataclass(frozen=True)
class Case:
    """One call of an operator.

    args, kwargs: by the schema of the operator, arrays as descriptions.
    numpy: the same function of NumPy arrays; where it is None, the operator's own kernel says what is right, in float64
        on the host, compiled without optimisation.
    norm: errors are measured at the largest value of each result, since sums cancel.
    bound: in units in the last place, of float32 and float64. dtypes: those to try.
    call: what is called instead of the operator, where its arguments are made by a public function.
    read: what of the results is unique, such as a product of factors: a function of them in float64.
    same: NumPy's function is given the dtype that is tried, not float64, since the result depends on it.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    numpy: Callable[..., Any] | None = None
    norm: bool = False
    bound: float = 32.0
    dtypes: tuple[str, ...] = FLOATS
    call: Callable[..., Any] | None = None
    same: bool = False
    read: Callable[..., Any] | None = None


Cases = dict[str, Case | list[Case]]
"""What each of a family's operators is tried on."""


def case(
    *args: Any,
    numpy: Callable[..., Any] | None = None,
    norm: bool = True,
    bound: float = 64.0,
    dtypes: tuple[str, ...] = FLOATS,
    call: Callable[..., Any] | None = None,
    same: bool = False,
    read: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Case:
    """A case of a `general` operator or a reduction: its keyword arguments are the operator's."""
    return Case(args, kwargs, numpy, norm, bound, dtypes, call, same, read)


def drawn(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str | None = None) -> Drawn:
    """Random values."""
    return Drawn(shape, low, high, dtype)


def indices(*shape: int, below: int, dtype: str = "int64") -> Drawn:
    """Random whole numbers from 0 on."""
    return Drawn(shape, 0, below, dtype)


def booleans(*shape: int) -> Drawn:
    """Random truth values."""
    return Drawn(shape, dtype="bool")


def fixed(values: Any) -> Fixed:
    """These values."""
    return Fixed(np.asarray(values))
