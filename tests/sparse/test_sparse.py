"""Sparse tensors against PyTorch: what they are made of, what operators make of them, gradients, files."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

INDEX, VALUES = [[0, 1, 1, 2], [2, 0, 2, 1]], [3.0, 4.0, 5.0, -1.0]


def coo(lib: Any, **options: Any) -> Any:
    return lib.sparse_coo_tensor(lib.tensor(INDEX), lib.tensor(VALUES), (3, 3), **options)


def made(lib: Any, layout: str) -> Any:
    if layout == "coo":
        return coo(lib).coalesce()
    options = {"blocksize": (1, 1)} if layout in ("bsr", "bsc") else {}
    return getattr(coo(lib).coalesce().to_dense(), f"to_sparse_{layout}")(**options)


def dense(lib: Any) -> Any:
    return lib.arange(9.0).reshape(3, 3) / 4 - 1


def plain(value: Any) -> Any:
    """A result as something to compare: text of sparse tensors, lists of dense ones."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "layout"):
        if str(value.layout).endswith("strided"):
            return np.round(np.asarray(value.detach()).astype(np.float64), 4).tolist()
        return repr(value.detach()).replace("xtensor", "torch").split(", grad_fn")[0]
    return str(value).replace("xtensor", "torch")


def both(function: Callable[[Any], Any]) -> None:
    found = []
    for lib in (xtensor, torch):
        try:
            found.append(plain(function(lib)))
        except Exception as error:
            found.append((type(error).__name__, str(error)[:60]))
    assert found[0] == found[1]


