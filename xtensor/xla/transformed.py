"""Programs called with arrays at levels: each runs as its batched form, or together with its tangents.

`x64.jit` sends such calls here. The outermost level is taken off the arguments, the program's form for it is made once for each
set of arguments that carry it, and called with what lies beneath, which may be at levels again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..geometry import broadcast_shapes
from . import x64
from .cache import BoundedCache
from .levels import KINDS, Batched, Dual, Leveled, batches_of, levels_of, tracing

__all__ = ["NoTangent", "run", "tangents_of_kernel"]


class NoTangent(RuntimeError):
    """A program has no derivative in forward mode."""


def run(program: Any, args: tuple[Any, ...]) -> Any:
    """The program's value for arguments some of which are at levels."""
    for kind in map(type, args):
        if kind is tuple or kind is list or kind is dict:
            leaves, structure = jax.tree.flatten(args)
            break
    else:
        leaves, structure = args, None
    level = None
    for leaf in leaves:
        if type(leaf) in KINDS and (level is None or leaf.level.number > level.number):
            level = leaf.level
    function = program._fun
    steps = getattr(function, "steps", None)
    if steps is not None:
        return steps(*args)
    if getattr(function, "writes", False):
        refuse_batch(function.__name__, leaves[0], leaves[1:], function.writes)
    assert level is not None
    if not level.open and not any(type(v) in KINDS and v.level is level and v.outer for v in leaves):
        # A derivative taken after the transform has ended is no escape: its cotangents come from outside.
        if level.size is not None:
            raise escaped(level)
        inner = [v.inner if type(v) is Dual and v.level is level else v for v in leaves]
        return _called(program, inner, structure)
    if level.size is None:
        return _with_tangents(program, level, leaves, structure)
    return _batched(program, level, leaves, structure)


def escaped(level: Any) -> RuntimeError:
    """The error of a tensor that is used after the transform that made it."""
    return RuntimeError(
        f"{level.name}: a Tensor that was made inside of the function being transformed is used after {level.name} has "
        "returned. Return it from the function to use it outside."
    )


def beneath_levels(program: Any, *args: Any) -> Any:
    """The program's value for arguments of one level less: where there is none left, as who records that has it."""
    recorder = tracing.recorder
    if recorder is not None and KINDS.isdisjoint(map(type, jax.tree.leaves(args))):
        return recorder.run(program, args)
    return x64.call(program, *args)


def _forms(program: Any) -> dict[Any, Any]:
    try:
        return program._xt_forms
    except AttributeError:
        program._xt_forms = {}
        return program._xt_forms


# ---- batches


def _batched(program: Any, level: Any, leaves: Sequence[Any], structure: Any) -> Any:
    inner: list[Any] = []
    flags: list[bool] = []
    outer = mapped = False
    for leaf in leaves:
        if type(leaf) is Batched and leaf.level is level:
            inner.append(leaf.inner)
            flags.append(leaf.mapped)
            outer = outer or leaf.outer
            mapped = mapped or leaf.mapped
        else:
            inner.append(leaf)
            flags.append(False)
    if not mapped:
        found = _called(program, inner, structure)
    else:
        function = program._fun
        # Values whose tangents alone are batched are the same for all samples.
        count = getattr(function, "values", 0)
        apart = count > 0 and not any(flags[:count])
        key = (tuple(flags), structure, apart)
        forms = _forms(program)
        form = forms.get(key)
        if form is None:
            form = forms[key] = x64.jit(batched_form(function, *key))
        found = beneath_levels(form, *inner)
        if apart:
            values, tangents = found
            if any(type(v) is Batched and v.level is level for v in leaves[:count]):
                values = jax.tree.map(lambda a: Batched(level, a, False, outer), values)
            return values, jax.tree.map(lambda a: Batched(level, a, True, outer), tangents)
    if type(found) is tuple or type(found) is list or type(found) is dict:
        return jax.tree.map(lambda a: Batched(level, a, mapped, outer), found)
    return Batched(level, found, mapped, outer)


def _called(program: Any, leaves: Sequence[Any], structure: Any) -> Any:
    """The program called with leaves that lie beneath a level."""
    args = leaves if structure is None else jax.tree.unflatten(structure, leaves)
    return beneath_levels(program, *args)


