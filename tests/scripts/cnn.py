"""A small convolutional network on images, as beginners write it, with NLL loss and a step schedule."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from same import classes, fill, tensor
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.dropout2 = nn.Dropout2d(0.0)
        self.fc1 = nn.Linear(8 * 4 * 4, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x.view(x.size(0), -1, 1, 1)).flatten(1)
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    model = fill(Net())
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=2, gamma=0.7)
    x, y = tensor(8, 1, 12, 12, seed=1), classes(8, count=10, seed=2)
    losses = []
    for _ in range(5):
        model.train()
        optimizer.zero_grad()
        output = model(x)
        loss = F.nll_loss(output, y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        total = F.nll_loss(model(x), y, reduction="sum").item()
        pred = model(x).argmax(dim=1, keepdim=True)
        correct = pred.eq(y.view_as(pred)).sum().item()
    return [*losses, total, correct]


if __name__ == "__main__":
    print(json.dumps(main()))
