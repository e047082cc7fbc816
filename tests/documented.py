"""The examples in PyTorch's docstrings, by PyTorch and by this library: what each line gives, and raises.

    python -m tests.documented                      all, some minutes on two cores; PyTorch must be installed
    python -m tests.documented torch.fft 'nn.*Norm' those whose names hold one of these (regular expressions)

A line's result is compared: shape, dtype, layout, strides, whether it asks for gradients, and the values, unless an example draws random
numbers or reads what memory happens to hold. Of what differs the first line of an example is told; the exit status is 1 where that is no
difference that is known (`KNOWN`).
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import inspect
import io
import json
import math
import os
import pathlib
import pkgutil
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

ELSEWHERE = re.compile(
    r"cuda|xpu|mps|mtia|vulkan|accelerator|distributed|rpc|_inductor|_dynamo|_lazy|onnx|testing|quantization\b|tensorboard|_C\b|compile|export|"
    r"jit|multiprocessing|hub\.|cpp_extension|backcompat|benchmark|ao\.|package|monitor|elastic|fx\.passes|privateuse1|leaf_function"
)
"""Names whose examples need another device, another process, a compiler or the network."""
RANDOM = re.compile(
    r"rand|normal|empty|[dD]ropout|bernoulli|multinomial|poisson|exponential_|cauchy_|geometric_|uniform|nn\.\w+\(|sample|kaiming|xavier|"
    r"orthogonal|init\.|Linear|shuffle|split\(|Embedding|resize_|rrelu|gumbel|alpha|seed|id\(|memory|data_ptr|time|Tensor\(\d"
)
"""What makes an example's values its own."""
LEFT_OUT = re.compile(r"cuda|xpu|while True|input\(|exit\(|urllib|hub\.|spawn|fork")
KNOWN: dict[str, str] = {
    r"Generator\.(get_state|seed)$": "another generator",
    r"set_default_dtype$": "complex numbers under a float16 default (docs/coming_from_pytorch.md)",
    r"set_flush_denormal$": "what becomes of denormal numbers is XLA's",
    r"_is_device_backend_autoload_enabled$": "there are no backends to load",
    r"fft\.(hfft2|hfftn|ihfftn|rfft2|rfftn)$": "transforms along other dimensions than the last: strides",
    r"(quantile|rot90|linalg\.solve|jacfwd)$": "strides of a result",
    r"torch\.masked_select$|CTCLoss$": "sizes that are drawn",
    r"linalg\.lu_(factor|solve)$": "an ill-conditioned matrix that is drawn",
    r"nested\.(masked_select|narrow)$|register_multi_grad_hook$|^torch\.vmap$": "a class's name",
    r"(get_kernel|_powsum|skip_data|region_activation_memory_budget)$": "not in xtensor",
    r"redispatch_function$": "how often attributes are asked for",
}
"""Names whose examples differ, and why."""
SECONDS = 30


def examples() -> dict[str, list[str]]:
    """The lines of every docstring's examples, by the name of what has it."""
    parser = doctest.DocTestParser()
    found: dict[str, list[str]] = {}
    seen: set[Any] = set()

    def add(name: str, thing: Any) -> None:
        text = getattr(thing, "__doc__", None)
        if not isinstance(text, str) or ">>>" not in text or (key := (name.rpartition(".")[2], text)) in seen:
            return
        seen.add(key)
        with contextlib.suppress(ValueError):  # an example that is not written as one
            found[name] = [example.source for example in parser.get_examples(text)]

    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")
    modules = [
        m.name
        for m in pkgutil.walk_packages(torch.__path__, "torch.")
        if not ELSEWHERE.search(m.name) and "._" not in m.name
    ]
    for path in ["torch", *modules]:
        try:
            module = importlib.import_module(path)
        except Exception:
            continue
        for name, thing in sorted(vars(module).items()):
            full = f"{path}.{name}"
            if name.startswith("__") or ELSEWHERE.search(full) or inspect.ismodule(thing):
                continue
            add(full, thing)
            if inspect.isclass(thing) and (thing.__module__ or "").startswith("torch"):
                for member in sorted(vars(thing)):
                    if not member.startswith("_"):
                        add(f"{full}.{member}", getattr(thing, member, None))
    return found


# -- running, within either library


