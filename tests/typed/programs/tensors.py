"""Making tensors, views, indexing, writing."""

import xtensor
from xtensor import Tensor

a: Tensor = xtensor.tensor([[1, 2], [3, 4]], dtype=xtensor.float32)
b: Tensor = xtensor.zeros(2, 3, dtype=xtensor.float64, device="cpu", requires_grad=True)
c = xtensor.ones((2, 3)) + xtensor.full((2, 3), 2.5) * xtensor.eye(2, 3)
d = xtensor.arange(12).view(3, 4)
e = xtensor.linspace(0, 1, 5)
f = xtensor.rand(2, 2) - xtensor.randn(2, 2) / xtensor.randint(1, 5, (2, 2))
row: Tensor = d[1]
part: Tensor = d[:, 1:3]
picked: Tensor = d[[0, 2], [1, 3]]
masked: Tensor = d[d > 4]
d[0] = 7
d[:, 0] = xtensor.arange(3)
d[d > 6] = 0
row.add_(1).mul_(2)
shape: xtensor.Size = d.shape
rows: int = shape[0]
count: int = d.numel()
dims: int = d.dim()
strides: tuple[int, ...] = d.stride()
value = a[0, 0].item()
values = a.tolist()
text: str = repr(d) + str(a.dtype) + str(a.device)
g = d.t().reshape(-1).unsqueeze(0).squeeze().permute(0).contiguous().clone()
h = xtensor.cat([a, a], dim=0)
i = xtensor.stack([a, a], 1)
j, k = xtensor.split(h, 2)
parts: list[Tensor] = list(h.chunk(2)) + list(h.unbind(0))
for line in d:
    print(line.sum().item())
print(len(d), bool(a.all()), float(a.sum()), int(a.max()), a.device.type, a.dtype.is_floating_point)
print(a.to("cpu").to(xtensor.float64).float().half().double().long().bool())
print(xtensor.equal(a, a), a.is_contiguous(), a.requires_grad, a.is_floating_point())
