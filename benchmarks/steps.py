"""Whole training steps, eager and compiled: xtensor against PyTorch (2 threads) and the same step by hand under `jax.jit`.

    python benchmarks/steps.py                     every case
    python benchmarks/steps.py mlp gpt-small       some
    python benchmarks/steps.py --json steps.json   and write the figures
    python benchmarks/steps.py --torch-compile     with a column for PyTorch's compiler, which takes a minute for each case

`memory` is what the compiled step's program needs at most (arguments, results and between), by that of the one by hand: XLA's own count.
The columns behind `with .grad` are the same two ratios to the step by hand that gives its gradients back as well, as one has to whose `.grad`
stay visible.
PyTorch's compiler compiles the model and the optimizer's step, each for itself, since it cannot compile `backward()` along with them.
A step is zero_grad, forward, loss, backward, optimizer step. Each contender has a process of its own, with none of the others' libraries in it. The
processes take turns within one run, so that what else the machine does falls on all of them; a figure is the median over turns of a step's mean time, and
a ratio the median of the turns' ratios. All start from the same weights, and the losses after the warm-up are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from turns import Process, Run, measure_apart, ratio

# Neither xtensor, JAX nor PyTorch: each process imports that of its contender.

Step = Callable[[], Any]


def mlp(lib: Any, width: int) -> Any:
    """Three layers, ten classes."""
    nn = lib.nn
    return nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def cnn(lib: Any) -> Any:
    """Four layers on 28x28."""
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def depthwise(lib: Any) -> Any:
    """A depthwise-separable network on 32x32."""
    nn = lib.nn

    def block(cin: int, cout: int, stride: int) -> list[Any]:
        return [
            nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), nn.BatchNorm2d(cin), nn.ReLU(),
            nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
        ]  # fmt: skip

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        *block(16, 32, 1), *block(32, 64, 2), *block(64, 64, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def gpt(lib: Any, layers: int, width: int, heads: int, vocabulary: int, length: int) -> Any:
    """A decoder with learned positions."""
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = self.qkv(self.first(x)).split(width, dim=2)
            q, k, v = (z.view(b, t, heads, width // heads).transpose(1, 2) for z in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
            return x + self.down(F.gelu(self.up(self.second(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.last = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x)).flatten(0, 1)

    return GPT()


def lstm_loop(lib: Any) -> Any:
    """An LSTM cell called 64 times."""
    nn = lib.nn

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTMCell(32, 64), nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            h, c = lib.zeros(x.shape[1], 64), lib.zeros(x.shape[1], 64)
            for i in range(x.shape[0]):
                h, c = self.cell(x[i], (h, c))
            return self.head(h)

    return Loop()


def by_hand(name: str, *sizes: int) -> Callable[[Any, Any], Any]:
    """A model of `handwritten.py`, which imports JAX only when it is called."""

    def model(p: Any, x: Any) -> Any:
        import handwritten

        made = getattr(handwritten, name)
        return (made(*sizes) if sizes else made)(p, x)

    return model


@dataclass(frozen=True)
class Case:
    """A model, its data, an optimizer's name, whether gradients are clipped, and the bound against PyTorch."""

    make: Callable[[Any], Any]
    shape: tuple[int, ...]
    classes: int
    optimizer: str
    bound: float
    by_hand: Callable[[Any, Any], Any]
    tokens: bool = False
    clip: bool = False
    batch_dim: int = 0


