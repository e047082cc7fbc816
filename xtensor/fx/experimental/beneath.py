"""What programs come to beneath the levels of transforms, recorded as operators on the tensors that lie there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from ...dtypes import contiguous_format
from ...engine.modes import state
from ...operators.below.aten import packet
from ...operators.below.dispatching import below
from ...operators.generator import levels_apart
from ...operators.levels.crossing import new_level
from ...tensor import Tensor, array_of, wrap
from ...trees import tree_map
from ...xla.levels import KINDS, Batched, Dual, Level, batches_of, ground, layers, tracing
from ...xla.symbolic import is_open
from ...xla.transformed import has_tangent, lowered, still_batched
from ...xla.x64 import call
from .key_tracer import PythonKeyTracer
from .primitives import as_tensor, evaluated, filled, held

__all__ = ["DRAWN", "FILLS", "MAKING", "Beneath", "differs", "is_leveled"]


def is_leveled(value: Any) -> bool:
    """Whether a value is a tensor that a transform holds."""
    return isinstance(value, Tensor) and type(value._xt_storage.raw) in KINDS


LIKE = {f"{name}_like": f"new_{name}" for name in ("empty", "zeros", "ones", "full")}
MAKING = {*LIKE, *LIKE.values(), "new_tensor"}
"""Functions that make tensors, whose values are none of their arguments'."""
FILLS = frozenset(("fill_", "zero_"))
DRAWN: dict[str, Callable[..., Any]] = {
    "rand": lambda new, size: new("rand", size),
    "randn": lambda new, size: new("randn", size),
    "normal_": lambda new, size, mean=0.0, std=1.0: new("randn", size) * std + mean,
    "uniform_": lambda new, size, low=0.0, high=1.0: new("rand", size) * (high - low) + low,
    "bernoulli": lambda new, size, p: (rand := new("rand", size)).lt(p).to(rand.dtype),
    "bernoulli_": lambda new, size, p=0.5: new("rand", size).lt(p),
}
"""Draws of random numbers of some sizes, by functions that make tensors."""
OPTIONS = frozenset("dtype device layout pin_memory requires_grad".split())


def differs(tensor: Tensor) -> bool:
    """Whether a tensor has other values for other samples of a transform, or a tangent."""
    array = tensor._xt_storage.array
    return bool(batches_of(array)) or has_tangent(array)


def laid_out(tensor: Tensor) -> Tensor:
    """A tensor that lies in memory as the array of its values does, so that the same views are possible when a graph runs."""
    return tensor if tensor.is_contiguous() else packet("clone")(tensor, memory_format=contiguous_format)


