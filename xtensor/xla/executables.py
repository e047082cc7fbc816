"""An XLA executable as JAX's compiled call takes it over, and as bytes: what it needs, what it gives, and its code.

Only programs of one device are kept so, which neither call the host nor have effects: all others are JAX's own matter.
"""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.sharding import SingleDeviceSharding

from .cache import bounded
from .jax_internals import programs as inside

__all__ = ["Entry", "as_compiled", "from_bytes", "interned", "is_simple", "placement", "to_bytes"]


class Entry:
    """An executable that is ready: `run(leaves)` gives the leaves of its results, whose structure is `tree`.

    avals: the results' forms. fast: what JAX's compiled call takes over. size: bytes of its results. key: JAX's own for it.
    seconds: what compiling it took. quick: whether its code was made the quick way; again: whether the other way it would be faster.
    """

    __slots__ = ("__weakref__", "again", "avals", "fast", "key", "quick", "run", "seconds", "size", "tree")

    def __init__(
        self,
        run: Any,
        tree: Any,
        avals: Any,
        fast: Any,
        size: int,
        key: str,
        seconds: float,
        quick: bool,
        again: bool,
    ) -> None:
        self.run = run
        self.tree = tree
        self.avals = avals
        self.fast = fast
        self.size = size
        self.key = key
        self.seconds = seconds
        self.quick = quick
        self.again = again


def is_simple(executable: Any, count: int) -> bool:
    """Whether all of an executable that JAX compiled for so many arguments can be said in bytes."""
    call = executable.unsafe_call
    if not isinstance(executable, inside.Executable) or not isinstance(call, inside.Execute):
        return False
    if call.has_unordered_effects or call.ordered_effects or call.has_host_callbacks or executable._mut:
        return False
    kept = executable._kept_var_idx
    return (
        len(executable.in_avals) == len(kept)
        and (not kept or max(kept) < count)
        and all(
            type(s) is SingleDeviceSharding for s in (*executable._in_shardings, *executable._out_shardings)
        )
        and all(layout is None for layout in executable._dispatch_in_layouts)
        and not any(jnp.issubdtype(a.dtype, jax.dtypes.extended) for a in executable.out_avals)
    )


def as_compiled(executable: Any, tree: Any, committed: bool, count: int, facts: dict[str, Any]) -> Entry:
    """An executable as JAX compiled it for so many arguments."""
    avals = list(map(interned, executable.out_avals))
    fast = inside.Fast(
        executable.xla_executable,
        inside.registry.flatten(jax.tree.unflatten(tree, list(range(len(avals)))), None)[1],
        executable._in_shardings,
        executable._out_shardings,
        avals,
        [committed] * len(avals),
        [i in executable._kept_var_idx for i in range(count)],
        executable._dispatch_in_layouts,
        [],
    )
    return Entry(lambda leaves: executable.unsafe_call(*leaves), tree, avals, fast, **facts)


def to_bytes(
    executable: Any, code: bytes, tree: Any, committed: bool, count: int, facts: dict[str, Any]
) -> bytes | None:
    """An executable for so many arguments, with what is known of it; None where the structure of its results has no spelling.

    code: what JAX's cache was given or gave: an executable that was loaded cannot be taken apart again.
    """
    avals = executable.out_avals
    skeleton = spelled(jax.tree.unflatten(tree, list(range(len(avals)))))
    if skeleton is UNSPELLED:
        return None
    told = facts | {
        "tree": skeleton,
        "committed": committed,
        "results": [[list(a.shape), a.dtype.name, a.weak_type] for a in avals],
        "kept": "".join(["01"[i in executable._kept_var_idx] for i in range(count)]),
    }
    head = json.dumps(told).encode()
    return len(head).to_bytes(4, "little") + head + code


def from_bytes(content: bytes, device: Any) -> Entry:
    """An executable loaded onto a device."""
    start = 4 + int.from_bytes(content[:4], "little")
    facts = json.loads(content[4:start])
    code, _ = inside.parts(inside.decompress(content[start:]))
    if b"lapack_" in code:
        _register_lapack()
    devices, placed = placement(device)
    executable = device.client.deserialize_executable(code, executable_devices=devices)
    kept = [mark == "1" for mark in facts["kept"]]
    places = [i for i, k in enumerate(kept) if k]
    ins = [placed] * len(places)
    avals = [form_named(tuple(s), n, w) for s, n, w in facts["results"]]
    committed = facts["committed"]
    skeleton = unspelled(facts["tree"])
    fast = inside.Fast(
        executable,
        inside.registry.flatten(skeleton, None)[1],
        ins,
        [placed] * len(avals),
        avals,
        [committed] * len(avals),
        kept,
        [None] * len(ins),
        [],
    )
    take = inside.Inputs(ins, [None] * len(ins))
    give = [inside.result_handler(a, placed, committed) for a in avals]

    def run(leaves: list[Any]) -> Any:
        return executable.execute_sharded(take([leaves[i] for i in places])).consume_with_handlers(give)

    return Entry(run, jax.tree.structure(skeleton), avals, fast, **{name: facts[name] for name in FACTS})


FACTS = ("key", "seconds", "size", "quick", "again")


@bounded(256)
def placement(device: Any) -> tuple[Any, Any]:
    """A device as an executable is told of it, and as arrays are."""
    return inside.DeviceList((device,)), SingleDeviceSharding(device)


@bounded(256)
def dtype_named(name: str) -> Any:
    """A dtype by NumPy's name for it, or by that of `ml_dtypes`."""
    return np.dtype(getattr(jnp, name, name))


@bounded(4096)
def form_named(shape: tuple[int, ...], dtype: str, weak_type: bool) -> Any:
    """A form by its shape and its dtype's name: one object, so that results of several programs are told alike by identity."""
    return ShapedArray(shape, dtype_named(dtype), weak_type=weak_type)


def interned(aval: Any) -> Any:
    """The one object that stands for a result's form."""
    return form_named(tuple(aval.shape), aval.dtype.name, bool(aval.weak_type))


@bounded(1)
def _register_lapack() -> None:
    """Make LAPACK's kernels known to XLA, as lowering does."""
    inside.lapack()


UNSPELLED: Any = object()


def spelled(skeleton: Any) -> Any:
    """A structure of tuples, lists and None over numbers as JSON has it; `UNSPELLED` for any other."""
    if skeleton is None or type(skeleton) is int:
        return skeleton
    if type(skeleton) not in (tuple, list):
        return UNSPELLED
    parts = [spelled(part) for part in skeleton]
    return UNSPELLED if any(p is UNSPELLED for p in parts) else {type(skeleton).__name__: parts}


def unspelled(spelling: Any) -> Any:
    """The structure."""
    if type(spelling) is not dict:
        return spelling
    ((name, parts),) = spelling.items()
    made = [unspelled(part) for part in parts]
    return tuple(made) if name == "tuple" else made
