"""The library on a GPU or TPU, in one call: what is right, what is fast and what must hold there. PyTorch is not needed.

    python -m benchmarks.accelerator                       on the accelerator that JAX finds, ten minutes; on a CPU, smaller, as --small
    python -m benchmarks.accelerator --device cuda:1       there
    python -m benchmarks.accelerator --only steps tf32     some parts
    python -m benchmarks.accelerator --small               small sizes and a few operators, as the tests run it
    python -m benchmarks.accelerator --json found.json     and write the figures

The plan, and what each part must show; what does not hold is said at the end, and the exit status is 1:

    check       every operator against float64 on the host (`xtensor.selfcheck`): none wrong
    dispatch    small operators against `jnp` and the bare jitted call: at most twice the jitted call, in the geometric mean
    kernels     large operators against the same in `jnp` under `jax.jit`: at most 1.1 in the geometric mean, none above 1.5
    steps       training steps against the same by hand under `jax.jit`: the compiled ones at most 1.1; eager ones are told
    transfers   to the device and back, in GB/s: at least half of what `jax.device_put` and `numpy.asarray` reach
    mixed       bfloat16, and float16 with a scaler: losses fall and stay near those of float32, parameters stay float32
    tf32        products and convolutions by PyTorch's settings: exact ones within 2e-6, others within 2e-3
    attention   the formula, and cuDNN's kernel where it is: values agree, and on a GPU the program has cuDNN's call
    memory      an array larger than the memory raises, and the next call runs; what is dropped is given back
    waits       a training step reads no value on the host and sends none there: no synchronisation until the loss is asked for
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import handwritten
import jax
import jax.numpy as jnp
import numpy as np
import steps
from jax import lax
from turns import measure, ratio

import xtensor
from xtensor.nn.attention import SDPBackend, sdpa_kernel
from xtensor.plans.plans import executor

F = xtensor.nn.functional
HOST_READS = {"item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__"}
FEW = ["add", "exp", "matmul", "softmax", "sort", "conv2d"]


class Run:
    """Where it runs, how large, and what was found: figures by part, and what does not hold."""

    def __init__(self, device: xtensor.device, small: bool) -> None:
        self.device = device
        self.small = small
        self.found: dict[str, Any] = {}
        self.broken: list[str] = []
        self.part = ""

    @property
    def jax_device(self) -> Any:
        return xtensor.devices.jax_device(self.device)

    def tell(self, name: str, **figures: Any) -> None:
        """Print figures, and keep them."""
        self.found.setdefault(self.part, {})[name] = figures
        shown = "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in figures.items())
        print(f"{self.part:<10} {name:<28} {shown}", flush=True)

    def must(self, holds: bool, what: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.broken.append(f"{self.part}: {what}")
            print(f"{self.part:<10} DOES NOT HOLD: {what}", flush=True)

    def turns(self, runs: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
        return measure(runs, 3 if self.small else 9, 0.02 if self.small else 0.2)


def waiting(value: Any) -> Callable[[], Any]:
    """What waits for a tensor or an array."""
    last = value[-1] if isinstance(value, (tuple, list)) else value
    array = last._xt_storage.array if isinstance(last, xtensor.Tensor) else last
    return array.block_until_ready


def geometric(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# -- the parts


def check(run: Run) -> None:
    report = xtensor.selfcheck.check(
        run.device, FEW if run.small else ["*"], ["float32"] if run.small else None, forget=True
    )
    run.tell("operators", checked=len(report.findings), wrong=len(report.wrong), seconds=report.seconds)
    run.must(not report.wrong, f"wrong: {', '.join(f'{f.operator} {f.dtype}' for f in report.wrong)}")


def dispatch(run: Run) -> None:
    import dispatch as cases

    ratios = []
    for case in cases.cases():
        if case.jit is None or (run.small and case.name not in ("add", "sum", "matmul", "t")):
            continue
        us = cases.measure(case, 3 if run.small else 15, 30 if run.small else 300)
        run.tell(
            case.name,
            us=us["xtensor"],
            to_jit=us["xtensor"] / us["jit"],
            to_jnp=us["xtensor"] / us.get("jnp", math.nan),
        )
        ratios.append(us["xtensor"] / us["jit"])
    run.tell("geometric mean", to_jit=geometric(ratios))
    run.must(geometric(ratios) <= 2, f"operators take {geometric(ratios):.2f} of the jitted call")


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def convolution(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)), precision=lax.Precision.HIGH)


def sorted_with_places(x: Any) -> Any:
    """As PyTorch's `sort`, which gives the places too."""
    places = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return lax.sort((x, places), dimension=1, num_keys=1)[0]


