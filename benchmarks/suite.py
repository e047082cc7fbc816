"""Every benchmark, one table: what is measured, the bound, and whether it holds.

    python benchmarks/suite.py                          over an hour, nearly all of it `start`; writes MACHINE.json and MACHINE.png
    python benchmarks/suite.py --only steps kernels     some
    python benchmarks/suite.py --only start --keep      some, and the figures of the others stay
    python benchmarks/suite.py --results folder         where the files go, and RESULTS.md beside the folder
    python benchmarks/suite.py --machine my-laptop      under which name; by default the processor's, with the number of cores
    python benchmarks/suite.py --report folder          the tables and the plots of results that are there already

RESULTS.md has a column for each machine whose file is in the folder. Contenders take turns, back and forth; behind a ratio stands where it lies with
a probability of 95 % (turns drawn again and again, `turns.interval`). A bound holds, or is missed, where all of that is on one side of it; else the
run could not tell.

A machine that does other work at the same time spoils absolute figures first and PyTorch's more than ours (its threads
wait for each other); run it on a quiet one. The plot needs matplotlib. Ends with 1 where a bound is missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
from typing import Any, NamedTuple

import loops
import start
from turns import interval

HERE = pathlib.Path(__file__).parent
PARTS = (
    "dispatch",
    "loops",
    "segments",
    "backward",
    "kernels",
    "steps",
    "captures",
    "memory",
    "programs",
    "start",
)
STEP_BOUNDS = {
    "mlp": 0.75,
    "cnn": 1.0,
    "depthwise": 1.0,
    "lstm": 1.0,
    "gpt-small": 0.8,
    "gpt-mid": 1.1,
    "gpt-large": 1.1,
}
SEGMENT_BOUNDS: dict[str, dict[str, float]] = {
    "chain 4x4": {"us": 2.0, "at once": 1.0},
    "chain 67x64": {"at once": 1.05},
    "view": {"at once": 1.05},
    "write": {"at once": 1.05},
    "loop": {"at once": 1.05},
    "mlp-32x64-sgd": {"torch": 0.5, "at once": 1.05},
    "lstm-loop": {"torch": 0.5, "at once": 1.05},
    "gpt-small": {"torch": 0.5, "at once": 1.05},
    "first 4x4": {"at once": 0.75},
    "first 67x64": {"at once": 0.75},
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
    """A figure: a ratio, against whom, the most that it may be (None: it is reported only), and where it lies for all that one run tells."""

    part: str
    name: str
    against: str
    ratio: float
    bound: float | None
    within: tuple[float, float] | None = None

    @property
    def holds(self) -> bool:
        return self.bound is None or self.ratio <= self.bound

    @property
    def verdict(self) -> str:
        """Whether the bound holds; "" without one, "unclear" where the interval has it inside."""
        if self.bound is None:
            return ""
        if self.within is not None and self.within[0] <= self.bound < self.within[1]:
            return "unclear"
        return "holds" if self.holds else "**missed**"

    def text(self) -> str:
        """The ratio, with its interval."""
        more = "" if self.within is None else f" [{self.within[0]:.2f}, {self.within[1]:.2f}]"
        return f"{self.ratio:.2f}{more}"


def within(figures: dict[str, Any], ours: str, other: str) -> tuple[float, float] | None:
    """The interval of a ratio, where the turns were kept."""
    found = figures.get("turns", {})
    return interval(found, ours, other) if ours in found and other in found else None


def rows(found: dict[str, Any]) -> list[Row]:
    """The figures of all parts that were measured."""
    made: list[Row] = []
    for name, us in found.get("dispatch", {}).get("microseconds", {}).items():
        for other in ("jit", "jnp", "torch"):
            if other in us:
                made.append(
                    Row(
                        "dispatch", name, other, us["xtensor"] / us[other], None, within(us, "xtensor", other)
                    )
                )
    for name, figures in found.get("loops", {}).items():
        if "ratio" in figures:
            made.append(
                Row(
                    "loops", name, "torch", figures["ratio"], loops.BOUND, within(figures, "xtensor", "torch")
                )
            )
    for name, figures in found.get("segments", {}).items():
        bounds = SEGMENT_BOUNDS.get(name, {})
        if name.startswith("chain"):
            made.append(Row("segments", name, "us a call", figures["segments"], bounds.get("us")))
        for other, key in (("at once", "ratio to at once"), ("torch", "ratio")):
            if key in figures:
                of = within(figures, "segments", other)
                made.append(Row("segments", name, other, figures[key], bounds.get(other), of))
    for name, us in found.get("backward", {}).items():
        if "torch" in us:
            bound = 1.5 if name == "mul_sum" else None
            ratio = us["xtensor"] / us["torch"]
            made.append(Row("backward", name, "torch", ratio, bound, within(us, "xtensor", "torch")))
    for name, figures in found.get("kernels", {}).items():
        if "ratio" in figures:
            bound = 1.0 if "mean" in name else 1.5
            made.append(
                Row("kernels", name, "torch", figures["ratio"], bound, within(figures, "xtensor", "torch"))
            )
        if "jit ratio" in figures:
            of = within(figures, "xtensor", "jit")
            made.append(Row("kernels", name, "jit", figures["jit ratio"], None, of))
    for name, figures in found.get("steps", {}).items():
        bound = next(b for start, b in STEP_BOUNDS.items() if name.startswith(start))
        if "ratio to torch" in figures:
            made.append(
                Row(
                    "steps",
                    name,
                    "torch",
                    figures["ratio to torch"],
                    bound,
                    within(figures, "xtensor", "torch"),
                )
            )
        bound = 1.5 if name in AGAINST_JIT else None
        made.append(
            Row("steps", name, "jit", figures["ratio to jit"], bound, within(figures, "xtensor", "jit"))
        )
        if "compiled to jit" in figures:
            bound = 1.3 if name.startswith("mlp-32") else 1.05
            of = within(figures, "compiled", "jit")
            made.append(Row("steps", f"{name}, compiled", "jit", figures["compiled to jit"], bound, of))
            made.append(Row("steps", f"{name}, compiled, memory", "jit", figures["memory to jit"], 1.05))
        if "compiled" in figures and "torch" in figures:
            ratio = figures["compiled"] / figures["torch"]
            of = within(figures, "compiled", "torch")
            made.append(Row("steps", f"{name}, compiled", "torch", ratio, 1.0, of))
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


def machine_text(about: dict[str, Any]) -> str:
    """A machine in a line."""
    told = [f"{about['cores']} cores of {about['processor']}"]
    told += [f"{about['memory']} GiB"] if about.get("memory") else []
    told += [f"vectors of {about['vectors']}"] if about.get("vectors") else []
    told += [about["system"]] if about.get("system") else []
    told += [f"load {about['load']}"] if about.get("load") is not None else []
    told += [f"Python {about['python']}", f"jax {about['jax']}", f"torch {about['torch']}"]
    return ", ".join(told + ([about["day"]] if about.get("day") else []))


def markdown(machines: dict[str, dict[str, Any]]) -> str:
    """The table of all figures, a column for each machine, and what the machines are."""
    lines = [
        "Ratios of medians, each column of one machine's runs; in brackets where a ratio lies with a probability of 95 %, for all that its run can tell.",
        "",
        *[f"- `{name}`: {machine_text(found['about'])}" for name, found in machines.items()],
        "",
        f"| part | case | against | at most | {' | '.join(f'`{name}` | ' for name in machines)} |",
        "|---|---|---|---:|" + "---:|---|" * len(machines),
    ]
    table: dict[tuple[str, str, str], dict[str, Row]] = {}
    for machine, found in machines.items():
        for row in rows(found):
            if row.part != "scripts":
                table.setdefault((row.part, row.name, row.against), {})[machine] = row
    for part in dict.fromkeys(key[0] for key in table):
        for key, cells in table.items():
            if key[0] != part:
                continue
            bound = next(iter(cells.values())).bound
            made = [f"{cells[m].text()} | {cells[m].verdict}" if m in cells else " | " for m in machines]
            lines.append(
                f"| {' | '.join(key)} | {'' if bound is None else f'{bound:.2f}'} | {' | '.join(made)} |"
            )
    for machine, found in machines.items():
        if "programs" in found:
            lines += [
                "",
                f"Programs compiled on `{machine}`: in ten steps of a first run, in the last four of them, and in ten steps of a second run.",
                "",
                "| model | first run | settled | second run |",
                "|---|---:|---:|---:|",
            ]
            for name, counts in found["programs"].items():
                lines.append(f"| {name} | {counts['first']} | {counts['settled']} | {counts['second']} |")
        if found.get("start", {}).get("scripts"):
            lines += ["", f"On `{machine}`:", *scripts_table(found["start"]["scripts"])]
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


def about() -> dict[str, Any]:
    """The machine, and what was measured on it."""
    try:
        flags = re.search(r"^flags.*", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        words = set(flags[0].split()) if flags else set[str]()
    except OSError:
        words = set[str]()
    widths = {"avx512f": "512 bits", "avx2": "256 bits", "asimd": "128 bits"}
    try:
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):
        memory = None
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": memory,
        "vectors": next((width for flag, width in widths.items() if flag in words), None),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "day": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "jax": version("jax"),
        "torch": version("torch"),
    }


def machine_name(machine: dict[str, Any]) -> str:
    """A file's name for a machine."""
    words = re.sub(r"\(r\)|\(tm\)|@.*|\bcpu\b|\bprocessor\b", " ", machine["processor"].lower())
    # Processors of one name differ in their vectors.
    vectors = re.findall(r"\d+ bits", machine.get("vectors") or "")
    parts = [*re.findall(r"[a-z0-9.]+", words), f"{machine['cores']}-cores", *vectors]
    return "-".join(parts).replace(" ", "-")


