"""Kinds of training: every optimizer and scheduler, mixed precision, averages, accumulation, checkpoints, hooks, and so on; eager and compiled."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xtensor
from xtensor import nn
from xtensor.amp import GradScaler, autocast
from xtensor.autograd import Function, grad
from xtensor.nn.utils import parametrizations
from xtensor.optim import lr_scheduler, swa_utils
from xtensor.utils.checkpoint import checkpoint

__all__ = ["KINDS", "Outcome", "compared"]

F = nn.functional
STEPS = 20
Made = tuple[nn.Module, Callable[..., Any], Callable[[int], Any]]


class Outcome(NamedTuple):
    """Of one kind: the largest difference from eager code, relative to the largest value; which counts differ; programs and their calls.

    reasons: why other calls ran eagerly.
    """

    difference: float
    counts: list[str]
    programs: int
    calls: int
    reasons: list[str]


def nothing(number: int) -> None:
    """What is done after a step."""


def network(norm: bool = True, drop: float = 0.2) -> nn.Sequential:
    # A bias before a batch norm has a gradient of rounding errors, which Adam makes as large as any.
    layers: list[Any] = [nn.Linear(8, 12, bias=not norm)]
    layers += [nn.BatchNorm1d(12)] if norm else []
    layers += [nn.GELU()]
    layers += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*layers, nn.Linear(12, 4))


def batch(number: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(number)
    x = xtensor.tensor(rng.normal(size=(6, 8)).astype("f"))
    return x, xtensor.tensor(rng.integers(0, 4, 6))


def plain(
    optimizer: str,
    clip: str = "",
    zero: bool | None = None,
    inside: Callable[[Any], Any] | None = None,
    outside: Callable[[Any], Any] | None = None,
    drop: float = 0.2,
    **options: Any,
) -> Made:
    """An ordinary step, a scheduler within it or after it."""
    model = network(drop=drop)
    opt = getattr(xtensor.optim, optimizer)(model.parameters(), **{"lr": 1e-2, **options})
    scheduler = inside(opt) if inside is not None else None
    after = outside(opt) if outside is not None else None
    rates: list[Any] = []

    def step(x: Any, y: Any) -> Any:
        if zero is None:
            opt.zero_grad()
        else:
            opt.zero_grad(set_to_none=zero)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if clip == "norm":
            nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        elif clip == "value":
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
        opt.step()
        if scheduler is not None:
            scheduler.step()
        return loss.detach()

    def then(number: int) -> None:
        if isinstance(after, lr_scheduler.ReduceLROnPlateau):
            after.step(1.0 + number % 3)
        elif after is not None:
            after.step()
        rates.append(opt.param_groups[0]["lr"])

    return model, step, then


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {},
    "SGD momentum": dict(momentum=0.9, weight_decay=0.01),
    "SGD nesterov": dict(momentum=0.9, nesterov=True),
    "SGD dampening": dict(momentum=0.9, dampening=0.2, maximize=True),
    "Adam": {},
    "Adam amsgrad": dict(amsgrad=True, weight_decay=0.01),
    "Adam betas": dict(betas=(0.5, 0.9), eps=1e-4),
    "AdamW": dict(weight_decay=0.1),
    "Adamax": {},
    "NAdam": dict(decoupled_weight_decay=True, weight_decay=0.01),
    "RAdam": {},
    "RMSprop": dict(momentum=0.5, centered=True),
    "Rprop": {},
    "ASGD": {},
    "Adagrad": dict(lr_decay=0.1, initial_accumulator_value=0.1),
    "Adadelta": dict(lr=1.0),
    "Adafactor": {},
}
SCHEDULERS: dict[str, Callable[[Any], Any]] = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 7], 0.3),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, 0.3, 5),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, 10),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 15, 2.0),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 10),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 4, 2),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 1e-3, 1e-1, 4),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=25),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1, 4), lr_scheduler.ExponentialLR(o, 0.9)], [5]
    ),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, 0.1, 4), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=2),
    "SWALR": lambda o: swa_utils.SWALR(o, swa_lr=0.05, anneal_epochs=5),
}


def mixed(dtype: str, interval: int, poison: bool = False, clip: bool = True) -> Made:
    """Autocast and a GradScaler, with steps that it skips."""
    model = network()
    opt = xtensor.optim.AdamW(model.parameters(), lr=1e-2)
    scaler = GradScaler("cpu", init_scale=64.0, growth_interval=interval)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        with autocast("cpu", getattr(xtensor, dtype)):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        return loss.detach()

    def infinite(x: Any, y: Any) -> Any:
        return step(x, y)

    def then(number: int) -> None:
        if poison and number % 5 == 3:
            with xtensor.no_grad():
                model[4].weight[0, 0] = 1e38
        elif poison and number % 5 == 4:
            with xtensor.no_grad():
                model[4].weight[0, 0] = 0.1

    return model, infinite, then


def averaged(kind: str) -> Made:
    """A moving or a plain average of the weights, by hand or by AveragedModel."""
    model = network()
    opt = xtensor.optim.SGD(model.parameters(), lr=0.1)
    if kind == "by hand":
        shadow = copy.deepcopy(model)
    else:
        ema = swa_utils.get_ema_multi_avg_fn(0.9) if kind == "ema" else None
        shadow = swa_utils.AveragedModel(model, multi_avg_fn=ema)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        if isinstance(shadow, swa_utils.AveragedModel):
            shadow.update_parameters(model)
        else:
            with xtensor.no_grad():
                for mine, other in zip(shadow.parameters(), model.parameters()):
                    mine.lerp_(other, 0.1)
        return loss.detach()

    return nn.ModuleList([model, shadow]), step, nothing


def accumulated(within: bool) -> Made:
    """Gradients of several batches before a step: within a call, or over calls."""
    model = network()
    opt = xtensor.optim.Adam(model.parameters(), lr=1e-2)

    def several(x: Any, y: Any) -> Any:
        opt.zero_grad()
        total = xtensor.zeros(())
        for part in range(3):
            loss = F.cross_entropy(model(x[part * 2 : part * 2 + 2]), y[part * 2 : part * 2 + 2]) / 3
            loss.backward()
            total += loss.detach()
        opt.step()
        return total

    def one(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y) / 4
        loss.backward()
        return loss.detach()

    def then(number: int) -> None:
        if not within and number % 4 == 3:
            opt.step()
            opt.zero_grad()

    return model, several if within else one, then


def checkpointed(reentrant: bool) -> Made:
    model = nn.ModuleList([nn.Linear(8, 8), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3)), nn.Linear(8, 4)])
    opt = xtensor.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        h = model[0](x)
        h = checkpoint(model[1], h, use_reentrant=reentrant)
        loss = F.cross_entropy(model[2](h), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def tied() -> Made:
    """An embedding whose weights are those of the output."""
    model = nn.Sequential(nn.Embedding(10, 6), nn.Linear(6, 10, bias=False))
    model[1].weight = model[0].weight
    opt = xtensor.optim.AdamW(model.parameters(), lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(y), (y + 1) % 10)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def doubled(p: Any) -> None:
    p.grad.mul_(2.0)


def hooked() -> Made:
    model = network(drop=0.0)
    opt = xtensor.optim.SGD(model.parameters(), lr=0.1)
    model[0].register_forward_hook(lambda m, i, o: o * 1.1)
    model[1].register_forward_pre_hook(lambda m, i: (i[0] + 0.1,))
    model[3].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))
    model[3].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
    model[3].bias.register_post_accumulate_grad_hook(doubled)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        out = model(x)
        out.register_hook(lambda g: g * 0.9)
        out.retain_grad()
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        return loss.detach() + out.grad.abs().sum()

    return model, step, nothing


class Clipped(Function):
    """Passes values through and clips gradients."""

    @staticmethod
    def forward(ctx: Any, x: Any, bound: float) -> Any:
        ctx.save_for_backward(x)
        ctx.bound = bound
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return (g * (1 - x.tanh() ** 2)).clamp(-ctx.bound, ctx.bound), None


def custom() -> Made:
    model = network(drop=0.0)
    opt = xtensor.optim.Adam(model.parameters(), lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(Clipped.apply(model(x), 0.05), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def normed() -> Made:
    """Batch norm in training and in evaluation, by turns."""
    model = nn.Sequential(
        nn.Conv1d(2, 4, 3, bias=False), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(8, 4)
    )
    opt = xtensor.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x.reshape(6, 2, 4)), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, lambda number: model.train(number % 3 != 1) and None


def two_optimizers() -> Made:
    model = nn.ModuleList([network(), nn.Linear(4, 8)])
    first = xtensor.optim.Adam(model[0].parameters(), lr=1e-2)
    second = xtensor.optim.SGD(
        [{"params": [model[1].weight]}, {"params": [model[1].bias], "lr": 0.5}], lr=0.1
    )

    def step(x: Any, y: Any) -> Any:
        first.zero_grad()
        out = model[0](x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        first.step()
        second.zero_grad()
        again = F.mse_loss(model[1](out.detach()), x)
        again.backward()
        second.step()
        return loss.detach() + again.detach()

    return model, step, nothing


def frozen() -> Made:
    """Layers that take part in training now and then."""
    model = network()
    opt = xtensor.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, lambda number: model[0].requires_grad_(number % 6 < 3) and None


def parametrized(kind: str) -> Made:
    layer: Any = nn.Linear(8, 4)
    layer = (
        getattr(parametrizations, kind)(layer) if kind != "spectral, old" else nn.utils.spectral_norm(layer)
    )
    model = nn.Sequential(layer)
    opt = xtensor.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def recurrent(kind: str) -> Made:
    cell = getattr(nn, kind)(4, 6, num_layers=2, dropout=0.2)
    model = nn.ModuleList([cell, nn.Linear(6, 4)])
    opt = xtensor.optim.Adam(model.parameters(), lr=1e-2)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        out, _ = model[0](x.reshape(6, 2, 4).transpose(0, 1))
        loss = F.cross_entropy(model[1](out[-1]), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def attention() -> Made:
    encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    model = nn.ModuleList([encoder, nn.Linear(4, 4), nn.Embedding(5, 4, padding_idx=0)])
    opt = xtensor.optim.SGD(model.parameters(), lr=0.05)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        tokens = model[2](y[:, None].expand(6, 2))
        loss = F.cross_entropy(model[1](encoder(x.reshape(6, 2, 4) + tokens)).mean(1), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def penalized() -> Made:
    """A gradient's norm in the loss, and a graph that is kept."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Softplus(), nn.Linear(8, 1))
    opt = xtensor.optim.RMSprop(model.parameters(), lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        x = x.clone().requires_grad_()
        slope: Any = grad(model(x).sum(), x, create_graph=True)[0]
        loss = (slope.norm(dim=1) - 1).square().mean()
        loss.backward(retain_graph=True)
        (loss * 0.5).backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


def buffers() -> Made:
    """Buffers written by the function, random numbers, index writes, and a closure of the optimizer's."""

    class Queue(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("queue", xtensor.zeros(12, 4))
            self.register_buffer("place", xtensor.zeros((), dtype=xtensor.int64))
            self.linear = nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            keys = self.linear(x + 0.1 * xtensor.randn_like(x))
            with xtensor.no_grad():
                where = (self.place + xtensor.arange(6)) % 12
                self.queue[where] = keys.detach()
                self.place += 6
                self.place %= 12
            return keys @ self.queue.t()

    model = Queue()
    opt = xtensor.optim.SGD(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = model(x).square().mean() + xtensor.rand(()) * 0.1
        loss.backward()
        opt.step()
        return loss.detach()

    return model, step, nothing


KINDS: dict[str, Callable[[], Made]] = {
    **{
        f"optimizer {name}": functools.partial(plain, name.split()[0], **options)
        for name, options in OPTIMIZERS.items()
    },
    **{
        f"scheduler inside: {name}": functools.partial(plain, "SGD", inside=make, momentum=0.9, drop=0.0)
        for name, make in SCHEDULERS.items()
        if name != "ReduceLROnPlateau"
    },
    **{
        f"scheduler outside: {name}": functools.partial(plain, "Adam", outside=make, drop=0.0)
        for name, make in SCHEDULERS.items()
    },
    "clipped by norm": lambda: plain("Adam", clip="norm"),
    "clipped by value": lambda: plain("Adam", clip="value"),
    "gradients zeroed": lambda: plain("Adam", zero=False),
    "mixed precision, bfloat16": lambda: mixed("bfloat16", 3),
    "mixed precision, float16": lambda: mixed("float16", 4),
    "mixed precision, steps skipped": lambda: mixed("bfloat16", 2, poison=True),
    "mixed precision, unclipped": lambda: mixed("bfloat16", 100, poison=True, clip=False),
    "average by hand": lambda: averaged("by hand"),
    "average, ema": lambda: averaged("ema"),
    "average, swa": lambda: averaged("swa"),
    "accumulated within": lambda: accumulated(True),
    "accumulated over calls": lambda: accumulated(False),
    "checkpoint": lambda: checkpointed(False),
    "checkpoint, reentrant": lambda: checkpointed(True),
    "weights tied": tied,
    "hooks": hooked,
    "custom function": custom,
    "batch norm by turns": normed,
    "two optimizers": two_optimizers,
    "frozen by turns": frozen,
    "weight norm": lambda: parametrized("weight_norm"),
    "spectral norm": lambda: parametrized("spectral_norm"),
    "spectral norm, old": lambda: parametrized("spectral, old"),
    "orthogonal": lambda: parametrized("orthogonal"),
    "LSTM": lambda: recurrent("LSTM"),
    "GRU": lambda: recurrent("GRU"),
    "attention": attention,
    "gradient penalty": penalized,
    "buffers": buffers,
}


def trained(kind: str, compiled: bool, steps: int) -> tuple[list[Any], list[Any], Any]:
    """Values (losses, states, gradients) and counts (versions, random state) after some steps, and what was compiled."""
    xtensor.manual_seed(0)
    model, step, after = KINDS[kind]()
    run = xtensor.compile(step) if compiled else step
    xtensor.manual_seed(1)
    losses = []
    for number in range(steps):
        losses.append(run(*batch(number)).item())
        after(number)
    values = [np.array(losses), *[v.detach().numpy().copy() for v in model.state_dict().values()]]
    parameters = list(model.parameters())
    grads = [None if p.grad is None else p.grad.numpy().copy() for p in parameters]
    values += [g for g in grads if g is not None]
    counts = [[g is None for g in grads], [p._version for p in parameters], xtensor.get_rng_state().tolist()]
    return values, counts, getattr(run, "_xt_compiled", None)


def compared(kind: str, steps: int = STEPS) -> Outcome:
    """A kind of training, compiled against eager."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "xtensor.compile")
        eager, before, _ = trained(kind, False, steps)
        fast, now, inner = trained(kind, True, steps)
    names = ["which gradients are None", "versions", "random state"]
    # A step that a scaler skips is a choice within the program: what it would have written counts as written.
    skipping = kind in ("mixed precision, steps skipped", "mixed precision, unclipped")
    counts = [n for n, a, b in zip(names, before, now) if a != b and not (skipping and n == "versions")]
    if len(eager) != len(fast):
        return Outcome(float("inf"), counts, 0, 0, [])
    worst = 0.0
    for a, b in zip(eager, fast):
        a, b = a.astype(np.float64), b.astype(np.float64)
        if (np.isfinite(a) != np.isfinite(b)).any():
            worst = float("inf")
        finite = np.isfinite(a)
        if finite.any():
            worst = max(worst, float(np.abs(a - b)[finite].max() / max(np.abs(a[finite]).max(), 1e-2)))
    inners = [inner]
    for each in inners:
        if each.head is not None:
            inners.append(each.head)
    programs = [entry.program for each in inners for entry in each.entries]
    reasons = [why for each in inners for why in each.reasons] + [each.cut for each in inners if each.cut]
    return Outcome(worst, counts, len(programs), sum(p.calls for p in programs), reasons)
