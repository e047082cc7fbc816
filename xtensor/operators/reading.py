"""How views enter the programs that read them; an operator's `views` says which way.

    loop    what works element by element, or only moves elements, reads its operands where they lie: the bits are the same
    fold    a reduction that reads its operand once does so too; it may add in another order then, and therefore always does,
            whatever has been read before
    apart   others (products, norms, sorts, ...) read a view and run in one program, each part compiled as it is by itself: what
            reads an element several times wants it in order. The values are kept, as if they had been read alone

What a derivative saves is kept by all of them. Views that are reached in roundabout ways (diagonals, windows) are read first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax import lax

from .. import lowering
from ..storage import UNREAD, LazyStorage, Storage
from ..tensor import Tensor, View, read_view, recipe_of
from ..xla.pending import Pending
from ..xla.segments.apart import apart
from ..xla.x64 import jit
from .operator import Operator
from .sizes.readings import HostReading, PackedReading
from .write import fit_result

__all__ = [
    "Form",
    "Read",
    "fresh",
    "operand_of",
    "packed_program",
    "reading_program",
    "whole",
    "writing_program",
]


Order = tuple[int, ...] | None
"""A result's dimensions as they lie in memory, None where that is their own order."""


class Read(NamedTuple):
    """An operand that its program reads: how, and whether the program gives back the values."""

    recipe: lowering.Recipe
    kept: bool


class Form(NamedTuple):
    """What a program reads.

    lengths: per operand the length of a sequence, -1 for what is none. reads: per array None, or how it is read; sequences lie flat.
    """

    lengths: tuple[int, ...]
    reads: tuple[Read | None, ...]


def fresh(storage: Storage, view: View) -> Any:
    """The values of a view that are there without running anything."""
    return view.cached if view.cached_at == storage.writes else whole(storage, view)


def whole(storage: Storage, view: View) -> Any:
    """The values of a view that is its storage's array."""
    if type(view) is View and type(storage) is not LazyStorage:
        recipe = view.recipe
        if recipe is None and len(view.sizes) != len(storage.raw.shape):
            raise LookupError  # what is read in another form is no array as it is
        if (recipe_of(storage, view) if recipe is None else recipe).identity:
            return storage.array
    raise LookupError


def operand_of(tensor: Tensor, again: bool = False) -> tuple[Any, lowering.Recipe | None]:
    """What a program takes for a tensor: its values, or the array of its storage and how the view is read.

    again: whether it reads what has been read before.
    """
    storage, view = tensor._xt_storage, tensor._xt_view
    array = storage.operand
    if view is None:
        return array, None
    if view.cached_at == storage.writes and not again:
        cached = view.cached
        if type(cached) is Pending and cached._value is not None:
            cached = view.cached = cached._value
        return cached, None
    recipe = view.recipe
    if recipe is None:
        recipe = recipe_of(storage, view)
    if recipe.direct and type(array) not in UNREAD:
        return array, recipe
    return array if recipe.identity else read_view(storage, view), None


def reading_program(
    op: Operator, key: tuple[Any, ...], form: Form, order: Order = None
) -> Callable[..., Any]:
    """The kernel that reads by itself what is a view; a pointwise result lies in memory with its dimensions in `order`.

    The program takes the arrays, and then the offsets of what it reads (none of what is static); it gives what the
    kernel gives, and the values that are kept.
    """
    name = ("reading", key, form, order)
    found = op.variants.get(name)
    if found is None:
        how = {"loop": in_loop, "fold": folding, "apart": side_by_side}[op.views]
        program = how(op, key, form, order)
        program.__name__ = program.__qualname__ = op.name
        program.steps = in_steps(op, key, form, order)  # pyright: ignore[reportFunctionMemberAccess]
        if op.views != "fold":
            program.sized = HostReading(op.program(key), *form, order, op.views == "loop")  # pyright: ignore[reportFunctionMemberAccess]
        found = op.variants[name] = jit(program)
    return found


def packed_program(op: Operator, key: tuple[Any, ...], form: Form, order: Order = None) -> Callable[..., Any]:
    """`reading_program` of many views of one array: it takes the array, and the offsets as one array of the host's."""
    name = ("packed", key, form, order)
    found = op.variants.get(name)
    if found is None:
        alone = reading_program(op, key, form, order)._fun  # pyright: ignore[reportFunctionMemberAccess]
        first, pieces = form.reads[0], op.pieces
        if first is None or first.kept or any(r != first for r in form.reads):
            pieces = None
        recipe: Any = None if first is None else first.recipe

        def packed(array: Any, offsets: Any) -> Any:
            # One gather, which is compiled and runs sooner than as many slices.
            if pieces is not None:
                read = jax.vmap(lambda offset: lowering.read(recipe, array, offset))(offsets)
                return pieces(read, **dict(zip([p.name for p in op.static], key, strict=True))), []
            return alone(*[array] * len(form.reads), *offsets)

        packed.__name__ = packed.__qualname__ = op.name
        packed.steps = lambda array, offsets: alone.steps(*[array] * len(form.reads), *offsets)  # pyright: ignore[reportFunctionMemberAccess]
        if op.views != "fold" and pieces is None:
            packed.sized = PackedReading(HostReading(op.program(key), *form, order, False))  # pyright: ignore[reportFunctionMemberAccess]
        found = op.variants[name] = jit(packed)
    return found


def in_steps(op: Operator, key: tuple[Any, ...], form: Form, order: Order) -> Callable[..., Any]:
    """What a reading program gives, by the programs that read and the kernel's own: as tensors at levels are computed with."""
    program = op.program(key) if order is None else op.permuted_program(key, order)

    def steps(*values: Any) -> Any:
        read = [read_alone(*part) for part in located(form, values)]
        kept = [v for v, r in zip(read, form.reads, strict=True) if r is not None and r.kept]
        return program(*grouped(form, read)), kept

    return steps


