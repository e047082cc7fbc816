"""A step compiled ahead for a mesh that need not be there: what a device would hold, and what the devices would send one another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import trees
from ..func import functional_call
from ..jax.modules import to_jax
from ..nn.modules.module import Module
from ..tensor import Tensor, array_of
from ..xla.x64 import call
from .device_mesh import DeviceMesh
from .tensor.dtensor import DTensor
from .tensor.placement_types import Placement, sharding_for

__all__ = ["Ahead", "ahead", "collectives"]

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
OPERATION = re.compile(rf"= (.+?) ({'|'.join(COLLECTIVES)})(?:-start)?\(")
SHAPE = re.compile(r"(pred|[a-z]+\d+[a-z0-9]*)\[([\d,]*)\]")
BITS = re.compile(r"\d+")


@dataclass
class Ahead:
    """What was compiled: bytes on each device, and by kind how many collectives there are, with the bytes of their results."""

    devices: int
    arguments: int
    outputs: int
    temporaries: int
    collectives: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        held = f"{self.arguments:,} bytes of arguments, {self.outputs:,} of results, {self.temporaries:,} between"
        lines = [f"on each of {self.devices} devices: {held}"]
        lines += [f"  {name}: {n}, {size:,} bytes" for name, (n, size) in sorted(self.collectives.items())]
        return "\n".join(lines if self.collectives else [*lines, "  no collectives"])


def ahead(
    module: Module,
    inputs: Sequence[Tensor],
    mesh: DeviceMesh,
    placements: dict[str, Sequence[Placement]] | None = None,
    batch: Sequence[Placement] | None = None,
    loss: Callable[..., Tensor] | None = None,
) -> Ahead:
    """Compile the loss and the gradients of a module for a mesh, and run nothing: parameters and inputs may be on the meta device.

    placements: by patterns of parameters' names, the first that fits; others lie as they do, or copied. batch: how the inputs lie.
    loss: of what the module gives; the mean by default. A mesh of 256 devices needs no more than `JAX_NUM_CPU_DEVICES=256` in the environment.

    >>> from xtensor.distributed.ahead import ahead
    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> with xtensor.device("meta"):
    ...     model, x = nn.Linear(4, 2), xtensor.zeros(8, 4)
    >>> print(ahead(model, [x], init_device_mesh("cpu", (1,))).arguments)
    168
    """
    chosen = placements or {}

    def form(tensor: Tensor, where: Sequence[Placement] | None) -> jax.ShapeDtypeStruct:
        array = array_of(tensor)
        if where is None and isinstance(tensor, DTensor):
            return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding)
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding_for(mesh, where, array.shape))

    def of(name: str) -> Sequence[Placement] | None:
        return next((where for pattern, where in chosen.items() if fnmatch(name, pattern)), None)

    parameters = {name: form(p, of(name)) for name, p in module.named_parameters()}
    buffers = {name: form(b, of(name)) for name, b in module.named_buffers()}
    given = [form(x, batch) for x in inputs]

    def value(own: dict[str, Tensor], rest: dict[str, Tensor], *args: Tensor) -> Tensor:
        made: Any = functional_call(module, {**own, **rest}, args)
        return made.float().mean() if loss is None else loss(made)

    function = to_jax(value)

    def step(own: Any, rest: Any, *args: Any) -> Any:
        return jax.value_and_grad(lambda p: jnp.asarray(function(p, rest, *args)))(own)

    places: Any = {name: p.sharding for name, p in parameters.items()}
    with jax.enable_x64(True):
        lowered = jax.jit(step, out_shardings=(None, places)).lower(parameters, buffers, *given)
        compiled: Any = lowered.compile()
    memory = compiled.memory_analysis()
    return Ahead(
        len(mesh.jax_mesh.devices.reshape(-1)),
        int(memory.argument_size_in_bytes),
        int(memory.output_size_in_bytes),
        int(memory.temp_size_in_bytes),
        counted(compiled.as_text()),
    )


def collectives(function: Any, *args: Any) -> dict[str, tuple[int, int]]:
    """What a device takes part in while a compiled function runs: of each kind of collective how many, and the bytes of their results.

    function: what `xtensor.compile` made, after a call with `args` that ran as a program. XLA joins collectives that do not depend on one another, so it
    is the bytes that theory knows.

    Raises: ValueError for a function that has no program yet.

    >>> from xtensor.distributed.ahead import collectives
    >>> double = xtensor.compile(lambda x: 2 * x)
    >>> for _ in range(2):
    ...     _ = double(xtensor.ones(2))
    >>> collectives(double, xtensor.ones(2))
    {}
    """
    made = getattr(function, "_xt_compiled", None)
    if made is None or not made.entries:
        raise ValueError("a function of xtensor.compile that has run as a program is needed: call it twice")
    program = made.entries[0].program
    tensors = [leaf for leaf in trees.tree_leaves(args) if isinstance(leaf, Tensor)]
    arrays = [program._array(source, tensors) for source in program.sources]
    operands = (*[arrays[i] for i in program.reads], *program.parts.constants)
    return counted(call(program.program(False).lower, *operands).compile().as_text())


def counted(text: str) -> dict[str, tuple[int, int]]:
    """The collectives of a compiled program, and the bytes of what each device gets of them."""
    found: dict[str, tuple[int, int]] = {}
    for shapes, name in OPERATION.findall(text):
        size = 0
        for kind, dims in SHAPE.findall(shapes):
            bits = 8 if kind == "pred" else int(BITS.findall(kind)[0])
            size += int(np.prod([int(d) for d in dims.split(",") if d], dtype=np.int64)) * bits // 8
        count, before = found.get(name, (0, 0))
        found[name] = (count + 1, before + size)
    return found
