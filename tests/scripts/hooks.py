"""Hooks of every kind: on modules, on tensors, on gradients; what they saw is part of the result."""

import json

import torch
from same import fill, tensor
from torch import nn


def main():
    model = fill(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)))
    seen = []
    model[0].register_forward_hook(
        lambda module, args, output: seen.append(output.detach().abs().sum().item())
    )
    model[1].register_forward_pre_hook(lambda module, args: (args[0] * 1.5,))
    model[2].register_full_backward_hook(
        lambda module, gi, go: seen.append(gi[0].norm().item() + go[0].norm().item())
    )
    model[0].weight.register_hook(lambda grad: grad * 0.5)
    model[2].bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))
    handle = model.register_forward_hook(lambda module, args, output: output + 1)
    x = tensor(5, 4, seed=1).requires_grad_()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        hidden = model(x)
        hidden.retain_grad()
        loss = hidden.pow(2).mean()
        loss.backward()
        seen.append(hidden.grad.abs().sum().item())
        optimizer.step()
        losses.append(loss.item())
        if step == 1:
            handle.remove()
    features = {}

    def keep(name):
        def hook(module, args, kwargs, output):
            features[name] = output

        return hook

    handles = [m.register_forward_hook(keep(n), with_kwargs=True) for n, m in model.named_modules() if n]
    model(x)
    for h in handles:
        h.remove()
    seen += [features[n].sum().item() for n in sorted(features)]
    return losses + seen + [x.grad.norm().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
