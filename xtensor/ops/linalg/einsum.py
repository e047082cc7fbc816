"""Sums of products by subscripts: `einsum` in both of PyTorch's call styles, and `tensordot`."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.precision import accumulation, matmul_precision
from ...operators.schema import Array, Arrays
from ...tensor import Tensor, sizes_of
from ...xla.cache import bounded
from .matmul import contract

__all__ = ["einsum", "tensordot"]

LETTERS = string.ascii_uppercase + string.ascii_lowercase
ELLIPSIS = "."


# ---- parsing -------------------------------------------------------------------------------------------------------


def terms_of(text: str, offset: int, where: str) -> list[str]:
    """One string per operand (or one for the output), an ellipsis as one character."""
    found = [""]
    operand = 0
    i = 0
    while i < len(text):
        c = text[i]
        place = where or f"operand {operand}"
        if c == ELLIPSIS:
            if ELLIPSIS in found[-1]:
                already = "but an ellipsis (...)" if where else "for which an ellipsis"
                raise RuntimeError(f"einsum(): found '.' for {place} {already} was already found")
            if text[i : i + 3] != "...":
                tail = " (...)" if where else ""
                raise RuntimeError(f"einsum(): found '.' for {place} that is not part of any ellipsis{tail}")
            found[-1] += ELLIPSIS
            i += 2
        elif c == "," and not where:
            found.append("")
            operand += 1
        elif c in LETTERS:
            found[-1] += c
        elif c != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {offset + i} in the equation string, subscripts must be in "
                "[a-zA-Z]"
            )
        i += 1
    return found


class Equation:
    """An equation read against the shapes of its operands: a label per dimension of every operand and of the output."""

    def __init__(self, text: str, shapes: Sequence[tuple[int, ...]]) -> None:
        left, arrow, right = text.partition("->")
        terms = terms_of(left, 0, "")
        if len(terms) > len(shapes):
            raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        if len(terms) < len(shapes):
            raise RuntimeError("einsum(): more operands were provided than specified in the equation")
        self.extra = 0
        for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
            named = len(term.replace(ELLIPSIS, ""))
            if ELLIPSIS in term:
                if named > len(shape):
                    raise RuntimeError(
                        f"einsum(): the number of subscripts in the equation ({named}) is more than the number of "
                        f"dimensions ({len(shape)}) for operand {i}"
                    )
                self.extra = max(self.extra, len(shape) - named)
            elif named != len(shape):
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({named}) does not match the number of "
                    f"dimensions ({len(shape)}) for operand {i} and no ellipsis was given"
                )
        # The dimensions of an ellipsis get labels of their own, aligned at the last.
        spare = [chr(0x3B1 + i) for i in range(self.extra)]
        self.inputs = []
        for term, shape in zip(terms, shapes, strict=True):
            count = len(shape) - len(term.replace(ELLIPSIS, ""))
            self.inputs.append(term.replace(ELLIPSIS, "".join(spare[len(spare) - count :])))
        self.sizes = self._sizes(shapes)
        every = "".join(terms).replace(ELLIPSIS, "")
        if arrow:
            out = terms_of(right, len(left) + 2, "output")[0]
            for label in out.replace(ELLIPSIS, ""):
                if out.count(label) > 1:
                    raise RuntimeError(
                        f"einsum(): output subscript {label} appears more than once in the output"
                    )
                if label not in every:
                    raise RuntimeError(
                        f"einsum(): output subscript {label} does not appear in the equation for any input operand"
                    )
            self.output = out.replace(ELLIPSIS, "".join(spare))
        else:
            self.output = "".join(spare) + "".join(c for c in LETTERS if every.count(c) == 1)

    def _sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for i, (term, shape) in enumerate(zip(self.inputs, shapes, strict=True)):
            own: dict[str, int] = {}
            for label, size in zip(term, shape, strict=True):
                if label in own and own[label] != size:
                    raise RuntimeError(
                        f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {size} != "
                        f"{own[label]}"
                    )
                own[label] = size
            for label, size in own.items():
                seen = sizes.get(label, 1)
                if seen != size and 1 not in (seen, size):
                    raise RuntimeError(
                        f"einsum(): subscript {label} has size {size} for operand {i} which does not broadcast with "
                        f"previously seen size {seen}"
                    )
                sizes[label] = max(seen, size) if 0 not in (seen, size) else 0
        return sizes

    def squeezed(self, operands: Sequence[Any]) -> tuple[list[str], list[Any]]:
        """Labels and operands without dimensions of size one that broadcast against larger ones."""
        terms, arrays = [], []
        for term, x in zip(self.inputs, operands, strict=True):
            drop = [d for d, label in enumerate(term) if x.shape[d] == 1 and self.sizes[label] != 1]
            terms.append("".join(c for d, c in enumerate(term) if d not in drop))
            arrays.append(lax.squeeze(x, drop) if drop else x)
        return terms, arrays


# ---- einsum --------------------------------------------------------------------------------------------------------


def ends_in_a_sum(operands: Sequence[Tensor], equation: str) -> str | None:
    """Autocast's policy on the CPU, which casts products of matrices: where that of the last pair is one, not a product of elements."""
    parsed = Equation(equation, [tuple(x.shape) for x in operands])
    before: set[str] = set()
    last: set[str] = set()
    for term, x in zip(parsed.inputs, operands, strict=True):
        before |= last
        last = {label for d, label in enumerate(term) if x.shape[d] != 1 and label not in parsed.output}
    return "short" if before & last else None