class Beneath:
    """Records what programs come to beneath all levels of transforms: operators on the tensors that lie there."""

    def __init__(self, tracer: PythonKeyTracer) -> None:
        self.tracer = tracer
        self.modes: tuple[Any, ...] = ()
        self.making = self.copies = False

    def __enter__(self) -> None:
        self.before, tracing.recorder = tracing.recorder, self
        self.modes = state.dispatch_modes

    def __exit__(self, *error: object) -> None:
        tracing.recorder = self.before

    @contextmanager
    def taking(self, given: list[Tensor], making: bool = False, target: Any = None) -> Iterator[None]:
        """A block that calls an operator of some tensors. making: whether other arrays, too, are no values of tensors from around it.
        target: what it writes.
        """
        for tensor in given:
            self.take(tensor)
            if tensor is target and not is_leveled(tensor):
                # The array stays the value that it was when the storage has another one.
                own = wrap(array_of(tensor), shared=True)
                self.tracer.keep(own, self.tracer.proxy(self.tracer.create_arg(tensor)))
        before, self.making = self.making, making
        try:
            yield
        finally:
            self.making = before

    def without_views(self) -> bool:
        """Whether a transform wants copies in the place of views."""
        return self.copies or any(t.name == "functionalize(mutations_and_views)" for t in state.transforms)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """A block beneath all transforms, whose operators are recorded."""
        transforms, copies = state.transforms, self.copies
        self.copies = self.without_views()
        state.transforms = ()
        try:
            with below(self.modes):
                yield
        finally:
            state.transforms, self.copies = transforms, copies

    def take(self, tensor: Tensor) -> None:
        """Know the array of a tensor that enters a level, or meets one that is at a level."""
        if not is_leveled(tensor):
            self.tracer.meet(tensor, "a transform")
            with self.recording():
                self.array(tensor)

    def run(self, program: Any, args: tuple[Any, ...]) -> Any:
        """The value of a program for arrays: each of its primitives is an operator."""
        leaves = jax.tree.leaves(args)
        closed, form = call(functools.partial(jax.make_jaxpr, return_shape=True)(program._fun), *args)
        with self.recording():
            values = [self.value(leaf) for leaf in leaves]
            made = evaluated(closed.jaxpr, closed.consts, values, self.tracer.constant)
            avals = [v.aval for v in closed.jaxpr.outvars]
            found = [
                self.array(filled(v, aval, self.tracer.constant)) for v, aval in zip(made, avals, strict=True)
            ]
        return jax.tree.unflatten(jax.tree.structure(form), found)

    def whole(self, func: Any, given: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The value of an operator that no transform changes, which is one beneath them, too."""

        def grounded(value: Any) -> Any:
            return wrap(ground(array_of(value)), shared=True) if is_leveled(value) else value

        with self.recording():
            made = func(*tree_map(grounded, args), **tree_map(grounded, kwargs))
            return self.raised(given, made)

    def made(self, name: str, args: tuple[Any, ...], kwargs: Any) -> Tensor:
        """What a function makes in the likeness of a tensor that is at a level: each sample has its own, which may be written."""
        like, *rest = args
        if name in LIKE:
            name, rest = LIKE[name], [list(like.shape), *rest]
        like_array = array_of(like)
        with self.recording():
            given = {key: value for key, value in kwargs.items() if key != "memory_format"}
            array = self.array(packet(name)(wrap(ground(like_array), shared=True), *rest, **given))
        return wrap(still_batched(like_array, array))

    def copied(self, target: Tensor, value: Any) -> Tensor:
        """A tensor that is at a level, filled with a number, or with a tensor's values."""
        if not isinstance(value, Tensor):
            value = self.made("new_full", (target, [], value), {})
        with self.taking([target, value], target=target):
            return target.copy_(self.raised([target], value))

    def drawn(self, name: str, args: tuple[Any, ...], kwargs: Any) -> Tensor:
        """Random numbers, of each sample its own where a transform says so."""
        target = args[0] if args and isinstance(args[0], Tensor) else None
        if target is not None and name == "bernoulli" and len(args) + ("p" in kwargs) == 1:
            with below(self.modes):
                return packet("lt")(self.drawn("rand_like", args, {}), target).to(target.dtype)
        apart = levels_apart()
        if target is not None:
            name, size, given = name.removesuffix("_like"), list(target.shape), args[1:]
        else:
            flat_sizes = args[0] if args and isinstance(args[0], (tuple, list)) else args
            size, given = list(flat_sizes), ()
        writes = name.endswith("_")
        options = {key: kwargs[key] for key in ("dtype", "device") if kwargs.get(key) is not None}
        more = {key: value for key, value in kwargs.items() if key not in OPTIONS}
        if target is not None:
            options.setdefault("dtype", target.dtype)

        def new(function: str, size: Any, *more: Any) -> Tensor:
            return packet(function)(*more, [*[level.size for level in apart], *size], **options)

        with self.recording():
            array = self.array(DRAWN[name](new, size, *given, **more))
        for level in apart:
            array = Batched(level, array)
        return self.copied(target, wrap(array)) if writes and target is not None else wrap(array)

    def by_primitives(self, func: Any, given: list[Tensor], args: Any, kwargs: Any) -> Any:
        """The value of an operator, whose primitives are recorded in its place: as beneath a level."""
        level = new_level("make_fx", 1)

        def plain(value: Any) -> Any:
            return wrap(lowered(level, array_of(value))) if isinstance(value, Tensor) else value

        with self.taking(given):
            args, kwargs = [self.raised([], tree, (level,)) for tree in (args, kwargs)]
            return tree_map(plain, func(*args, **kwargs))

    def raised(self, given: list[Tensor], tree: Any, more: tuple[Level, ...] = ()) -> Any:
        """Tensors from beneath the levels of some tensors, and more levels, the same for all samples there."""
        levels = {at.level.number: at.level for t in given for at in layers(t._xt_storage.array)}
        levels.update({level.number: level for level in more})

        def raised(value: Any) -> Any:
            if not isinstance(value, Tensor) or is_leveled(value):
                return value
            self.take(value)
            array = array_of(value)
            for number in sorted(levels):
                level = levels[number]
                array = Dual(level, array, None) if level.size is None else Batched(level, array, False)
            return wrap(array)

        return tree_map(raised, tree)

    def value(self, leaf: Any) -> Any:
        """An operand: a tensor, or a number that the program or an operator's call has."""
        if is_open(leaf):
            return as_tensor(leaf)
        if not isinstance(leaf, jax.Array) or leaf.aval.weak_type:
            return held(leaf, self.tracer.constant)
        tensor = wrap(leaf, shared=True)
        new = self.making and self.tracer.proxy_of(tensor) is None
        return held(leaf, self.tracer.constant) if new else tensor

    def array(self, made: Tensor) -> Any:
        """The array of a result, by which it is known from now on."""
        array, other = array_of(made), laid_out(made)
        self.tracer.see(array, other, first=other is not made)
        return array
