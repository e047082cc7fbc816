"""Reading programs where sizes vary: views are read on the host, and the kernel's program for several sizes takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax import Array as JaxArray
from jax.core import Tracer

from ...lowering.host import OFTEN, host_array, is_host_readable
from ...xla.executables import interned
from ...xla.pending import Pending
from ...xla.sizes import comes_again, count_host, enabled, is_one_cpu
from ...xla.sizes.spans import Answers, Expected, HostArray

__all__ = ["HostReading", "PackedReading"]


class HostReading(Answers):
    """What answers calls of a program that reads its operands, as long as the kernel's own is one for several sizes.

    kernel: the program of the operands that have been read. lengths, reads: those of the reading program's form. order: of the
    dimensions in the result's memory.
    """

    def __init__(self, kernel: Any, lengths: Sequence[int], reads: Sequence[Any], order: Any) -> None:
        self.kernel = kernel
        self.lengths = lengths
        self.reads = reads
        self.order = order
        self.left = OFTEN
        self.asked = self.answered = False
        self.readable = getattr(kernel, "sized", None) is not None and all(
            r is None or is_host_readable(r.recipe) for r in reads
        )

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The kernel's results with the values that are kept, None where the program is to be compiled; as `Sized.answer` the other."""
        if not self.readable or any(isinstance(a, Tracer) for a in args):
            return None, False
        found, came = self.found(args)
        came, self.answered = came or (found is None and self.answered), found is not None
        return found, came

    def found(self, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """As `answer`."""
        operands = self.operands(args)
        if operands is None:
            return None, False
        grouped, kept = operands
        found, came = self.kernel.sized.answer(self.kernel, grouped)
        if found is None and self.same_kernel(args):
            found = self.kernel(*[put(g) for g in grouped])
            came = not self.left
            count_host()
        return None if found is None else (found, [k.put() for k in kept]), came

    def expected(self, program: Any, args: tuple[Any, ...]) -> Expected | None:
        """As the kernel's."""
        operands = self.operands(args) if self.readable else None
        if operands is None:
            return None
        grouped, kept = operands
        found = self.kernel.sized.expected(self.kernel, grouped)
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

    def same_kernel(self, args: Any) -> bool:
        """Whether other readings have come here before the same kernel, of the same sizes: then it is called by itself."""
        if not self.left or not enabled():
            return False
        if not self.asked:
            self.asked = True
            reads = [None if r is None else (r.recipe.sizes, r.recipe.dtype) for r in self.reads]
            if not comes_again((id(self.kernel), tuple(reads)), id(self)):
                self.left = 0
                return False
        self.left -= 1
        return True


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
