"""A denoising diffusion model: noise schedules in buffers, sinusoidal time embeddings, an average of weights."""

import copy
import json
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor


def timestep_embedding(timesteps, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half)
    args = timesteps[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, channels, time):
        super().__init__()
        self.in_layers = nn.Sequential(
            nn.GroupNorm(2, channels), nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1)
        )
        self.emb = nn.Sequential(nn.SiLU(), nn.Linear(time, 2 * channels))
        self.norm = nn.GroupNorm(2, channels)
        self.out = nn.Sequential(nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x, emb):
        h = self.in_layers(x)
        scale, shift = self.emb(emb)[..., None, None].chunk(2, dim=1)
        return x + self.out(self.norm(h) * (1 + scale) + shift)


class Denoiser(nn.Module):
    def __init__(self, channels=4, time=8):
        super().__init__()
        self.time = time
        self.time_embed = nn.Sequential(nn.Linear(time, time), nn.SiLU(), nn.Linear(time, time))
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.middle = ResBlock(channels, time)
        self.head = nn.Conv2d(2 * channels, 1, 3, padding=1)

    def forward(self, x, t):
        emb = self.time_embed(timestep_embedding(t, self.time))
        first = self.stem(x)
        h = self.middle(self.down(first), emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.head(torch.cat([h, first], dim=1))


class Diffusion(nn.Module):
    def __init__(self, model, steps=10):
        super().__init__()
        self.model = model
        betas = torch.linspace(1e-3, 0.2, steps, dtype=torch.float64)
        alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.register_buffer("betas", betas.float())
        self.register_buffer("sqrt_acp", alphas_cumprod.sqrt().float())
        self.register_buffer("sqrt_om_acp", (1 - alphas_cumprod).sqrt().float(), persistent=False)

    def forward(self, x, t, noise):
        shape = (-1, 1, 1, 1)
        noisy = self.sqrt_acp[t].view(shape) * x + self.sqrt_om_acp[t].view(shape) * noise
        return F.mse_loss(self.model(noisy, t), noise)


def main():
    diffusion = Diffusion(fill(Denoiser()))
    average = copy.deepcopy(diffusion.model).requires_grad_(False)
    optimizer = torch.optim.AdamW(diffusion.parameters(), lr=1e-2)
    x = tensor(4, 1, 6, 6, seed=1)
    losses = []
    for step in range(3):
        loss = diffusion(x, classes(4, count=10, seed=step), tensor(4, 1, 6, 6, seed=50 + step))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for held, new in zip(average.parameters(), diffusion.model.parameters()):
                held.lerp_(new, 0.1)
        losses.append(loss.item())
    with torch.no_grad():
        sample = tensor(1, 1, 6, 6, seed=9)
        for t in reversed(range(7, 10)):
            predicted = average(sample, torch.tensor([t]))
            beta = diffusion.betas[t]
            sample = (sample - beta / diffusion.sqrt_om_acp[t] * predicted) / torch.sqrt(1 - beta)
    return [*losses, sample.mean().item(), sample.std().item(), float(len(diffusion.state_dict()))]


if __name__ == "__main__":
    print(json.dumps(main()))
