"""higher: inner steps that are differentiated through, and a learned learning rate."""

import higher
import torch
from same import done, fill, integers, numbers, show
from torch import nn

net = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, momentum=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
)
fill(net)
loss_of = nn.functional.cross_entropy
outer, inner = torch.optim.Adam(net.parameters(), lr=1e-2), torch.optim.SGD(net.parameters(), lr=0.1)
queries = []
for step in range(2):
    outer.zero_grad()
    for task in range(2):
        x, y = numbers(2, 6, 1, 6, 6, seed=task), integers(3, 2, 6, seed=task)
        with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (inside, changed):
            for _ in range(2):
                changed.step(loss_of(inside(x[0]), y[0]))
            query = loss_of(inside(x[1]), y[1])
            query.backward()
            queries.append(query.item())
    show(f"train gradient {step}", sum(float(p.grad.norm()) for p in net.parameters()))
    outer.step()
show("train queries", queries)
for make in (torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad):
    small, x = fill(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))), numbers(4, 3)
    with higher.innerloop_ctx(small, make(small.parameters(), lr=1e-2)) as (inside, changed):
        for _ in range(3):
            changed.step((inside(x) ** 2).mean())
        found = torch.autograd.grad((inside(x) ** 2).mean(), inside.parameters(time=0))
    show(f"train {make.__name__}", [float(part.norm()) for part in found])
rate, line = torch.tensor(0.1, requires_grad=True), fill(nn.Linear(3, 1))
inside = higher.monkeypatch(line)
changed = higher.get_diff_optim(
    torch.optim.SGD(line.parameters(), lr=0.1), line.parameters(), fmodel=inside, override={"lr": [rate]}
)
for _ in range(2):
    changed.step((inside(numbers(4, 3)) ** 2).mean())
(inside(numbers(4, 3)) ** 2).mean().backward()
show("rate", rate.grad)
done()
