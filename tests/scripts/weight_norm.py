"""Weight and spectral normalisation, orthogonal parametrizations, pruning."""

import json

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from same import fill, tensor
from torch.nn.utils import parameters_to_vector, prune
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


def main():
    model = nn.Sequential(
        nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 1)
    )
    fill(model)
    weight_norm(model[0])
    parametrize.register_parametrization(model[2], "weight", Symmetric())
    spectral_norm(model[4])
    with torch.no_grad():
        held = model[4].parametrizations.weight[0]
        held._u.copy_(tensor(6, seed=8) / tensor(6, seed=8).norm())
        held._v.copy_(tensor(6, seed=9) / tensor(6, seed=9).norm())
    prune.l1_unstructured(model[6], name="weight", amount=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    x, y = tensor(8, 4, seed=1), tensor(8, 1, seed=2)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    prune.remove(model[6], "weight")
    parametrize.remove_parametrizations(model[2], "weight")
    symmetric = (model[2].weight - model[2].weight.t()).abs().max().item()
    zeros = int((model[6].weight == 0).sum())
    return [*losses, symmetric, float(zeros), parameters_to_vector(model.parameters()).sum().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
