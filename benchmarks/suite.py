"""Every benchmark, one table: what is measured, the bound, and whether it holds.

    python benchmarks/suite.py                          over an hour, nearly all of it `start`; writes results.json and results.png
    python benchmarks/suite.py --only steps kernels     some
    python benchmarks/suite.py --only start --keep      some, and the figures of the others stay
    python benchmarks/suite.py --results folder         where the files go
    python benchmarks/suite.py --report folder          the table and the plot of results that are there already

A machine that does other work at the same time spoils absolute figures first and PyTorch's more than ours (its threads
wait for each other); run it on a quiet one. The plot needs matplotlib. Ends with 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any, NamedTuple

import loops
import start

HERE = pathlib.Path(__file__).parent
PARTS = ("dispatch", "loops", "backward", "kernels", "steps", "captures", "memory", "programs", "start")
STEP_BOUNDS = {
    "mlp": 0.75,
    "cnn": 1.0,
    "depthwise": 1.0,
    "lstm": 1.0,
    "gpt-small": 0.8,
    "gpt-mid": 1.1,
    "gpt-large": 1.1,
}
# Of the steps whose batch times width is at least 128 x 256.
AGAINST_JIT = (
    "mlp-128x256-sgd",
    "mlp-128x256-adam",
    "mlp-512x1024-sgd",
    "mlp-512x1024-adam",
    "gpt-mid",
    "gpt-large",
)


class Row(NamedTuple):
    """A figure: a ratio, against whom, and the most that it may be (None: it is reported only)."""

    part: str
    name: str
    against: str
    ratio: float
    bound: float | None

    @property
    def holds(self) -> bool:
        return self.bound is None or self.ratio <= self.bound


def rows(found: dict[str, Any]) -> list[Row]:
    """The figures of all parts that were measured."""
    made: list[Row] = []
    for name, us in found.get("dispatch", {}).get("microseconds", {}).items():
        for other in ("jit", "jnp", "torch"):
            if other in us:
                made.append(Row("dispatch", name, other, us["xtensor"] / us[other], None))
    for name, figures in found.get("loops", {}).items():
        if "ratio" in figures:
            made.append(Row("loops", name, "torch", figures["ratio"], loops.BOUND))
    for name, us in found.get("backward", {}).items():
        if "torch" in us:
            made.append(
                Row(
                    "backward", name, "torch", us["xtensor"] / us["torch"], 1.5 if name == "mul_sum" else None
                )
            )
    for name, figures in found.get("kernels", {}).items():
        if "ratio" in figures:
            made.append(Row("kernels", name, "torch", figures["ratio"], 1.0 if "mean" in name else 1.5))
    for name, figures in found.get("steps", {}).items():
        bound = next(b for start, b in STEP_BOUNDS.items() if name.startswith(start))
        if "ratio to torch" in figures:
            made.append(Row("steps", name, "torch", figures["ratio to torch"], bound))
        made.append(Row("steps", name, "jit", figures["ratio to jit"], 1.5 if name in AGAINST_JIT else None))
        if "compiled to jit" in figures:
            bound = 1.3 if name.startswith("mlp-32") else 1.05
            made.append(Row("steps", f"{name}, compiled", "jit", figures["compiled to jit"], bound))
            made.append(Row("steps", f"{name}, compiled, memory", "jit", figures["memory to jit"], 1.05))
        if "compiled" in figures and "torch" in figures:
            made.append(
                Row("steps", f"{name}, compiled", "torch", figures["compiled"] / figures["torch"], 1.0)
            )
        if "compiled to torch.compile" in figures:
            compiler = figures["compiled to torch.compile"]
            made.append(Row("steps", f"{name}, compiled", "torch.compile", compiler, 1.0))
    for name, figures in found.get("captures", {}).items():
        made.append(Row("captures", f"{name}: guards", "us", figures["guards"], figures["guards bound"]))
        made.append(Row("captures", f"{name}: capture", "traced by hand", figures["capture to trace"], None))
        made.append(Row("captures", f"{name}: capture", "eager steps", figures["capture to eager"], None))
        made.append(Row("captures", f"{name}: by hand", "eager steps", figures["trace to eager"], None))
        made.append(Row("captures", f"{name}: cold", "jit", figures["cold"], 1.2))
        made.append(Row("captures", f"{name}: jit, gradients given", "jit", figures["with gradients"], None))
    for name, figures in found.get("memory", {}).items():
        made.append(Row("memory", name, "jit", figures["ratio to jit"], 1.5))
        made.append(Row("memory", name, "torch", figures["ratio to torch"], 1.1))
    if "start" in found:
        made += start_rows(found["start"])
    return made


def start_rows(found: dict[str, Any]) -> list[Row]:
    """Of first losses, of sizes that vary (in seconds), and of whole processes."""
    made: list[Row] = []
    if "first" in found:
        made.append(Row("start", "first loss, cold", "torch", found["first to torch"], None))
        made.append(Row("start", "first loss, warm", "torch", found["later to torch"], 1.0))
    for name, figures in found.get("lengths", {}).items():
        for state, bound in zip(("cold", "warm"), start.LENGTHS[name], strict=True):
            made.append(Row("start", f"lengths: {name}, {state}", "seconds", figures[state], bound))
    if "all scripts" in found:
        for state, bound in (("cold", start.TOTAL_COLD), ("warm", start.TOTAL_WARM)):
            ratio = found["all scripts"][f"{state} to torch"]
            made.append(Row("start", f"{len(found['scripts'])} scripts, {state}", "torch", ratio, bound))
    for name, figures in found.get("scripts", {}).items():
        for state, bound in (("cold", start.COLD), ("warm", start.WARM)):
            made.append(Row("scripts", f"{name}, {state}", "torch", figures[f"{state} to torch"], bound))
    return made


def scripts_table(found: dict[str, Any]) -> list[str]:
    """Seconds of whole processes, with the ratios to PyTorch, a script in a line."""
    lines = [
        "",
        "Seconds of whole processes, and times PyTorch's: unmodified scripts, with an empty compile cache (cold) and a full one (warm).",
        f"At most {start.COLD} and {start.WARM} times for any.",
        "",
        "| script | kind | PyTorch | cold | | warm | | programs |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, f in found.items():
        cells = [name, f["kind"], f"{f['torch']:.2f}"]
        for state, bound in (("cold", start.COLD), ("warm", start.WARM)):
            ratio = f[f"{state} to torch"]
            cells += [f"{f[state]:.2f}", f"{ratio:.2f}" if ratio <= bound else f"**{ratio:.2f}**"]
        lines.append(f"| {' | '.join(cells)} | {f['programs']} |")
    return lines


def markdown(found: dict[str, Any]) -> str:
    """The table of all figures, with the machine."""
    about = found["about"]
    machine = f"{about['cores']} cores of {about['processor']}, Python {about['python']}"
    lines = [
        f"Ratios of medians in one run; {machine}, jax {about['jax']}, torch {about['torch']}.",
        "",
        "| part | case | against | ratio | at most | |",
        "|---|---|---|---:|---:|---|",
    ]
    for row in rows(found):
        if row.part == "scripts":
            continue
        bound = "" if row.bound is None else f"{row.bound:.2f}"
        verdict = "" if row.bound is None else "holds" if row.holds else "**missed**"
        lines.append(f"| {row.part} | {row.name} | {row.against} | {row.ratio:.2f} | {bound} | {verdict} |")
    if "programs" in found:
        lines += [
            "",
            "Programs compiled: in ten steps of a first run, in the last four of them, and in ten steps of a second run.",
            "",
            "| model | first run | settled | second run |",
            "|---|---:|---:|---:|",
        ]
        for name, counts in found["programs"].items():
            lines.append(f"| {name} | {counts['first']} | {counts['settled']} | {counts['second']} |")
    if found.get("start", {}).get("scripts"):
        lines += scripts_table(found["start"]["scripts"])
    return "\n".join(lines) + "\n"


def plot(found: dict[str, Any], path: pathlib.Path) -> None:
    """Bars of the ratios to PyTorch, on a logarithmic axis: left of the line is faster than PyTorch."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [
        r for r in rows(found) if r.against == "torch" and r.part in ("steps", "kernels", "memory", "start")
    ]
    figure, axes = plt.subplots(figsize=(7, 0.24 * len(shown) + 1))
    places = range(len(shown))
    axes.barh(places, [r.ratio for r in shown], color=["#3b7dd8" if r.holds else "#d8743b" for r in shown])
    axes.set_yticks(places, [f"{r.part}: {r.name}" for r in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("time or memory over PyTorch's (orange: bound missed)")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def version(package: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def measure(parts: list[str], folder: pathlib.Path, kept: dict[str, Any]) -> dict[str, Any]:
    """Run the parts, each in a process of its own. kept: figures of others."""
    found: dict[str, Any] = kept | {
        "about": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "jax": version("jax"),
            "torch": version("torch"),
        }
    }
    for part in parts:
        print(f"\n== {part}", flush=True)
        path = folder / f"{part}.json"
        command = [sys.executable, "-W", "ignore", str(HERE / f"{part}.py"), "--json", str(path)]
        # Some end with 1 where a bound of their own is missed; the table below says so too.
        subprocess.run(command, check=False)
        found[part] = json.loads(path.read_text("utf-8"))
        path.unlink()
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path())
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="let the figures of parts that do not run stay")
    options = parser.parse_args(argv)
    folder = options.report or options.results
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    if options.report:
        found = json.loads(path.read_text("utf-8"))
    else:
        kept = json.loads(path.read_text("utf-8")) if options.keep and path.exists() else {}
        found = measure(options.only, folder, kept)
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    (folder / "RESULTS.md").write_text(f"# Results\n\n{markdown(found)}", "utf-8")
    print("\n" + markdown(found))
    try:
        plot(found, folder / "results.png")
    except ImportError:
        print("no plot: matplotlib is not installed")
    return 0 if all(row.holds for row in rows(found)) else 1


if __name__ == "__main__":
    sys.exit(main())
