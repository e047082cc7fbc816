"""Tensors that carry a mask, against PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
pytestmark = pytest.mark.filterwarnings("ignore")


def made(lib: Any, shift: float = 0.0) -> Any:
    data = lib.arange(6.0).reshape(2, 3) + shift
    return masked(lib).masked_tensor(data, lib.tensor([[True, False, True], [False, False, True]]))


def masked(lib: Any) -> Any:
    return importlib.import_module(f"{lib.__name__}.masked")


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "printed": made,
    "integers": lambda t: masked(t).masked_tensor(t.arange(3), t.tensor([True, False, True])),
    "scalars": lambda t: masked(t).masked_tensor(t.tensor(3.0), t.tensor(False)),
    "pointwise": lambda t: [made(t).sin(), t.sqrt(made(t)), -made(t), made(t) ** 2, made(t).to(t.float64)],
    "arithmetic": lambda t: [
        made(t) + made(t, 1),
        made(t) * 2,
        made(t) - 1,
        made(t) / made(t, 1),
        made(t) + t.ones(2, 3),
    ],
    "compared": lambda t: [made(t) > 1, made(t) == made(t), t.maximum(made(t), made(t, 1))],
    "reduced": lambda t: [
        made(t).sum(),
        made(t).sum(0),
        made(t).mean(1),
        made(t).prod(0),
        made(t).amax(1),
        made(t).std(),
    ],
    "arguments": lambda t: [made(t).argmin(1), made(t).argmax(0), made(t).all()],
    "shapes": lambda t: [
        made(t).t(),
        made(t).reshape(6),
        made(t).view(3, 2),
        made(t).unsqueeze(0),
        made(t)[0],
    ],
    "joined": lambda t: [t.cat([made(t), made(t)]), t.stack([made(t), made(t)])],
    "softmax": lambda t: made(t).softmax(0),
    "opened": lambda t: [
        made(t).to_tensor(9.0),
        made(t).get_data(),
        made(t).get_mask(),
        made(t).sum().item(),
    ],
    "asked": lambda t: [
        masked(t).is_masked_tensor(made(t)),
        masked(t).is_masked_tensor(t.ones(1)),
        len(made(t)),
    ],
    "other masks": lambda t: made(t) + masked(t).masked_tensor(t.ones(2, 3), t.ones(2, 3) > 0),
    "of no tensor": lambda t: masked(t).masked_tensor([1], t.ones(1) > 0),
    "of no mask": lambda t: masked(t).masked_tensor(t.ones(2), t.ones(2)),
    "of other sizes": lambda t: masked(t).masked_tensor(t.ones(2, 3), t.ones(3) > 0),
    "lists": lambda t: made(t).tolist(),
    "written": lambda t: made(t).add_(made(t)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_as_in_pytorch(name: str) -> None:
    found = []
    for lib in (xtensor, torch):
        try:
            found.append(repr(PROGRAMS[name](lib)).replace("xtensor", "torch"))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".replace("xtensor", "torch"))
    assert found[0] == found[1]


def test_gradients() -> None:
    found = []
    for lib in (xtensor, torch):
        x = made(lib).detach()
        leaf = masked(lib).masked_tensor(x.get_data(), x.get_mask(), requires_grad=True)
        (leaf.sin() * leaf).sum().backward()
        data = (lib.arange(6.0).reshape(2, 3)).requires_grad_()
        masked(lib).as_masked_tensor(data, x.get_mask()).mul(2).sum().backward()
        dense = data.grad.to_tensor(0) if masked(lib).is_masked_tensor(data.grad) else data.grad
        found.append((repr(leaf.grad), np.asarray(dense).tolist()))
    assert found[0] == found[1]


def sparse(lib: Any, layout: str, requires_grad: bool = False) -> Any:
    """Sparse data under a mask of the same places."""
    kind = getattr(lib, f"sparse_{layout}")
    data = lib.tensor([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0], [3.0, 0.0, 4.0]]).to_sparse(layout=kind)
    mask = lib.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]).to_sparse(layout=kind).bool()
    return masked(lib).masked_tensor(data, mask, requires_grad)


SPARSE: dict[str, Callable[[Any, str], Any]] = {
    "printed": lambda t, s: sparse(t, s),
    "facts": lambda t, s: [
        sparse(t, s).is_sparse,
        sparse(t, s).layout,
        sparse(t, s).is_sparse_coo(),
        sparse(t, s).is_sparse_csr(),
        tuple(sparse(t, s).shape),
    ],
    "parts": lambda t, s: [sparse(t, s).get_data(), sparse(t, s).get_mask()],
    "dense": lambda t, s: sparse(t, s).to_dense(),
    "unary": lambda t, s: [f(sparse(t, s)) for f in (t.sin, t.neg, t.sigmoid, t.sqrt)],
    "binary": lambda t, s: [sparse(t, s) + sparse(t, s), sparse(t, s) * 2, sparse(t, s) / sparse(t, s)],
    "sums": lambda t, s: [sparse(t, s).sum(), sparse(t, s).amin()],
    "of dense": lambda t, s: getattr(made(t), f"to_sparse_{s}")(),
    "of dense and back": lambda t, s: getattr(made(t), f"to_sparse_{s}")().to_dense(),
    "other places": lambda t, s: masked(t).masked_tensor(
        sparse(t, s).get_data(), t.eye(3).bool().to_sparse(layout=getattr(t, f"sparse_{s}"))
    ),
    "other layout": lambda t, s: masked(t).masked_tensor(sparse(t, s).get_data(), t.eye(3) > 0),
    "row": lambda t, s: sparse(t, s)[0],
}


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_data_is_as_in_pytorch(name: str, layout: str) -> None:
    found = []
    for lib in (xtensor, torch):
        try:
            found.append(repr(SPARSE[name](lib, layout)).replace("xtensor", "torch"))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}".replace("xtensor", "torch"))
    assert found[0] == found[1]


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_gradients_of_sparse_data(layout: str) -> None:
    leaf = sparse(xtensor, layout, requires_grad=True)
    (leaf.sin() * 2).sum().backward()
    expected = 2 * np.cos([1.0, 0.5, 2.0, 3.0, 4.0])
    assert np.allclose(leaf.grad.get_data().values().tolist(), expected, rtol=1e-5)
    data = leaf.get_data().detach().requires_grad_()
    masked(xtensor).as_masked_tensor(data, leaf.get_mask()).mul(3).sum().backward()
    assert data.grad.to_dense().tolist() == [[3.0, 0.0, 3.0], [0.0, 3.0, 0.0], [3.0, 0.0, 3.0]]
