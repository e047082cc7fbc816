"""A generative adversarial network: two optimisers, detached samples, transposed convolutions."""

import json

import torch
import torch.nn as nn
import torch.optim as optim
from same import fill, tensor


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 4, 1, 0, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 4, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(4, 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 1, 2, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def main():
    netG, netD = fill(Generator(), seed=1), fill(Discriminator(), seed=2)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
    losses = []
    for step in range(3):
        netD.zero_grad()
        real = tensor(4, 1, 8, 8, seed=step).tanh()
        label = torch.full((4,), 1.0, dtype=real.dtype)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        fake = netG(tensor(4, 4, 1, 1, seed=100 + step))
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.step()
        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        losses += [(errD_real + errD_fake).item(), errG.item()]
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
