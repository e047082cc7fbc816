"""`python -m tests.fuzz.sparse COUNT [--seed N]`: random programs of sparse operators against dense ones and against PyTorch.

A program makes a sparse tensor in one of five layouts, hybrid, of a batch or uncoalesced in some, and applies a chain of operators. The
same chain runs over the dense tensor, and over PyTorch's sparse one: values and layouts after each step, and the gradients of the start,
are compared. A step that PyTorch refuses is left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import xtensor

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")
Step = Callable[[Any, Any, Any], Any]


def whole(tensor: Any) -> Any:
    """A tensor in any layout as a dense one."""
    return tensor if str(tensor.layout).endswith("strided") else tensor.to_dense()


# Each takes the library, the tensor and what was drawn for it.
STEPS: dict[str, Step] = {
    "times number": lambda t, x, d: x * float(d["number"]),
    "over number": lambda t, x, d: x / float(d["number"]),
    "negative": lambda t, x, d: -x,
    "sin": lambda t, x, d: x.sin(),
    "tanh": lambda t, x, d: x.tanh(),
    "relu": lambda t, x, d: x.relu(),
    "square": lambda t, x, d: x * x,
    "plus itself": lambda t, x, d: x + x,
    "minus half": lambda t, x, d: x - x * 0.5,
    "times dense": lambda t, x, d: x * t.tensor(d["like"]),
    "plus other": lambda t, x, d: x + d["other"](t, x),
    "times other": lambda t, x, d: x * d["other"](t, x),
    "transposed": lambda t, x, d: x.transpose(0, 1),
    "coalesced": lambda t, x, d: x.coalesce() if str(x.layout).endswith("coo") else x,
    "to coo": lambda t, x, d: x.to_sparse_coo() if not str(x.layout).endswith("strided") else x,
    "to csr": lambda t, x, d: x.to_sparse_csr() if not str(x.layout).endswith("strided") else x,
    "rows": lambda t, x, d: x.index_select(0, t.tensor(d["rows"])),
    "joined": lambda t, x, d: t.cat([x, x], 0),
    "joined columns": lambda t, x, d: t.cat([x, x], 1),
    "product": lambda t, x, d: (
        x @ t.tensor(d["right"])
        if str(x.layout).endswith("strided")
        else t.sparse.mm(x, t.tensor(d["right"]))
    ),
    "product of sparse": lambda t, x, d: x @ x.transpose(0, 1),
    "sum of rows": lambda t, x, d: x.sum(0, keepdim=d["keepdim"]),
    "row": lambda t, x, d: x[int(d["rows"][0])],
    "double": lambda t, x, d: x.double(),
    "cloned": lambda t, x, d: x.clone(),
    "stacked": lambda t, x, d: t.stack([x, x], 0),
}
GRADIENT_STORED = frozenset(["product", "product of sparse", "square", "times other", "plus other", "row"])
"""After these PyTorch's gradient may be dense where ours has the stored elements."""


def draws(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, Any]:
    """The random parts of a step on a tensor of some sizes."""
    pattern = rng.random(shape) < 0.4
    values = np.where(pattern, np.round(rng.standard_normal(shape), 2), 0)

    def other(t: Any, x: Any) -> Any:
        made = t.tensor(values)
        if str(x.layout).endswith("strided"):
            return made
        blocks = {} if str(x.layout)[-3:] not in ("bsr", "bsc") else {"blocksize": (1, 1)}
        return made.to_sparse(layout=x.layout, **blocks)

    rows, columns = (*shape, 1)[:2]
    return {
        "number": rng.choice([-2.0, 0.5, 3.0]),
        "like": np.round(rng.standard_normal(shape), 2),
        "other": other,
        "rows": rng.integers(0, rows, 3),
        "right": np.round(rng.standard_normal((columns, 3)), 2),
    }


def start(t: Any, values: Any, layout: str, twice: bool) -> Any:
    """The first tensor of a program; `twice`: of COO, with each element in two halves."""
    dense = t.tensor(values)
    blocks = {"blocksize": (1, 1)} if layout in ("bsr", "bsc") else {}
    made = dense.to_sparse(layout=getattr(t, f"sparse_{layout}"), **blocks)
    if twice and layout == "coo":
        index, held = made.indices(), made.values() / 2
        made = t.sparse_coo_tensor(t.cat([index, index], 1), t.cat([held, held]), made.shape)
    return made.detach().requires_grad_()


