"""Kernels, forward and backward, eager: xtensor against PyTorch (2 threads), and beside the same by hand under `jax.jit`.

    python benchmarks/kernels.py                       every case
    python benchmarks/kernels.py conv sort             some
    python benchmarks/kernels.py --json kernels.json   and write the figures

A case runs an operator and the backward of its result with a given output gradient, until the gradients are there. The contenders take turns within one
run; a figure is the median over turns of a call's mean time, a ratio the median of the turns' ratios. Values and gradients
are compared before anything is timed. By hand, value and gradients are one program of `jax.numpy`'s or `jax.nn`'s function: what XLA
takes where nobody has looked for another way.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from turns import measure, ratio

import xtensor
from xtensor.plans.plans import executor
from xtensor.xla.quick import again

try:
    import torch
except ImportError:
    torch: Any = None

Make = Callable[[Any, Any], tuple[Callable[..., Any], list[Any]]]
"""`(library, random numbers) -> a function, and the arrays it takes`; floating point arrays get gradients."""


def attention(lib: Any, random: Any) -> tuple[Callable[..., Any], list[Any]]:
    f = lib.nn.functional.scaled_dot_product_attention
    return lambda q, k, v: f(q, k, v, is_causal=True), [normal(random, 4, 4, 128, 32) for _ in range(3)]


def normal(random: Any, *shape: int) -> Any:
    return random.normal(size=shape).astype(np.float32)


def embedding(lib: Any, random: Any) -> tuple[Callable[..., Any], list[Any]]:
    f = lib.nn.functional.embedding
    return lambda ids, w: f(ids, w), [random.integers(0, 1000, (16, 64)), normal(random, 1000, 128)]


def index_add(lib: Any, random: Any) -> tuple[Callable[..., Any], list[Any]]:
    return (
        lambda x, i, y: lib.index_add(x, 0, i, y),
        [normal(random, 1000, 64), random.integers(0, 1000, 4096), normal(random, 4096, 64)],
    )


def layer_norm(lib: Any, random: Any) -> tuple[Callable[..., Any], list[Any]]:
    f = lib.nn.functional.layer_norm
    return lambda x, w, b: f(x, (256,), w, b), [
        normal(random, 1024, 256),
        normal(random, 256),
        normal(random, 256),
    ]


def batch_norm(lib: Any, random: Any) -> tuple[Callable[..., Any], list[Any]]:
    f = lib.nn.functional.batch_norm
    return (
        lambda x, w, b: f(x, None, None, w, b, training=True),
        [normal(random, 32, 32, 16, 16), normal(random, 32), normal(random, 32)],
    )


def convolution(
    shape: tuple[int, ...], weight: tuple[int, ...], name: str = "conv2d", **options: int
) -> Make:
    def make(lib: Any, random: Any) -> tuple[Callable[..., Any], list[Any]]:
        f = getattr(lib.nn.functional, name)
        return lambda x, w: f(x, w, **options), [normal(random, *shape), normal(random, *weight)]

    return make


def of_one(call: Callable[[Any, Any], Any], *shape: int) -> Make:
    return lambda lib, random: (lambda x: call(lib, x), [normal(random, *shape)])


CASES: dict[str, Make] = {
    "gelu": of_one(lambda lib, x: lib.nn.functional.gelu(x), 1024, 256),
    "softmax": of_one(lambda lib, x: lib.softmax(x, 1), 1024, 256),
    "layer_norm": layer_norm,
    "batch_norm": batch_norm,
    "attention": attention,
    "cross_entropy": lambda lib, random: (
        lambda x, y: lib.nn.functional.cross_entropy(x, y),
        [normal(random, 1024, 256), random.integers(0, 256, 1024)],
    ),
    "conv 3x3": convolution((16, 32, 28, 28), (32, 32, 3, 3), padding=1),
    "conv 7x7 stride 2": convolution((8, 3, 64, 64), (32, 3, 7, 7), stride=2, padding=3),
    "conv depthwise": convolution((16, 64, 16, 16), (64, 1, 3, 3), padding=1, groups=64),
    "conv of a row": convolution((32, 64, 128), (64, 64, 3), "conv1d", padding=1),
    "conv of few places": convolution((16, 256, 4, 4), (256, 256, 3, 3), padding=1),
    "conv transposed": convolution((16, 64, 16, 16), (64, 32, 4, 4), "conv_transpose2d", stride=2, padding=1),
    "max_pool": of_one(lambda lib, x: lib.nn.functional.max_pool2d(x, 2), 16, 32, 28, 28),
    "cumsum": of_one(lambda lib, x: lib.cumsum(x, 1), 1024, 256),
    "sort": of_one(lambda lib, x: lib.sort(x, 1)[0], 256, 256),
    "topk": of_one(lambda lib, x: lib.topk(x, 8, 1)[0], 256, 1024),
    "matmul": lambda lib, random: (lib.matmul, [normal(random, 256, 256), normal(random, 256, 256)]),
    "embedding": embedding,
    "index_add": index_add,
}


def by_hand(form: str, stride: int, padding: int, groups: int = 1) -> Callable[..., Any]:
    """A convolution as JAX's users write it."""

    def call(x: Any, w: Any) -> Any:
        edges = [(padding, padding)] * (x.ndim - 2)
        if form == "transposed":
            size = w.shape[2] - 1 - padding
            w = jnp.flip(w, (2, 3)).swapaxes(0, 1)
            return lax.conv_general_dilated(x, w, (1, 1), [(size, size)] * 2, lhs_dilation=(stride, stride))
        return lax.conv_general_dilated(x, w, (stride,) * (x.ndim - 2), edges, feature_group_count=groups)

    return call


