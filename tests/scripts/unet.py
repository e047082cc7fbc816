"""A U-Net for segmentation: skip connections by `torch.cat`, upsampling, a Dice term in the loss."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import fill, numbers, tensor


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(inputs, outputs)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diffY = x2.size()[2] - x1.size()[2]
        diffX = x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(1, 4)
        self.down = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.up = Up(12, 4)
        self.outc = nn.Conv2d(4, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        return self.outc(self.up(self.down(x1), x1))


def dice(pred, target, epsilon=1e-6):
    inter = 2 * (pred * target).sum(dim=(-1, -2))
    sets = pred.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    sets = torch.where(sets == 0, inter, sets)
    return ((inter + epsilon) / (sets + epsilon)).mean()


def main():
    model = fill(UNet())
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
    x = tensor(2, 1, 9, 9, seed=1)
    mask = torch.from_numpy((numbers(2, 9, 9, seed=2) > 0).astype("float32"))
    losses = []
    for _ in range(3):
        pred = model(x).squeeze(1)
        loss = nn.BCEWithLogitsLoss()(pred, mask) + 1 - dice(torch.sigmoid(pred), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
