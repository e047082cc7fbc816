"""Modules, parameters, buffers, containers, hooks, states."""

from typing import Any

import xtensor
import xtensor.nn.functional as F
from xtensor import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.scale = nn.Parameter(xtensor.ones(width))
        self.register_buffer("mean", xtensor.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.linear(self.norm(x))
        return x + self.scale * F.gelu(hidden)


model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), Block(64)
)
layers = nn.ModuleList([nn.Linear(2, 2), nn.Dropout(0.1)])
named = nn.ModuleDict({"a": nn.Linear(2, 2)})
out: Tensor = model(xtensor.rand(1, 1, 8, 8))
total: int = sum(p.numel() for p in model.parameters())
for name, parameter in model.named_parameters():
    print(name, parameter.shape, parameter.requires_grad)
for child in model.children():
    print(type(child).__name__, child.training)
state: dict[str, Any] = model.state_dict()
model.load_state_dict(state)
model.train().eval().to("cpu").double().float().requires_grad_(True).zero_grad()


def note(module: nn.Module, args: Any, output: Any) -> None:
    print(type(module).__name__)


model.register_forward_hook(note).remove()
nn.init.xavier_uniform_(layers[0].weight)
nn.init.zeros_(named["a"].bias)
print(
    F.cross_entropy(out, xtensor.tensor([1])),
    F.mse_loss(out, out),
    F.softmax(out, dim=-1),
    F.dropout(out, 0.5),
)
print(
    F.conv2d(xtensor.rand(1, 1, 4, 4), xtensor.rand(1, 1, 3, 3)),
    F.one_hot(xtensor.tensor([1, 2])),
    F.pad(out, (1, 1)),
)
print(nn.CrossEntropyLoss()(out, xtensor.tensor([1])), nn.Embedding(10, 4)(xtensor.tensor([1])), total)
mixed, (h, c) = nn.LSTM(4, 8, batch_first=True)(xtensor.rand(2, 3, 4))
attended, weights = nn.MultiheadAttention(8, 2, batch_first=True)(mixed, mixed, mixed)
print(nn.utils.clip_grad_norm_(model.parameters(), 1.0), h.shape, c.shape, attended.shape, weights.shape)