LAYOUTS = ("coo", "csr", "csc", "bsr", "bsc")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tensors_print_as_in_pytorch(layout: str) -> None:
    both(lambda t: made(t, layout))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "uncoalesced": lambda t: t.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 3.0], (2,)).coalesce(),
    "hybrid": lambda t: t.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (2, 2)),
    "empty": lambda t: t.sparse_coo_tensor((2, 3)),
    "inferred": lambda t: t.sparse_coo_tensor([[1, 0], [4, 2]], [1.0, 2.0]),
    "parts": lambda t: [
        coo(t).coalesce().indices(),
        coo(t).coalesce().values(),
        coo(t)._indices(),
        coo(t)._values(),
    ],
    "counts": lambda t: [
        coo(t).sparse_dim(),
        coo(t).dense_dim(),
        coo(t)._nnz(),
        coo(t).is_coalesced(),
        coo(t).layout,
    ],
    "indices of uncoalesced": lambda t: coo(t).indices(),
    "crow of coo": lambda t: coo(t).crow_indices(),
    "csr parts": lambda t: [
        made(t, "csr").crow_indices(),
        made(t, "csr").col_indices(),
        made(t, "csr").values(),
    ],
    "csr of parts": lambda t: t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]),
    "blocks": lambda t: t.eye(4).to_sparse_bsr((2, 2)),
    "nnz": lambda t: t.sparse_coo_tensor(t.tensor([[0, 1]]), t.tensor([1.0])),
    "dims": lambda t: t.sparse_coo_tensor(t.tensor([[0]]), t.tensor([1.0]), (2, 2)),
    "negative": lambda t: t.sparse_coo_tensor(t.tensor([[-1]]), t.tensor([1.0]), (2,), check_invariants=True),
    "outside": lambda t: t.sparse_coo_tensor(t.tensor([[2]]), t.tensor([1.0]), (2,), check_invariants=True),
    "ends": lambda t: t.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True),
    "columns": lambda t: t.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 3), check_invariants=True),
    "order": lambda t: t.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 3), check_invariants=True),
    "sum": lambda t: coo(t) + coo(t),
    "dense + sparse": lambda t: dense(t) + coo(t),
    "sparse + dense": lambda t: coo(t) + dense(t),
    "difference": lambda t: coo(t).coalesce() - coo(t).coalesce() * 2,
    "product": lambda t: (coo(t) * coo(t).t()).to_dense(),
    "times dense": lambda t: coo(t) * dense(t),
    "times row": lambda t: coo(t) * dense(t)[0],
    "scaled": lambda t: [coo(t) * 2, 3 * coo(t), coo(t) / 2, -coo(t), coo(t) ** 2],
    "zero keeping": lambda t: [f(coo(t)) for f in (t.sin, t.abs, t.relu, t.sqrt, t.sign, t.isnan, t.tan)],
    "not zero keeping": lambda t: coo(t).exp(),
    "transposed": lambda t: [coo(t).t(), coo(t).transpose(0, 1), made(t, "csr").t(), coo(t).permute(1, 0)],
    "parts of": lambda t: [
        coo(t)[1],
        coo(t)[1, 2],
        coo(t).select(1, 2),
        coo(t).index_select(0, t.tensor([2, 1])),
    ],
    "joined": lambda t: [t.cat([coo(t), coo(t)]), t.cat([coo(t), coo(t)], 1), t.stack([coo(t), coo(t)])],
    "unsqueezed": lambda t: coo(t).unsqueeze(1),
    "reduced": lambda t: [coo(t).sum(), coo(t).sum(0), t.sparse.sum(coo(t), 1), coo(t).norm(), coo(t).any()],
    "softmax": lambda t: [t.sparse.softmax(coo(t), 1), t.sparse.log_softmax(coo(t), 0)],
    "mask": lambda t: dense(t).sparse_mask(coo(t).coalesce()),
    "diagonals": lambda t: t.sparse.spdiags(t.ones(2, 3), t.tensor([0, 1]), (3, 3)).to_dense(),
    "like": lambda t: [t.zeros_like(coo(t)), t.empty_like(made(t, "csr"))._nnz()],
    "converted": lambda t: [coo(t).double(), coo(t).to(t.int64), coo(t).bool()],
    "written": lambda t: [
        coo(t).mul_(2),
        coo(t).add_(coo(t)),
        coo(t).zero_(),
        dense(t).add_(coo(t)),
        coo(t).neg_(),
    ],
    "numpy": lambda t: coo(t).numpy(),
    "view": lambda t: coo(t).reshape(9),
    "addmm": lambda t: t.sparse.addmm(t.ones(3, 3), coo(t), dense(t), beta=2, alpha=3),
    "masked": lambda t: t.masked.sum(coo(t).coalesce(), 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_as_in_pytorch(name: str) -> None:
    both(PROGRAMS[name])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions_and_products_of_every_layout(layout: str) -> None:
    sparse, whole = made(xtensor, layout), coo(xtensor).to_dense()
    assert sparse.to_dense().tolist() == whole.tolist()
    for other in LAYOUTS:
        options = {"blocksize": (3, 1)} if other in ("bsr", "bsc") else {}
        again = getattr(sparse, f"to_sparse_{other}")(**options)
        assert str(again.layout).endswith(other) and again.to_dense().tolist() == whole.tolist()
    right = dense(xtensor)
    expected = (whole @ right).tolist()
    assert np.allclose((sparse @ right).tolist(), expected)
    assert np.allclose((right @ sparse).tolist(), (right @ whole).tolist())
    assert np.allclose((sparse @ right[0]).tolist(), (whole @ right[0]).tolist())
    square = sparse @ sparse
    assert square.layout == (xtensor.sparse_csr if layout == "csc" else sparse.layout) and np.allclose(
        square.to_dense().tolist(), (whole @ whole).tolist()
    )


def test_products_with_long_rows_are_cut_and_put_together() -> None:
    rng = np.random.default_rng(1)
    whole = np.where(rng.random((40, 30)) < 0.1, rng.standard_normal((40, 30)), 0).astype(np.float32)
    whole[7] = rng.standard_normal(30)
    right = rng.standard_normal((30, 5)).astype(np.float32)
    a: Any = xtensor.tensor(whole).to_sparse().requires_grad_()
    b: Any = xtensor.tensor(right).requires_grad_()
    out = xtensor.sparse.mm(a, b)
    assert np.allclose(out.detach().numpy(), whole @ right, atol=1e-5)
    out.pow(2).sum().backward()
    outer = 2 * (whole @ right)
    assert np.allclose(a.grad.to_dense().numpy(), (outer @ right.T) * (whole != 0), atol=1e-3)
    assert np.allclose(b.grad.numpy(), whole.T @ outer, atol=1e-3)


GRADIENTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mm": lambda t, s, d: t.sparse.mm(s, d),
    "to_dense": lambda t, s, d: s.to_dense() * d,
    "times dense": lambda t, s, d: (s * d).to_dense(),
    "sum": lambda t, s, d: t.sparse.sum(s, 0).to_dense(),
    "softmax": lambda t, s, d: t.sparse.softmax(s, 1).to_dense() * d,
    "square": lambda t, s, d: (s * s).to_dense() * d,
    "sparse product": lambda t, s, d: t.sparse.mm(s, s).to_dense() * d,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_sparse_and_dense_arguments(name: str) -> None:
    found = []
    for lib in (xtensor, torch):
        s = coo(lib).coalesce().requires_grad_()
        d = dense(lib).requires_grad_()
        (GRADIENTS[name](lib, s, d) ** 2).sum().backward()
        whole = s.grad if str(s.grad.layout).endswith("strided") else s.grad.to_dense()
        other = d.grad if d.grad is None or str(d.grad.layout).endswith("strided") else d.grad.to_dense()
        found.append([np.asarray(whole) * (np.asarray(coo(torch).to_dense()) != 0), other])
    assert np.allclose(found[0][0], found[1][0], atol=1e-4)
    assert (found[0][1] is None) == (found[1][1] is None)
    if found[0][1] is not None:
        assert np.allclose(np.asarray(found[0][1]), np.asarray(found[1][1]), atol=1e-4)


def test_values_and_coordinates_lead_into_the_graph() -> None:
    v: Any = xtensor.tensor(VALUES, requires_grad=True)
    s: Any = xtensor.sparse_coo_tensor(INDEX, v, (3, 3))
    assert s.requires_grad and not s.is_leaf
    grad: Any
    second: Any
    (grad,) = xtensor.autograd.grad((s.to_dense() ** 2).sum(), v, create_graph=True)
    assert grad.tolist() == [6.0, 8.0, 10.0, -2.0]
    (second,) = xtensor.autograd.grad(grad.sum(), v)
    assert second.tolist() == [2.0] * 4
    x: Any = xtensor.eye(3).requires_grad_()
    (x.to_sparse() * 3).to_dense().sum().backward()
    assert x.grad.tolist() == (xtensor.eye(3) * 3).tolist()


def test_sparse_gradients_pass_hooks_and_input_buffers() -> None:
    weight: Any = xtensor.arange(10.0).reshape(5, 2).requires_grad_()
    seen: list[Any] = []
    weight.register_hook(lambda grad: seen.append(grad.is_sparse))
    rows = [xtensor.nn.functional.embedding(xtensor.tensor(i), weight, sparse=True) for i in ([1, 1], [3])]
    (rows[0].sum() + rows[1].sum()).backward()
    assert seen == [True] and weight.grad.is_sparse and weight.grad._nnz() == 3
    dense_and_sparse = (
        xtensor.nn.functional.embedding(xtensor.tensor([0]), weight, sparse=True).sum() + weight.sum()
    )
    dense_and_sparse.backward()
    assert not weight.grad.is_sparse
    assert weight.grad.tolist() == [[2.0, 2.0], [3.0, 3.0], [1.0, 1.0], [2.0, 2.0], [1.0, 1.0]]


def test_modules_hold_sparse_tensors() -> None:
    class Heads(xtensor.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("heads", (xtensor.eye(3) > 0).to_sparse())
            self.scale = xtensor.nn.Parameter(xtensor.eye(3).to_sparse())

    model: Any = Heads().double()
    assert [tuple(i.tolist()) for i in model.heads.indices().T] == [(0, 0), (1, 1), (2, 2)]
    assert model.scale.dtype is xtensor.float64 and [n for n, _ in model.named_parameters()] == ["scale"]
    assert sorted(model.state_dict()) == ["heads", "scale"]
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict())
    kept = twin.scale * 2
    kept.retain_grad()
    kept.to_dense().sum().backward()
    assert twin.scale.grad.is_sparse and kept.grad.is_sparse
    assert twin.scale.grad.to_dense().tolist() == (xtensor.eye(3) * 2).tolist()


OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SparseAdam": lambda t, p: t.optim.SparseAdam(p, lr=0.1),
    "SGD": lambda t, p: t.optim.SGD(p, lr=0.1),
    "momentum": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adagrad": lambda t, p: t.optim.Adagrad(p, lr=0.1, lr_decay=0.01),
}


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_embeddings_train_with_sparse_gradients(name: str, bag: bool) -> None:
    found = []
    for lib in (xtensor, torch):
        kind = lib.nn.EmbeddingBag if bag else lib.nn.Embedding
        options = {"mode": "mean"} if bag else {}
        table = kind(7, 3, sparse=True, padding_idx=2, **options)
        with lib.no_grad():
            table.weight.copy_(lib.arange(21.0).reshape(7, 3) / 10)
        optimizer = OPTIMIZERS[name](lib, list(table.parameters()))
        for step in range(3):
            optimizer.zero_grad()
            out = table(lib.tensor([[1, 1 + step], [4, 2]]))
            (out**2).sum().backward()
            assert table.weight.grad.is_sparse
            optimizer.step()
        found.append(np.asarray(table.weight.detach()))
    assert np.allclose(found[0], found[1], atol=1e-5)


