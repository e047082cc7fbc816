"""Making tensors, their shapes and views, indexing, writing."""

import numpy as np

import xtensor
from xtensor import Tensor

# Making
a: Tensor = xtensor.tensor([[1, 2], [3, 4]], dtype=xtensor.float32)
b: Tensor = xtensor.zeros(2, 3, dtype=xtensor.float64, device="cpu", requires_grad=True)
c = xtensor.ones((2, 3)) + xtensor.full((2, 3), 2.5) * xtensor.eye(2, 3)
d = xtensor.arange(12).view(3, 4)
e = xtensor.linspace(0, 1, 5)
f = xtensor.rand(2, 2) - xtensor.randn(2, 2) / xtensor.randint(1, 5, (2, 2))
like: list[Tensor] = [
    xtensor.empty_like(d),
    xtensor.full_like(d, 3),
    xtensor.ones_like(d),
    xtensor.rand_like(a),
    xtensor.randn_like(a),
    xtensor.randint_like(d, 5),
    d.new_zeros(2, 2),
    d.new_ones(2, 2),
    d.new_full((2, 2), 7),
    d.new_empty(2, 2),
    d.new_tensor([1, 2]),
]
assert [t.dtype for t in like[:3]] == [xtensor.int64] * 3 and like[8].sum() == 28
assert xtensor.logspace(0, 2, 3).tolist() == [1.0, 10.0, 100.0]
assert xtensor.empty_strided((2, 3), (3, 1)).stride() == (3, 1)
assert xtensor.frombuffer(bytearray(b"\1\2\3"), dtype=xtensor.uint8).tolist() == [1, 2, 3]
assert xtensor.complex(a, a).is_complex() and xtensor.polar(a, a).dtype == xtensor.complex64
assert xtensor.scalar_tensor(3.0).dim() == 0 and xtensor.tril_indices(3, 3).shape == (2, 6)
assert xtensor.triu_indices(3, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]

# Asking
shape: xtensor.Size = d.shape
rows: int = shape[0]
count: int = d.numel()
dims: int = d.dim()
strides: tuple[int, ...] = d.stride()
value = a[0, 0].item()
values = a.tolist()
text: str = repr(d) + str(a.dtype) + str(a.device)
sizes: list[int] = [d.ndim, d.nbytes, d.itemsize, d.element_size(), d.storage_offset(), d.size(0)]
assert sizes == [2, 96, 8, 8, 0, 3] and d.untyped_storage().nbytes() == 96
flags: list[bool] = [a.is_cpu, a.is_cuda, a.is_meta, a.is_leaf, a.is_signed(), a.is_conj(), a.is_neg()]
assert flags == [True, False, False, True, True, False, False]
assert xtensor.is_tensor(a) and not xtensor.is_tensor(3) and xtensor.is_floating_point(a)
assert xtensor.is_complex(a) is False and xtensor.is_nonzero(a[0, 0]) and a.data_ptr() == a.data.data_ptr()
assert xtensor.can_cast(xtensor.int32, xtensor.float32) and xtensor.typename(a) == "xtensor.FloatTensor"
assert xtensor.result_type(d, 1.5) == xtensor.promote_types(xtensor.int64, xtensor.float32) == xtensor.float32
assert xtensor.finfo(xtensor.float32).eps < 1e-6 and xtensor.iinfo(xtensor.int8).max == 127
assert a.type() == "xtensor.FloatTensor" and not a.is_inference() and a.is_same_size(f)
print(len(d), bool(a.all()), float(a.sum()), int(a.max()), a.device.type, a.dtype.is_floating_point)
print(xtensor.equal(a, a), a.is_contiguous(), a.requires_grad, a.is_floating_point(), a.layout)

