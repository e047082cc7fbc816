"""opacus: the gradients of single samples, clipped private steps, ghost clipping, the privacy spent."""

import warnings

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import RDPAccountant
from opacus.layers import DPLSTM
from opacus.validators import ModuleValidator
from same import done, fill, numbers, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
x, y = numbers(16, 1, 8, 8), torch.arange(16) % 3
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
show("errors", len(ModuleValidator.validate(net, strict=False)))
sample = GradSampleModule(fill(ModuleValidator.fix(net)))
nn.CrossEntropyLoss()(sample(x), y).backward()
show("samples", [float(p.grad_sample.norm()) for p in sample.parameters()])
lstm = GradSampleModule(fill(DPLSTM(4, 5, batch_first=True)))
lstm(numbers(3, 6, 4))[0].pow(2).mean().backward()
show("lstm", [float(p.grad_sample.norm()) for p in lstm.parameters()])
for mode in ("hooks", "ghost"):
    model = fill(nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3)))
    loss_of, losses = nn.CrossEntropyLoss(), []
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        criterion=loss_of,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=8),
        noise_multiplier=0.0,
        max_grad_norm=0.5,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    loss_of = made[2] if mode == "ghost" else loss_of
    for a, b in loader:
        optimizer.zero_grad()
        loss = loss_of(model(a), b)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    show(f"train {mode}", [*losses, *(float(p.detach().norm()) for p in model.parameters())])
accountant = RDPAccountant()
for _ in range(10):
    accountant.step(noise_multiplier=1.1, sample_rate=0.05)
show("epsilon", accountant.get_epsilon(1e-5))
done()