def told(value: Any, exact: bool, depth: int = 0) -> Any:
    """What is compared of a result."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        own = [
            list(value.shape),
            str(value.dtype),
            str(value.layout),
            bool(value.requires_grad),
            bool(value.is_leaf),
        ]
        if value.layout is torch.strided and not value.is_nested:
            own.append(list(value.stride()))
        if exact and value.numel() <= 4096 and value.device.type == "cpu":
            plain = value.detach()
            plain = plain.dequantize() if plain.is_quantized else plain
            plain = plain if plain.layout is torch.strided else plain.to_dense()
            plain = plain.resolve_conj().resolve_neg()
            own.append(
                [plain.real.tolist(), plain.imag.tolist()] if plain.is_complex() else plain.double().tolist()
            )
        return own
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, (float, str)):
        return value if exact else type(value).__name__
    if depth < 4 and isinstance(value, (tuple, list)):
        return [type(value).__name__, *[told(v, exact, depth + 1) for v in value[:20]]]
    if depth < 4 and isinstance(value, dict):
        return {
            getattr(k, "__name__", str(k)): told(v, exact, depth + 1) for k, v in list(value.items())[:20]
        }
    return str(value) if isinstance(value, (torch.dtype, torch.device)) else type(value).__name__


def lines(sources: list[str]) -> Iterator[tuple[str, Any]]:
    """What each line of an example gives: `("gives", result)` or `("raises", error's class)`."""
    torch = sys.modules["torch"]
    numpy = importlib.import_module("numpy")
    torch.manual_seed(0)
    numpy.random.seed(0)
    names = {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "np": numpy,
        "math": math,
        "__name__": "documented",
    }
    drawn = False
    for source in sources:
        drawn = drawn or bool(RANDOM.search(source))
        if LEFT_OUT.search(source):
            yield "left out", None
            continue
        printed = io.StringIO()
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                try:
                    code = compile(source.strip(), "<example>", "eval")
                except SyntaxError:
                    exec(compile(source, "<example>", "exec"), names)
                    given = re.match(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=[^=]", source)
                    made = {k: names.get(k) for k in re.split(r"\s*,\s*", given[1])} if given else None
                else:
                    made = eval(code, names)
            yield "gives", [told(made, not drawn), "" if drawn else printed.getvalue()]
        except (Exception, SystemExit) as error:
            yield "raises", type(error).__name__
        finally:
            signal.alarm(0)


def run(given: pathlib.Path, results: pathlib.Path) -> None:
    """Run examples by the `torch` that there is, and write what they give."""
    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")

    def slow(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    signal.signal(signal.SIGALRM, slow)
    found = {}
    for name, sources in json.loads(given.read_text()).items():
        before = torch.get_default_dtype()
        found[name] = list(lines(sources))
        torch.set_default_dtype(before)
        torch.set_default_device(None)
        torch.set_printoptions(profile="default")
        torch.set_grad_enabled(True)
        results.write_text(json.dumps(found, default=str))


# -- comparing


def close(a: Any, b: Any) -> bool:
    """Whether two results are equal, numbers within 1e-4."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-4 * max(1.0, abs(a), abs(b)) < math.inf
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    return a == b


def difference(sources: list[str], theirs: list[Any], ours: list[Any]) -> str | None:
    """The first line that differs, and how; None where none does."""
    for source, want, got in zip(sources, theirs, ours, strict=False):
        if want[0] != "left out" and not close(want, got):
            return f"{source.strip()[:100]!r}: {str(want)[:150]} and here {str(got)[:150]}"
    return None if len(theirs) == len(ours) else "the process ended"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="regular expressions for names")
    parser.add_argument("--run", nargs=2, type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.run:
        run(*options.run)
        return 0
    every = examples()
    chosen = {
        n: e for n, e in every.items() if not options.names or any(re.search(p, n) for p in options.names)
    }
    wrong = known = same = 0
    with tempfile.TemporaryDirectory() as folder:
        names, size = sorted(chosen), 100
        for start in range(0, len(names), size):
            part = {n: chosen[n] for n in names[start : start + size]}
            found = []
            for runner in ((), ("-m", "xtensor")):
                given, results = pathlib.Path(folder, "given.json"), pathlib.Path(folder, "results.json")
                given.write_text(json.dumps(part))
                results.write_text("{}")
                command = [sys.executable, *runner, __file__, "--run", str(given), str(results)]
                subprocess.run(
                    command,
                    cwd=folder,
                    env=os.environ,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=False,
                )
                found.append(json.loads(results.read_text()))
            for name, sources in part.items():
                told_of = difference(sources, *(r.get(name, []) for r in found))
                why = next((w for pattern, w in KNOWN.items() if re.search(pattern, name)), None)
                same += told_of is None
                known += told_of is not None and why is not None
                wrong += told_of is not None and why is None
                if told_of is not None:
                    print(
                        f"{'known' if why else 'DIFFERS'}: {name}: {told_of}{f' ({why})' if why else ''}",
                        flush=True,
                    )
    print(f"{len(chosen)} examples: {same} the same, {known} differ as is known, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
