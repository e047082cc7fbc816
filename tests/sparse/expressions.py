"""Expressions of sparse tensors in every layout on both libraries: what PyTorch answers, and what the gradients are."""

from __future__ import annotations

from typing import Any

import numpy as np

LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")


def tensors(t: Any, layout: str, grad: bool = False) -> dict[str, Any]:
    """The tensors that expressions are of: `s`, `s2` `(4, 6)`, `q`, `q2` `(4, 4)`, `p` `(6, 4)`, a batch `b`, a hybrid `h`, dense ones."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, density: float = 0.5) -> Any:
        kept = rng.random(shape) < density
        return np.where(kept, rng.integers(1, 5, shape) * rng.choice([-0.5, 0.5], shape), 0).astype(
            np.float32
        )

    def sparse(array: Any, dense: int = 0) -> Any:
        tensor = t.tensor(array)
        if layout == "coo":
            return tensor.to_sparse(array.ndim - dense)
        options = {"dense_dim": dense} if dense else {}
        blocks = ((2, 2),) if layout in ("bsr", "bsc") else ()
        return getattr(tensor, f"to_sparse_{layout}")(*blocks, **options)

    found: dict[str, Any] = {}
    for name, shape in (("s", (4, 6)), ("s2", (4, 6)), ("q", (4, 4)), ("q2", (4, 4)), ("p", (6, 4))):
        found[name] = sparse(numbers(*shape))
    places = numbers(4, 6) != 0
    found["b"] = sparse(np.where(places, rng.integers(1, 5, (2, 4, 6)), 0).astype(np.float32))
    hybrid = numbers(4, 6, 3, density=0.7)
    found["h"] = sparse(hybrid, 1) if layout in ("coo", "csr", "csc") else None
    index, values = rng.integers(0, 4, (2, 7)), numbers(7, density=1.0)
    vector, cube = numbers(6), numbers(2, 3, 4)
    if layout == "coo":
        found["u"] = t.sparse_coo_tensor(t.tensor(index), t.tensor(values), (4, 6))
        found["v1"], found["s3"] = sparse(vector), sparse(cube)
    whole = dict(d=(4, 6), dq=(4, 4), dp=(6, 4), v=(6,), v4=(4,), db=(2, 6, 3), dh=(4, 6, 3))
    found.update({name: t.tensor(numbers(*shape, density=1.0)) for name, shape in whole.items()})
    if grad:
        for name, value in found.items():
            found[name] = None if value is None else value.detach().clone().requires_grad_()
    else:
        found["i"], found["z"] = sparse((numbers(4, 6) * 2).astype(np.int64)), sparse(numbers(4, 6) + 1j)
        found["bo"], found["m"] = sparse(numbers(4, 6) != 0), t.tensor(numbers(4, 6) != 0)
    return {"t": t, "F": t.nn.functional, **found}


def whole(tensor: Any) -> Any:
    """A tensor of either library and any layout as a dense one."""
    return tensor if str(tensor.layout).endswith("strided") else tensor.to_dense()


def seen(value: Any) -> Any:
    """A result in a form that can be compared between libraries: layout, sizes, dtype and values."""
    if isinstance(value, (list, tuple)):
        return [seen(v) for v in value]
    if not hasattr(value, "layout"):
        return str(value).replace("xtensor", "torch")
    facts = [str(x).rpartition(".")[2] for x in (value.layout, value.dtype)] + [tuple(value.shape)]
    return facts, whole(value.detach()).resolve_conj().resolve_neg().numpy()


def same(a: Any, b: Any) -> bool:
    """Whether two results seen agree."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a[0] == b[0] and np.allclose(a[1], b[1], atol=1e-4, rtol=1e-4, equal_nan=True)
    return a == b


def value_of(t: Any, layout: str, text: str) -> Any:
    """What an expression is, in a layout; statements before it end in semicolons."""
    names = tensors(t, layout)
    *before, last = text.split("; ")
    for statement in before:
        exec(statement, names)
    return seen(eval(last, names))


def gradients_of(t: Any, layout: str, text: str) -> dict[str, Any]:
    """The gradients of a weighted sum of an expression, dense, by name."""
    names = tensors(t, layout, grad=True)
    made = whole(eval(text, names))
    weights = t.cos(t.arange(made.numel(), dtype=t.float32)).reshape(made.shape)
    (made * weights).sum().backward()
    leaves = {n: v for n, v in names.items() if n not in "tF" and v is not None and v.grad is not None}
    return {name: whole(leaf.grad.detach()).numpy() for name, leaf in leaves.items()}