def attention_by_hand(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhle,bhse->bhls", q, k, precision=lax.Precision.HIGHEST) / math.sqrt(q.shape[-1])
    return jnp.einsum("bhls,bhse->bhle", jax.nn.softmax(scores), v, precision=lax.Precision.HIGHEST)


def kernels(run: Run) -> None:
    n = 128 if run.small else 4096
    b, c, s = (2, 8, 16) if run.small else (64, 128, 56)
    heads = (1, 2, 32, 16) if run.small else (8, 16, 1024, 64)
    x, y = normal(n, n), normal(n, n, seed=1)
    image, weight = normal(b, c, s, s), normal(c, c, 3, 3, seed=1)
    cases: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Any]]] = {
        "add": (lambda x, y: x + y, lambda x, y: x + y, [x, y]),
        "gelu": (F.gelu, lambda x: jax.nn.gelu(x, approximate=False), [x]),
        "sum": (lambda x: x.sum(1), lambda x: x.sum(1), [x]),
        "softmax": (lambda x: x.softmax(1), lambda x: jax.nn.softmax(x, 1), [x]),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (n,), w, b), layer_norm, [x, y[0], y[1]]),
        "transposed add": (lambda x, y: x.t() + y, lambda x, y: x.T + y, [x, y]),
        "matmul": (xtensor.matmul, lambda x, y: jnp.matmul(x, y, precision=lax.Precision.HIGHEST), [x, y]),
        "conv 3x3": (lambda x, w: F.conv2d(x, w, padding=1), convolution, [image, weight]),
        "attention": (
            F.scaled_dot_product_attention,
            attention_by_hand,
            [normal(*heads, seed=i) for i in range(3)],
        ),
        "sort": (lambda x: x.sort(1)[0], sorted_with_places, [x]),
        "cumsum": (lambda x: x.cumsum(1), lambda x: jnp.cumsum(x, 1), [x]),
    }
    ratios = []
    for name, (ours, theirs, given) in cases.items():
        tensors = [xtensor.tensor(a, device=run.device) for a in given]
        arrays = [jax.device_put(a, run.jax_device) for a in given]
        program = jax.jit(theirs)
        np.testing.assert_allclose(
            ours(*tensors).cpu().numpy(), np.asarray(program(*arrays)), rtol=5e-3, atol=5e-3
        )
        found = run.turns({
            "xtensor": lambda ours=ours, tensors=tensors: waiting(ours(*tensors)),
            "jit": lambda program=program, arrays=arrays: program(*arrays).block_until_ready,
        })  # fmt: skip
        ratios.append(ratio(found, "xtensor", "jit"))
        run.tell(name, us=statistics.median(found["xtensor"]), to_jit=ratios[-1])
    run.tell("geometric mean", to_jit=geometric(ratios))
    if not run.small:  # small ones are the host's
        run.must(geometric(ratios) <= 1.1, f"kernels take {geometric(ratios):.2f} of those by hand")
        run.must(max(ratios) <= 1.5, f"one takes {max(ratios):.2f}")


