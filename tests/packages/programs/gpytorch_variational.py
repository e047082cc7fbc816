"""gpytorch: a variational Gaussian process with inducing points, and several kernels."""

import gpytorch
import torch
from same import done, numbers, show

x = torch.linspace(0, 1, 30).unsqueeze(-1)
y = (torch.sin(8 * x) + 0.1 * numbers(30, 1)).squeeze(-1)


class Model(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


for name, kernel in {
    "periodic": gpytorch.kernels.PeriodicKernel(),
    "linear": gpytorch.kernels.LinearKernel(),
    "rational": gpytorch.kernels.RQKernel(),
}.items():
    show(name, kernel(x[:6]).to_dense())
model, likelihood = Model(x[::5].clone()), gpytorch.likelihoods.GaussianLikelihood()
with torch.no_grad():
    model.variational_strategy._variational_distribution.variational_mean.copy_(numbers(6, seed=3, scale=0.1))
    model.variational_strategy.variational_params_initialized.fill_(1)
objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=30)
parameters = [*model.parameters(), *likelihood.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.05)
losses = []
for _ in range(4):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    losses.append(float(loss))
    optimizer.step()
show("train losses", losses)
model.eval()
show("train mean", model(x[:5]).mean)
done()
