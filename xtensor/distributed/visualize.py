"""Who holds what: a tensor's parts by device, or a module's parameters by placement, in a terminal and in a notebook."""

from __future__ import annotations

import html
from typing import Any

from ..nn.modules.module import Module
from ..tensor import Tensor, array_of
from .device_mesh import of_sharding
from .tensor.placement_types import placements_of

__all__ = ["Picture", "visualize"]

# The hues of parts; a thin coat of one over the page, with the text in the page's colour, reads on light and on dark.
HUES = (
    "27, 158, 119",
    "230, 171, 2",
    "117, 112, 179",
    "217, 95, 2",
    "31, 120, 180",
    "231, 41, 138",
    "102, 166, 30",
    "150, 150, 150",
)


class Picture:
    """A table of text: `print` shows it in a terminal, a notebook shows it in colours."""

    def __init__(self, title: str, rows: list[list[str]], groups: list[list[int]]) -> None:
        self.title = title
        self.rows = rows
        self.groups = groups

    def __str__(self) -> str:
        widths = (
            [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))] if self.rows else []
        )
        lines = [self.title]
        lines += [
            "  " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
            for row in self.rows
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = []
        for row, group in zip(self.rows, self.groups, strict=True):
            colours = [
                f" style='background:rgba({HUES[g % len(HUES)]}, 0.3)'" if g >= 0 else "" for g in group
            ]
            cells.append(
                "<tr>"
                + "".join(f"<td{c}>{html.escape(t)}</td>" for t, c in zip(row, colours, strict=True))
                + "</tr>"
            )
        return f"<table><caption>{html.escape(self.title)}</caption>{''.join(cells)}</table>"


def visualize(value: Tensor | Module) -> Picture:
    """Which device holds which part of a tensor; of a module, how each parameter lies and what a device holds of it.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.tensor import Shard, distribute_tensor
    >>> from xtensor.distributed.visualize import visualize
    >>> visualize(distribute_tensor(xtensor.zeros(4, 2), init_device_mesh("cpu", (1,)), [Shard(0)]))
    [4, 2] on cpu mesh(dim_0=1): Shard(dim=0)
      0: [0:4, 0:2]
    """
    if isinstance(value, Module):
        return of_module(value)
    if not isinstance(value, Tensor):
        raise TypeError(f"visualize() takes a tensor or a module, not {type(value).__name__}")
    return of_tensor(value)


def placed_as(tensor: Tensor) -> str:
    """The placements of a tensor, or where it is."""
    if tensor.device.sharding is None:
        return str(tensor.device)
    mesh = of_sharding(tensor.device.sharding)
    return ", ".join(map(repr, placements_of(mesh, array_of(tensor).sharding, tensor.dim())))


def of_tensor(tensor: Tensor) -> Picture:
    """A cell for each device, where it is in the mesh: its number, and the part that it holds."""
    array, shape = array_of(tensor), tuple(tensor.shape)
    title = f"{list(shape)} on {tensor.device}"
    if tensor.device.sharding is None:
        return Picture(title, [[part_text(tuple([slice(None)] * len(shape)), shape)]], [[0]])
    mesh = of_sharding(tensor.device.sharding)
    parts = array.sharding.devices_indices_map(shape)
    distinct: dict[str, int] = {}
    places = mesh.jax_mesh.devices
    grid = places.reshape(-1, places.shape[-1]) if places.ndim > 1 else places.reshape(1, -1)
    numbers = mesh._numbers.reshape(grid.shape)
    rows, groups = [], []
    for devices, row in zip(grid, numbers, strict=True):
        texts = [part_text(parts[d], shape) for d in devices]
        groups.append([distinct.setdefault(t, len(distinct)) for t in texts])
        rows.append([f"{n}: {t}" for n, t in zip(row, texts, strict=True)])
    return Picture(f"{title}: {placed_as(tensor)}", rows, groups)


def part_text(index: tuple[slice, ...], shape: tuple[int, ...]) -> str:
    """A part of an array: `[0:4, 0:2]`."""
    spans = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
    return f"[{', '.join(f'{a}:{b}' for a, b in spans)}]"


def of_module(module: Module) -> Picture:
    """A row for each parameter and buffer."""
    rows, groups = [], []
    here = total = 0
    kinds: dict[str, int] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        array = array_of(tensor)
        sharding: Any = array.sharding
        local = sharding.shard_shape(array.shape)
        size = array.dtype.itemsize
        own = size
        for n in local:
            own *= n
        here, total = here + own, total + tensor.nbytes
        where = placed_as(tensor)
        rows.append([name, str(list(tensor.shape)), where, f"{own} of {tensor.nbytes} bytes"])
        groups.append([-1, -1, kinds.setdefault(where, len(kinds)), -1])
    return Picture(f"{type(module).__name__}: a device holds {here} of {total} bytes", rows, groups)