def test_optimizers_without_sparse_steps_say_so() -> None:
    table = xtensor.nn.Embedding(3, 2, sparse=True)
    table(xtensor.tensor([1])).sum().backward()
    with pytest.raises(
        RuntimeError, match="Adam does not support sparse gradients, please consider SparseAdam instead"
    ):
        xtensor.optim.Adam(table.parameters()).step()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        p = xtensor.ones(2, requires_grad=True)
        p.sum().backward()
        xtensor.optim.SparseAdam([p]).step()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 1\]\]: SparseAdam requires dense"):
        xtensor.optim.SparseAdam([p, p.detach().to_sparse()])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_go_to_pytorch_and_back(layout: str) -> None:
    theirs = made(torch, layout)
    file = io.BytesIO()
    torch.save({"t": theirs}, file)
    file.seek(0)
    ours = xtensor.load(file)["t"]
    assert plain(ours) == plain(theirs)
    file = io.BytesIO()
    xtensor.save({"t": ours}, file)
    file.seek(0)
    assert plain(torch.load(file)["t"]) == plain(theirs)
    assert plain(pickle.loads(pickle.dumps(ours))) == plain(theirs)
    twin = copy.deepcopy(ours)
    assert plain(twin) == plain(theirs) and twin._values() is not ours._values()