def training(run: Run) -> None:
    for name in ["mlp-32x64-sgd"] if run.small else list(steps.CASES):
        case = steps.CASES[name]
        xtensor.manual_seed(0)
        step, model = steps.eager(xtensor, case, None)
        weights = {k: v.cpu().numpy().copy() for k, v in model.state_dict().items()}
        with jax.default_device(run.jax_device):
            by_hand = handwritten.step_of(
                case.by_hand, weights, steps.data_of(case), case.optimizer, case.clip
            )
        compiled = xtensor.compile(steps.eager(xtensor, case, weights)[0], fullgraph=True)
        contenders = {"xtensor": step, "compiled": compiled, "jit": by_hand}
        losses: dict[str, float] = {}
        for _ in range(6):
            losses = {who: float(run_one()) for who, run_one in contenders.items()}
            executor.wait()
        found = run.turns({who: (lambda one=one: waiting(one())) for who, one in contenders.items()})
        figures = {who: statistics.median(times) for who, times in found.items()}
        compared = ratio(found, "compiled", "jit")
        run.tell(name, **figures, eager_to_jit=ratio(found, "xtensor", "jit"), compiled_to_jit=compared)
        spread = max(losses.values()) - min(losses.values())
        run.must(spread <= 2e-2 * abs(losses["jit"]), f"{name}: losses differ: {losses}")
        if not run.small:
            run.must(compared <= 1.1, f"{name}, compiled, takes {compared:.2f} of the one by hand")


