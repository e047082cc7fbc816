"""A compiled training step, forward, backward and optimizer, as a pure function of its state that is resumed elsewhere, by plain JAX."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import IO, Any

import jax
import numpy as np
from jax import export as jax_export

from .. import geometry, trees
from ..nn.modules.module import Module
from ..optim.optimizer import Optimizer
from ..serialization.archive_writer import ArchiveWriter
from ..serialization.atomic import replacing
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call, x64
from .files import ROOT, STEP, serialized, weights_to
from .lowering import PLATFORMS

__all__ = ["TrainingStep", "export_step"]

VERSION = 1


class TrainingStep:
    """A training step as a function of arrays: `exported.call(state, inputs)` gives the results and the state after it, by JAX alone.

    state: by name the arrays that the step reads and writes: parameters, buffers, the optimizer's, its numbers (learning rate, betas, ...), and
    the seed and count of random draws. results: the tensors that the step returns, in one list.
    """

    def __init__(self, exported: jax_export.Exported, state: dict[str, Any]) -> None:
        self.exported = exported
        self.state = state

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        """Make a step from `state`, which then is the state after it; the model that was exported stays as it is."""
        with x64():
            results, self.state = call(self.exported.call, self.state, [array_of(t.detach()) for t in inputs])
        return [wrap(a) for a in results]

    def save(self, f: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write program and state to one file: a zip archive with `export/program.jax`, `export/state.safetensors` and `export/signature.json`."""
        program = serialized(self.exported)
        told = {
            "format": STEP,
            "version": VERSION,
            "state": list(self.state),
            "platforms": list(self.exported.platforms),
        }
        with replacing(f) if isinstance(f, (str, os.PathLike)) else nullcontext(f) as stream:
            writer = ArchiveWriter(stream, ROOT)
            writer.write("signature.json", json.dumps(told).encode())
            writer.write("program.jax", program)
            writer.write("module.stablehlo", self.exported.mlir_module_serialized)
            writer.write(
                "state.safetensors",
                weights_to({name: wrap(call(jax.numpy.asarray, a)) for name, a in self.state.items()}),
            )
            writer.close()

    def __repr__(self) -> str:
        return f"TrainingStep({len(self.state)} arrays of state)"


def export_step(
    step: Callable[..., Any],
    *args: Any,
    names: Mapping[str, Module | Optimizer] | None = None,
    platforms: Sequence[str] = PLATFORMS,
) -> TrainingStep:
    """A step under `torch.compile` as a function of its state. The step is called with `args` until a program serves it, and that trains: the state is
    the one after these calls.

    names: what parameters, buffers and the optimizer's state are named after; left out, the variables of the function that hold modules and
    optimizers. Checks of values that eager code makes, such as labels within their range, are not in the program.

    RuntimeError where the step does not run as one program (`xtensor.compiler` tells why), reads gradients that were there before, or does more
    than compute, such as a scheduler's step.
    """
    compiled = getattr(step, "_xt_compiled", None)
    if compiled is None:
        raise TypeError("export_step() takes a function that torch.compile has given")
    program, advance = served(compiled, step, args)
    refuse_more(program)
    holders = variables(compiled.function) if names is None else dict(names)
    known = named_storages(holders)
    state: dict[str, Any] = {}
    keys: dict[int, str] = {}

    def key_of(storage: Any) -> str:
        if id(storage) not in keys:
            name = known.get(id(storage), f"tensor_{len(keys)}")
            keys[id(storage)] = name
            state[name] = storage.array
        return keys[id(storage)]

    operands: list[tuple[str, Any]] = []
    hosts: dict[str, Any] = {}
    for at, source in enumerate(program.sources):
        if source.kind == "given":
            operands.append(("input", source.what))
        elif source.kind == "held":
            operands.append(("state", key_of(source.what)))
        else:
            name = f"host_{len(hosts)}"
            hosts[name] = advance[at]
            state[name] = np.asarray(source.what())
            operands.append(("state", name))
    written = [key_of(w.storage) for w in program.leaves.written]
    results = [place_of(program, r) for r in returned(program)]
    inputs = [leaf for leaf in trees.tree_leaves(args) if isinstance(leaf, Tensor)]

    def run(given: dict[str, Any], arrays: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        values = [arrays[what] if kind == "input" else given[what] for kind, what in operands]
        outs = program.parts.forward(*[values[i] for i in program.reads], *program.parts.constants)
        after = {**given, **{name: given[name] + step for name, step in hosts.items()}}
        puts = program.leaves.puts
        after |= {name: outs[puts[at]] for at, name in enumerate(written)}
        return [outs[at] if shape is None else outs[at].reshape(shape) for at, shape in results], after

    with x64():
        shapes = jax.tree.map(
            lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), (state, [array_of(t) for t in inputs])
        )
        exported = jax_export.export(jax.jit(run), platforms=list(platforms))(*shapes)
    return TrainingStep(exported, state)


