"""Saved tensors: what a node keeps of its operator's arguments and results.

An entry is `(counter, version, array)`: the array is immutable, so only the version check can fail. Lists stand for
sequences, Python numbers for themselves, and `Hooked` for what `saved_tensors_hooks` packed.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import jax
from jax.core import Tracer

from .. import checks, dtypes
from ..engine import AccumulateGrad, modes
from ..engine.graph import name_of
from ..storage import WrapperArray
from ..tensor import Tensor, array_of, counter_of, plain_edge, wrap
from ..xla.levels import Batched
from ..xla.pending import settled
from .below.dispatching import twin

__all__ = [
    "WITHIN",
    "Hooked",
    "SavedTensor",
    "forward_name",
    "result_edge",
    "result_index",
    "save",
    "saved_tensor",
    "unpack_array",
    "unpack_tensor",
]


def result_index(name: str) -> int | None:
    """Which single result a name in a rule asks for: `result` is the first, `result1` the second."""
    if name == "result":
        return 0
    number = name[6:]
    return int(number) if name.startswith("result") and number.isdigit() else None


class Hooked:
    """A value that went through a pack hook; `unpack` brings it back. Of a batch the hooks see all samples."""

    __slots__ = ("batches", "packed", "unpack")

    def __init__(
        self, tensor: Tensor, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]
    ) -> None:
        self.unpack = unpack
        self.batches: list[Batched] = []
        counter = counter_of(tensor)
        version = counter.version
        given = tensor
        if type(tensor._xt_storage.raw) is Batched:
            array = array_of(tensor)
            while type(array) is Batched:
                self.batches.append(array)
                array = array.inner
            given = wrap(array)
        with modes.no_grad():
            self.packed = pack(given)
        if counter.version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )

    def tensor(self) -> Tensor:
        with modes.no_grad():
            found = self.unpack(self.packed)
        if not isinstance(found, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found)}"
            )
        if not self.batches:
            return found
        array = array_of(found)
        for batch in reversed(self.batches):
            array = Batched(batch.level, array, batch.mapped, batch.outer)
        return wrap(array)


class SavedTensor:
    """One value that a node saved, as `node._raw_saved_self` gives it: hooks can be put around it."""

    __slots__ = ("_hooked", "_keep", "_tensor")

    _tensor: Callable[[], Tensor | None]
    _hooked: Callable[[], bool]
    _keep: Callable[[Hooked], None]

    def __new__(cls, *args: Any, **options: Any) -> NoReturn:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, *hooks: Any) -> None:
        """`register_hooks(pack, unpack)`: keep `pack(tensor)` from now on, which `unpack` turns into the tensor again."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            given = ", ".join(map(repr, (self, *hooks)))
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: SavedTensor, arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
                f"Invoked with: {given}"
            )
        if self._hooked():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        tensor = self._tensor()
        if tensor is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        self._keep(Hooked(tensor, *hooks))


def saved_tensor(
    tensor: Callable[[], Tensor | None], hooked: Callable[[], bool], keep: Callable[[Hooked], None]
) -> SavedTensor:
    """A SavedTensor of a value: how to read it, whether it has hooks, and how to put a hooked one in its place."""
    made = object.__new__(SavedTensor)
    made._tensor, made._hooked, made._keep = tensor, hooked, keep
    return made


class Kept:
    """A tensor whose class keeps its values elsewhere, as it was saved."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = twin(tensor)


def save(tensor: Tensor, array: Any) -> Any:
    """The entry for a tensor whose values are `array`; runs the pack hook where one is set."""
    if modes.state.mode & modes.SAVED_HOOKS and modes.state.saved_hooks:
        return Hooked(tensor, *modes.state.saved_hooks[-1])
    if tensor._xt_meta is not None and tensor._xt_meta.inference:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use "
            "it in autograd, or use `xtensor.no_grad()` instead of `xtensor.inference_mode()`."
        )
    if type(array) is WrapperArray:
        return Kept(tensor)
    counter = counter_of(tensor)
    return (counter, counter.version, array)


def line_of(code: Any, at: int) -> int:
    """The line of the instruction at a place (`f_lasti`) of a function's or a module's code."""
    line = next(itertools.islice(code.co_positions(), at // 2, None))[0]
    return code.co_firstlineno if line is None else line


def check_version(entry: tuple[Any, int, Any], node: Any, edge: Any = None) -> None:
    """Refuse a saved value that was written since; `edge` is what made it, if an operator did."""
    counter, version, array = entry
    if counter is None or counter.version == version:
        return
    kind = f"{dtypes.dtype_of(array).scalar_name}Tensor"
    if edge is None:
        edge = node.origin_of(entry)
    made = ""
    if edge is not None and not isinstance(edge[0], AccumulateGrad):
        made = f", which is output {edge[1]} of {forward_name(edge[0])},"
    where = f" It was saved for {forward_name(node)}"
    writer = getattr(counter, "writer", None)
    if writer is not None:
        code, at, name = writer
        where += f" and written by {name} at {code.co_filename}:{line_of(code, at)} (in {code.co_name})"
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{checks.spelled(kind)} {list(array.shape)}]{made} is at version {counter.version}; expected version {version} "
        f"instead.{where}. Hint: "
        + (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!"
            if modes.state.mode & modes.ANOMALY
            else "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "xtensor.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    )


WITHIN: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""Of nodes that wrote through a view: what refers to the node of the base's history that runs them."""


def result_edge(node: Any, index: int) -> Any:
    """The edge of a node's result; where that is a view the node wrote through, the one that leads through its base."""
    within = WITHIN.get(node)
    outer = None if within is None else within()
    return (node, index) if outer is None else outer.edge_of_view()


def forward_name(node: Any) -> str:
    """The operator's name in messages: a node's, less what makes it a backward one."""
    return re.sub(r"Backward\d*$", "", name_of(node))


def unpack_array(entry: Any) -> Any:
    """The saved values as arrays, whatever has been written since."""
    kind = type(entry)
    if kind is tuple:
        return settled(entry[2])
    if kind is list:
        return tuple([unpack_array(e) for e in entry])
    if kind is Hooked:
        return array_of(entry.tensor())
    if kind is Kept:
        return entry.tensor._xt_storage.array
    return entry


def unpack_tensor(entry: Any, node: Any, edge: Any) -> Any:
    """The saved values as a Tensor with the gradient edge that the argument had."""
    kind = type(entry)
    if kind is tuple:
        check_version(entry, node, edge)
        tensor = wrap(settled(entry[2]))
    elif kind is Hooked:
        found = entry.tensor()
        if edge is None and found._xt_edge is None:
            return found  # nothing leads to it, so that it may be the one that the hook gave
        array = array_of(found)
        tensor = twin(found) if type(array) is WrapperArray else wrap(array)
    elif kind is Kept:
        tensor = twin(entry.tensor)
    else:  # a number, which the fast path may have saved as a 0-d array
        if isinstance(entry, Tracer):
            return wrap(entry)
        return entry.item() if isinstance(entry, jax.Array) else entry
    tensor._xt_edge = plain_edge(edge)
    return tensor