def transfers(run: Run) -> None:
    size = 2**20 if run.small else 2**28
    data = np.ones(size // 4, np.float32)

    def bandwidth(act: Callable[[], Any]) -> float:
        act()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            act()
            times.append(time.perf_counter() - began)
        return size / min(times) / 1e9

    host = xtensor.tensor(data, device="cpu")
    there = xtensor.tensor(data, device=run.device)
    array = jax.device_put(data, run.jax_device)
    # A new array each time, since JAX keeps what it has once brought back.
    to = bandwidth(lambda: waiting(xtensor.tensor(data, device=run.device))())
    back = bandwidth(lambda: (there + 0).cpu().numpy())
    plain_to = bandwidth(lambda: jax.device_put(data.copy(), run.jax_device).block_until_ready())
    plain_back = bandwidth(lambda: np.asarray(array + 0))
    run.tell("to the device", GB_s=to, by_jax=plain_to)
    run.tell("and back", GB_s=back, by_jax=plain_back)
    same = host.to(run.device).cpu()
    run.must(bool((same == host).all()), "what comes back is not what was sent")
    if not run.small:
        run.must(to >= plain_to / 2 and back >= plain_back / 2, "transfers are slower than half of JAX's")


def mixed(run: Run) -> None:
    width, length = (32, 12) if run.small else (1024, 50)
    x = xtensor.tensor(normal(4 * width, width), device=run.device)
    y = xtensor.tensor(np.random.default_rng(0).integers(0, 10, 4 * width), device=run.device)
    ends: dict[str, float] = {}
    for name, dtype, scaled in (
        ("float32", None, False),
        ("bfloat16", xtensor.bfloat16, False),
        ("float16", xtensor.float16, True),
    ):
        xtensor.manual_seed(0)
        model = steps.mlp(xtensor, width).to(run.device)
        optimizer = xtensor.optim.SGD(model.parameters(), lr=0.1)
        scaler = xtensor.GradScaler(run.device.type, enabled=scaled, init_scale=2.0**24 if scaled else 1.0)
        losses, times, seen = [], [], set()
        for _ in range(length):
            began = time.perf_counter()
            optimizer.zero_grad()
            with nullcontext() if dtype is None else xtensor.autocast(run.device.type, dtype):
                out = model(x)
                loss = F.cross_entropy(out, y)
            seen.add(out.dtype)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
            times.append(time.perf_counter() - began)
        ends[name] = losses[-1]
        scale = scaler.get_scale() if scaled else 1.0
        run.tell(name, first=losses[0], last=losses[-1], ms=statistics.median(times) * 1e3, scale=scale)
        run.must(
            losses[-1] < losses[0] and all(map(math.isfinite, losses)), f"{name}: the loss does not fall"
        )
        run.must(seen == {dtype or xtensor.float32}, f"{name}: results are {seen}")
        run.must(
            {p.dtype for p in model.parameters()} == {xtensor.float32},
            f"{name}: parameters changed their dtype",
        )
        if scaled:
            # Gradients of 2**24 overflow float16: the scaler must have backed off, and skipped those steps.
            run.must(scale < 2.0**24, "the scale never went down")
    for name in ("bfloat16", "float16"):
        run.must(
            abs(ends[name] - ends["float32"]) <= 0.1 * abs(ends["float32"]) + 0.05,
            f"{name} ends at {ends[name]:.3f}",
        )


def tf32(run: Run) -> None:
    n = 128 if run.small else 2048
    x, y = normal(n, n), normal(n, n, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    a, b = (xtensor.tensor(v, device=run.device) for v in (x, y))
    image, weight = normal(4, 16, 16, 16), normal(16, 16, 3, 3, seed=1)
    host = [xtensor.tensor(v, dtype=xtensor.float64, device="cpu") for v in (image, weight)]
    double = F.conv2d(*host, padding=1).numpy()
    i, w = (xtensor.tensor(v, device=run.device) for v in (image, weight))
    cudnn: Any = xtensor.backends.cudnn
    matmul: Any = xtensor.backends.cuda.matmul
    before = matmul.allow_tf32, cudnn.allow_tf32
    try:
        for allowed in (False, True):
            matmul.allow_tf32 = cudnn.allow_tf32 = allowed
            most = 2e-3 if allowed else 2e-6
            for name, call, truth in (
                ("matmul", lambda: a @ b, exact),
                ("convolution", lambda: F.conv2d(i, w, padding=1), double),
            ):
                error = float(np.abs(call().cpu().numpy() - truth).max() / np.abs(truth).max())
                found = run.turns({"xtensor": lambda call=call: waiting(call())})
                run.tell(f"{name}, tf32 {allowed}", error=error, us=statistics.median(found["xtensor"]))
                run.must(error <= most, f"{name} is off by {error:.2g}")
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def attention(run: Run) -> None:
    shape = (1, 2, 64, 16) if run.small else (4, 16, 4096, 64)
    given = [xtensor.tensor(normal(*shape, seed=i), device=run.device).bfloat16() for i in range(3)]

    def passes(kernel: SDPBackend, causal: bool, dtype: Any = xtensor.bfloat16) -> list[Any]:
        leaves = [t.detach().to(dtype).requires_grad_() for t in given]
        with sdpa_kernel(kernel):
            q, k, v = leaves
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out.float().sum().backward()
        return [out.detach(), *[leaf.grad for leaf in leaves]]

    for causal in (False, True):
        plain, fused = (passes(kernel, causal) for kernel in (SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION))
        right = passes(SDPBackend.MATH, causal, xtensor.float32)
        off, apart = (
            max(
                float((r - f.float()).abs().max() / (r.abs().max() + 1e-6))
                for r, f in zip(right, found, strict=True)
            )
            for found in (plain, fused)
        )
        found = run.turns({
            "formula": lambda causal=causal: waiting(passes(SDPBackend.MATH, causal)),
            "fused": lambda causal=causal: waiting(passes(SDPBackend.CUDNN_ATTENTION, causal)),
        })  # fmt: skip
        figures = {name: statistics.median(times) for name, times in found.items()}
        run.tell(
            "causal" if causal else "plain",
            **figures,
            ratio=ratio(found, "fused", "formula"),
            formula_off=off,
            fused_off=apart,
        )
        run.must(max(off, apart) <= 5e-2, f"off by {off:.2g} and {apart:.2g} of the largest element")
    if run.device.type == "cuda":
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            said = str(xtensor.ops.explain("scaled_dot_product_attention", *given))
        run.tell("program", cudnn="cudnn" in said)
        run.must("cudnn" in said, "the program has no call of cuDNN's")


def memory(run: Run) -> None:
    known = xtensor.devices.memory(run.device)
    limit = known.limit or xtensor.devices.properties(run.device).total_memory or 2**40
    before = known.allocated
    raised = ""
    try:
        waiting(xtensor.ones(limit // 4 + 2**28, device=run.device))()
    except RuntimeError as error:
        raised = str(error).splitlines()[0][:80]
    run.must(bool(raised), "an array larger than the memory did not raise")
    x = xtensor.ones(2**18 if run.small else 2**26, device=run.device)
    run.must(x.sum().item() == x.numel(), "after that a sum is wrong")
    during = xtensor.devices.memory(run.device).allocated
    del x
    after = xtensor.devices.memory(run.device).allocated
    run.tell("limit", bytes=limit, raised=repr(raised))
    run.tell("an array", before=before, during=during, after=after)
    run.must(after < during, "what was dropped is not given back")
    print(xtensor.memory_summary(run.device, largest=3))


def waits(run: Run) -> None:
    for name in ["mlp-32x64-adam"] if run.small else ["mlp-128x256-adam", "cnn", "lstm-loop", "gpt-mid"]:
        xtensor.manual_seed(0)
        step, _ = steps.eager(xtensor, steps.CASES[name], None)
        for _ in range(6):
            step().item()
            executor.wait()
        # JAX itself refuses a value that goes to the host, where the device is not the host.
        with jax.transfer_guard_device_to_host("disallow"):
            began = time.perf_counter()
            loss = step()
            asked = time.perf_counter() - began
        waiting(loss)()
        whole = time.perf_counter() - began
        with xtensor.autograd.profiler.profile() as profile:
            step()
        reads = {row.key: row.count for row in profile.key_averages() if row.key in HOST_READS}
        run.tell(name, asked_ms=asked * 1e3, whole_ms=whole * 1e3, reads=sum(reads.values()))
        run.must(not reads, f"{name} reads values on the host: {reads}")


PARTS: dict[str, Callable[[Run], None]] = {
    "check": check,
    "dispatch": dispatch,
    "kernels": kernels,
    "steps": training,
    "transfers": transfers,
    "mixed": mixed,
    "tf32": tf32,
    "attention": attention,
    "memory": memory,
    "waits": waits,
}


def accelerator() -> xtensor.device:
    """The first that is no CPU, else the CPU."""
    found = xtensor.devices.list()
    return next((d for d in found if d.type != "cpu"), found[0])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", help="where to run; by default the accelerator that there is")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="small sizes; on a CPU always")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    device = xtensor.device(options.device) if options.device else accelerator()
    run = Run(device, options.small or device.type == "cpu")
    known = xtensor.devices.properties(device)
    print(
        f"{known.name}, {known.platform_version.splitlines()[0]}; jax {jax.__version__}; {known.total_memory} bytes"
    )
    # jnp and the steps by hand are where JAX puts them by default.
    with xtensor.device(device), jax.default_device(run.jax_device):
        for name in options.only:
            run.part = name
            try:
                PARTS[name](run)
            except Exception:
                run.must(False, traceback.format_exc())
    if options.json:
        about = {
            "device": known.name,
            "platform": known.platform_version,
            "jax": jax.__version__,
            "small": run.small,
        }
        text = json.dumps({"about": about, "broken": run.broken, **run.found}, indent=1)
        pathlib.Path(options.json).write_text(text + "\n", "utf-8")
    print("all holds" if not run.broken else "does not hold:\n  " + "\n  ".join(run.broken))
    return 1 if run.broken else 0


if __name__ == "__main__":
    sys.exit(main())
