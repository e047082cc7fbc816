"""pytorch-metric-learning: five losses, a miner, distances, with gradients."""

from pytorch_metric_learning import distances, losses, miners, reducers
from same import done, integers, numbers, show

x, labels = numbers(16, 8).requires_grad_(), integers(4, 16)
for name, loss in {
    "contrastive": losses.ContrastiveLoss(),
    "triplet": losses.TripletMarginLoss(0.2),
    "ntxent": losses.NTXentLoss(0.1),
    "multi": losses.MultiSimilarityLoss(),
    "circle": losses.CircleLoss(),
    "lifted": losses.LiftedStructureLoss(reducer=reducers.MeanReducer()),
}.items():
    x.grad = None
    value = loss(x, labels)
    value.backward()
    show(name, value)
    show(f"{name} gradient", x.grad)
show("mined", [len(part) for part in miners.MultiSimilarityMiner()(x, labels)])
show("distances", distances.LpDistance()(x.detach()))
done()
