"""Learning-rate schedules over optimisers with several groups: what each gives, and the losses of a run."""

import json

import torch
from same import fill, tensor
from torch import nn, optim
from torch.optim import lr_scheduler
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn


def rates(make, steps=7, **options):
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 1)])
    optimizer = optim.SGD(
        [{"params": layers[0].parameters()}, {"params": layers[1].parameters(), "lr": 0.01}],
        lr=0.1,
        momentum=0.9,
    )
    scheduler = make(optimizer)
    found = []
    for step in range(steps):
        optimizer.step()
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            scheduler.step(1.0 if step > 1 else 2.0 - step)
        else:
            scheduler.step()
        found += [group["lr"] for group in optimizer.param_groups]
    return sum((i + 1) * rate for i, rate in enumerate(found))


def main():
    results = [
        rates(lambda o: lr_scheduler.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)])),
        rates(lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.8)),
        rates(lambda o: lr_scheduler.MultiStepLR(o, [2, 5], gamma=0.3)),
        rates(lambda o: lr_scheduler.PolynomialLR(o, total_iters=5, power=2.0)),
        rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=2, T_mult=2, eta_min=1e-3)),
        rates(lambda o: lr_scheduler.OneCycleLR(o, max_lr=[0.2, 0.05], total_steps=8)),
        rates(
            lambda o: lr_scheduler.CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=2, mode="triangular2")
        ),
        rates(lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.5)),
        rates(
            lambda o: lr_scheduler.ChainedScheduler(
                [lr_scheduler.ConstantLR(o, factor=0.5, total_iters=3), lr_scheduler.ExponentialLR(o, 0.9)]
            )
        ),
    ]
    model = fill(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1)))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    averaged = AveragedModel(model)
    schedule = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    x, y = tensor(12, 3, seed=1), tensor(12, 1, seed=2)
    for _ in range(4):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averaged.update_parameters(model)
        schedule.step()
        results.append(loss.item())
    update_bn([x[:6], x[6:]], averaged)
    averaged.eval()
    with torch.no_grad():
        results.append(nn.functional.mse_loss(averaged(x), y).item())
    return results


if __name__ == "__main__":
    print(json.dumps(main()))