def test_invariants_can_be_switched_on() -> None:
    check = xtensor.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    with check(), pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        xtensor.sparse_coo_tensor([[3]], [1.0], (2,))

    @check()
    def function() -> bool:
        return check.is_enabled()

    assert function() and not check.is_enabled()


def test_gradcheck_of_elements() -> None:
    check = xtensor.sparse.as_sparse_gradcheck(xtensor.autograd.gradcheck)
    s = coo(xtensor).coalesce().double().detach().requires_grad_()
    d = dense(xtensor).double().requires_grad_()
    assert check(lambda a, b: xtensor.sparse.mm(a, b), (s, d))
    assert check(lambda a: xtensor.sparse.softmax(a, 1), (s,))
    c = coo(xtensor).double().to_sparse_csr().detach().requires_grad_()
    assert check(lambda a, b: (a @ b).sin(), (c, d))


def test_sampled_products() -> None:
    a, b = dense(xtensor), dense(xtensor).t()
    c = made(xtensor, "csr")
    found = xtensor.sparse.sampled_addmm(c, a, b, beta=0.5, alpha=2.0).to_dense()
    mask = (c.to_dense() != 0).float()
    assert np.allclose(found.tolist(), (0.5 * c.to_dense() + 2 * (a @ b) * mask).tolist())


def graph(lib: Any) -> Any:
    """A graph of five nodes, its edges and symmetric normalisation as a graph convolution takes them."""
    edges = lib.tensor([[0, 1, 1, 2, 3, 4, 0, 3], [1, 0, 2, 1, 4, 3, 3, 0]])
    loops = lib.arange(5)
    index = lib.cat([edges, lib.stack([loops, loops])], 1)
    weights = lib.ones(index.shape[1])
    a = lib.sparse_coo_tensor(index, weights, (5, 5)).coalesce()
    degree = lib.sparse.sum(a, 1).to_dense().pow(-0.5)
    row, column = a.indices()
    return lib.sparse_coo_tensor(a.indices(), a.values() * degree[row] * degree[column], (5, 5)).coalesce()


