"""pytorch-ignite: a trainer, an evaluator with metrics, handlers on events."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, RunningAverage
from same import done, fill, integers, numbers, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = fill(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(numbers(24, 6), integers(3, 24)), batch_size=8)
trainer = create_supervised_trainer(model, optimizer, criterion)
RunningAverage(output_transform=lambda x: x).attach(trainer, "average")
evaluator = create_supervised_evaluator(
    model, {"right": Accuracy(), "loss": Loss(criterion), "matrix": ConfusionMatrix(3)}
)
losses, found = [], []


@trainer.on(Events.ITERATION_COMPLETED)
def note(engine):
    losses.append(engine.state.output)


@trainer.on(Events.EPOCH_COMPLETED)
def judge(engine):
    evaluator.run(loader)
    found.extend([evaluator.state.metrics["right"], evaluator.state.metrics["loss"]])


trainer.run(loader, max_epochs=2)
show("train losses", losses)
show("train metrics", found)
show("train average", trainer.state.metrics["average"])
show("matrix", evaluator.state.metrics["matrix"].float())
done()
