"""A loop: data, optimizers, schedules, mixed precision, compiled steps."""

import xtensor
import xtensor.nn.functional as F
from xtensor import Tensor, nn
from xtensor.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR
from xtensor.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return xtensor.tensor([float(index)]), xtensor.tensor([float(index) ** 2])


xtensor.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
others = [
    xtensor.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    xtensor.optim.Adam([{"params": model.parameters(), "lr": 1.0}]),
]
schedules = [
    CosineAnnealingLR(optimizer, T_max=10),
    StepLR(optimizer, 10, gamma=0.5),
    OneCycleLR(optimizer, 0.1, total_steps=100),
]
train, test = random_split(Squares(), [48, 16])
loader = DataLoader(train, batch_size=16, shuffle=True, drop_last=True)


def step(x: Tensor, y: Tensor) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


fast = xtensor.compile(step)
for epoch in range(2):
    for x, y in loader:
        print(epoch, step(x, y).item())
        fast(x, y)
    schedules[0].step()
    print(optimizer.param_groups[0]["lr"], schedules[0].get_last_lr(), len(test), len(loader))
scaler = xtensor.amp.GradScaler("cpu")
with xtensor.autocast("cpu", dtype=xtensor.bfloat16):
    out: Tensor = model(xtensor.rand(4, 1))
scaler.scale(out.sum()).backward()
scaler.step(optimizer)
scaler.update()
for batch in DataLoader(TensorDataset(xtensor.arange(4), xtensor.arange(4)), batch_size=2):
    print(batch[0].shape)
averaged = xtensor.optim.swa_utils.AveragedModel(model)
averaged.update_parameters(model)
