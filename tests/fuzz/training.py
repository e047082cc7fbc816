"""Random training loops: modules' parameters, optimizers and clipping, and what else a program does with them between the steps.

The same statements come again, turn after turn, as in a loop, but for some that keep parameters, states and gradients, or write to them: whoever
holds an old value must go on to see it.
"""

from __future__ import annotations

import random

from .judging import Program, Step

__all__ = ["generate"]

TURNS = 7
OPTIMIZERS = (
    "torch.optim.SGD(ps, lr=0.1)",
    "torch.optim.SGD(ps, lr=0.05, momentum=0.9, nesterov=True)",
    "torch.optim.Adam(ps, lr=0.01)",
    "torch.optim.Adam(ps, lr=0.01, amsgrad=True, weight_decay=0.1)",
    "torch.optim.AdamW([{'params': ps[:1]}, {'params': ps[1:], 'lr': 0.1}], lr=0.01)",
    "torch.optim.RMSprop(ps, lr=0.01, momentum=0.5)",
    "torch.optim.Adagrad(ps, lr=0.1)",
)
FORWARDS = (
    "torch.tanh(x @ {a} + {b}).sum(1).pow(2).mean()",
    "torch.nn.functional.linear(torch.relu(x @ {a}), {a}, {b}).logsumexp(1).sum()",
    "((x * {b}).softmax(1) @ {a}).std()",
    "(x @ {a} @ {a} - {b}).abs().mean() + {c}.exp().sum()",
    "torch.nn.functional.layer_norm(x @ {a}, (5,), {b}, {b}).square().mean() * {c}.sum()",
)
CLIPS = ("torch.nn.utils.clip_grad_norm_(ps, 1.0)", "torch.nn.utils.clip_grad_value_(ps, 0.1)")
BETWEEN = (
    "kept.append({p}.detach())",
    "kept.append({p}.detach().clone())",
    "kept.append({p}.data)",
    "kept.append({p} * 2)",
    "kept.append(({p}.detach() + 0).t() if {p}.dim() == 2 else {p}[1:])",
    "kept += [v.clone() for s in opt.state.values() for v in s.values() if isinstance(v, torch.Tensor)][:2]",
    "kept += [v for s in opt.state.values() for v in s.values() if isinstance(v, torch.Tensor)][-2:]",
    "kept.append({p}.grad)",
    "kept.append(copy.deepcopy({p}))",
    "kept += list(copy.deepcopy(opt.state_dict())['state'].get(0, {{}}).values())[:1]",
    "kept.append(torch.from_numpy({p}.detach().numpy().copy()))",
    "held.append({p}.detach().numpy())",
    "{p}.data.mul_(0.5)",
    "with torch.no_grad(): {p}.add_({q}.sum() * 0.01)",
    "with torch.no_grad(): {p}[1] = 0.25",
    "{p}.data = {p}.data.clone()",
    "mean.lerp_({p}.detach().sum(), 0.1)",
    "kept.append(torch.autograd.grad(({p} ** 2).sum(), {p})[0])",
    "late = ({p} ** 3).sum()",
    "late.backward()",
    "opt.load_state_dict(copy.deepcopy(opt.state_dict()))",
    "kept.append(float({p}.detach().sum()))",
)


def generate(seed: int) -> Program:
    """The program of a seed."""
    draw = random.Random(seed)
    steps = [
        Step(
            "start",
            "import copy\nkept, held = [], []\nmean = torch.zeros(())\nlate = torch.zeros((), requires_grad=True) * 1",
        ),
        Step("data", "x = torch.randn(4, 5)"),
        Step(
            "parameters",
            "\n".join(
                f"p{i} = torch.nn.Parameter(torch.randn({s}) * 0.3)"
                for i, s in enumerate(("5, 5", "5", "5, 5", "1"))
            )
            + "\nps = [p0, p1, p2, p3]",
        ),
        Step("optimizer", f"opt = {draw.choice(OPTIMIZERS)}"),
    ]
    loss = draw.choice(FORWARDS).format(a=draw.choice(("p0", "p2")), b="p1", c="p3")
    turn = [
        f"opt.zero_grad(set_to_none={draw.random() < 0.7})",
        f"loss = {loss}",
        "loss.backward()",
        *([draw.choice(CLIPS)] if draw.random() < 0.3 else []),
        "opt.step()",
    ]
    always = draw.choice(BETWEEN) if draw.random() < 0.3 else ""
    for _ in range(TURNS):
        at = draw.randrange(len(turn) + 1) if draw.random() < 0.4 else -1
        for place, source in enumerate([*turn, ""]):
            if place == at:
                steps.append(Step("between", spelled(draw, draw.choice(BETWEEN))))
            if source:
                steps.append(Step("turn", source))
        if always:
            steps.append(Step("between", always.format(p="p0", q="p1")))
    steps.append(
        Step(
            "end",
            "ends = [*ps, *kept, *map(torch.from_numpy, held), mean, *[v for s in opt.state.values() for v in s.values()]]",
        )
    )
    return Program(seed, tuple(steps))


def spelled(draw: random.Random, source: str) -> str:
    return source.format(p=draw.choice(("p0", "p1", "p2", "p3")), q=draw.choice(("p0", "p1")))
