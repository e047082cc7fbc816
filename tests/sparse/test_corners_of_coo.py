"""Corners of sparse tensors: sizes that do not fit, elements out of order, nothing stored, memory that is shared, no device."""

from __future__ import annotations

import types
import warnings
from typing import Any

import pytest

import xtensor
from tests.expressions import described, named
from xtensor.interop.private_kernels import KERNELS


def tensors(lib: Any) -> dict[str, Any]:
    """`u` with two elements at a place, `c` without, `h` with dense dimensions, `z` without elements, and dense `d`; `P` has the
    private names.
    """
    places = [[0, 0, 1], [1, 1, 2]]
    u = lib.sparse_coo_tensor(places, [1.0, 2.0, 3.0], (2, 3))
    d = lib.arange(6.0).reshape(2, 3)
    return {
        "T": lib,
        "P": types.SimpleNamespace(**KERNELS) if lib is xtensor else lib,
        "u": u,
        "c": u.coalesce(),
        "h": lib.sparse_coo_tensor(places, lib.arange(12.0).reshape(3, 2, 2), (2, 3, 2, 2)),
        "z": lib.sparse_coo_tensor((2, 3)),
        "d": d,
        "csr": d.to_sparse_csr(),
        "bsr": lib.arange(16.0).reshape(4, 4).to_sparse_bsr((2, 2)),
        "i": lib.tensor([[0], [1]]),
        "v": lib.tensor([3.0]),
    }


