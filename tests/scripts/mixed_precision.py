"""Training under autocast with a gradient scaler; the dtypes on the way are part of the result."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor
from torch.amp import GradScaler, autocast


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1)
        self.norm = nn.LayerNorm(8)
        self.fc1 = nn.Linear(32, 16)
        self.fc2 = nn.Linear(16, 3)
        self.dtypes = []

    def forward(self, x):
        x = self.conv(x)
        self.dtypes.append(x.dtype)
        x = self.norm(x.float())
        x = F.relu(self.fc1(x.flatten(1)))
        self.dtypes.append(x.dtype)
        return self.fc2(x)


def main():
    net = fill(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = GradScaler("cpu", init_scale=128.0, growth_interval=2)
    x, y = tensor(8, 2, 8, seed=1), classes(8, count=3, seed=2)
    exact = []
    losses = []
    for _ in range(4):
        optimizer.zero_grad(set_to_none=True)
        with autocast(device_type="cpu", dtype=torch.bfloat16):
            output = net(x)
            loss = F.cross_entropy(output, y)
        exact.append(float(loss.dtype is torch.float32) + 2 * float(output.dtype is torch.bfloat16))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    exact += [scaler.get_scale(), float(sum(d is torch.bfloat16 for d in net.dtypes))]
    net.fc1.weight.grad[0, 0] = float("inf")
    scaler.unscale_(optimizer)
    before = net.fc1.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    exact += [float(torch.equal(before, net.fc1.weight)), scaler.get_scale()]
    # bfloat16 rounds to three digits: the losses are compared as coarsely.
    return [*exact, *(round(loss, 1) for loss in losses)]


if __name__ == "__main__":
    print(json.dumps(main()))
