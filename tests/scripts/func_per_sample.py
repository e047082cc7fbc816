"""Gradients of every sample of a batch: a loop over samples, and functional_call, grad and vmap of a small CNN."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor
from torch.func import functional_call, grad, vmap


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 6, 3, 1)
        self.fc1 = nn.Linear(54, 12)
        self.fc2 = nn.Linear(12, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    model = fill(CNN())
    data, targets = tensor(6, 1, 10, 10, seed=1), classes(6, count=10, seed=2)

    def gradient(sample, target):
        loss = F.nll_loss(model(sample.unsqueeze(0)), target.unsqueeze(0))
        return torch.autograd.grad(loss, list(model.parameters()))

    loop = [torch.stack(parts) for parts in zip(*[gradient(d, t) for d, t in zip(data, targets)])]

    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def loss_of(params, buffers, sample, target):
        predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
        return F.nll_loss(predictions, target.unsqueeze(0))

    take = vmap(grad(loss_of), in_dims=(None, None, 0, 0))
    found = take(params, buffers, data, targets)
    for one, many in zip(loop, found.values()):
        assert torch.allclose(one, many, atol=3e-5, rtol=1e-3)
    different = vmap(grad(loss_of), in_dims=(None, None, 0, 0), randomness="different", chunk_size=4)
    again = different(params, buffers, data, targets)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in found.values()]).norm(dim=0)
    return [*norms.tolist(), *[g.abs().sum().item() for g in again.values()]]


if __name__ == "__main__":
    print(json.dumps(main()))
