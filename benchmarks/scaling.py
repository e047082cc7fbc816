"""How time and memory grow with sizes: xtensor against PyTorch, with the slopes, and where ours is the steeper.

    python benchmarks/scaling.py                        every law; half an hour, 6 GiB, and as much on disk as there is, at most 8 GB
    python benchmarks/scaling.py --small                to a thousandth of the sizes, five minutes
    python benchmarks/scaling.py chain parameters       some
    python benchmarks/scaling.py --json scaling.json    and write the figures

Each law runs in a process per contender, from small to large; it stops after a size that takes more than `--limit` seconds. `first` is the
first call of a size, with what it compiles; `then` the fastest of those after it. Both are processor time of all threads, of files the whole
time. `MiB` is by how much the process grew at its highest. A slope is that of the logarithms, fitted to the last sizes (from a hundredth of the
largest on) that both have: 1 is linear, 2 quadratic. Steeper is what exceeds PyTorch's by more than `MARGIN` and is slower at the largest size.
"""

from __future__ import annotations

import argparse
import copy
import gc
import io
import json
import math
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from memory import MIB, status

MARGIN = 0.15
CONTENDERS = ("xtensor", "torch")
Run = Callable[[], Any]


class Law(NamedTuple):
    """What grows: `make(lib, n)` gives what is timed, whose result is kept until the next. small, most: the sizes' ends."""

    make: Callable[[Any, int], Run]
    most: int
    small: int
    least: int = 1


# -- elements


def elements(call: Callable[[Any, Any], Any]) -> Callable[[Any, int], Run]:
    def make(lib: Any, n: int) -> Run:
        x = lib.ones(n)

        def run() -> Any:
            out = call(lib, x)
            out.view(-1)[-1].item()  # waits
            return out

        return run

    return make


# -- graphs


def chain(lib: Any, n: int) -> Run:
    """n nodes after each other, and backward through them."""
    x: Any = lib.ones(4, requires_grad=True)

    def run() -> Any:
        x.grad = None
        y: Any = x
        for _ in range(n):
            y = y * 1.0
        y.sum().backward()
        gradient: Any = x.grad
        return gradient.sum().item()

    return run


def fan(lib: Any, n: int) -> Run:
    """n uses of one leaf, whose gradients meet, and one sum of them."""
    x: Any = lib.ones(4, requires_grad=True)

    def run() -> Any:
        x.grad = None
        lib.stack([x * 1.0 for _ in range(n)]).sum().backward()
        gradient: Any = x.grad
        return gradient.sum().item()

    return run


def leaves(lib: Any, n: int) -> Run:
    """A graph that ends in n leaves."""
    xs = [lib.ones(4, requires_grad=True) for _ in range(n)]

    def run() -> Any:
        for x in xs:
            x.grad = None
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        total.sum().backward()
        return xs[-1].grad.sum().item()

    return run


def dropped(lib: Any, n: int) -> Run:
    """A graph of n nodes that nobody runs: made, and given back."""
    x: Any = lib.ones(4, requires_grad=True)

    def run() -> None:
        y = x
        for _ in range(n):
            y = y * 1.0
        del y

    return run


def written(lib: Any, n: int) -> Run:
    """n writes in place that autograd follows, each through a view of one tensor."""

    def run() -> Any:
        x = lib.ones(8, requires_grad=True)
        y = x * 1.0
        for i in range(n):
            y[i % 8].mul_(1.0)
        y.sum().backward()
        gradient: Any = x.grad
        return gradient.sum().item()

    return run


# -- parameters, modules, optimizers


def parameters(optimizer: str) -> Callable[[Any, int], Run]:
    """A step of an optimizer over n parameters that have gradients."""

    def make(lib: Any, n: int) -> Run:
        xs = [lib.nn.Parameter(lib.ones(4)) for _ in range(n)]
        for x in xs:
            x.grad = lib.ones(4)
        found = getattr(lib.optim, optimizer)(xs, lr=0.1)

        def run() -> Any:
            found.step()
            return xs[-1].sum().item()

        return run

    return make


