"""lion-pytorch, schedulefree, torch-optimizer and madgrad: one small network by each."""

import torch_optimizer
from lion_pytorch import Lion
from madgrad import MADGRAD
from same import done, fill, numbers, show
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch import nn

x, y = numbers(16, 5), numbers(16, 2, seed=1)
for name, kind, options in (
    ("lion", Lion, {"lr": 1e-3}),
    ("madgrad", MADGRAD, {"lr": 1e-2}),
    ("free adam", AdamWScheduleFree, {"lr": 1e-2}),
    ("free sgd", SGDScheduleFree, {"lr": 1e-1}),
    ("radam", torch_optimizer.RAdam, {"lr": 1e-2}),
    ("lamb", torch_optimizer.Lamb, {"lr": 1e-2}),
    ("yogi", torch_optimizer.Yogi, {"lr": 1e-2}),
):
    net = fill(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)))
    optimizer = kind(net.parameters(), **options)
    if hasattr(optimizer, "train"):
        optimizer.train()
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    show(f"train {name}", losses)
done()