def in_loop(op: Operator, key: tuple[Any, ...], form: Form, order: Order) -> Callable[..., Any]:
    """A kernel whose loop reads the views."""
    run = op.traced(key)

    def program(*values: Any) -> Any:
        given = located(form, values)
        plain = op.kind != "pointwise" and picks(run, form, values)
        read = [
            in_order(v, order) if r is None else read_in_order(r.recipe, v, at, order, plain)
            for r, v, at in given
        ]
        kept = [lowering.read(r.recipe, v, at) for r, v, at in given if r is not None and r.kept]
        return run(*grouped(form, read)), kept

    return program


def picks(run: Callable[..., Any], form: Form, values: Sequence[Any]) -> bool:
    """Whether a kernel takes a part of what it reads: a few elements are not to wait until all are transposed."""
    read = [v if r is None else r.recipe.aval for r, v in zip(form.reads, values, strict=False)]
    result = jax.eval_shape(run, *grouped(form, read))
    return result.size < max([r.recipe.aval.size for r in form.reads if r is not None])


def folding(op: Operator, key: tuple[Any, ...], form: Form, order: Order) -> Callable[..., Any]:
    """A reduction whose loop reads the views."""
    run = op.traced(key)

    def fold(*values: Any) -> Any:
        # XLA takes a transposition into the reduction, but not behind a conversion, as which sums of integers begin.
        read = [
            v if r is None else lowering.read(r.recipe, v, at, plain=r.recipe.dtype.kind in "fcV")
            for r, v, at in located(form, values)
        ]
        return run(*grouped(form, read))

    fold.__name__ = op.name
    program = jit(fold)

    def parts(*values: Any) -> Any:
        kept = [read_alone(*part) for part in located(form, values) if part[0] is not None and part[0].kept]
        return program(*values), kept

    return parted(parts)


def side_by_side(op: Operator, key: tuple[Any, ...], form: Form, order: Order) -> Callable[..., Any]:
    """The programs that read the views, and the kernel's own."""
    program = op.program(key) if order is None else op.permuted_program(key, order)

    def parts(*values: Any) -> Any:
        read = [read_alone(*part) for part in located(form, values)]
        kept = [v for v, r in zip(read, form.reads, strict=True) if r is not None and r.kept]
        return program(*grouped(form, read)), kept

    return parted(parts)


def parted(parts: Callable[..., Any]) -> Callable[..., Any]:
    """A function of programs as one program; on the CPU each of them rounds as it does by itself."""

    def program(*values: Any) -> Any:
        return lax.platform_dependent(*values, cpu=lambda *v: apart(parts, v), default=parts)

    return program


def located(form: Form, values: Sequence[Any]) -> list[tuple[Read | None, Any, Any]]:
    """Of every array how it is read, itself, and the offset where one is used."""
    offsets = iter(values[len(form.reads) :])
    return [
        (r, v, 0 if r is None or r.recipe.static else next(offsets))
        for r, v in zip(form.reads, values, strict=False)
    ]


def grouped(form: Form, arrays: Sequence[Any]) -> list[Any]:
    """The arrays as the kernel takes them, sequences as tuples."""
    rest = iter(arrays)
    return [next(rest) if n < 0 else tuple([next(rest) for _ in range(n)]) for n in form.lengths]


def read_alone(read: Read | None, array: Any, offset: Any) -> Any:
    """The values of an operand, by the program that also reads it when nothing else is to be done."""
    return array if read is None else lowering.read_program(read.recipe)(array, offset)


def in_order(array: Any, order: Order) -> Any:
    """An operand with its dimensions as they lie in the memory of the result."""
    if order is None or array is None or array.ndim == 0:
        return array
    return lowering.transpose(array.reshape((1,) * (len(order) - array.ndim) + array.shape), order)


def read_in_order(recipe: lowering.Recipe, base: Any, offset: Any, order: Order, plain: bool) -> Any:
    """`in_order` of a view's values: where the view has the result's order, nothing is transposed."""
    if order is None or len(recipe.sizes) == len(order):
        return lowering.read(recipe, base, offset, order, plain)
    return in_order(lowering.read(recipe, base, offset), order)


def writing_program(
    op: Operator,
    key: tuple[Any, ...],
    target: lowering.Recipe | None,
    reads: tuple[Read | None, ...],
    donate: bool,
) -> Callable[..., Any]:
    """The program of a pointwise write: the array of the storage, the other operands, and the offsets of the target and of these.

    target: how the target is read and written, None where it is the array. The program gives the storage's new array.
    """
    run = op.traced(key)
    form = Form((-1,) * len(reads), reads if target is None else (*reads, None))

    def writing(base: Any, *values: Any) -> Any:
        start = None if target is None else values[len(reads)]
        read = [v if r is None else lowering.read(r.recipe, v, at) for r, v, at in located(form, values)][
            : len(reads)
        ]
        old = base if target is None else lowering.read(target, base, start)
        new = fit_result(run(old, *read), old.shape, old.dtype)
        return new if target is None else lowering.write(target, base, start, new)

    def steps(base: Any, *values: Any) -> Any:
        start = None if target is None else values[len(reads)]
        read = [read_alone(*part) for part in located(form, values)][: len(reads)]
        program = op.inplace_program(key, False)
        if target is None:
            return program(base, *read)
        new = program(lowering.read_program(target)(base, start), *read)
        return lowering.write_program(target, donate=False)(base, start, new)

    writing.steps = steps  # pyright: ignore[reportFunctionMemberAccess]
    writing.__name__ = writing.__qualname__ = op.name + "_"
    return jit(writing, donate_argnums=0 if donate else ())
