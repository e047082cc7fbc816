"""Who holds the arrays of a device, found by asking Python's collector who refers to them. Nothing is counted while a program runs."""

from __future__ import annotations

import gc
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .. import devices
from ..autograd.function import BackwardCFunction
from ..devices import DeviceLike
from ..devices.inspection import shard_bytes
from ..dtypes import FROM_NUMPY
from ..engine.graph import Node, name_of
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..optim.optimizer import Optimizer
from ..plans.patterns import Pattern
from ..storage import HostValues, Storage
from ..tensor import Tensor, View
from ..xla import segments
from ..xla.cache import BoundedCache, caches

__all__ = ["KINDS", "Held", "Snapshot", "memory_snapshot", "memory_summary"]

KINDS = (
    "parameters",
    "gradients",
    "optimizer states",
    "tensors",
    "saved for backward",
    "readings of views",
    "plans",
    "caches",
    "elsewhere",
)
"""Kinds of holders; an array with several counts for the first of them."""

DEPTH = 6
"""Containers within containers that are followed upwards from an array."""


class Held(NamedTuple):
    """An array on a device: its bytes there, its form, its kind, and all who hold it, in words."""

    nbytes: int
    shape: tuple[int, ...]
    dtype: Any
    kind: str
    holders: tuple[str, ...]


class Snapshot(NamedTuple):
    """What a device held at a moment, the largest first.

    programs: compiled programs of the process. code: bytes of their code, where XLA tells (on a CPU it does not).
    peak, limit: XLA's own counts; None where it keeps none.
    """

    device: devices.device
    arrays: tuple[Held, ...]
    programs: int
    code: int
    peak: int | None
    limit: int | None

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(held.nbytes for held in self.arrays)

    def totals(self) -> dict[str, tuple[int, int]]:
        """By kind, how many arrays and how many bytes."""
        numbers, sizes = Counter[str](), Counter[str]()
        for held in self.arrays:
            numbers[held.kind] += 1
            sizes[held.kind] += held.nbytes
        return {kind: (numbers[kind], sizes[kind]) for kind in KINDS}

    def as_dicts(self) -> list[dict[str, Any]]:
        """The arrays as dictionaries that JSON can write."""
        return [
            {
                **held._asdict(),
                "shape": list(held.shape),
                "dtype": str(held.dtype),
                "holders": [*held.holders],
            }
            for held in self.arrays
        ]


def memory_snapshot(device: DeviceLike = None) -> Snapshot:
    """Every array on a device (the current one by default) and who holds it; takes some tenths of a second.

    What still waits for the compiler is finished first. An array that is seen by nothing Python knows of, a local
    variable's for one, is `elsewhere`.
    Raises: RuntimeError where there is no such device.
    Differs from PyTorch: `torch.cuda.memory_snapshot` has the segments of an allocator; here XLA has those to itself.

    >>> x = xtensor.ones(3, 5)
    >>> [held.kind for held in xtensor.memory_snapshot().arrays if held.shape == (3, 5)]
    ['tensors']
    """
    place = devices.resolve(device)
    segments.finish()
    found = devices.jax_device(place)
    live: list[Any] = [array for array in jax.live_arrays() if shard_bytes(array, found)]
    # What tensors hold in the host's memory, until a program takes it.
    live += [one for one in gc.get_objects() if type(one) is HostValues and one.device == place]
    who = holders_of(live)
    arrays = []
    for array in live:
        held = sorted(who[id(array)], key=lambda holder: KINDS.index(holder[0])) or [("elsewhere", "")]
        words = tuple(dict.fromkeys(word for _, word in held if word))
        form = FROM_NUMPY.get(np.dtype(array.dtype), array.dtype)
        nbytes = array.memory.nbytes if type(array) is HostValues else shard_bytes(array, found)
        arrays.append(Held(nbytes, array.shape, form, held[0][0], words))
    programs = found.client.live_executables()
    memory = devices.memory(place)
    return Snapshot(
        place,
        tuple(sorted(arrays, key=lambda held: -held.nbytes)),
        len(programs),
        sum(max(p.size_of_generated_code_in_bytes(), 0) for p in programs),
        memory.peak,
        memory.limit,
    )


