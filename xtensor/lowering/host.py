"""Views read and written in the host's memory, which compiles nothing: for what is small, until that has come often."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from jax.core import ShapedArray

from ..xla.pending import Work, workers
from ..xla.placing import from_host
from ..xla.sizes import comes_again, count_host, enabled, is_made, is_one_cpu
from ..xla.sizes.spans import Answers, HostArray, like
from ..xla.sizes.terms import varied
from ..xla.symbolic import at_most
from ..xla.x64 import prepare
from .recipes import Recipe

__all__ = ["HostAdjoint", "HostReader", "HostWriter", "host_array", "is_host_readable"]

OFTEN = 64
"""Calls that are answered so."""
MOST_DIMS = 32
"""Dimensions that every NumPy has."""
LARGEST = 1 << 18
"""Bytes of the views, and elements of the arrays, that are read so."""


def is_host_readable(recipe: Recipe) -> bool:
    """Whether NumPy can read a view: small, of its array's dtype (none of 8 bits), without bits or stacked parts."""
    return (
        recipe.dtype == recipe.base_dtype
        and len(recipe.sizes) <= MOST_DIMS
        and (recipe.dtype.itemsize > 1 or recipe.dtype.kind in "biu")
        and not (recipe.conj or recipe.neg or recipe.stacked or recipe.access.kind == "empty")
        and at_most(prod(recipe.sizes) * recipe.dtype.itemsize, LARGEST)
    )


def strided(recipe: Recipe, base: Any, offset: int, writeable: bool = False) -> Any:
    """The view's values over NumPy's view of an array, without a copy."""
    strides = [0] * len(recipe.sizes)
    for dim, (_, stride) in zip(recipe.dims, recipe.access.core, strict=True):
        strides[dim] = stride * base.itemsize
    flat = base.reshape(-1)
    # By bytes: NumPy hands out no buffer of dtypes that are not its own.
    start = 0 if recipe.static else offset * base.itemsize
    found = np.ndarray(recipe.sizes, base.dtype, flat.view(np.uint8), start, strides)
    found.flags.writeable = writeable
    return found


def host_array(
    recipe: Recipe | None, array: Any, offset: Any, order: Sequence[int] | None = None
) -> HostArray:
    """An operand of a program that is read on the host when it is needed, its dimensions in `order`."""
    aval = array.aval if recipe is None else recipe.aval
    start = 0 if recipe is None or recipe.static else int(offset)

    def read(base: Any) -> Any:
        values = base if recipe is None else strided(recipe, base, start)
        return values if order is None else ordered(values, order)

    if order is not None:
        shape = (1,) * (len(order) - len(aval.shape)) + tuple(aval.shape)
        aval = ShapedArray(tuple([shape[d] for d in order]), aval.dtype, aval.weak_type)
    return HostArray(array, aval, read)


def ordered(values: Any, order: Sequence[int]) -> Any:
    return values.reshape((1,) * (len(order) - values.ndim) + values.shape).transpose(order)


