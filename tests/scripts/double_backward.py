"""A Wasserstein GAN's gradient penalty, a Hessian-vector product, and a step of model-agnostic meta-learning."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import fill, tensor
from torch import autograd


def gradient_penalty(critic, real, fake, alpha):
    interpolated = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = critic(interpolated)
    (gradients,) = autograd.grad(
        outputs=scores,
        inputs=interpolated,
        grad_outputs=torch.ones_like(scores),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def main():
    critic = fill(
        nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 8), nn.Softplus(), nn.Linear(8, 1))
    )
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
    losses = []
    for step in range(3):
        real, fake = tensor(6, 3, seed=step), tensor(6, 3, seed=50 + step, scale=2.0)
        alpha = tensor(6, 1, seed=90 + step).sigmoid()
        optimizer.zero_grad()
        loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake, alpha)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    weights = [p.clone().detach().requires_grad_() for p in critic.parameters()]

    def loss_of(w, x, y):
        return F.mse_loss(torch.tanh(x @ w[0].t() + w[1]) @ w[4].t() + w[5], y)

    outer = 0
    for task in range(2):
        x, y = tensor(5, 3, seed=task), tensor(5, 1, seed=task + 7)
        grads = autograd.grad(loss_of(weights, x, y), weights, create_graph=True, allow_unused=True)
        fast = [w - 0.1 * g if g is not None else w for w, g in zip(weights, grads)]
        outer = outer + loss_of(fast, x.flip(0), y.flip(0))
    outer.backward()
    losses += [outer.item(), sum(w.grad.abs().sum() for w in weights if w.grad is not None).item()]

    z = tensor(4, seed=3).requires_grad_()
    _, hv = autograd.functional.hvp(lambda t: (t.sin() * t.roll(1).exp()).sum(), z, tensor(4, seed=4))
    hessian = autograd.functional.hessian(lambda t: (t.sin() * t.roll(1).exp()).sum(), z)
    return [*losses, hv.sum().item(), hessian.diagonal().sum().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
