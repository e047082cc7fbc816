"""Sequences that fill a cube evenly: `torch.quasirandom`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import qmc

from .. import dtypes
from ..operators.generator import Generator
from ..ops.create.ingest import tensor as make_tensor
from ..ops.create.random import randint
from ..tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of the Sobol sequence in a cube of `dimension` dimensions, by the direction numbers of Joe and Kuo (2008).

    scramble: shift and mix the digits at random (Owen, by linear matrices), from `seed` or the default generator.
    Differs from PyTorch: scrambled points follow xtensor's random numbers; plain ones are the same.

    >>> xtensor.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.num_generated = 0
        # One number per dimension and digit of a point's index, its bits counted from the binary point.
        self._directions = np.asarray(qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv, np.int64)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._mix()

    def _mix(self) -> None:
        generator = Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        bits, size = self.MAXBIT, self.dimension
        powers = 1 << np.arange(bits, dtype=np.int64)
        shifts = randint(2, (size, bits), generator=generator).numpy()
        self._shift = (shifts * powers).sum(1)
        rows = np.tril(randint(2, (size, bits, bits), generator=generator).numpy(), -1) + np.eye(
            bits, dtype=np.int64
        )
        # Row p makes digit p (the first is the greatest bit) out of those before it.
        masks = (rows * powers[::-1]).sum(2)
        mixed = np.zeros_like(self._directions)
        for p in range(bits):
            mixed |= parity(masks[:, p, None] & self._directions) << (bits - 1 - p)
        self._directions = mixed

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtypes.dtype | None = None) -> Tensor:
        """The next `n` points, one per row."""
        index = np.arange(self.num_generated, self.num_generated + n, dtype=np.int64)
        gray = index ^ (index >> 1)
        points = np.broadcast_to(self._shift, (n, self.dimension)).copy()
        for bit in range(self.MAXBIT):
            points ^= np.where((gray >> bit & 1)[:, None], self._directions[:, bit], 0)
        self.num_generated += n
        made = make_tensor(points / 2.0**self.MAXBIT).to(dtype or dtypes.get_default_dtype())
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtypes.dtype | None = None) -> Tensor:
        """The next `2**m` points; ValueError where all that were drawn would not be a power of two, which balances them."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out `n` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"


def parity(values: Any) -> Any:
    """Whether an odd number of bits is set, for numbers of 32 bits."""
    for step in (16, 8, 4, 2, 1):
        values = values ^ (values >> step)
    return values & 1