def served(compiled: Any, step: Callable[..., Any], args: Any) -> tuple[Any, dict[int, Any]]:
    """The program that serves a call, and by how much the numbers of the host's moved while it did."""
    for _ in range(6):
        before = {id(e.program): (e.program.calls, hosts_of(e.program)) for e in compiled.entries}
        step(*args)
        for entry in compiled.entries:
            calls, values = before.get(id(entry.program), (0, None))
            if values is not None and entry.program.calls > calls:
                now = hosts_of(entry.program)
                return entry.program, {at: now[at] - values[at] for at in now}
    raise RuntimeError(
        f"the step {compiled.name} is not exported: it does not run as one program{''.join(f'; {r}' for r in compiled.reasons.values())}"
    )


def hosts_of(program: Any) -> dict[int, Any]:
    """The numbers that a program takes from the host at this moment."""
    return {at: np.asarray(s.what()) for at, s in enumerate(program.sources) if s.kind == "host"}


def refuse_more(program: Any) -> None:
    """RuntimeError where a program is no function of its arguments and of what is held."""
    odd = [s.kind for s in program.sources if s.kind not in ("given", "held", "host")]
    reasons = (
        ("grad" in odd, "it reads gradients that were there before: call zero_grad() within it"),
        (bool(set(odd) - {"grad"}), "it takes numbers among its arguments: give them as tensors"),
        (bool(program.effects or program.leaves.sets or program.leaves.scalers), "it does more than compute: leave schedulers, scalers and attributes outside"),
        (bool(program.elsewhere), "its tensors are on several devices"),
    )  # fmt: skip
    for holds, reason in reasons:
        if holds:
            raise RuntimeError(f"the step {program.name} is not exported: {reason}")


def variables(function: Any) -> dict[str, Any]:
    """The modules and optimizers that a function's variables hold."""
    found = inspect.getclosurevars(inspect.unwrap(getattr(function, "__func__", function)))
    held = {**found.globals, **found.nonlocals}
    return {name: value for name, value in held.items() if isinstance(value, (Module, Optimizer))}


def named_storages(holders: Mapping[str, Any]) -> dict[int, str]:
    """Names by the identity of storages: `model.0.weight`, `optimizer.model.0.weight.exp_avg`."""
    found: dict[int, str] = {}
    for prefix, holder in holders.items():
        if isinstance(holder, Module):
            for name, tensor in [*holder.named_parameters(), *holder.named_buffers()]:
                found.setdefault(id(tensor._xt_storage), f"{prefix}.{name}")
    for prefix, holder in holders.items():
        if isinstance(holder, Optimizer):
            for at, (parameter, kept) in enumerate(holder.state.items()):
                own = found.get(id(parameter._xt_storage), str(at))
                for key, value in kept.items():
                    if isinstance(value, Tensor):
                        found.setdefault(id(value._xt_storage), f"{prefix}.{own}.{key}")
    return found


def returned(program: Any) -> list[Any]:
    """The tensors of a step's value, as the program describes them."""
    numbers = program.leaves.build([Number(i) for i in range(len(program.leaves.results))])
    found = [leaf for leaf in trees.tree_leaves(numbers) if isinstance(leaf, Number)]
    return [program.leaves.results[n.at] for n in found]


class Number:
    """Stands for a tensor among results."""

    def __init__(self, at: int) -> None:
        self.at = at


def place_of(program: Any, result: Any) -> tuple[int, tuple[int, ...] | None]:
    """Which of the program's results a tensor is, and its sizes where it is seen in others."""
    whole = result.geometry is None or (
        result.geometry.offset == 0
        and result.geometry.strides == geometry.contiguous_strides(result.geometry.sizes)
    )
    if result.kind != "new" or not whole:
        raise RuntimeError(
            f"the step {program.name} is not exported: it returns a tensor that was there before, or a part of one"
        )
    at = program.leaves.puts[len(program.leaves.written) + result.what]
    return at, None if result.geometry is None else result.geometry.sizes