def run(seed: int) -> str:
    """What differs in a program, or nothing."""
    rng = np.random.default_rng(seed)
    layout, twice = str(rng.choice(LAYOUTS)), bool(rng.random() < 0.3)
    shape = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    values = np.where(rng.random(shape) < 0.5, np.round(rng.standard_normal(shape), 2), 0)
    first = {"ours": start(xtensor, values, layout, twice), "theirs": start(torch, values, layout, twice)}
    first["dense"] = xtensor.tensor(values).requires_grad_()
    library = {"ours": xtensor, "theirs": torch, "dense": xtensor}
    at, told = dict(first), [f"seed {seed}: {layout}{' twice' if twice else ''} {shape}"]
    stored = False
    for _ in range(int(rng.integers(1, 6))):
        name, drawn = str(rng.choice(list(STEPS))), draws(rng, tuple(at["theirs"].shape))
        drawn["keepdim"] = str(at["theirs"].layout)[-3:] not in ("coo", "ded")
        try:
            expected = STEPS[name](torch, at["theirs"], drawn)
            whole(expected.detach())
        except Exception:
            continue  # PyTorch has no such operator in this layout
        told.append(name)
        if name == "product of sparse" and layout == "csc":
            break  # PyTorch's products of two CSC matrices are empty
        at["theirs"] = expected
        try:
            for side in ("ours", "dense"):
                at[side] = STEPS[name](library[side], at[side], drawn)
        except Exception as error:
            return f"{', '.join(told)}: {type(error).__name__}: {str(error)[:120]}"
        stored = stored or name in GRADIENT_STORED
        mine, dense = whole(at["ours"].detach()).numpy(), at["dense"].detach().numpy()
        theirs = whole(expected.detach()).numpy()
        if str(at["ours"].layout)[-3:] != str(expected.layout)[-3:]:
            return f"{', '.join(told)}: {at['ours'].layout} for {expected.layout}"
        for wanted, what in ((theirs, "PyTorch's"), (dense, "the dense one's")):
            if mine.shape != wanted.shape or not np.allclose(mine, wanted, rtol=1e-5, atol=1e-6):
                return f"{', '.join(told)}: values, not {what}"
        if at["theirs"].dim() != 2:
            break
    return gradients(first, at, library, told, stored)


def gradients(first: Any, at: Any, library: Any, told: list[str], stored: bool) -> str:
    """What differs in the gradients of a weighted sum of a program's result, or nothing."""
    found = {}
    for side in ("theirs", "ours", "dense"):
        t, result = library[side], whole(at[side])
        if not result.requires_grad:
            return ""
        weights = t.arange(result.numel(), dtype=t.float64).cos().reshape(tuple(result.shape))
        try:
            (result * weights).sum().backward()
        except Exception as error:
            return "" if side == "theirs" else f"{', '.join(told)}: gradient: {type(error).__name__}: {error}"
        grad = first[side].grad
        found[side] = None if grad is None else whole(grad.detach()).numpy()
    if any(g is None for g in found.values()):
        return "" if found["theirs"] is None else f"{', '.join(told)}: a gradient is missing"
    places = whole(first["ours"].detach()).numpy() != 0
    mask = places if stored else np.ones(places.shape, bool)
    if not np.allclose(found["ours"][mask], found["theirs"][mask], rtol=1e-4, atol=1e-5):
        return f"{', '.join(told)}: the gradient is not PyTorch's"
    if not np.allclose(found["ours"][places], found["dense"][places], rtol=1e-4, atol=1e-5):
        return f"{', '.join(told)}: the gradient is not the dense one's"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """Run programs; the exit status says whether one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sparse", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    failures = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(given.seed, given.seed + given.count):
            found = run(seed)
            failures += bool(found)
            if found:
                print(found, flush=True)
    print(f"{given.count - failures} of {given.count} programs agree")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
