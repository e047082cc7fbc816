"""gpytorch: an exact Gaussian process, its marginal likelihood trained, predictions."""

import gpytorch
import torch
from same import done, numbers, show

x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x) + 0.1 * numbers(20)


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(x, y, likelihood)
model.train()
likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    losses.append(float(loss))
    optimizer.step()
show("train losses", losses)
show("train parameters", [float(p.flatten()[0]) for p in model.parameters()])
model.eval()
likelihood.eval()
with torch.no_grad():
    found = likelihood(model(torch.linspace(0, 1, 7) + 0.03))
show("train mean", found.mean)
show("train variance", found.variance)
done()
