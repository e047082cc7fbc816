"""pyro: a Bayesian regression by stochastic variational inference with an automatic guide."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Predictive, Trace_ELBO, TraceMeanField_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal, AutoNormal
from same import done, draw_from_numpy, numbers, show

x = numbers(40, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.5 + 0.1 * numbers(40, seed=1)


def model(x, y=None):
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 1.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 1.0))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


for name, kind, objective in (
    ("normal", AutoNormal, TraceMeanField_ELBO()),
    ("diagonal", AutoDiagonalNormal, Trace_ELBO()),
):
    pyro.clear_param_store()
    draw_from_numpy(5)
    guide = kind(
        model,
        init_loc_fn=pyro.infer.autoguide.init_to_value(
            values={"weight": torch.zeros(2), "bias": torch.tensor(0.0), "scale": torch.tensor(1.0)}
        ),
    )
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), objective)
    show(f"train {name}", [svi.step(x, y) for _ in range(12)])
    show(f"train {name} median", guide.median()["weight"])
found = Predictive(model, guide=guide, num_samples=3)(x[:4])["y"]
show("predictions", [found.shape[0], found.shape[1]])
done()