def answer(lib: Any, text: str) -> Any:
    """What an expression gives, whether that is in order, or the class and the words of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = eval(text, tensors(lib))
        except Exception as error:
            words = (
                named(str(error))
                .split(", but expected")[0]
                .split("  (")[0]
                .split(" This could be")[0]
                .split("\n")[0]
            )
            return type(error).__name__, words
        if isinstance(made, lib.Tensor) and made.layout is lib.sparse_coo:
            return named(repr(made)), made.is_coalesced()
        return (
            described(made)
            if not hasattr(made, "layout") or made.layout is lib.strided
            else named(repr(made))
        )


LINES = """
T.sparse_coo_tensor([[], []], [], (2, 2)).is_coalesced()
T.sparse_coo_tensor([[0], [0]], [1], (2, 2)).is_coalesced()
T.sparse_coo_tensor([[0], [0]], [1], (2, 2), is_coalesced=False).is_coalesced()
T.sparse_coo_tensor([[0, 0], [0, 0]], [1, 2], (2, 2), is_coalesced=True, check_invariants=True)
T.sparse_coo_tensor([[0, 0], [1, 0]], [1, 2], (2, 2), is_coalesced=True, check_invariants=True)
T.sparse_coo_tensor([[0, 0], [0, 1]], [1, 2], (2, 2), is_coalesced=True, check_invariants=True)
T.sparse_coo_tensor(T.tensor([[1, 0]] * 4), T.tensor([1.0, 2.0]), (1000000,) * 4)
T.sparse_coo_tensor(size=(2, 3))
z._coalesced_(False).clone()
T.tensor(1.0).to_sparse() / T.tensor(1.0).to_sparse()
T.tensor(1.0).to_sparse() // T.tensor(1.0).to_sparse()
c / d
d / c
d // c
2.0 // c
u.copy_(u.narrow_copy(0, 0, 1))
u.copy_(h)
u.copy_(z)
u.copy_(csr)
d.copy_(u)
csr.copy_(u)
csr.copy_(T.zeros(2, 3).to_sparse_csr())
bsr.copy_(bsr.to_dense().to_sparse_csr())
T.zeros(3) + u
T.zeros(2, 3) + T.sparse_coo_tensor([[1]], [3.0], (3,))
T.zeros(()) + c
d.add_(T.sparse_coo_tensor((3,)))
d[0] + csr
csr + T.ones(3, 3).to_sparse_csr()
T.sparse_coo_tensor([2, 3, 2, 2]) + h
h + T.sparse_coo_tensor([2, 3, 2, 2])
T.sparse_coo_tensor((2, 3), dtype=T.float64) + u
u + z
h + h.to_dense().to_sparse()
u.asin_()
u.arcsin_()
u.int().log1p_()
u.neg_()
T.zeros_like(c, memory_format=T.contiguous_format)
T.empty_like(c, memory_format=T.preserve_format)
T.empty_like(d, layout=T.sparse_coo)
h.narrow_copy(2, 0, 1)
h.narrow_copy(2, 1, 3)
h.narrow_copy(1, -1, 1)
h.narrow_copy(1, 0, -1)
h.narrow_copy(4, 0, 1)
c.norm(keepdim=True)
c.norm(dim=0)
c.norm(dtype=T.double, p="fro")
c.norm(dtype=T.double, p=0)
T.tensor(2.0).to_sparse() * T.sparse_coo_tensor(T.zeros(0, 3).long(), T.tensor([1.0, 2.0, 3.0]), ())
T.sparse_coo_tensor(T.zeros(0, 3).long(), T.zeros(3, 0), (0,)) * T.zeros(0)
T.sparse_coo_tensor(T.zeros(0, 3).long(), T.arange(6.0).reshape(3, 2), (2,)) * T.sparse_coo_tensor(T.zeros(0, 3).long(), T.arange(6.0).reshape(3, 2), (2,))
u * T.zeros(4)
u * T.arange(12.0).reshape(2, 2, 3)
u * u
u * c
c * u
h * h
h * T.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], T.arange(6.0).reshape(3, 2, 1), (2, 3, 2, 1))
z * d
csr * T.zeros(2, 3).to_sparse_csr()
T.zeros(1, 0, 2).to_sparse(2)
T.zeros(0, 2).to_sparse(1)
T.zeros(1, 0, 2).to_sparse_csr(dense_dim=1)
d.to_sparse(0)
d.to_sparse(3)
d.to_sparse(dense_dim=1)
d.to_sparse(dense_dim=2)
d.to_sparse(blocksize=(1,))
d.to_sparse(blocksize=(1, 1))
d.to_sparse(layout=T.sparse_bsr)
d.to_sparse(layout=T.sparse_bsr, blocksize=(1, 1, 1))
d.to_sparse_bsr((0, 1))
d.to_sparse_bsr((2, 2))
d.to_sparse_csr(dense_dim=1)
c.to_sparse(0)
c.to_sparse(1)
c.to_sparse(2)
csr.to_sparse(1)
c.to_sparse_csr(dense_dim=1)
c.to_sparse_bsr((5, 5))
u.short()[0, 1]
u.bool()[0, 1]
T.sparse_coo_tensor([[0, 0]], T.tensor([[1, 2], [3, 4]], dtype=T.int16), (3, 2))[0]
c.permute((1, 1))
c[0].permute(1, 0)
T.tensor(2.0).to_sparse().mT
c[0].mT
c[0].trace()
c[0] @ d.t()
T.bmm(h[..., 0], T.ones(2, 3, 1))
T.nn.functional.linear(d, c[0])
T.nn.functional.linear(d, T.tensor(2.0).to_sparse())
T.sparse.softmax(c.int(), 0)
T.sparse.log_softmax(c.int(), 0)
h.permute((0, 2, 1, 3))
h.permute((1, 0, 3, 2))
c.__setitem__(0, 100)
T.sparse.spdiags(T.ones(2, 3), T.tensor([[1, 2], [0, 3]]), (3, 3))
T.sparse.spdiags(T.ones(2, 2), T.tensor([-1, 0]), (2, 3), T.strided)
T.sparse.spdiags(T.ones(1, 5), T.tensor([0]).int(), (2, 3))
c.new()
c.new(i, v)
c.new(i, v, (2, 3))
c.new(T.Size((2, 3)))
c.new([6])
c.new(v)
c.new(i, v, device="cuda")
csr.new(T.Size((2, 3)))
T.sparse.FloatTensor((2, 3))
T.sparse.DoubleTensor(cdata=c._cdata)
P._sparse_broadcast_to(c, (2, 2, 3))
P._sparse_broadcast_to(c, (3, 3))
P._sparse_broadcast_to(c, (3,))
P._sparse_broadcast_to(T.sparse_coo_tensor([[0, 0], [1, 2]], T.ones(2, 1), (1, 3, 1)), (2, 3, 2))
T.zeros(2, 3, out=h)
T.zeros((4,), out=c)
T.ones((4,), out=c)
P._validate_sparse_coo_tensor_args(T.tensor([[0], [3]]), v, (2, 2))
P._validate_sparse_coo_tensor_args(i, v, (2, 2, 2))
P._validate_sparse_compressed_tensor_args(T.tensor([0, 1, 1]), T.tensor([3]), v, (2, 2), T.sparse_csr)
P._validate_sparse_compressed_tensor_args(T.tensor([0, 1, 1]), T.tensor([1]), v, (2, 2), T.sparse_csr)
P._validate_sparse_csc_tensor_args(T.tensor([0, 1, 1]), T.tensor([3]), v, (2, 2))
c.sum([0, 0])
h.sum(2)
u.sum([])
T.sparse.sum(u, [])
T.sparse.sum(c.int(), 0)
T.sparse.sum(u.bool())
T.sparse.sum(u.bool(), 0)
T.sparse.mm(c.double(), d.t().to_sparse())
T.sparse.mm(c.double(), d.t())
T.sparse_coo_tensor((2, 3), device="meta")
T.empty(2, 3, layout=T.sparse_coo, device="meta").is_meta
T.empty(2, 3, layout=T.sparse_csr, device="meta")
T.empty(2, 3, 2, layout=T.sparse_csc, device="meta")
T.empty(3, layout=T.sparse_csc)
h.to("meta")
bsr.to("meta")
T.zeros_like(csr, device="meta")
T.empty_like(csr, device="meta")
T.sum(csr.to("meta"))
T.add(csr.to("meta"), csr.to("meta"))
csr.to("meta").t()
T.sparse_csr_tensor(T.empty(3, device="meta").long(), T.empty(0, device="meta").long(), T.empty(0, device="meta"), (2, 3))
"""


@pytest.mark.parametrize("line", LINES.strip().splitlines())
def test_corners(line: str, torch: Any) -> None:
    assert answer(xtensor, line) == answer(torch, line)


def test_parts_share_memory_and_no_sizes() -> None:
    i, v = xtensor.tensor([[2]]), xtensor.tensor([5.0])
    x: Any = xtensor.sparse_coo_tensor(i, v, (3,))
    v[0] = 6
    assert x.to_dense().tolist() == [0, 0, 6]
    i[0][0] = 0
    assert x.to_dense().tolist() == [6, 0, 0]
    i.resize_(2, 3)
    v.resize_(4, 5)
    assert tuple(x.coalesce().values().shape) == (1,)


def test_a_resized_tensor_keeps_its_memory() -> None:
    x: Any = xtensor.sparse_coo_tensor([[0]], xtensor.arange(6.0).reshape(1, 2, 3), (2, 2, 3))
    x.resize_as_(xtensor.sparse_coo_tensor([[0]], xtensor.ones(1, 2, 4), (2, 2, 4)))
    assert x.to_dense().reshape(-1)[:6].tolist() == [0, 1, 2, 3, 4, 5]


def test_check_invariants_is_entered_once() -> None:
    context = xtensor.sparse.check_sparse_tensor_invariants()
    with context, pytest.raises(RuntimeError, match="already activated"), context:
        pass
    assert not context.is_enabled()


def test_gradients_of_elements_out_of_order() -> None:
    x: Any = xtensor.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], [1.0, 2.0, 3.0], (2, 3), dtype=xtensor.float64)
    x.requires_grad_()
    for dims in ((0,), (1,), (0, 1)):

        def summed(s: Any, dims: tuple[int, ...] = dims) -> Any:
            return xtensor.sparse.sum(s, dims).to_dense()

        assert xtensor.autograd.gradcheck(summed, (x,), masked=True)
    y: Any = xtensor.sparse_coo_tensor((2, 3), dtype=xtensor.float64)
    y.copy_(x)
    (y * 2).backward(x.detach())
    assert x.grad.to_dense().tolist() == [[0, 6, 0], [0, 0, 6]]


def test_gradients_of_as_many_rows_and_other_elements() -> None:
    """Programs for 3 and 2 elements in rows as long are two."""
    for count in (3, 2):
        x: Any = xtensor.sparse_coo_tensor(
            xtensor.tensor([[0, 0, 1], [0, 1, 0]])[:, :count], xtensor.ones(count), (2, 2)
        )
        x.requires_grad_()
        xtensor.sparse.mm(x, xtensor.eye(2)).sum().backward()
        assert x.grad._nnz() == count