# Shapes
g = d.t().reshape(-1).unsqueeze(0).squeeze().permute(0).contiguous().clone()
h = xtensor.cat([a, a], dim=0)
i = xtensor.stack([a, a], 1)
j, k = xtensor.split(h, 2)
parts: list[Tensor] = list(h.chunk(2)) + list(h.unbind(0)) + list(d.tensor_split(2)) + list(h.split([1, 3]))
assert d.T.shape == d.mT.shape == (4, 3) and d.ravel().shape == d.flatten().shape == (12,)
assert d.transpose(0, 1).swapaxes(0, 1).swapdims(0, 1).shape == (4, 3)
assert xtensor.movedim(i, 0, 2).shape == xtensor.moveaxis(i, 0, 2).shape == (2, 2, 2)
assert xtensor.unflatten(d, 1, (2, 2)).shape == (3, 2, 2) and d.view_as(d).equal(d.reshape_as(d))
assert xtensor.hstack([a, a]).shape == (2, 4) and xtensor.vstack([a, a]).shape == (4, 2)
assert xtensor.dstack([a, a]).shape == (2, 2, 2) and xtensor.column_stack([a, a]).shape == (2, 4)
assert [t.shape for t in xtensor.hsplit(d, 2)] == [(3, 2)] * 2 and len(xtensor.vsplit(d, 3)) == 3
assert xtensor.atleast_1d(xtensor.tensor(1)).dim() == 1 and xtensor.concat([a, a]).equal(h)
assert xtensor.atleast_2d(xtensor.tensor(1)).dim() == 2 and xtensor.atleast_3d(a).dim() == 3
assert d[0].expand(3, 4).shape == d[0].expand_as(d).shape == xtensor.broadcast_to(d[0], (3, 4)).shape
assert [t.shape for t in xtensor.broadcast_tensors(d[:, :1], d[:1])] == [(3, 4)] * 2
assert xtensor.broadcast_shapes((3, 1), (4,)) == (3, 4) and a.repeat(2, 1).shape == (4, 2)
assert xtensor.tile(a, (2,)).shape == (2, 4) and xtensor.repeat_interleave(a, 2, dim=0).shape == (4, 2)
assert d.narrow(1, 1, 2).equal(d[:, 1:3]) and d.select(0, 1).equal(d[1])
assert d.unfold(1, 2, 2).shape == (3, 2, 2) and d.as_strided((2, 2), (4, 1)).tolist() == [[0, 1], [4, 5]]
assert xtensor.fliplr(d).flipud().equal(d.flip(0, 1)) and xtensor.rot90(d).shape == (4, 3)
assert xtensor.block_diag(a, a).shape == (4, 4) and xtensor.cartesian_prod(e, e).shape == (25, 2)
assert xtensor.combinations(e, 2).shape == (10, 2) and xtensor.diag(a).tolist() == [1.0, 4.0]
assert xtensor.diag_embed(e).shape == xtensor.diagflat(e).shape == (5, 5) and d.tril().equal(d - d.triu(1))
assert xtensor.view_as_real(xtensor.view_as_complex(a)).equal(a) and a.sum_to_size(1, 2).shape == (1, 2)
assert a.adjoint().equal(a.H) and a.trace() == 5 and xtensor.vander(e[:3]).shape == (3, 3)

# Indexing
row: Tensor = d[1]
part: Tensor = d[:, 1:3]
picked: Tensor = d[[0, 2], [1, 3]]
masked: Tensor = d[d > 4]
first = xtensor.tensor([[0], [1], [2]])
assert d.gather(1, first).equal(d.take_along_dim(first, 1)) and d.take(first[:, 0]).tolist() == [0, 1, 2]
assert xtensor.nonzero(d > 9).equal(xtensor.argwhere(d > 9)) and d.masked_select(d > 9).tolist() == [10, 11]
assert (
    d.index_select(1, xtensor.tensor([0])).shape == (3, 1) and len(xtensor.unravel_index(first, (3, 4))) == 2
)
assert xtensor.isin(d, xtensor.tensor([1, 2])).sum() == 2 and d.select_scatter(row, 0, 0)[0].equal(row)
assert d.slice_scatter(part, 1, 0, 2).shape == d.diagonal_scatter(first[:, 0]).shape == (3, 4)
assert xtensor.searchsorted(e, e).tolist() == xtensor.bucketize(e, e).tolist() == [0, 1, 2, 3, 4]
assert xtensor.where(d > 5, d, -d).min() == -5 and xtensor.count_nonzero(d) == 11
for line in d:
    print(line.sum().item())

# Writing
d[0] = 7
d[:, 0] = xtensor.arange(3)
d[d > 6] = 0
row.add_(1).mul_(2).sub_(1)
d.fill_(2).zero_().copy_(xtensor.arange(12).view(3, 4))
column = xtensor.tensor([0])
d.index_add_(1, column, first).index_copy_(1, column, first).index_fill_(1, column, 5)
d.scatter_(1, first, 9).scatter_add_(1, first, first)
d.index_put_((column, column), xtensor.tensor([1])).masked_fill_(d > 9, 0)
d.masked_scatter_(d > 8, xtensor.arange(12)).fill_diagonal_(3).clamp_(0, 8)
d.put_(column, xtensor.tensor([4]))
assert d[0, 0] == 4 and int(d.max()) <= 8
a.resize_(4).unsqueeze_(0).squeeze_(0)
a.random_(0, 5).uniform_().normal_().exponential_().bernoulli_(0.5)

# Converting
print(h.to("cpu").to(xtensor.float64).float().half().double().long().bool().int().short().char().byte())
print(h.bfloat16().type_as(h).cpu().detach().apply_(abs), h.cfloat().resolve_conj(), h.map_(h, max))
array: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = h.numpy()
assert xtensor.as_tensor(array).shape == (4, 2) and xtensor.from_numpy(array).equal(h)