class HostAdjoint(Answers):
    """What answers the first calls of a program that puts values where views lie among zeros, of sizes that vary."""

    def __init__(self, recipes: Sequence[Recipe], offsets: Sequence[Any] | None = None) -> None:
        self.recipes = recipes
        self.offsets = offsets
        self.left = 0
        if all(map(is_host_writable, recipes)):
            if any(n in varied for r in recipes for n in (*r.base_shape, *r.sizes)):
                self.left = OFTEN

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The sum of the adjoints, None where the program is to be compiled; as `Sized.answer` the other."""
        values = args[:1] if self.offsets is None else args[0]
        offsets = args[1:] if self.offsets is None else self.offsets
        if not self.left or not enabled() or not all(map(is_one_cpu, values)):
            came, self.left = 0 < self.left < OFTEN, 0
            return None, came
        self.left -= 1
        total = np.zeros(self.recipes[0].base_shape, self.recipes[0].base_dtype)
        for recipe, value, offset in zip(self.recipes, values, offsets, strict=True):
            view = strided(recipe, total, 0 if recipe.static else int(offset), writeable=True)
            view += np.asarray(value)
        count_host()
        return from_host(total, values[0].sharding, values[0].committed), not self.left


def is_host_writable(recipe: Recipe) -> bool:
    """Whether NumPy can add to a view: what it can read, where every element has a place of its own."""
    own = recipe.access.kind in ("reshape", "digits", "window")
    return (
        own
        and is_host_readable(recipe)
        and all(n == 1 or d in recipe.dims for d, n in enumerate(recipe.sizes))
    )


class HostFirst(Answers):
    """What answers the first calls of a program on the host; a thread compiles it then.

    Where there is no such thread, only where one place in the program comes with many sizes.
    """

    name: str

    def __init__(self, recipe: Recipe, able: bool) -> None:
        self.recipe = recipe
        self.left = OFTEN if able else 0
        self.asked = False
        self.beside: Work | None = None

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The values, None where the program is to be compiled; as `Sized.answer` the other."""
        if not self.serves(program, args):
            came, self.left = 0 < self.left < OFTEN, 0
            return None, came
        self.left -= 1
        if not self.left and workers.count > 1:
            if self.beside is None:
                forms = tuple([a if a is None else like(a) for a in args])
                self.beside = Work(lambda: prepare(program, *forms))
                workers.submit(self.beside)
            self.left = int(not self.beside.done)
        count_host()
        return self.found(args), not self.left

    def serves(self, program: Any, args: tuple[Any, ...]) -> bool:
        """Whether the next call is one of those."""
        if not self.left or not enabled() or not self.takes(args):
            return False
        if not self.asked:
            self.asked = True
            here = (*self.recipe.sizes, *self.recipe.base_shape)
            varies = comes_again(self.name, id(self.recipe)) or any(n in varied for n in here)
            if not varies and (workers.count < 2 or is_made(program, args)):
                self.left = 0
        return bool(self.left)

    def takes(self, args: tuple[Any, ...]) -> bool:
        """Whether the host can answer a call."""
        raise NotImplementedError

    def found(self, args: tuple[Any, ...]) -> Any:
        """Its answer."""
        raise NotImplementedError


class HostReader(HostFirst):
    """What answers the first calls of a program that reads a view."""

    name = "read"

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe, is_host_readable(recipe))

    def takes(self, args: tuple[Any, ...]) -> bool:
        """Whether the array lies in the host's memory."""
        return is_one_cpu(args[0])

    def found(self, args: tuple[Any, ...]) -> Any:
        """The values of the view."""
        array, *offset = args
        return host_array(self.recipe, array, offset[0] if offset else 0).put()


class HostWriter(HostFirst):
    """What answers the first calls of a program that writes to a view: of a copy that NumPy makes of a small array.

    source: how what is written is read, None where that is an array of its own.
    """

    name = "write"

    def __init__(self, recipe: Recipe, source: Recipe | None = None) -> None:
        small = at_most(prod(recipe.base_shape), LARGEST)
        readable = source is None or (is_host_readable(source) and source.dtype == recipe.dtype)
        super().__init__(recipe, small and is_host_writable(recipe) and readable)
        self.source = source

    def takes(self, args: tuple[Any, ...]) -> bool:
        """Whether both arrays lie in the host's memory, and nothing is converted."""
        base, _, values, *_ = args
        return is_one_cpu(base) and is_one_cpu(values) and values.dtype == self.recipe.dtype

    def found(self, args: tuple[Any, ...]) -> Any:
        """The array after the write."""
        base, start, values, *offset = args
        made = np.array(base)
        place = strided(self.recipe, made, 0 if self.recipe.static else int(start), writeable=True)
        read = np.asarray(values)
        if self.source is not None:
            read = strided(self.source, read, 0 if self.source.static else int(offset[0]))
        place[...] = read
        return from_host(made, base.sharding, base.committed)
