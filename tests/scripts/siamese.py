"""A siamese network with contrastive, triplet and cosine losses."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, label):
        distance = F.pairwise_distance(a, b, keepdim=True)
        return torch.mean(
            (1 - label) * distance.pow(2) + label * torch.clamp(self.margin - distance, min=0.0).pow(2)
        )


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, 3),
            nn.PReLU(),
            nn.InstanceNorm2d(4, affine=True),
            nn.AvgPool2d(2),
        )
        self.fc = nn.Sequential(nn.Linear(4 * 4 * 4, 12), nn.ELU(), nn.Linear(12, 5))

    def forward_once(self, x):
        out = self.cnn(x)
        return self.fc(out.view(out.size(0), -1))

    def forward(self, *inputs):
        return [self.forward_once(x) for x in inputs]


def main():
    net = fill(Siamese())
    criterion = ContrastiveLoss()
    triplet = nn.TripletMarginLoss(margin=0.5)
    cosine = nn.CosineEmbeddingLoss(margin=0.1)
    optimizer = torch.optim.Adamax(net.parameters(), lr=5e-3)
    a, b, c = (tensor(6, 1, 8, 8, seed=s) for s in (1, 2, 3))
    label = classes(6, 1, count=2, seed=4).float()
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        x, y, z = net(a, b, c)
        loss = criterion(x, y, label) + triplet(x, y, z) + cosine(x, z, 1 - 2 * label.squeeze(1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        x, y = net(a, b)
        return [*losses, F.cosine_similarity(x, y).sum().item(), torch.cdist(x, y).diagonal().sum().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