def batched_form(
    function: Callable[..., Any], flags: tuple[bool, ...], structure: Any, apart: bool = False
) -> Callable[..., Any]:
    """A function of the leaves of `function`'s arguments, of which those in `flags` have a first dimension of samples.

    apart: whether the first of its two results is the same for all samples, and has no such dimension.
    """
    axes = tuple([0 if flag else None for flag in flags])

    def flat(*leaves: Any) -> Any:
        before, tracing.batches = tracing.batches, True
        try:
            return function(*(leaves if structure is None else jax.tree.unflatten(structure, leaves)))
        finally:
            tracing.batches = before

    def batched(*leaves: Any) -> Any:
        if not apart:
            return jax.vmap(flat, in_axes=axes)(*leaves)
        try:
            return jax.vmap(flat, in_axes=axes, out_axes=(None, 0))(*leaves)
        except ValueError:  # computed together with what is batched: any sample's is everybody's
            values, tangents = jax.vmap(flat, in_axes=axes)(*leaves)
            return jax.tree.map(lambda a: a[0], values), tangents

    batched.__name__ = batched.__qualname__ = getattr(function, "__name__", "program")
    batched.values = getattr(function, "values", 0)  # type: ignore[attr-defined]
    own = getattr(function, "pushforward", None)
    if own is not None:
        batched.pushforward = batched_pushforward(own, axes, structure)  # type: ignore[attr-defined]
    return batched


def batched_pushforward(own: Any, axes: tuple[int | None, ...], structure: Any) -> Callable[..., Any]:
    """The tangents of a function's batched form, by the function's own rules."""

    def pushforward(values: Sequence[Any], along: Sequence[Any]) -> Any:
        given = [i for i, t in enumerate(along) if t is not None]

        def flat(*arrays: Any) -> Any:
            leaves: Any = arrays[: len(values)]
            tangents: list[Any] = [None] * len(values)
            for i, t in zip(given, arrays[len(values) :], strict=True):
                tangents[i] = t
            if structure is None:
                return own(leaves, tangents)
            return own(jax.tree.unflatten(structure, leaves), jax.tree.unflatten(structure, tangents))

        places = (*axes, *[axes[i] for i in given])
        return jax.vmap(flat, in_axes=places)(*values, *[along[i] for i in given])

    return pushforward


# ---- tangents


def _with_tangents(program: Any, level: Any, leaves: Sequence[Any], structure: Any) -> Any:
    inner: list[Any] = []
    tangents: list[Any] = []
    flags: list[bool] = []
    outer = False
    for leaf in leaves:
        if type(leaf) is Dual and leaf.level is level:
            inner.append(leaf.inner)
            flags.append(leaf.tangent is not None)
            outer = outer or leaf.outer
            if leaf.tangent is not None:
                tangents.append(leaf.tangent)
        else:
            inner.append(leaf)
            flags.append(False)
    if not tangents:
        found = _called(program, inner, structure)
        return jax.tree.map(lambda a: Dual(level, a, None, outer), found)
    key = (tuple(flags), structure, "tangents")
    forms = _forms(program)
    form = forms.get(key)
    if form is None:
        form = forms[key] = x64.jit(dual_form(program._fun, tuple(flags), structure))
    found, along = beneath_levels(form, *inner, *tangents)
    flat, out = jax.tree.flatten(found)
    return jax.tree.unflatten(out, [Dual(level, a, t, outer) for a, t in zip(flat, along, strict=True)])


def dual_form(function: Any, flags: tuple[bool, ...], structure: Any) -> Callable[..., Any]:
    """A function of the leaves of `function`'s arguments, then of the tangents of those in `flags`: values, and the tangents.

    Where the function knows its tangents (`pushforward`, by the derivative rules of an operator), those count, not JAX's.
    """
    own = getattr(function, "pushforward", None)

    def flat(*leaves: Any) -> Any:
        return function(*(leaves if structure is None else jax.tree.unflatten(structure, leaves)))

    def both(*values: Any) -> Any:
        leaves = values[: len(flags)]
        rest = iter(values[len(flags) :])
        along = [next(rest) if flag else None for flag in flags]
        if own is not None:
            arguments: Any = leaves if structure is None else jax.tree.unflatten(structure, leaves)
            given: Any = along if structure is None else jax.tree.unflatten(structure, along)
            return own(arguments, given)
        return tangents_of_kernel(flat, leaves, along)

    both.__name__ = both.__qualname__ = getattr(function, "__name__", "program")
    both.values = len(flags)  # type: ignore[attr-defined]
    return both


