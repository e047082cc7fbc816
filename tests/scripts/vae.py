"""A variational autoencoder: the reparameterisation trick with noise that is given."""

import json

import torch
import torch.utils.data
from same import fill, numbers, tensor
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc21 = nn.Linear(16, 3)
        self.fc22 = nn.Linear(16, 3)
        self.fc3 = nn.Linear(3, 16)
        self.fc4 = nn.Linear(16, 20)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, noise):
        std = torch.exp(0.5 * logvar)
        return mu + noise.type_as(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, noise):
        mu, logvar = self.encode(x.view(-1, 20))
        return self.decode(self.reparameterize(mu, logvar, noise)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 20), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main():
    model = fill(VAE())
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    images = torch.from_numpy((numbers(12, 4, 5, seed=1) > 0).astype("float32"))
    loader = torch.utils.data.DataLoader(images, batch_size=6, shuffle=False)
    losses = []
    for epoch in range(3):
        model.train()
        train_loss = 0
        for batch_idx, data in enumerate(loader):
            optimizer.zero_grad()
            recon, mu, logvar = model(data, tensor(6, 3, seed=10 * epoch + batch_idx))
            loss = loss_function(recon, data, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            optimizer.step()
        losses.append(train_loss / len(loader.dataset))
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