def rows_normalized(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.standardize(x, -1, epsilon=1e-5) * w + b


def batch_normalized(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.standardize(x, (0, 2, 3), epsilon=1e-5) * w[:, None, None] + b[:, None, None]


def causal(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (a.swapaxes(1, 2) for a in (q, k, v))
    return jax.nn.dot_product_attention(q, k, v, is_causal=True).swapaxes(1, 2)


def entropy(x: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()


BY_HAND: dict[str, Callable[..., Any]] = {
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "softmax": jax.nn.softmax,
    "layer_norm": rows_normalized,
    "batch_norm": batch_normalized,
    "attention": causal,
    "cross_entropy": entropy,
    "conv 3x3": by_hand("plain", 1, 1),
    "conv 7x7 stride 2": by_hand("plain", 2, 3),
    "conv depthwise": by_hand("plain", 1, 1, 64),
    "conv of a row": by_hand("plain", 1, 1),
    "conv of few places": by_hand("plain", 1, 1),
    "conv transposed": by_hand("transposed", 2, 1),
    "max_pool": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "sort": lambda x: jnp.sort(x, 1),
    "topk": lambda x: lax.top_k(x, 8)[0],
    "matmul": jnp.matmul,
    "embedding": lambda ids, w: w[ids],
    "index_add": lambda x, i, y: x.at[i].add(y),
}


def jitted(name: str, make: Make) -> tuple[Callable[[], Any], Callable[[], list[Any]]]:
    """What a contender is, by hand: the value and the gradients by one program."""
    arrays = [jnp.asarray(a) for a in make(xtensor, np.random.default_rng(0))[1]]
    places = [i for i, a in enumerate(arrays) if jnp.issubdtype(a.dtype, jnp.floating)]
    function = BY_HAND[name]

    def step(gradient: Any, *arrays: Any) -> tuple[Any, Any]:
        def of_floats(*floats: Any) -> Any:
            given = list(arrays)
            for i, array in zip(places, floats, strict=True):
                given[i] = array
            return function(*given)

        value, pull = jax.vjp(of_floats, *[arrays[i] for i in places])
        return value, pull(gradient)

    shape = jax.eval_shape(function, *arrays).shape
    gradient = jnp.asarray(np.random.default_rng(1).normal(size=shape), jnp.float32)
    program = jax.jit(step)

    def run() -> Any:
        value, gradients = program(gradient, *arrays)
        jax.block_until_ready(gradients)
        return value.block_until_ready

    def values() -> list[Any]:
        value, gradients = program(gradient, *arrays)
        return [np.asarray(a) for a in (value, *gradients)]

    return run, values


def ready(tensor: Any) -> Any:
    """Wait until a tensor is computed; `numpy()` would, too, but what NumPy shares of ours, at most 1 MiB, is a copy: 70 us."""
    if isinstance(tensor, xtensor.Tensor):
        tensor._xt_storage.array.block_until_ready()
    return tensor


def contender(lib: Any, make: Make) -> tuple[Callable[[], Any], Callable[[], list[Any]]]:
    """What is timed, and what it computes: the value and the gradients, as arrays."""
    function, arrays = make(lib, np.random.default_rng(0))
    inputs = [lib.tensor(a) for a in arrays]
    leaves = [t.requires_grad_() for t in inputs if t.is_floating_point()]
    result = function(*inputs)
    gradient = lib.tensor(np.random.default_rng(1).normal(size=tuple(result.shape)).astype(np.float32))

    def run() -> Any:
        out = function(*inputs)
        for leaf in leaves:
            leaf.grad = None
        out.backward(gradient)
        for leaf in leaves:
            ready(leaf.grad)
        return lambda: ready(out.detach())

    def values() -> list[Any]:
        return [tensor.numpy() for tensor in (run()(), *[leaf.grad for leaf in leaves])]

    return run, values


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="how long a turn of one contender is")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    if torch is not None:
        torch.set_num_threads(2)
    figures: dict[str, Any] = {}
    print(
        f"{'kernel':<20}{'us':>10}{'jit':>10}{'ratio':>8}{'torch':>10}{'ratio':>8}   at most 1.5, geometric mean 1.0"
    )
    for name, make in CASES.items():
        if options.cases and not any(part in name for part in options.cases):
            continue
        runs, values = {}, {}
        for title, lib in (("xtensor", xtensor), ("torch", torch)):
            if lib is not None:
                runs[title], values[title] = contender(lib, make)
        runs["jit"], values["jit"] = jitted(name, make)
        for _ in range(4):
            runs["xtensor"]()
        executor.wait()
        again.settle(runs["xtensor"])
        made = {title: value() for title, value in values.items()}
        for other in made.keys() - {"xtensor"}:
            for ours, theirs in zip(made["xtensor"], made[other], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3, err_msg=f"{name}, {other}")
        found = measure(runs, options.turns, options.seconds)
        figures[name] = {title: statistics.median(v) for title, v in found.items()}
        figures[name]["turns"] = found
        row = f"{name:<20}{figures[name]['xtensor']:>10.0f}"
        for other, key in (("jit", "jit ratio"), ("torch", "ratio")):
            if other in found:
                figures[name][key] = ratio(found, "xtensor", other)
                row += f"{figures[name][other]:>10.0f}{figures[name][key]:>8.2f}"
        print(row, flush=True)
    means = {}
    for key in ("jit ratio", "ratio"):
        ratios = [f[key] for f in figures.values() if key in f]
        if ratios:
            means[key] = math.exp(statistics.fmean(map(math.log, ratios)))
    figures["geometric mean"] = means
    print(
        f"{'geometric mean':<20}{means['jit ratio']:>28.2f}"
        + (f"{means['ratio']:>18.2f}" if "ratio" in means else "")
    )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