def modules(act: Callable[[Any, Any], Any]) -> Callable[[Any, int], Run]:
    """Something over a model of n layers."""

    def make(lib: Any, n: int) -> Run:
        model = lib.nn.Sequential(*[lib.nn.LayerNorm(4) for _ in range(n)])
        return lambda: act(lib, model)

    return make


def clipped(lib: Any, n: int) -> Run:
    """The norm of n gradients, and clipping by it."""
    xs = [lib.nn.Parameter(lib.ones(4)) for _ in range(n)]
    for x in xs:
        x.grad = lib.ones(4)
    return lambda: lib.nn.utils.clip_grad_norm_(xs, 1.0).item()


# -- storages, views, lists


def storages(lib: Any, n: int) -> Run:
    """n small tensors, kept."""
    return lambda: [lib.empty(4) for _ in range(n)]


def views(lib: Any, n: int) -> Run:
    """n views of one tensor, kept."""
    x = lib.zeros(16)
    return lambda: [x[i % 16] for i in range(n)]


def written_base(lib: Any, n: int) -> Run:
    """Sixteen writes to a tensor of which there are n views that were read, and a read of one of them."""
    x = lib.zeros(16)
    kept = [x[i % 16] for i in range(n)]
    for view in kept[: min(n, 1000)]:
        view.item()

    def run() -> Any:
        for _ in range(16):
            x.add_(1)
        return kept[-1].item()

    return run


def view_of_view(lib: Any, n: int) -> Run:
    """A view of a view of a view, n deep."""
    x = lib.ones(3, 3, requires_grad=True)

    def run() -> Any:
        y = x
        for _ in range(n):
            y = y.t()
        return y.sum().item()

    return run


def joined(lib: Any, n: int) -> Run:
    """`cat` of n tensors."""
    xs = [lib.ones(4) for _ in range(n)]
    return lambda: lib.cat(xs).sum().item()


def parted(lib: Any, n: int) -> Run:
    """The n rows of a tensor, kept."""
    x = lib.ones(n, 4)
    return lambda: x.unbind()


def from_list(lib: Any, n: int) -> Run:
    """A tensor of n Python numbers."""
    numbers = [float(i) for i in range(n)]
    return lambda: lib.tensor(numbers)


def to_list(lib: Any, n: int) -> Run:
    """n Python numbers of a tensor."""
    x = lib.ones(n)
    return lambda: x.tolist()


def foreach(lib: Any, n: int) -> Run:
    """`_foreach_add_` over n tensors."""
    xs = [lib.ones(4) for _ in range(n)]

    def run() -> Any:
        lib._foreach_add_(xs, 1.0)
        return xs[-1].sum().item()

    return run


# -- files

FOLDER = pathlib.Path(tempfile.gettempdir())


def file_of(lib: Any) -> pathlib.Path:
    return FOLDER / f"scaling-{lib.__name__}.pt"


def saved(lib: Any, n: int) -> Run:
    """A file of one tensor of n bytes, written and read."""
    x = lib.zeros(n, dtype=lib.uint8)

    def run() -> Any:
        lib.save({"x": x}, file_of(lib))
        return lib.load(file_of(lib))["x"][-1].item()

    return run


def saved_many(lib: Any, n: int) -> Run:
    """A file of n small tensors, written and read."""
    xs = {str(i): lib.ones(4) for i in range(n)}

    def run() -> Any:
        lib.save(xs, file_of(lib))
        return len(lib.load(file_of(lib)))

    return run


