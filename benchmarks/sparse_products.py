"""Sparse matrices times dense ones beside PyTorch: `python benchmarks/sparse_products.py`, in alternating turns.

1 % of 4096 x 4096 is not zero. A line for each number of columns: milliseconds, and the ratios of medians.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import xtensor

SIZE, SHARE, TURNS = 4096, 0.01, 9


def median(times: list[float]) -> float:
    """In milliseconds."""
    return sorted(times)[len(times) // 2] * 1e3


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    rng = np.random.default_rng(0)
    index = np.stack(np.nonzero(rng.random((SIZE, SIZE)) < SHARE))
    values = rng.standard_normal(index.shape[1]).astype(np.float32)
    theirs = torch.sparse_coo_tensor(index, values, (SIZE, SIZE)).coalesce()
    ours = xtensor.sparse_coo_tensor(index, values, (SIZE, SIZE)).coalesce()
    pairs = {"coo": (theirs, ours), "csr": (theirs.to_sparse_csr(), ours.to_sparse_csr())}
    for columns in (16, 64, 256, 1024):
        right = rng.standard_normal((SIZE, columns)).astype(np.float32)
        there, here = torch.from_numpy(right), xtensor.tensor(right)
        for layout, (a, b) in pairs.items():

            def ready(b: Any = b, here: Any = here) -> None:
                (b @ here).untyped_storage()._xt_storage.array.block_until_ready()

            calls: list[Callable[[], Any]] = [lambda a=a, there=there: a @ there, ready]
            times: list[list[float]] = [[], []]
            for call in calls:
                call()
            for _ in range(TURNS):
                for taken, call in zip(times, calls, strict=True):
                    start = time.perf_counter()
                    call()
                    taken.append(time.perf_counter() - start)
            first, second = map(median, times)
            print(
                f"{layout} x {columns:>4}: PyTorch {first:7.2f} ms, xtensor {second:7.2f} ms, {second / first:.2f}"
            )


if __name__ == "__main__":
    main()
