"""botorch: a fitted Gaussian process, acquisition functions and a candidate."""

import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from same import done, numbers, show

torch.set_default_dtype(torch.float64)
x = (torch.arange(24).reshape(12, 2) * 0.37).sin().double() * 0.5 + 0.5
y = -((x - 0.4) ** 2).sum(-1, keepdim=True) + 0.01 * numbers(12, 1).double()
model = SingleTaskGP(x, y)
objective = ExactMarginalLogLikelihood(model.likelihood, model)
fit_gpytorch_mll(objective)
points = torch.linspace(0.1, 0.9, 5)[:, None, None].expand(5, 1, 2).clone().requires_grad_()
posterior = model.posterior(points.detach().squeeze(1))
show("train mean", posterior.mean)
show("train variance", posterior.variance)
improvement = LogExpectedImprovement(model, best_f=y.max())(points)
show("train improvement", improvement)
show("train gradient", torch.autograd.grad(UpperConfidenceBound(model, beta=0.2)(points).sum(), points)[0])
done()
