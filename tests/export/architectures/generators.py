"""Models that generate or compare: autoencoders, a generator's network, diffusion, images with text."""

from __future__ import annotations

import math

import xtensor as torch
from xtensor import nn
from xtensor.nn import functional as F

from . import Model, batch, length, model
from .sequences import words
from .vision import ViT


class VAE(nn.Module):
    """As it is served: the mean of the code is decoded, the noise is given."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.mean, self.spread = nn.Linear(256, 6), nn.Linear(256, 6)
        self.first = nn.Linear(6, 256)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid()
        )

    def forward(self, x, noise):
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        z = mean + torch.exp(0.5 * spread) * noise
        return self.decoder(F.relu(self.first(z)).view(-1, 16, 4, 4)), mean, spread


@model
def vae():
    def given(rows):
        return torch.rand(rows, 1, 16, 16), torch.randn(rows, 6)

    size = batch()
    return Model(VAE(), given(2), given(3), ({0: size}, {0: size}))


@model
def gan_generator():
    net = nn.Sequential(
        nn.ConvTranspose2d(10, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    return Model(net, (torch.randn(2, 10, 1, 1),), (torch.randn(5, 10, 1, 1),), ({0: batch()},))


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)
        self.pool, self.unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
        self.back = nn.Conv2d(8, 3, 3, padding=1, padding_mode="reflect")
        self.shuffle = nn.Sequential(nn.Conv2d(4, 32, 1), nn.PixelShuffle(2), nn.ELU())

    def forward(self, x):
        y, where = self.pool(torch.relu(self.one(x)))
        code = F.avg_pool2d(self.two(y), 2)
        y = self.shuffle(code)
        return torch.sigmoid(self.back(self.unpool(y, where))), code


@model
def autoencoder():
    module = AutoEncoder()
    return Model(module, (torch.randn(2, 3, 16, 16),), (torch.randn(2, 3, 16, 16),), None)


class TimeBlock(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.same = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.same(x) + self.conv2(F.silu(self.norm2(h)))


class Diffusion(nn.Module):
    """A U-Net that is told the time, with attention over the places of the lowest level."""

    def __init__(self, width=8):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = TimeBlock(width, width, 4 * width)
        self.lower = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = TimeBlock(2 * width, 2 * width, 4 * width)
        self.norm = nn.GroupNorm(4, 2 * width)
        self.attention = nn.MultiheadAttention(2 * width, 2, batch_first=True)
        self.upper = nn.Conv2d(2 * width, width, 3, padding=1)
        self.up = TimeBlock(2 * width, width, 4 * width)
        self.last = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x, time):
        rates = torch.exp(-math.log(10000) * torch.arange(self.width // 2) / (self.width // 2))
        angles = time[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        one = self.down(self.first(x), time)
        y = self.middle(self.lower(one), time)
        batch, channels, rows, columns = y.shape
        flat = self.norm(y).reshape(batch, channels, rows * columns).transpose(1, 2)
        y = y + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(
            batch, channels, rows, columns
        )
        y = self.upper(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        return self.last(self.up(torch.cat([one, y], 1), time))


@model
def diffusion_unet():
    def given(rows):
        return torch.randn(rows, 3, 16, 16), torch.randint(0, 1000, (rows,))

    size = batch()
    return Model(Diffusion(), given(2), given(3), ({0: size}, {0: size}))


class CLIP(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.visual = ViT(32, 8, 24, 3, dim)
        self.words, self.places = nn.Embedding(30, 16), nn.Parameter(torch.randn(16, 16) * 0.01)
        layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True, norm_first=True)
        self.text = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.projection = nn.LayerNorm(16), nn.Parameter(torch.randn(16, dim) * 0.2)
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        seen = F.normalize(self.visual(image), dim=-1)
        count = text.shape[1]
        hidden = torch.full((count, count), float("-inf")).triu(1)
        x = self.norm(self.text(self.words(text) + self.places[:count], mask=hidden))
        last = x[torch.arange(x.shape[0]), text.argmax(dim=-1)] @ self.projection
        scores = self.scale.exp() * seen @ F.normalize(last, dim=-1).t()
        return scores, scores.t()


@model
def clip():
    captions = torch.export.Dim("captions", min=2, max=4096)
    sizes = ({0: batch()}, {0: captions, 1: length(16)})
    one = torch.randn(2, 3, 32, 32), words(3, 6)
    return Model(CLIP(), one, (torch.randn(4, 3, 32, 32), words(5, 9)), sizes)
