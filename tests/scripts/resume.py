"""A run saved in the middle and resumed in new objects: it goes on as if it had never stopped."""

import json
import os
import tempfile

import torch
import torch.nn as nn
from same import fill, tensor


def make():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    return model, optimizer, scheduler


def train(model, optimizer, scheduler, first, last):
    losses = []
    for step in range(first, last):
        x, y = tensor(6, 4, seed=step), tensor(6, 2, seed=100 + step)
        loss = nn.functional.smooth_l1_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def main():
    model, optimizer, scheduler = make()
    fill(model)
    losses = train(model, optimizer, scheduler, 0, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(
            {
                "epoch": 3,
                "model_state_dict": model.state_dict(),
                "optimizer_state_dict": optimizer.state_dict(),
                "scheduler_state_dict": scheduler.state_dict(),
                "loss": losses[-1],
            },
            path,
        )
        losses += train(model, optimizer, scheduler, 3, 6)
        model, optimizer, scheduler = make()
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    print(model.load_state_dict(checkpoint["model_state_dict"]))
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
    resumed = train(model, optimizer, scheduler, checkpoint["epoch"], 6)
    assert resumed == losses[3:], (resumed, losses)
    return losses + resumed


if __name__ == "__main__":
    print(json.dumps(main()))
