"""New tensors on a mesh, each device making its own part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ... import dtypes
from ...lowering.sharded import keep
from ...ops.create import creation, random
from ...tensor import Tensor
from ...xla.x64 import call
from .. import device_mesh as meshes
from ..device_mesh import DeviceMesh
from .dtensor import DTensor
from .placement_types import Placement, sharding_for

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def made_on(
    make: Callable[..., Tensor],
    size: Sequence[Any],
    mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    requires_grad: bool,
    options: dict[str, Any],
) -> Any:
    mesh = mesh or meshes.current_mesh()
    shape = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else tuple(size)
    sharding = sharding_for(mesh, placements, shape)
    tensor = make(shape, device=mesh.device, **options)
    storage = tensor._xt_storage
    storage.array = call(jax.device_put, storage.array, sharding)
    keep(storage, sharding)
    return tensor.requires_grad_() if requires_grad else tensor


def factory(make: Any, name: str, what: str) -> Any:
    """One of the factories."""

    def made(
        *size: Any,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout = dtypes.strided,
        requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        options = {"dtype": dtype, "layout": layout}
        return made_on(make, size, device_mesh, placements, requires_grad, options)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"{what} on a mesh (by default that of `with mesh:`), copied to its devices where `placements` say nothing."
    return made


zeros = factory(creation.zeros, "zeros", "Zeros")
ones = factory(creation.ones, "ones", "Ones")
empty = factory(creation.empty, "empty", "Zeros, to be written,")
rand = factory(random.rand, "rand", "Uniform numbers in [0, 1)")
randn = factory(random.randn, "randn", "Standard normal numbers")


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout = dtypes.strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """One value on a mesh (by default that of `with mesh:`), copied to its devices where `placements` say nothing."""

    def make(shape: tuple[int, ...], **options: Any) -> Tensor:
        return creation.full(shape, fill_value, **options)

    options = {"dtype": dtype, "layout": layout}
    return made_on(make, [size], device_mesh, placements, requires_grad, options)
