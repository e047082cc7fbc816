"""Function transforms against PyTorch's, in alternating turns: medians, and the ratio of ours to theirs.

python benchmarks/transforms.py
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import xtensor

TURNS = 15


def network(lib: Any) -> Any:
    """A network of two layers, the same in both libraries."""
    random = np.random.default_rng(0)
    net = lib.nn.Sequential(lib.nn.Linear(4, 6), lib.nn.Tanh(), lib.nn.Linear(6, 3))
    net.load_state_dict(
        {
            name: lib.tensor(random.normal(size=tuple(p.shape)).astype("f"))
            for name, p in net.state_dict().items()
        }
    )
    return net


def per_sample(lib: Any, compiled: bool = False) -> Callable[[], Any]:
    """Gradients of 128 samples' losses."""
    random = np.random.default_rng(1)
    net = network(lib)
    inputs = lib.tensor(random.normal(size=(128, 4)).astype("f"))
    classes = lib.tensor(random.integers(0, 3, 128))
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        found = lib.func.functional_call(net, p, (x.unsqueeze(0),))
        return lib.nn.functional.cross_entropy(found, y.unsqueeze(0))

    take = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    if compiled and lib is xtensor:
        take = xtensor.compile(take)
    return lambda: take(parameters, inputs, classes)["0.weight"].sum().item()


def per_sample_compiled(lib: Any) -> Callable[[], Any]:
    """The same as one program, against PyTorch's eager call."""
    return per_sample(lib, compiled=True)


def hessian(lib: Any) -> Callable[[], Any]:
    """The Hessian of a function of 50 variables."""
    x = lib.tensor(np.random.default_rng(2).normal(size=50).astype("f"))
    take = lib.func.hessian(lambda v: (v.sin() * v.roll(1)).sum() ** 2)
    return lambda: take(x).sum().item()


def ensemble(lib: Any) -> Callable[[], Any]:
    """Ten networks on one batch."""
    nets = [network(lib) for _ in range(10)]
    parameters, buffers = lib.func.stack_module_state(nets)
    inputs = lib.tensor(np.random.default_rng(3).normal(size=(64, 4)).astype("f"))

    def call(p: Any, b: Any, x: Any) -> Any:
        return lib.func.functional_call(nets[0], (p, b), (x,))

    take = lib.vmap(call, in_dims=(0, 0, None))
    return lambda: take(parameters, buffers, inputs).sum().item()


def jacobian(lib: Any) -> Callable[[], Any]:
    """The Jacobian of a network's results by its inputs, for a batch."""
    net = network(lib)
    inputs = lib.tensor(np.random.default_rng(4).normal(size=(64, 4)).astype("f"))
    take = lib.vmap(lib.func.jacrev(net))
    return lambda: take(inputs).sum().item()


def main() -> None:
    """Print a line for each case."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for case in (per_sample, per_sample_compiled, hessian, ensemble, jacobian):
        ours, theirs = case(xtensor), case(torch)
        assert abs(ours() - theirs()) <= 1e-3 * max(1.0, abs(theirs()))
        for _ in range(5):
            ours(), theirs()
        spent: tuple[list[float], list[float]] = ([], [])
        for _ in range(TURNS):
            for call, times in ((ours, spent[0]), (theirs, spent[1])):
                start = time.perf_counter()
                for _ in range(3):
                    call()
                times.append((time.perf_counter() - start) / 3)
        a, b = statistics.median(spent[0]), statistics.median(spent[1])
        print(f"{case.__name__:19} {a * 1e3:7.3f} ms   PyTorch {b * 1e3:7.3f} ms   ratio {a / b:.2f}")


if __name__ == "__main__":
    main()