@general(autocast=dict(cpu=ends_in_a_sum, accelerator="short"), name="einsum", derivatives=FROM_KERNEL)
def sum_products(operands: Arrays, equation: str) -> Array:
    """The sum of products of the operands that an equation says."""
    parsed = Equation(equation, [x.shape for x in operands])
    own = dtype_of(operands[0])
    mixed = any(dtype_of(x) is not own for x in operands)
    terms, arrays = parsed.squeezed(operands)
    exact = not (own.is_floating_point or own.is_complex)
    if mixed or (exact and len(arrays) > 1):
        terms, arrays = product_by_pairs(parsed, terms, arrays)
    elif exact and set(terms[0]) - set(parsed.output):
        arrays = [arrays[0].astype(jnp.int64)]
    boolean = arrays[0].dtype == jnp.bool_
    if boolean:
        arrays = [arrays[0].astype(jnp.int8)]
    present = set("".join(terms))
    kept = "".join(c for c in parsed.output if c in present)
    out = contract(f"{','.join(terms)}->{kept}", *arrays)
    out = out.astype(jnp.bool_) if boolean else out
    return out.reshape([parsed.sizes[c] for c in parsed.output])


def product_by_pairs(
    parsed: Equation, terms: list[str], arrays: list[Array]
) -> tuple[list[str], list[Array]]:
    """The operands in one, pair by pair: of integers what PyTorch sums over one of a pair alone is int64, what it contracts is not; of two
    dtypes it multiplies, and contracts not.
    """
    waiting = Counter(c for t in terms for c in set(t) if c not in parsed.output and parsed.sizes[c] != 1)

    def without(term: str, array: Array, other: str) -> tuple[str, Array]:
        """The operand with what only it has left summed away."""
        kept = "".join(dict.fromkeys(c for c in term if waiting[c] != 1 or c in other))
        if set(kept) == set(term):
            return term, array
        exact = array.dtype.kind in "biu"
        return kept, contract(f"{term}->{kept}", array.astype(jnp.int64) if exact else array)

    term, array = terms[0], arrays[0]
    for second, with_it in zip(terms[1:], arrays[1:], strict=True):
        (term, array), (second, with_it) = without(term, array, second), without(second, with_it, term)
        both = [c for c in waiting if c in term and c in second]
        waiting.subtract(both)
        done = [c for c in both if waiting[c] == 1]
        first, other = dtype_of(array), dtype_of(with_it)
        if done and first is dtypes.bool and array.size and with_it.size:
            raise checks.not_implemented_for("bmm", first)
        if done and first is not other:
            raise RuntimeError(f"expected scalar type {first.scalar_name} but found {other.scalar_name}")
        result = dtypes.promote_types(first, other).numpy
        # Without a sum a product of booleans is their conjunction.
        own = np.dtype(np.int8) if result == np.bool_ else result
        made = "".join(dict.fromkeys(c for c in term + second if c not in done))
        array = contract(f"{term},{second}->{made}", array.astype(own), with_it.astype(own)).astype(result)
        term = made
    return [term], [array]


