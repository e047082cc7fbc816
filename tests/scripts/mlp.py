"""A multilayer perceptron with momentum, weight decay and clipped gradients."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor


class MLP(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.Tanh(),
            nn.Dropout(0.0),
            nn.Linear(hidden, outputs),
        )

    def forward(self, x):
        return self.layers(x)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = fill(MLP(8, 16, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True)
    x, y = tensor(32, 8, seed=1).to(device), classes(32, count=4, seed=2).to(device)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(dim=1) == y).float().mean()
    return [*losses, accuracy.item()]


if __name__ == "__main__":
    print(json.dumps(main()))