CASES = {
    **{
        f"mlp-{b}x{w}-{name.lower()}": Case(
            lambda lib, w=w: mlp(lib, w), (b, w), 10, name, 0.75, by_hand("mlp")
        )
        for b, w in ((32, 64), (128, 256), (512, 1024))
        for name in ("SGD", "Adam")
    },
    "cnn": Case(cnn, (32, 1, 28, 28), 10, "Adam", 1.0, by_hand("cnn")),
    "depthwise-cnn": Case(depthwise, (32, 3, 32, 32), 10, "Adam", 1.0, by_hand("depthwise")),
    "lstm-loop": Case(lstm_loop, (64, 16, 32), 10, "Adam", 1.0, by_hand("lstm_loop"), batch_dim=1),
    "gpt-small": Case(
        lambda lib: gpt(lib, 2, 32, 2, 65, 32), (8, 32), 65, "AdamW", 0.8, by_hand("gpt", 2, 2), True, True
    ),
    "gpt-mid": Case(
        lambda lib: gpt(lib, 4, 128, 4, 65, 64), (8, 64), 65, "AdamW", 1.1, by_hand("gpt", 4, 4), True, True
    ),
    "gpt-large": Case(
        lambda lib: gpt(lib, 6, 384, 6, 65, 128),
        (8, 128),
        65,
        "AdamW",
        1.1,
        by_hand("gpt", 6, 6),
        True,
        True,
    ),
}


def data_of(case: Case) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    if case.tokens:
        x = random.integers(0, case.classes, case.shape)
        return x, np.roll(x, -1, 1).reshape(-1)
    return random.normal(size=case.shape).astype(np.float32), random.integers(
        0, case.classes, case.shape[case.batch_dim]
    )


def eager(
    lib: Any, case: Case, weights: dict[str, Any] | None, compiler: Callable[[Any], Any] = lambda made: made
) -> tuple[Step, Any]:
    """An ordinary eager step of a library with PyTorch's interface, and its model; compiler: of the model and the optimizer's step."""
    model = case.make(lib)
    if weights is not None:
        model.load_state_dict({k: lib.tensor(v) for k, v in weights.items()})
    x, y = (lib.tensor(a) for a in data_of(case))
    optimizer = getattr(lib.optim, case.optimizer)(model.parameters(), lr=1e-3)
    run, advance = compiler(model), compiler(optimizer.step)
    cross_entropy, clip = lib.nn.functional.cross_entropy, lib.nn.utils.clip_grad_norm_

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(run(x), y)
        loss.backward()
        if case.clip:
            clip(model.parameters(), 1.0)
        advance()
        return loss.detach()

    return step, model


def contender(
    who: str, name: str, weights: dict[str, Any] | None, interpreter: bool = False, read: bool = False
) -> tuple[Run, dict[str, Any]]:
    """The step of a case as one contender has it, warmed up, and its loss then; xtensor's makes the weights, and reports them.

    read: the loss is read after each step.
    """
    case = CASES[name]
    report: dict[str, Any] = {}
    if who in ("torch", "torch.compile"):
        import torch

        torch.set_num_threads(2)
        step, _ = eager(torch, case, weights, *([torch.compile] if who == "torch.compile" else []))
    elif who in ("xtensor", "compiled"):
        import xtensor
        from xtensor.plans.plans import executor

        executor.enabled = not interpreter
        xtensor.manual_seed(0)
        step, model = eager(xtensor, case, weights)
        if weights is None:
            report["weights"] = {k: v.numpy().copy() for k, v in model.state_dict().items()}
        if who == "compiled":
            step = xtensor.compile(step, fullgraph=True)
    else:
        import handwritten

        gradients = who == "with .grad"
        step = handwritten.step_of(
            case.by_hand, weights or {}, data_of(case), case.optimizer, case.clip, gradients
        )
    for _ in range(20):
        report["loss"] = float(step().item())
    if who in ("xtensor", "compiled"):
        settle(step)
    if who == "compiled":
        report["memory"] = peak(compiled_program(step))
    elif who in ("jit", "with .grad"):
        report["memory"] = peak(step.lowered())  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return (reading if read else waiting)(step), report


TRAINED = 4.0
"""Seconds of training without a look at a value, before anything is timed: by then a whole step may be one program."""


def settle(step: Step) -> None:
    """Have all that a step of xtensor runs compiled for good, as it is after some seconds of a training loop."""
    from xtensor.plans.plans import executor
    from xtensor.xla import segments
    from xtensor.xla.quick import again

    executor.wait()
    again.settle(step)
    loss: Any = None
    for seconds in (TRAINED, TRAINED / 8):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            loss = step()
        loss.item()
        segments.workers.wait()