def einsum(*args: Any) -> Tensor:
    """The sum of products by subscripts: `einsum("ij,jk->ik", a, b)` or `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Shape: as the subscripts say: one letter for each dimension of each operand, and of the result.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError
    for bool tensors.

    >>> a, b = xtensor.ones(2, 3), xtensor.ones(3, 4)
    >>> xtensor.einsum("ij,jk->ik", a, b).shape
    xtensor.Size([2, 4])
    >>> xtensor.einsum("ii", xtensor.eye(3))
    tensor(3.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = from_lists(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if len(operands) == 1 and isinstance(operands[0], Tensor) and isinstance(equation, str):
        view = rearranged(operands[0], equation)
        if view is not None:
            return view
    return sum_products(list(operands), equation)


@bounded(256)
def parsed_of(equation: str, shape: tuple[int, ...]) -> Equation:
    """The equation of one operand."""
    return Equation(equation, [shape])


def rearranged(operand: Tensor, equation: str) -> Tensor | None:
    """What an equation says of one operand, as a view of it; None where something is summed."""
    parsed = parsed_of(equation, tuple(sizes_of(operand)))
    (term,) = parsed.inputs
    if set(term) != set(parsed.output):
        return None
    for label in parsed.output:
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            operand = operand.diagonal(0, first, second).movedim(-1, first)
            term = term[:second] + term[second + 1 :]
    return operand.permute([term.index(label) for label in parsed.output])


def from_lists(args: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    """The equation and the operands of a call with lists of subscripts."""

    def spelled(labels: Sequence[Any]) -> str:
        text = ""
        for label in labels:
            if label is Ellipsis:
                text += "..."
            elif isinstance(label, int) and 0 <= label < len(LETTERS):
                text += LETTERS[label]
            else:
                raise ValueError(
                    "einsum(): subscript in subscript list is not within the valid range [0, 52)"
                )
        return text

    equation = ",".join(spelled(labels) for labels in args[1::2])
    if len(args) % 2:
        equation = ",".join(spelled(labels) for labels in args[1:-1:2]) + "->" + spelled(args[-1])
        return equation, list(args[:-1:2])
    return equation, list(args[::2])


# ---- tensordot -----------------------------------------------------------------------------------------------------


def unless_dot(a: Tensor, b: Tensor, dims_a: Sequence[int], dims_b: Sequence[int]) -> str | None:
    """Autocast's policy on the CPU, which leaves the sum over all dimensions alone."""
    return None if len(dims_a) == a.dim() == b.dim() or a.numel() == b.numel() == 1 else "short"


@general(
    autocast=dict(cpu=unless_dot, accelerator="widest"),
    name="tensordot",
    out="exact",
    derivatives=FROM_KERNEL,
)
def dot_along(a: Array, b: Array, dims_a: Sequence[int], dims_b: Sequence[int]) -> Array:
    """The sum of products over pairs of dimensions."""
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    if dtype_of(a) is not dtype_of(b):
        raise RuntimeError("both inputs should have same dtype")
    left, right = checks.wrap_dims(dims_a, a.ndim), checks.wrap_dims(dims_b, b.ndim)
    for given, d, e in zip(zip(dims_a, dims_b, strict=True), left, right, strict=True):
        m, n = a.shape[d], b.shape[e]
        if m == n:
            continue
        if n == 1:
            a = jnp.sum(a, axis=d, keepdims=True)
        elif m == 1:
            b = jnp.sum(b, axis=e, keepdims=True)
        else:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {given[0]} and second has size {n} "
                f"in dim {given[1]}"
            )
    if a.dtype == jnp.bool_ and a.size and b.size:
        raise checks.not_implemented_for("addmm_impl_cpu_", dtypes.bool)
    wide = accumulation(a.dtype)
    out = lax.dot_general(
        a, b, ((left, right), ((), ())), precision=matmul_precision(), preferred_element_type=wide
    )
    return out.astype(a.dtype)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """The sum of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of them.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.tensordot(xtensor.ones(2, 3), xtensor.ones(3, 4), 1).shape
    xtensor.Size([2, 4])
    """
    if isinstance(dims, Tensor):
        dims = dims.item() if dims.numel() == 1 else dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = tuple(range(-dims, 0)), tuple(range(dims))
    else:
        left, right = dims
        left = (left,) if isinstance(left, int) else tuple(left)
        right = (right,) if isinstance(right, int) else tuple(right)
    return dot_along(a, b, left, right, out=out)