LAWS: dict[str, Law] = {
    "elements: add": Law(elements(lambda lib, x: x + 1.0), 10**8, 10**6),
    "elements: sum": Law(elements(lambda lib, x: x.sum()), 10**8, 10**6),
    "elements: exp": Law(elements(lambda lib, x: x.exp()), 10**8, 10**6),
    "elements: cumsum": Law(elements(lambda lib, x: x.cumsum(0)), 10**8, 10**6),
    "elements: sort": Law(elements(lambda lib, x: x.sort()[0]), 10**7, 10**5),
    "elements: softmax": Law(elements(lambda lib, x: x.softmax(0)), 10**8, 10**6),
    "elements: copy of every second": Law(elements(lambda lib, x: x[::2].clone()), 10**8, 10**6, 10),
    "elements: in place": Law(elements(lambda lib, x: x.mul_(1.0)), 10**8, 10**6),
    "elements: tensor(list)": Law(from_list, 10**7, 10**5),
    "elements: tolist": Law(to_list, 10**7, 10**5),
    "nodes: chain": Law(chain, 10**6, 10**4),
    "nodes: fan": Law(fan, 10**5, 10**3),
    "nodes: leaves": Law(leaves, 10**5, 10**3),
    "nodes: dropped": Law(dropped, 10**6, 10**4),
    "nodes: writes through views": Law(written, 10**5, 10**3),
    "parameters: SGD": Law(parameters("SGD"), 10**5, 10**3),
    "parameters: Adam": Law(parameters("Adam"), 10**5, 10**3),
    "parameters: clip_grad_norm_": Law(clipped, 10**5, 10**3),
    "parameters: _foreach_add_": Law(foreach, 10**5, 10**3),
    "parameters: module made": Law(
        lambda lib, n: lambda: lib.nn.Sequential(*[lib.nn.LayerNorm(4) for _ in range(n)]), 10**5, 10**3
    ),
    "parameters: named": Law(
        modules(lambda lib, model: [name for name, _ in model.named_parameters()]), 10**5, 10**3
    ),
    "parameters: state_dict": Law(modules(lambda lib, model: model.state_dict()), 10**5, 10**3),
    "parameters: load_state_dict": Law(
        modules(lambda lib, model: model.load_state_dict(model.state_dict())), 10**5, 10**3
    ),
    "parameters: deepcopy": Law(modules(lambda lib, model: copy.deepcopy(model)), 10**4, 10**3),
    "parameters: pickled": Law(
        modules(lambda lib, model: lib.save(model.state_dict(), io.BytesIO())), 10**5, 10**3
    ),
    "storages: made": Law(storages, 10**6, 10**4),
    "storages: cat": Law(joined, 10**5, 10**3),
    "views: made": Law(views, 10**6, 10**4),
    "views: unbind": Law(parted, 10**6, 10**4),
    "views: base written": Law(written_base, 10**6, 10**4),
    "views: of views": Law(view_of_view, 10**5, 10**3),
    "files: one tensor": Law(saved, 8 * 10**9, 10**7, 1000),
    "files: many tensors": Law(saved_many, 10**5, 10**3),
}


def sizes(law: Law, small: bool) -> list[int]:
    """Powers of ten up to the law's end."""
    most = law.small if small else law.most
    found = [10**e for e in range(12) if law.least <= 10**e < most]
    return [*found, most]


class Point(NamedTuple):
    """Seconds of the first call of a size and of those after it, and bytes that the process grew by."""

    size: int
    first: float
    then: float
    grown: int