def convolution(lib: Any) -> list[float]:
    """Three steps of a graph convolution network."""
    a, x = graph(lib), lib.arange(20.0).reshape(5, 4) / 20
    first = (lib.arange(12.0).reshape(4, 3) / 12).requires_grad_()
    second = (lib.arange(6.0).reshape(3, 2) / 6).requires_grad_()
    losses = []
    optimizer = lib.optim.SGD([first, second], lr=0.5)
    for _ in range(3):
        hidden = lib.spmm(a, x @ first).relu()
        out = lib.sparse.mm(a, hidden @ second).log_softmax(1)
        loss = lib.nn.functional.nll_loss(out, lib.tensor([0, 1, 0, 1, 1]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def attention(lib: Any) -> list[float]:
    """Two steps of a layer of graph attention: a sparse softmax over neighbours."""
    a, x = graph(lib), lib.arange(20.0).reshape(5, 4) / 20
    weight = (lib.arange(12.0).reshape(4, 3) / 12 - 0.4).requires_grad_()
    scores = (lib.arange(6.0).reshape(6, 1) / 6 - 0.5).requires_grad_()
    losses = []
    for _ in range(2):
        h = x @ weight
        row, column = a.indices()
        e = lib.nn.functional.leaky_relu((lib.cat([h[row], h[column]], 1) @ scores).squeeze(1), 0.2)
        attended = lib.sparse.softmax(lib.sparse_coo_tensor(a.indices(), e, (5, 5)), 1)
        out = lib.sparse.mm(attended, h)
        loss = (out**2).sum()
        grads = lib.autograd.grad(loss, [weight, scores])
        with lib.no_grad():
            weight -= 0.1 * grads[0]
            scores -= 0.1 * grads[1]
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("program", [convolution, attention])
def test_graph_networks_train_as_in_pytorch(program: Any) -> None:
    assert np.allclose(program(xtensor), program(torch), rtol=1e-4)


def test_random_programs_are_those_of_dense_tensors(rng: Any) -> None:
    """Chains of operators, sparse and dense side by side."""
    steps: list[Callable[[Any, Any], Any]] = [
        lambda s, d: s * 2,
        lambda s, d: s.sin(),
        lambda s, d: s + s,
        lambda s, d: s * d,
        lambda s, d: s.t(),
        lambda s, d: s.transpose(0, 1) + s,
        lambda s, d: s @ s.t() if s.layout is xtensor.strided else xtensor.sparse.mm(s, s.t()),
        lambda s, d: s - s * d,
        lambda s, d: s.relu(),
        lambda s, d: s.index_select(0, xtensor.tensor([3, 1, 0, 2])),
    ]
    for _ in range(20):
        whole = np.where(rng.random((4, 4)) < 0.4, rng.standard_normal((4, 4)), 0)
        d, x = xtensor.tensor(rng.standard_normal((4, 4))), xtensor.tensor(whole)
        s: Any = x.to_sparse()
        for at in rng.integers(0, len(steps), 4):
            s, x = steps[at](s, d), steps[at](x, d)
        assert np.allclose(s.to_dense().tolist(), x.tolist(), atol=1e-8)


def test_leaves_do_not_share_the_memory_of_a_sparse_gradient():
    class Twice(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    a, b = (xtensor.ones(4, 2, requires_grad=True) for _ in range(2))
    xtensor.nn.functional.embedding(xtensor.tensor([1, 2]), Twice.apply(a, b), sparse=True).sum().backward()
    a.grad._values().mul_(5)
    assert (a.grad.to_dense().sum().item(), b.grad.to_dense().sum().item()) == (20.0, 4.0)


@pytest.mark.parametrize("alpha", [1, 2])
def test_differences_are_those_of_the_wider_type(torch: Any, alpha: int) -> None:
    def shown(t: Any) -> list[Any]:
        a, b = t.tensor([-100, 3], dtype=t.int8), t.tensor([200, 7], dtype=t.uint8)
        sparse = a.to_sparse(), b.to_sparse()
        found = [
            t.sub(*sparse, alpha=alpha),
            t.sub(*sparse[::-1], alpha=alpha),
            t.sub(a, sparse[1], alpha=alpha),
        ]
        return [(str(f.dtype).partition(".")[2], f.to_dense().tolist()) for f in found]

    assert shown(xtensor) == shown(torch)


def test_leaves_are_sparse_whatever_ran_before() -> None:
    where, values = xtensor.tensor([[0, 1], [1, 0]]), xtensor.tensor([2.0, 3.0])
    first = xtensor.sparse_coo_tensor(where, values)
    (first * first).to_dense()  # from here on functions written in Python ask classes, too
    makers: list[Callable[..., Any]] = [
        lambda **o: xtensor.sparse_coo_tensor(where, values, (2, 2), **o),
        lambda **o: xtensor.sparse_coo_tensor(where, values, **o),
        lambda **o: xtensor.sparse_coo_tensor((2, 2), **o),
        lambda **o: xtensor.sparse_csr_tensor([0, 1, 2], [1, 0], values, (2, 2), **o),
        lambda **o: xtensor.sparse_csc_tensor([0, 1, 2], [1, 0], values, (2, 2), **o),
        lambda **o: xtensor.sparse_bsr_tensor([0, 1, 2], [1, 0], values[:, None, None], (2, 2), **o),
    ]
    for make in makers:
        leaf = make(requires_grad=True)
        assert leaf.layout is make().layout and leaf.is_leaf and leaf.requires_grad
    leaf = makers[0](requires_grad=True)
    (leaf * leaf).to_dense().sum().backward()
    assert leaf.grad is not None and leaf.grad.to_dense().tolist() == [[0, 4], [6, 0]]