def memory_summary(device: DeviceLike = None, largest: int = 10) -> str:
    """A table of who holds a device's memory (the current one's by default), and of the largest arrays.

    Raises: RuntimeError where there is no such device.

    >>> print(xtensor.memory_summary().splitlines()[1].split())
    ['held', 'by', 'arrays', 'bytes']
    """
    found = memory_snapshot(device)
    more = [f"most so far {size_text(found.peak)}"] if found.peak is not None else []
    more += [f"of {size_text(found.limit)}"] if found.limit is not None else []
    lines = [
        ", ".join(
            [f"Memory of {found.device}: {size_text(found.nbytes)} in {len(found.arrays)} arrays", *more]
        ),
        f"{'held by':<24}{'arrays':>10}{'bytes':>14}",
    ]
    for kind, (number, nbytes) in found.totals().items():
        lines.append(f"{kind:<24}{number:>10}{size_text(nbytes):>14}")
    code = size_text(found.code) if found.code else "not told"
    lines.append(f"{'programs (their code)':<24}{found.programs:>10}{code:>14}")
    if largest and found.arrays:
        lines += ["", "The largest:"]
        for held in found.arrays[:largest]:
            what = f"{held.dtype}{list(held.shape)}"
            words = "; ".join(held.holders[:3]) + (", ..." if len(held.holders) > 3 else "")
            lines.append(
                f"{size_text(held.nbytes):>12}  {what:<34}{held.kind}{': ' + words if words else ''}"
            )
    return "\n".join(lines)


def size_text(nbytes: int) -> str:
    """Bytes in the unit that suits them."""
    size, unit = float(nbytes), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


# -- who holds what

Holder = tuple[str, str]
"""A kind, and who it is in words."""


class Roles:
    """What tensors there are over each storage, and names for what modules and optimizers hold."""

    def __init__(self, objects: ByType) -> None:
        self.names: dict[int, str] = {}
        self.of_storage: dict[int, list[Holder]] = {}
        tensors: list[Tensor] = of_kind(objects, Tensor)
        self._name_parameters(of_kind(objects, Module))
        special: dict[int, Holder] = {}
        for tensor in tensors:
            grad = None if tensor._xt_meta is None else tensor._xt_meta.grad
            if grad is not None:
                special[id(grad)] = ("gradients", f"gradient of {self.name_of(tensor)}")
        for node in of_kind(objects, BackwardCFunction):
            for saved in node._saved or ():
                # A leaf is the program's own tensor; what else a Function saves is another one over the same memory.
                if saved is not None and saved.tensor is not None and saved.tensor._xt_edge is None:
                    special[id(saved.tensor)] = ("saved for backward", node.name())
        for optimizer in of_kind(objects, Optimizer):
            for parameter, state in optimizer.state.items():
                special |= self._states(type(optimizer).__name__, parameter, state)
        for tensor in tensors:
            if id(tensor) in special:
                holder = special[id(tensor)]
            elif isinstance(tensor, Parameter):
                holder = ("parameters", self.name_of(tensor))
            else:
                holder = ("tensors", self.names.get(id(tensor), ""))
            self.of_storage.setdefault(id(tensor._xt_storage), []).append(holder)

    def name_of(self, tensor: Tensor) -> str:
        """Where a module has it, or its form."""
        return self.names.get(id(tensor)) or f"a {tensor.dtype}{list(tensor.shape)}"

    def _name_parameters(self, modules: Sequence[Module]) -> None:
        above: dict[int, tuple[Module, str]] = {}
        for module in modules:
            for name, child in vars(module).get("_modules", {}).items():
                if child is not None:
                    above[id(child)] = module, name
        for module in modules:
            path, top = [], module
            while id(top) in above and len(path) < 100:
                top, name = above[id(top)]
                path.insert(0, name)
            own = vars(module)
            for name, tensor in (*own.get("_parameters", {}).items(), *own.get("_buffers", {}).items()):
                if tensor is not None:
                    self.names[id(tensor)] = ".".join([type(top).__name__, *path, name])

    def _states(self, optimizer: str, parameter: Any, state: Any) -> dict[int, Holder]:
        if not isinstance(state, Mapping):
            return {}
        of = self.name_of(parameter) if isinstance(parameter, Tensor) else str(parameter)
        return {
            id(value): ("optimizer states", f"{optimizer}'s {name} of {of}")
            for name, value in state.items()
            if isinstance(value, Tensor)
        }