def grown_from() -> int:
    """What is resident now; the highest is counted from here on."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return status("VmRSS")


def fits(name: str, size: int) -> bool:
    """Whether there is room: of the disk a third more than the file, and of memory four arrays."""
    if name == "files: one tensor":
        return shutil.disk_usage(FOLDER).free > size * 1.3 and status_of_machine() > size * 3.5
    return not name.startswith("elements") or status_of_machine() > size * 4 * 5


def status_of_machine() -> int:
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def points(contender: str, name: str, small: bool, limit: float) -> list[Point]:
    """The law of one contender, in this process."""
    import importlib

    lib = importlib.import_module(contender)
    if contender == "torch":
        lib.set_num_threads(2)
    law = LAWS[name]
    found: list[Point] = []
    for size in sizes(law, small):
        if not fits(name, size):
            break
        rest = grown_from()
        run = law.make(lib, size)
        times = []
        # Of the processor, which other processes do not take from; files are waited for.
        clock = time.perf_counter if name.startswith("files") else time.process_time
        began = time.perf_counter()
        while len(times) < 2 or (len(times) < 30 and time.perf_counter() - began < 0.3):
            before = clock()
            kept = run()
            times.append(clock() - before)
            if len(times) == 1 and times[0] > limit:
                break
            del kept
        then = min(times[1:] or times)
        found.append(Point(size, times[0], then, max(status("VmHWM") - rest, 0)))
        del run
        if then > limit or times[0] > limit:
            break
    file_of(lib).unlink(missing_ok=True)
    return found


def slope(sizes_: list[int], values: list[float]) -> float | None:
    """The exponent with which values grow over the last sizes, by least squares of logarithms."""
    last = [(math.log(s), math.log(max(v, 1e-9))) for s, v in zip(sizes_, values, strict=True)]
    last = [pair for pair in last if pair[0] >= last[-1][0] - math.log(100.5)]
    if len(last) < 2:
        return None
    x, y = (statistics.fmean(part) for part in zip(*last, strict=True))
    return sum((a - x) * (b - y) for a, b in last) / sum((a - x) ** 2 for a, _ in last)


def steeper(found: dict[str, list[Point]]) -> dict[str, Any]:
    """Slopes of both over the sizes that both have, and what of ours is the steeper and the slower (or larger) at the end."""
    count = min(map(len, found.values()))
    verdict: dict[str, Any] = {"steeper": []}
    ours, theirs = (found[name][:count] for name in CONTENDERS)
    for what, pick in (("time", lambda p: p.then), ("memory", lambda p: float(p.grown))):
        # Below a few MiB a process's growth is the allocator's.
        pair = [
            p
            for p in zip(ours, theirs, strict=True)
            if what == "time" or min(p[0].grown, p[1].grown) > 4 * MIB
        ]
        if not pair:
            continue
        at = [p[0].size for p in pair]
        slopes = [slope(at, [pick(p[side]) for p in pair]) for side in (0, 1)]
        ratio = pick(pair[-1][0]) / max(pick(pair[-1][1]), 1e-9)
        verdict[what] = {"slopes": slopes, "ratio": ratio, "at": at[-1]}
        mine, other = slopes
        if mine is not None and other is not None and mine > other + MARGIN and ratio > 1:
            verdict["steeper"].append(what)
    if len(found["xtensor"]) < len(found["torch"]):
        verdict["steeper"].append(f"stopped at {found['xtensor'][-1].size}")
    return verdict


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("laws", nargs="*", help="parts of laws' names; every law without any")
    parser.add_argument("--small", action="store_true", help="to smaller sizes")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a call after which a law stops")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    if options.contender:
        print(json.dumps(points(options.contender, options.laws[0], options.small, options.limit)))
        return 0
    figures: dict[str, Any] = {}
    print(
        f"{'law':<32}{'size':>12}{'first':>10}{'then':>10}{'MiB':>9}{'torch':>10}{'MiB':>9}{'ratio':>8}  seconds"
    )
    for name in LAWS:
        if options.laws and not any(part in name for part in options.laws):
            continue
        found: dict[str, list[Point]] = {}
        for contender in CONTENDERS:
            command = [sys.executable, "-W", "ignore", __file__, name, "--contender", contender]
            command += ["--limit", str(options.limit), *(["--small"] if options.small else [])]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[contender] = [Point(*point) for point in json.loads(done.stdout.splitlines()[-1])]
        for at, ours in enumerate(found["xtensor"]):
            row = f"{name if not at else '':<32}{ours.size:>12}{ours.first:>10.2g}{ours.then:>10.2g}{ours.grown / MIB:>9.1f}"
            if at < len(found["torch"]):
                theirs = found["torch"][at]
                row += f"{theirs.then:>10.2g}{theirs.grown / MIB:>9.1f}{ours.then / theirs.then:>8.2f}"
            print(row, flush=True)
        verdict = steeper(found)
        told = []
        for what in ("time", "memory"):
            if what in verdict and None not in verdict[what]["slopes"]:
                ours, theirs = verdict[what]["slopes"]
                told.append(f"{what} {ours:.2f} (PyTorch {theirs:.2f})")
        if verdict["steeper"]:
            told.append(f"STEEPER: {', '.join(verdict['steeper'])}")
        print(f"{'':<32}{'; '.join(told)}", flush=True)
        figures[name] = {**{k: [p._asdict() for p in v] for k, v in found.items()}, **verdict}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)
    print("steeper:", ", ".join(n for n, f in figures.items() if f["steeper"]) or "nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
