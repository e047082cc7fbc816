"""pyro: a posterior sampled by NUTS and HMC on known random numbers."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import HMC, MCMC, NUTS
from same import done, draw_from_numpy, numbers, show

y = 1.5 + 0.5 * numbers(20)


def model(y):
    mean = pyro.sample("mean", dist.Normal(0.0, 2.0))
    scale = pyro.sample("scale", dist.HalfNormal(1.0))
    with pyro.plate("data", len(y)):
        pyro.sample("y", dist.Normal(mean, scale), obs=y)


start = {"mean": torch.tensor(0.5), "scale": torch.tensor(0.0)}
for name, kernel in (
    ("nuts", NUTS(model, step_size=0.2, adapt_step_size=False, max_tree_depth=3)),
    ("hmc", HMC(model, step_size=0.1, num_steps=3, adapt_step_size=False)),
):
    draw_from_numpy(3)
    chain = MCMC(kernel, num_samples=6, warmup_steps=2, initial_params=dict(start), disable_progbar=True)
    chain.run(y)
    found = chain.get_samples()
    show(f"train {name} mean", found["mean"])
    show(f"train {name} scale", found["scale"])
done()
