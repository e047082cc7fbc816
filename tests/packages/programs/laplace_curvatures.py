"""laplace-torch and curvlinops: posteriors about trained weights by several approximations of the curvature, and its products."""

import torch
from curvlinops import EFLinearOperator, GGNLinearOperator, HessianLinearOperator
from laplace import Laplace
from same import done, fill, integers, numbers, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = fill(nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1)))
data = DataLoader(TensorDataset(numbers(20, 2), numbers(20, 1, seed=3)), batch_size=10)
for weights, structure in (("all", "full"), ("all", "diag"), ("all", "kron"), ("last_layer", "full")):
    posterior = Laplace(model, "regression", subset_of_weights=weights, hessian_structure=structure)
    posterior.fit(data)
    mean, variance = posterior(numbers(3, 2, seed=4))
    show(f"{weights} {structure} mean", mean)
    show(f"{weights} {structure} variance", variance)
    show(f"{weights} {structure} evidence", posterior.log_marginal_likelihood())
classes = fill(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)))
batches = [(numbers(16, 4), integers(3, 16))]
for kind in (HessianLinearOperator, GGNLinearOperator, EFLinearOperator):
    curvature = kind(classes, nn.CrossEntropyLoss(), list(classes.parameters()), batches)
    show(kind.__name__, torch.as_tensor(curvature @ torch.ones(curvature.shape[1])))
done()
