"""Reading programs where sizes vary: views are read on the host, and the kernel's program for several sizes takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax import Array as JaxArray
from jax.core import Tracer

from ...lowering.host import OFTEN, host_array, is_host_readable
from ...xla import segments
from ...xla.executables import form_named, interned
from ...xla.pending import Pending, Work, workers
from ...xla.sizes import comes_again, count_host, enabled, is_made, is_one_cpu
from ...xla.sizes.spans import Answers, Expected, HostArray, like
from ...xla.x64 import facts, prepare

__all__ = ["HostReading", "PackedReading"]


class HostReading(Answers):
    """What answers calls of a program that reads its operands, as long as the kernel's own is one for several sizes.

    kernel: the program of the operands that have been read. lengths, reads: those of the reading program's form. order: of the
    dimensions in the result's memory. loop: whether the kernel's loop reads them, so that the bits are the same: then the first calls
    are all answered by the kernel, whose program serves views of many forms, and the one that reads is compiled by a thread.
    """

    def __init__(
        self, kernel: Any, lengths: Sequence[int], reads: Sequence[Any], order: Any, loop: bool
    ) -> None:
        self.kernel = kernel
        self.lengths = lengths
        self.reads = reads
        self.order = order
        self.loop = loop and workers.count > 1
        self.left = OFTEN
        self.asked = self.answered = False
        self.beside: Work | None = None
        self.readable = getattr(kernel, "sized", None) is not None and all(
            r is None or is_host_readable(r.recipe) for r in reads
        )

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The kernel's results with the values that are kept, None where the program is to be compiled; as `Sized.answer` the other."""
        if not self.readable or any(isinstance(a, Tracer) for a in args):
            return None, False
        found, came = self.found(program, args)
        came, self.answered = came or (found is None and self.answered), found is not None
        return found, came

    def found(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """As `answer`."""
        operands = self.operands(args)
        if operands is None:
            return None, False
        grouped, kept = operands
        found, came = self.kernel.sized.answer(self.kernel, grouped)
        if found is None and self.by_kernel(program, args):
            found = self.kernel(*[put(g) for g in grouped])
            came = not self.left
            count_host()
        return None if found is None else (found, [k.later() for k in kept]), came

    def expected(self, program: Any, args: tuple[Any, ...]) -> Expected | None:
        """As the kernel's."""
        operands = self.operands(args) if self.readable else None
        if operands is None:
            return None
        grouped, kept = operands
        found = self.kernel.sized.expected(self.kernel, grouped)
        if found is None and self.loop and self.by_kernel(program, args, 0):
            examples = jax.tree.map(like, grouped)
            told = facts(self.kernel, examples, segments.describe)
            forms = [form_named(tuple(s), d, w) for s, d, w in told["results"]]
            found = Expected(forms, lambda told: prepare(self.kernel, *examples, told=told))
        return (
            None if found is None else found._replace(forms=[*found.forms, *[interned(k.aval) for k in kept]])
        )

    def operands(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[HostArray]] | None:
        """The kernel's arguments, still to be read, and the values that are kept; None where they do not lie in the host's memory."""
        arrays, offsets = args[: len(self.reads)], iter(args[len(self.reads) :])
        read: list[Any] = []
        kept: list[HostArray] = []
        for array, how in zip(arrays, self.reads, strict=True):
            if how is None:
                turned = self.order is not None and isinstance(array, (JaxArray, Pending)) and array.ndim
                read.append(host_array(None, array, 0, self.order) if turned else array)
                continue
            if not is_one_cpu(array):
                return None
            offset = 0 if how.recipe.static else next(offsets)
            read.append(host_array(how.recipe, array, offset, self.order))
            if how.kept:
                kept.append(host_array(how.recipe, array, offset))
        rest = iter(read)
        return tuple(
            [next(rest) if n < 0 else tuple([next(rest) for _ in range(n)]) for n in self.lengths]
        ), kept

    def by_kernel(self, program: Any, args: tuple[Any, ...], calls: int = 1) -> bool:
        """Whether the kernel is called by itself for the next call, or so many: where its loop reads the views, or other readings have
        come here before the same kernel, of the same sizes.
        """
        if not self.left or not enabled():
            return False
        if not self.asked:
            self.asked = True
            alone = not self.comes_again()
            if alone and not (self.loop and all(map(is_one_cpu, args)) and not is_made(program, args)):
                self.left = 0
                return False
        self.left -= calls
        if self.left <= 0 and self.loop:
            if self.beside is None:
                forms = jax.tree.map(like, args)
                self.beside = Work(lambda: prepare(program, *forms))
                workers.submit(self.beside)
            self.left = int(not self.beside.done)
        return True

    def comes_again(self) -> bool:
        """Whether several readings have come here."""
        reads = [None if r is None else (r.recipe.sizes, r.recipe.dtype) for r in self.reads]
        return comes_again((id(self.kernel), tuple(reads)), id(self))


class PackedReading(Answers):
    """`HostReading` for a program that takes one array for all views, and their offsets as one array of the host's."""

    def __init__(self, reading: HostReading) -> None:
        self.reading = reading

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """As `HostReading.answer`."""
        array, offsets = args
        return self.reading.answer(program, (*[array] * len(self.reading.reads), *offsets.tolist()))


def put(value: Any) -> Any:
    """What a program takes for an argument that is still to be read, or a tuple of them."""
    if type(value) is tuple:
        return tuple(map(put, value))
    return value.put() if type(value) is HostArray else value
