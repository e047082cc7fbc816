"""A vision transformer: patches by a strided convolution, a class token, pre-norm encoder layers."""

import json

import torch
import torch.nn as nn
from same import classes, fill, tensor


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.num_heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.gamma = nn.Parameter(0.5 * torch.ones(dim), requires_grad=True)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.gamma * self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, size=8, patch=4, dim=16, depth=2, heads=2, classes=6):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, dim))
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def main():
    model = fill(VisionTransformer())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4),
        ],
        milestones=[2],
    )
    x = tensor(4, 3, 8, 8, seed=1)
    target = torch.nn.functional.one_hot(classes(4, count=6, seed=2), 6).float() * 0.9 + 0.1 / 6
    losses = []
    for _ in range(4):
        logits = model(x)
        loss = torch.sum(-target * torch.log_softmax(logits, dim=-1), dim=-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return [*losses, optimizer.param_groups[0]["lr"]]


if __name__ == "__main__":
    print(json.dumps(main()))
