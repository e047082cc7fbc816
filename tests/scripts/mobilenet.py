"""An inverted-residual network: depthwise convolutions, ReLU6, squeeze and excitation, hard swish."""

import json

import torch
from same import classes, fill, tensor
from torch import nn
from torch.optim import RMSprop
from torch.optim.lr_scheduler import ExponentialLR


class ConvBNActivation(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU6):
        padding = (kernel - 1) // 2
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
            nn.BatchNorm2d(outputs, eps=0.001, momentum=0.01),
            activation(inplace=True),
        )


class SqueezeExcitation(nn.Module):
    def __init__(self, channels, factor=4):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, channels // factor, 1)
        self.relu = nn.ReLU(inplace=True)
        self.fc2 = nn.Conv2d(channels // factor, channels, 1)

    def forward(self, x):
        scale = nn.functional.adaptive_avg_pool2d(x, 1)
        scale = self.fc2(self.relu(self.fc1(scale)))
        return nn.functional.hardsigmoid(scale, inplace=True) * x


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        self.use_res_connect = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            ConvBNActivation(inputs, hidden, kernel=1, activation=nn.Hardswish),
            ConvBNActivation(hidden, hidden, stride=stride, groups=hidden),
            SqueezeExcitation(hidden),
            nn.Conv2d(hidden, outputs, 1, 1, 0, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            ConvBNActivation(3, 8, stride=2), InvertedResidual(8, 8, 1, 2), InvertedResidual(8, 12, 2, 2)
        )
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(12, classes))

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


def main():
    model = fill(MobileNet())
    optimizer = RMSprop(model.parameters(), lr=0.01, alpha=0.9, momentum=0.9, eps=0.0316)
    schedule = ExponentialLR(optimizer, gamma=0.9)
    x, y = tensor(4, 3, 16, 16, seed=1), classes(4, count=5, seed=2)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return [*losses, schedule.get_last_lr()[0]]


if __name__ == "__main__":
    print(json.dumps(main()))
