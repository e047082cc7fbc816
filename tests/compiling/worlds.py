"""Random changes of the world between calls: shapes, modes, flags, hooks, numbers, tensors. A compiled function never gives a stale answer.

One world has a model, an optimizer, settings of several kinds, and a training step over them. Every change is drawn from a seed and made in
an eager world and in a compiled one; after each, both make a step.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xtensor
from xtensor import nn

__all__ = ["Outcome", "compared"]

F = nn.functional
FACTOR = 1.0
PROGRAMS = 24
"""How many are kept beside each other."""


class Outcome(NamedTuple):
    """What differs first (empty where nothing does), how many steps were made, and how many of them as programs."""

    different: str
    steps: int
    calls: int
    forgotten: int


class Options:
    """Numbers, a container and an object that the step reads."""

    shared = 1.0

    def __init__(self) -> None:
        self.scale = 1.0
        self.weights = [1.0, 0.5]
        self.table = {"a": 1.0, "inner": {"b": 2.0}}
        self.power = 2
        self.name = "relu"


class World:
    """All that a step depends on."""

    def __init__(self) -> None:
        xtensor.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
        )
        self.options = Options()
        self.opt: Any = xtensor.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.offset = xtensor.zeros(3)
        self.mask: Any = None
        self.handles: list[Any] = []
        self.rows = 5
        self.dtype = xtensor.float32
        self.strided = False
        self.given: Any = 1
        self.keyword: dict[str, Any] = {}
        self.modes: list[Callable[[], Any]] = []
        self.train = True
        self.closure = [1.0]
        globals()["FACTOR"] = 1.0
        Options.shared = 1.0
        self.step = self.made()

    def made(self) -> Callable[..., Any]:
        """The step, a function with a closure."""
        options, closure = self.options, self.closure

        def step(x: Any, y: Any, weight: Any = 1, *, extra: Any = None) -> Any:
            self.opt.zero_grad()
            out = self.model(x.float()) * options.scale * options.shared + self.offset
            out = getattr(F, options.name)(out) ** options.power * options.weights[0]
            if self.mask is not None:
                out = out * self.mask
            loss = F.cross_entropy(out, y) * weight * closure[0] * FACTOR * options.table["inner"]["b"]
            if extra is not None:
                loss = loss + extra
            if len(options.weights) > 2:
                loss = loss * options.weights[-1]
            if loss.requires_grad and self.train:
                loss.backward()
                self.opt.step()
            return loss.detach()

        return step

    def call(self, run: Callable[..., Any], number: int) -> Any:
        """One step, with all that it leaves behind."""
        rng = np.random.default_rng(number)
        values = rng.normal(size=(self.rows, 6))
        x = xtensor.tensor(values).to(self.dtype)
        if self.strided:
            x = x.t().contiguous().t()
        y = xtensor.tensor(rng.integers(0, 3, self.rows))
        xtensor.manual_seed(number)
        with contextlib.ExitStack() as stack:
            for mode in self.modes:
                stack.enter_context(mode())
            try:
                loss: Any = run(x, y, self.given, **self.keyword)
            except Exception as error:
                return type(error).__name__
        left = [v.detach() for v in self.model.state_dict().values()]
        left += [p.grad for p in self.model.parameters() if p.grad is not None]
        return [loss.float().numpy(), *[v.float().numpy().copy() for v in left]]


def changes(w: World, rng: random.Random) -> Callable[[], Any]:
    """One change of a world."""
    model, options = w.model, w.options
    number = rng.choice([0.5, 1.0, 2.0, 3, -1.5])
    layer = rng.choice([0, 4])

    def hook() -> None:
        w.handles.append(model[layer].register_forward_hook(lambda m, i, o, k=number: o * k))

    def unhook() -> None:
        if w.handles:
            w.handles.pop(0).remove()

    def gradient_hook() -> None:
        w.handles.append(model[layer].weight.register_hook(lambda g, k=number: g * k))

    def replace() -> None:
        xtensor.manual_seed(rng.randrange(100))
        model[layer] = nn.Linear(6, 8, bias=False) if layer == 0 else nn.Linear(8, 3)
        w.opt = xtensor.optim.SGD(model.parameters(), lr=0.05)

    def other_optimizer() -> None:
        kind = rng.choice(["Adam", "SGD", "RMSprop"])
        # A large eps: small gradients, of which half precision leaves little, are not made as large as any.
        more = {} if kind == "SGD" else {"eps": 1.0}
        w.opt = getattr(xtensor.optim, kind)(model.parameters(), lr=0.01, **more)

    def load() -> None:
        model.load_state_dict(
            {k: v * 0.9 if v.is_floating_point() else v for k, v in model.state_dict().items()}
        )

    def data() -> None:
        model[layer].weight.data = model[layer].weight.data * 0.5

    def write() -> None:
        with xtensor.no_grad():
            model[4].bias.add_(0.1)

    def gradients() -> None:
        for p in model.parameters():
            p.grad = rng.choice([None, xtensor.ones_like(p)])

    def drop() -> None:
        for p in model.parameters():
            p.grad = None

    def offset() -> None:
        w.offset = w.offset + 1 if rng.random() < 0.5 else xtensor.zeros(3)

    def offset_in_place() -> None:
        w.offset.add_(0.25)

    def mode() -> None:
        w.modes = rng.choice(
            [
                [],
                [xtensor.no_grad],
                [lambda: xtensor.autocast("cpu", dtype=xtensor.bfloat16)],
                [],
                [xtensor.inference_mode],
            ]
        )

    def group() -> None:
        key: Any = rng.choice(
            ["lr", "weight_decay", *(["momentum"] if isinstance(w.opt, xtensor.optim.SGD) else [])]
        )
        w.opt.param_groups[0][key] = {"lr": 0.01 * abs(number), "weight_decay": 0.01, "momentum": 0.5}[key]

    def option(name: str, value: Any) -> Callable[[], None]:
        return lambda: setattr(options, name, value)

    def weights() -> None:
        rng.choice([lambda: options.weights.append(number), lambda: options.weights.__setitem__(0, number)])()
        del options.weights[4:]

    def table() -> None:
        options.table["inner"] = {"b": number}

    def factor() -> None:
        globals()["FACTOR"] = number

    def shared() -> None:
        Options.shared = number

    def deeper() -> None:
        model[3].p = rng.choice([0.0, 0.2, 0.5])

    def norm() -> None:
        setattr(model[1], rng.choice(["momentum", "eps"]), rng.choice([0.1, 0.3]))

    def frozen() -> None:
        model[layer].weight.requires_grad_(rng.random() < 0.6)

    def training() -> None:
        model.train(rng.random() < 0.6)

    def inner_training() -> None:
        model[rng.choice([1, 3])].train(rng.random() < 0.5)

    def whole() -> None:
        w.train = not w.train

    def masked() -> None:
        w.mask = rng.choice([None, xtensor.tensor([1.0, 0.0, 2.0])])

    def rows() -> None:
        w.rows = rng.choice([2, 3, 5, 7])

    def kind() -> None:
        w.dtype = rng.choice([xtensor.float32, xtensor.float64, xtensor.float32, xtensor.bfloat16])

    def strides() -> None:
        w.strided = not w.strided

    def given() -> None:
        w.given = rng.choice([1, 2, 2.0, True, xtensor.tensor(0.5), None if False else 1])

    def keyword() -> None:
        w.keyword = rng.choice([{}, {"extra": 1.0}, {"extra": xtensor.tensor(2.0)}, {"extra": None}])

    def closure() -> None:
        w.closure[0] = number

    def default() -> None:
        w.step.__defaults__ = (rng.choice([1, 2]),)
        w.given = 1

    made = [
        hook, unhook, unhook, gradient_hook, replace, other_optimizer, load, data, write, gradients, drop, drop, offset,
        offset_in_place, mode, mode, group, option("scale", number), option("power", rng.choice([1, 2, 3])),
        option("name", rng.choice(["relu", "tanh", "softplus"])), weights, table, factor, shared, deeper, norm, frozen,
        training, inner_training, whole, masked, rows, kind, strides, given, keyword, closure, default,
    ]  # fmt: skip
    return rng.choice(made)


def bounded(worlds: list[World], start: dict[str, Any]) -> None:
    """Have both worlds go on from the eager one's values, or from the first ones where those have grown."""
    state = worlds[0].model.state_dict()
    wild = any(not bool((v.float().abs() < 20).all()) for v in state.values())
    chosen = start if wild else {k: v.detach().clone() for k, v in state.items()}
    for w in worlds:
        with xtensor.no_grad():
            for name, value in w.model.state_dict().items():
                value.copy_(chosen[name])
    if wild:
        for w in worlds:
            w.opt = xtensor.optim.SGD(w.model.parameters(), lr=0.05)
            w.offset = xtensor.zeros(3)