ByType = Mapping[type[Any], Sequence[Any]]
"""Objects by their types."""


def by_type() -> dict[type[Any], list[Any]]:
    """All objects that the collector knows."""
    found: dict[type[Any], list[Any]] = {}
    for one in gc.get_objects():
        found.setdefault(type(one), []).append(one)
    return found


def of_kind(objects: ByType, kind: type[Any]) -> list[Any]:
    """The instances of a class; `isinstance` would ask objects of others for their `__class__`, which may answer with anything."""
    return [found for own, some in objects.items() if issubclass(own, kind) for found in some]


# What is a holder's own, not somebody on the way to one: who refers to a module's variables holds all of it.
ENDS = (types.ModuleType, types.FrameType, types.FunctionType, types.MethodType, type)
SHAPES = (tuple, list, dict, set, frozenset, types.CellType)
HOLDERS = (Storage, View, Node, Pattern, BoundedCache)


def holders_of(arrays: list[Any]) -> dict[int, set[Holder]]:
    """By the identity of an array, its holders: those from which it is reached in a few steps, with no other holder on the way.

    From the holders downwards, since a process may have millions of objects, and few of them hold arrays.
    """
    objects = by_type()
    try:
        roles = Roles(objects)
        kept = {id(cache): cache for cache in caches()}
        holders = kept | {id(one): one for kind in HOLDERS for one in of_kind(objects, kind)}
    finally:
        objects.clear()  # it may hold the frame that holds it, and with it everything
    found: dict[int, set[Holder]] = {id(array): set() for array in arrays}
    ways: dict[type[Any], bool] = {}
    for holder in holders.values():
        held = list(told(holder, roles, kept))
        if held and not (isinstance(holder, BoundedCache) and not holder):
            for origin in reached(holder, found.keys(), ways, lambda other: any(told(other, roles, kept))):
                found[origin].update(held)
    return found


def reached(
    holder: Any, ids: Collection[int], ways: dict[type[Any], bool], ends: Callable[[Any], bool]
) -> set[int]:
    """Which of these identities an object has below it, past none that `ends`. ways: what is known of types, whether they are followed."""
    found: set[int] = set()
    seen = {id(holder)}
    level = [holder]
    for _ in range(DEPTH):
        below: list[Any] = []
        for one in gc.get_referents(*level):
            kind = type(one)
            follows = ways.get(kind)
            if follows is None:
                follows = ways[kind] = followed(kind)
            at = id(one)
            if at in ids:
                found.add(at)
            elif follows and at not in seen:
                seen.add(at)
                if not ((kind is dict and "__builtins__" in one) or ends(one)):
                    below.append(one)
        if not below:
            break
        level = below
    return found


def told(holder: Any, roles: Roles, kept: Collection[int]) -> Iterator[Holder]:
    """What kind of holder an object is; nothing for one that is only on the way to it."""
    kind = type(holder)
    if issubclass(kind, Storage):
        yield from roles.of_storage.get(id(holder), ())
    elif issubclass(kind, View):
        yield "readings of views", f"reading of a view of {list(holder.sizes)}"
    elif issubclass(kind, Node):
        yield "saved for backward", name_of(holder)
    elif issubclass(kind, Pattern):
        yield "plans", "a plan of a backward graph"
    elif issubclass(kind, BoundedCache) or id(holder) in kept:
        yield "caches", getattr(holder, "__qualname__", "")


def followed(kind: type[Any]) -> bool:
    """Whether what objects of a type refer to is asked for: of containers, and of this library's."""
    if issubclass(kind, ENDS):
        return False
    return issubclass(kind, SHAPES) or kind.__module__.startswith(__name__.partition(".")[0] + ".")