def version(package: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def measure(parts: list[str], folder: pathlib.Path, kept: dict[str, Any]) -> dict[str, Any]:
    """Run the parts, each in a process of its own. kept: figures of others."""
    found: dict[str, Any] = kept | {"about": about()}
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
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--machine", help="under which name the results are kept")
    parser.add_argument("--keep", action="store_true", help="let the figures of parts that do not run stay")
    options = parser.parse_args(argv)
    folder = options.report or options.results
    folder.mkdir(parents=True, exist_ok=True)
    measured = None
    if not options.report:
        measured = options.machine or machine_name(about())
        path = folder / f"{measured}.json"
        kept = json.loads(path.read_text("utf-8")) if options.keep and path.exists() else {}
        found = measure(options.only, folder, kept)
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    machines = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    text = markdown(machines)
    (folder.parent / "RESULTS.md").write_text(f"# Results\n\n{text}", "utf-8")
    print("\n" + (markdown({measured: machines[measured]}) if measured else text))
    try:
        for name, found in machines.items():
            if name == measured or measured is None:
                plot(found, folder / f"{name}.png")
    except ImportError:
        print("no plot: matplotlib is not installed")
    judged = machines if measured is None else {measured: machines[measured]}
    return 1 if any("missed" in row.verdict for found in judged.values() for row in rows(found)) else 0


if __name__ == "__main__":
    sys.exit(main())