def differs(a: Any, b: Any) -> str:
    """How two steps differ, empty where they do not."""
    if isinstance(a, str) or isinstance(b, str):
        return "" if isinstance(a, str) and isinstance(b, str) and a == b else f"{a} but {b}"
    if len(a) != len(b):
        return f"{len(a)} values but {len(b)}"
    for at, (p, q) in enumerate(zip(a, b)):
        if p.shape != q.shape or not np.allclose(p, q, rtol=5e-2, atol=5e-3, equal_nan=True):
            return f"value {at}: {p} but {q}"
    return ""


def compared(seed: int, count: int) -> Outcome:
    """So many changes, each with a step or two before the next, compiled against eager."""
    rng = random.Random(seed)
    worlds = [World(), World()]
    start = {k: v.detach().clone() for k, v in worlds[0].model.state_dict().items()}
    runs: list[Any] = [worlds[0].step, xtensor.compile(worlds[1].step)]
    inner = runs[1]._xt_compiled
    inner.limit = PROGRAMS
    calls = forgotten = steps = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            drawn = rng.randrange(10**9)
            name = ""
            if number > 2:
                for w in worlds:
                    change = changes(w, random.Random(drawn))
                    name = change.__name__
                    change()
            for again in range(1 + (rng.random() < 0.3)):
                found = [w.call(run, 2 * number + again) for w, run in zip(worlds, runs)]
                steps += 1
                different = differs(*found)
                if different:
                    return Outcome(
                        f"seed {seed}, change {number} ({name}): {different}", steps, calls, forgotten
                    )
                bounded(worlds, start)
            if inner.gave_up or len(inner.entries) >= PROGRAMS or inner.head is not None:
                calls += sum(e.program.calls for e in inner.entries)
                inner.forget()
                inner.limit = PROGRAMS
                forgotten += 1
    calls += sum(e.program.calls for e in inner.entries)
    return Outcome("", steps, calls, forgotten)
