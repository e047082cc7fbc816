"""Several models at once: stack_module_state, a base model on the meta device, vmap over models with one batch and with several."""

import copy
import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor
from torch.func import functional_call, grad, stack_module_state


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 10)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x):
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x))) * self.scale


def main():
    models = [fill(MLP(), seed=i) for i in range(5)]
    minibatches = tensor(5, 8, 1, 4, 5, seed=9)
    own = torch.stack([model(batch) for model, batch in zip(models, minibatches)])
    same = torch.stack([model(minibatches[0]) for model in models])

    params, buffers = stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")

    def call(params, buffers, x):
        return functional_call(base, (params, buffers), (x,))

    own_at_once = torch.vmap(call)(params, buffers, minibatches)
    same_at_once = torch.vmap(call, in_dims=(0, 0, None))(params, buffers, minibatches[0])
    assert torch.allclose(own, own_at_once, atol=1e-3, rtol=1e-4)
    assert torch.allclose(same, same_at_once, atol=1e-3, rtol=1e-4)

    targets = classes(8, count=10, seed=3)

    def loss_of(params, buffers, x):
        return F.cross_entropy(call(params, buffers, x), targets)

    losses = []
    for _ in range(3):
        grads = torch.vmap(grad(loss_of), in_dims=(0, 0, None))(params, buffers, minibatches[1])
        params = {name: (p - 0.05 * grads[name]).detach() for name, p in params.items()}
        losses += torch.vmap(loss_of, in_dims=(0, 0, None))(params, buffers, minibatches[1]).tolist()
    same_at_once.square().mean().backward()
    return [own_at_once.sum().item(), same_at_once.abs().sum().item(), *losses]


if __name__ == "__main__":
    print(json.dumps(main()))