def measured(name: str, contenders: list[str], options: Any) -> dict[str, Any]:
    """The figures of a case."""
    weights: dict[str, Any] | None = None
    processes: list[Process] = []
    with contextlib.ExitStack() as all_of_them:
        # One after the other, so that none is disturbed in what it tries out; xtensor's is the first.
        for who in contenders:
            arguments = who, name, weights, options.interpreter
            process = Process(who, "steps:contender", *arguments, seconds=options.seconds)
            processes.append(all_of_them.enter_context(process))
            weights = weights or process.report["weights"]
        reports = {process.name: process.report for process in processes}
        losses = {who: report["loss"] for who, report in reports.items()}
        apart = 1e-3 * abs(losses["xtensor"]) + 1e-6  # a loss of nearly nothing is rounding
        if any(abs(loss - losses["xtensor"]) > apart for loss in losses.values()):
            raise SystemExit(f"{name}: the losses differ: {losses}")
        found = measure_apart(processes, options.turns)
    figures: dict[str, Any] = {who: statistics.median(v) for who, v in found.items()}
    figures["turns"] = found
    if "torch" in found:
        figures["ratio to torch"] = ratio(found, "xtensor", "torch")
    figures["ratio to jit"] = ratio(found, "xtensor", "jit")
    for other, behind in (("jit", ""), ("with .grad", " with .grad")):
        figures[f"compiled to jit{behind}"] = ratio(found, "compiled", other)
        figures[f"memory to jit{behind}"] = reports["compiled"]["memory"] / reports[other]["memory"]
    if "torch.compile" in found:
        figures["compiled to torch.compile"] = ratio(found, "compiled", "torch.compile")
    return figures


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a turn of one contender is")
    parser.add_argument("--interpreter", action="store_true", help="without the plan executor")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--torch-compile", action="store_true", help="measure PyTorch's compiler, too")
    options = parser.parse_args(argv)
    contenders = ["xtensor", "compiled", "jit", "with .grad"]
    if importlib.util.find_spec("torch"):
        contenders[1:1] = ["torch", "torch.compile"] if options.torch_compile else ["torch"]
    figures: dict[str, Any] = {}
    print(
        f"{'case':<20}{'us':>10}{'torch':>10}{'ratio':>8}{'bound':>7}{'jit':>10}{'ratio':>8}{'compiled':>10}{'ratio':>8}{'memory':>8}"
        f"{'with .grad':>12}{'memory':>8}"
    )
    for name, case in CASES.items():
        if options.cases and not any(part in name for part in options.cases):
            continue
        f = figures[name] = measured(name, contenders, options)
        row = f"{name:<20}{f['xtensor']:>10.0f}"
        if "torch" in f:
            row += f"{f['torch']:>10.0f}{f['ratio to torch']:>8.2f}{case.bound:>7}"
        row += f"{f['jit']:>10.0f}{f['ratio to jit']:>8.2f}"
        row += f"{f['compiled']:>10.0f}{f['compiled to jit']:>8.2f}{f['memory to jit']:>8.2f}"
        row += f"{f['compiled to jit with .grad']:>12.2f}{f['memory to jit with .grad']:>8.2f}"
        if "torch.compile" in f:
            row += f"  torch.compile {f['torch.compile']:.0f}, ratio {f['compiled to torch.compile']:.2f}"
        print(row, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


def compiled_program(step: Any) -> Any:
    """The program of a compiled step, lowered."""
    from xtensor.xla.x64 import call

    program = step._xt_compiled.entries[0].program
    arrays = [program._array(source, []) for source in program.sources]
    operands = (*[arrays[i] for i in program.reads], *program.parts.constants)
    return call(program.program(True).lower, *operands)


def peak(lowered: Any) -> int:
    """The bytes that a program needs at most."""
    found = lowered.compile().memory_analysis()
    held = found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    return held + found.temp_size_in_bytes


def waiting(step: Step) -> Run:
    """A step that returns what waits for its loss."""
    return lambda: step().item


def reading(step: Step) -> Run:
    """A step that reads its loss."""

    def run() -> Callable[[], Any]:
        value = step().item()
        return lambda: value

    return run


if __name__ == "__main__":
    sys.exit(main())