def tangents_of_kernel(
    flat: Callable[..., Any], leaves: Sequence[Any], along: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """Values of a function of arrays, and the tangents of its results' leaves, None for those of integers, by `jax.jvp`."""
    chosen = [i for i, t in enumerate(along) if t is not None]

    def varying(*values: Any) -> Any:
        full = list(leaves)
        for i, value in zip(chosen, values, strict=True):
            full[i] = value
        return flat(*full)

    primals = tuple([leaves[i] for i in chosen])
    directions = tuple([along[i] for i in chosen])
    found, tangents = jax.jvp(varying, primals, directions)
    return found, [None if t.dtype == jax.dtypes.float0 else t for t in jax.tree.leaves(tangents)]


# ---- crossing the border of a level


def _moved(array: Any, source: int, target: int) -> Any:
    return jnp.moveaxis(array, source, target)


def _spread(array: Any, size: int, dim: int) -> Any:
    shape = list(array.shape)
    shape.insert(dim, size)
    return jnp.broadcast_to(jnp.expand_dims(array, dim), tuple(shape))


def _summed(array: Any) -> Any:
    return jnp.sum(array, axis=0, dtype=array.dtype)


def _times(array: Any, size: int) -> Any:
    return array * np.asarray(size, array.dtype)


_programs: BoundedCache[Any, Any] = BoundedCache(1024)


def program_of(function: Callable[..., Any], *static: Any) -> Any:
    """The program of one of the functions above for static arguments."""
    found = _programs.get((function, static))
    if found is None:

        def part(array: Any) -> Any:
            return function(array, *static)

        part.__name__ = part.__qualname__ = function.__name__.strip("_")
        found = _programs[function, static] = x64.jit(part)
    return found


def moved(array: Any, source: int, target: int) -> Any:
    """The array with one dimension at another place."""
    return array if source == target else beneath_levels(program_of(_moved, source, target), array)


def entered(level: Any, array: Any, dim: int, outer: bool = False) -> Any:
    """The samples that lie along a dimension, as a batch."""
    if is_above(array, level):
        return beneath(array, lambda inner, shift: entered(level, inner, dim + shift, outer))
    return Batched(level, moved(array, dim, 0), True, outer)


def lifted(level: Any, array: Any, outer: bool = False) -> Any:
    """An array that is the same for all samples of a batch."""
    if is_above(array, level):
        return beneath(array, lambda inner, shift: lifted(level, inner, outer))
    return Batched(level, array, False, outer)


def paired(level: Any, value: Any, along: Any, outer: bool = False) -> Any:
    """A value with its tangent."""
    over = [a for a in (value, along) if is_above(a, level)]
    above = max(over, key=number_of) if over else None
    if above is None:
        return Dual(level, value, along, outer)
    if along is None:
        return beneath(value, lambda inner, shift: paired(level, inner, None, outer))
    top = above.level
    if top.size is None:
        one, tangent = parts(top, value)
        other, more = parts(top, along)
        second = None
        if tangent is not None or more is not None:
            zero = program_of(jnp.zeros_like)
            tangent = beneath_levels(zero, one) if tangent is None else tangent
            second = paired(level, tangent, beneath_levels(zero, one) if more is None else more, outer)
        return Dual(top, paired(level, one, other, outer), second, above.outer)
    inner = [left(top, a, 0) for a in (value, along)]
    return Batched(top, paired(level, inner[0], inner[1], outer), True, above.outer)


def has_tangent(array: Any) -> bool:
    """Whether an array has a tangent at some level."""
    while isinstance(array, Leveled):
        if type(array) is Dual:
            return True
        array = array.inner
    return False


def without_tangents(array: Any) -> Any:
    """The values of an array, of batches as they are."""
    if type(array) is Dual:
        return without_tangents(array.inner)
    if type(array) is Batched:
        return Batched(array.level, without_tangents(array.inner), array.mapped, array.outer)
    return array


def is_above(array: Any, level: Any) -> bool:
    """Whether an array is at a level with a higher number."""
    return isinstance(array, Leveled) and array.level.number > level.number


def number_of(array: Any) -> int:
    return array.level.number


def left(level: Any, array: Any, dim: int) -> Any:
    """The samples of a batch along a new dimension; what is no batch is the same for all."""
    if not isinstance(array, Leveled) or level.number not in levels_of(array):
        return beneath_levels(program_of(_spread, level.size, dim), array)
    if array.level is level:
        assert type(array) is Batched
        if array.mapped:
            return moved(array.inner, 0, dim)
        return beneath_levels(program_of(_spread, level.size, dim), array.inner)
    return beneath(array, lambda inner, shift: left(level, inner, dim + shift))


def lowered(level: Any, array: Any) -> Any:
    """What is the same for all samples of a batch, without the level."""
    if not isinstance(array, Leveled) or level.number not in levels_of(array):
        return array
    return array.inner if array.level is level else beneath(array, lambda inner, shift: lowered(level, inner))


def summed(level: Any, array: Any) -> Any:
    """What a cotangent that comes from outside a level is for something that is not at the level."""
    if not isinstance(array, Leveled) or level.number not in levels_of(array):
        if level.size is None:
            return None
        return beneath_levels(program_of(_times, level.size), array)
    if array.level is not level:
        return beneath(array, lambda inner, shift: summed_at(level, inner, shift))
    if type(array) is Dual:
        return array.tangent
    assert type(array) is Batched
    inner = array.inner
    return (
        beneath_levels(program_of(_summed), inner)
        if array.mapped
        else beneath_levels(program_of(_times, level.size), inner)
    )


def summed_at(level: Any, array: Any, shift: int) -> Any:
    return summed(level, array)


def beneath(array: Any, change: Callable[[Any, int], Any]) -> Any:
    """An array at a higher level with what lies beneath changed; `change` is told how many dimensions lie before."""
    if type(array) is Batched:
        inner = change(array.inner, 1 if array.mapped else 0)
        return None if inner is None else Batched(array.level, inner, array.mapped, array.outer)
    assert type(array) is Dual
    inner = change(array.inner, 0)
    tangent = None if array.tangent is None else change(array.tangent, 0)
    if inner is None:
        if tangent is None:
            return None
        inner = beneath_levels(program_of(jnp.zeros_like), tangent)
    return Dual(array.level, inner, tangent, array.outer)


def parts(level: Any, array: Any) -> tuple[Any, Any]:
    """Value and tangent at a level; the tangent None where it is zero."""
    if not isinstance(array, Leveled) or level.number not in levels_of(array):
        return array, None
    if array.level is level:
        assert type(array) is Dual
        return array.inner, array.tangent
    return (
        beneath(array, lambda inner, shift: parts(level, inner)[0]),
        beneath(array, lambda inner, shift: parts(level, inner)[1]),
    )


# ---- writing


def refuse_batch(name: str, target: Any, sources: Sequence[Any], how: str = "other") -> None:
    """RuntimeError where a batch is written to something that there is once for all samples."""
    own = batches_of(target)
    for source in sources:
        beyond = [level for level in batches_of(source) if level not in own]
        if beyond and how == "pointwise":
            shape = [beyond[0].size, *broadcast_shapes(tuple(target.shape), tuple(source.shape))]
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape {shape}"
            )
        if beyond:
            raise RuntimeError(
                f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
                "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
                f"vmapped over in a vmap. Please try to use out-of-place operators instead of {name}. If said operator "
                "is being called inside the PyTorch framework, please file a bug report instead."
            )


def refuse_draws(target: Any, array: Any) -> None:
    """RuntimeError where samples draw numbers of their own into something that there is once for all."""
    own = batches_of(target)
    if any(level not in own for level in batches_of(array)):
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
            "If this is necessary for your usage, please file an issue with functorch."
        )


def still_batched(before: Any, array: Any) -> Any:
    """What was written to the place of `before`, a batch as that was."""
    for level in reversed(batches_of(before)):
        if level.open and level not in batches_of(array):
            array = _batch_again(level, array)
    return array


def _batch_again(level: Any, array: Any) -> Any:
    if not isinstance(array, Leveled) or array.level.number < level.number:
        return Batched(level, beneath_levels(program_of(_spread, level.size, 0), array))
    if array.level is level:
        return Batched(level, beneath_levels(program_of(_spread, level.size, 0), array.inner))
    return beneath(array, lambda inner, shift: _batch_again(level, inner))


x64.leveled = run
