"""fastai: a Learner fitted in one cycle with metrics, predictions and its saved state."""

import tempfile

import torch
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy
from fastai.callback.schedule import *  # noqa: F403
from same import done, fill, integers, numbers, show
from torch import nn

x, y = numbers(32, 6), integers(3, 32)
rows = list(zip(x, y))
with tempfile.TemporaryDirectory() as folder:
    dls = DataLoaders(
        DataLoader(rows, bs=8, shuffle=False), DataLoader(rows[:16], bs=8), device=torch.device("cpu")
    )
    net = fill(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 3)))
    learner = Learner(dls, net, loss_func=nn.CrossEntropyLoss(), metrics=accuracy, path=folder)
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 1e-2)
        show("train losses", [float(v) for v in learner.recorder.losses])
        show("train values", [float(v) for row in learner.recorder.values for v in row])
        scores, targets = learner.get_preds()
        show("train predictions", scores)
        learner.save("state")
        learner.fit(1, 1e-2)
        learner.load("state")
        show("restored", float((learner.get_preds()[0] - scores).abs().max()) < 1e-6)
done()
