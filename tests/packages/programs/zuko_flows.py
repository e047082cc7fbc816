"""zuko: normalizing flows over a condition: densities, gradients, inverses, a few steps."""

import torch
import zuko
from same import done, fill, numbers, show

x, c = numbers(16, 3, scale=0.5), numbers(16, 2, seed=1)
flows = {
    "NSF": zuko.flows.NSF(3, 2, transforms=2, hidden_features=[16, 16]),
    "MAF": zuko.flows.MAF(3, 2, transforms=2, hidden_features=[16, 16]),
    "NAF": zuko.flows.NAF(3, 2, transforms=1, hidden_features=[16]),
    "SOSPF": zuko.flows.SOSPF(3, 2, transforms=1, hidden_features=[16]),
    "NICE": zuko.flows.NICE(3, 2, transforms=2, hidden_features=[16]),
    "GF": zuko.flows.GF(3, 2, transforms=2, hidden_features=[16]),
}
for name, flow in flows.items():
    found = fill(flow, scale=0.2)(c)
    loss = -found.log_prob(x).mean()
    loss.backward()
    show(name, loss)
    show(f"{name} gradient", sum(float(p.grad.norm()) for p in flow.parameters() if p.grad is not None))
    y = found.transform(x)
    show(f"{name} forward", y)
    show(f"{name} back", float((found.transform.inv(y) - x).abs().max()) < 1e-3)
    show(f"{name} drawn", list(found.rsample((2,)).shape))
flow, losses = flows["NSF"], []
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
for _ in range(3):
    loss = -flow(c).log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show("train losses", losses)
done()
