"""What PyTorch says where the dtype or the sizes of an `out=` tensor do not suit an operator: those that have words of their own.

All others speak as their kind does, in `write.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .. import checks, dtypes

__all__ = ["RULES", "Rule", "refuse_out", "warn_of_resizing"]


class Rule(NamedTuple):
    """What suits, and the words where a dtype does not.

    suits: of the result's dtype and the tensor's. words: for each result one, or one for all; `want`, `have`: the dtypes as
    messages call them (Float), `c_want`, `c_have`: as C++ does (float).
    """

    suits: Callable[[dtypes.dtype, dtypes.dtype], bool]
    words: tuple[str, ...]


def _same(source: dtypes.dtype, target: dtypes.dtype) -> bool:
    return source is target


def _truth(source: dtypes.dtype, target: dtypes.dtype) -> bool:
    return target in (source, dtypes.uint8)


def _complex(source: dtypes.dtype, target: dtypes.dtype) -> bool:
    return target.is_complex


def _floating(source: dtypes.dtype, target: dtypes.dtype) -> bool:
    return target.is_floating_point or target.is_complex


SAFELY = (
    "{name}: Expected {what} to be safely castable from {{want}} dtype, but got {what} with dtype {{have}}"
)
SEARCHED = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether "
    "out_int32 flag is True, but we got output tensor's dtype {have} and out_int32 flag is {narrow}"
)


def _safely(name: str, *whats: str) -> Rule:
    return Rule(
        dtypes.can_cast, tuple([SAFELY.format(name=name, what=what) for what in whats or ("result",)])
    )


def _exactly(*words: str) -> Rule:
    return Rule(_same, words)


def _spectral(kind: str, names: str) -> dict[str, Rule]:
    suits = _complex if kind == "complex" else _floating
    return {
        f"fft_{name}": Rule(suits, (f"{name} expects a {kind} output tensor, but got {{have}}",))
        for name in names.split()
    }


FOUND = "expected scalar_type {want} but found {have}"
FOUND_TYPE = "expected scalar type {want} but found {have}"
OF_MATMUL = "result dtype {have} does not match input dtype {want}"
OF_TENSORDOT = (
    "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {have}"
)
OF_COMPLEX = "Expected object of scalar type {want} but got scalar type {have} for argument 'out'"
OF_AMAX = "Expected the dtype for input and out to match, but got {want} for input's dtype and {have} for out's dtype."
OF_QUANTILE = "quantile() out tensor must be same dtype as the input tensor"
OF_NORM = "{name} expected out tensor dtype {{want}} but got: {{have}}"

RULES: dict[str, Rule] = {
    **{name: _exactly(OF_MATMUL) for name in ("dot", "vdot")},
    **{name: _exactly(OF_TENSORDOT) for name in ("inner", "tensordot")},
    **{name: _exactly(OF_COMPLEX) for name in ("complex", "polar")},
    **{name: _exactly(OF_AMAX) for name in ("amax", "amin")},
    **{name: _exactly(OF_QUANTILE) for name in ("quantile", "nanquantile")},
    **{name: _exactly(FOUND) for name in ("cummax", "cummin", "diff", "logcumsumexp")},
    **{name: _exactly(FOUND_TYPE) for name in ("logsigmoid", "native_batch_norm", "linalg_solve_triangular")},
    **{
        name: _exactly(f"{name} does not support non-boolean outputs.")
        for name in ("signbit", "isposinf", "isneginf")
    },
    **{
        name: Rule(_truth, (f"{name} only supports bool tensor for result, got: {{have}}",))
        for name in ("all", "any")
    },
    **_spectral("complex", "fft fftn ifft rfft rfftn ihfft ihfftn"),
    **_spectral("floating point", "irfft irfftn hfft hfftn"),
    "fft_ifftn": Rule(_complex, ("fftn expects a complex output tensor, but got {have}",)),
    "addbmm": _exactly("self and mat2 must have the same dtype, but got {have} and {want}"),
    "frexp": _exactly(
        "torch.frexp() expects mantissa to have dtype {c_want} but got {c_have}",
        "torch.frexp() expects exponent to have int dtype but got {c_have}",
    ),
    "kthvalue": _exactly(
        "output values must be of same type as input", "output indices must be of scalar type Long"
    ),
    "mode": _exactly(
        "expected scalar type '{want}' but got '{have}' for values output",
        "expected scalar type '{want}' but got '{have}' for indices output",
    ),
    "ormqr": _exactly(
        "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{want} and result has dtype "
        "{have}"
    ),
    "index_select": _exactly("index_select(): self and result must have the same scalar type"),
    "take": _exactly(
        "take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {have}"
    ),
    "searchsorted": _exactly(SEARCHED),
    "hash_tensor": _exactly("Expected result to be of dtype uint64, but got {have}"),
    "nonzero_static": _exactly(
        "nonzero_static: Expected out tensor to have scalar type {want} but got {have}"
    ),
    "heaviside": _exactly("heaviside is not yet implemented for tensors with different dtypes."),
    "float_power": _exactly(
        "the output given to float_power has dtype {have} but the operation's result requires dtype {want}"
    ),
    "gelu": _exactly("Found dtype {have} but expected {want}"),
    "linalg_vecdot": _exactly("linalg.vecdot: Expected out of dtype{want} but found {have}"),
    "linalg.multi_dot": _exactly("multi_dot(): expected out tensor to have dtype {c_want} but got {c_have}"),
    "linalg.norm": _exactly(OF_NORM.format(name="linalg.norm")),
    "linalg.matrix_norm": _exactly(OF_NORM.format(name="linalg.matrix_norm")),
    "diag": Rule(
        dtypes.can_cast, ("diag: result type {want} can't be cast to the desired out= type {have}",)
    ),
    "ldexp": Rule(dtypes.can_cast, ("ldexp can't be cast to the desired output type {have}",)),
    "mvlgamma": Rule(
        dtypes.can_cast, ("mvlgamma: result type {want} can't be cast to the desired output type {want}",)
    ),
    "logsumexp": Rule(
        _floating, ("logsumexp(): Expected floating point type for result tensor, but got: {have}",)
    ),
    **{
        name: _safely(name.removeprefix("linalg.") if name in ("linalg.matrix_power",) else name)
        for name in "cholesky cholesky_inverse cholesky_solve linalg.cond linalg.matrix_power linalg.pinv".split()
    },
    **{f"linalg.{name}": _safely(name) for name in ("tensorinv", "tensorsolve")},
    "linalg_householder_product": _safely("torch.linalg.householder_product"),
    "geqrf": _safely("torch.geqrf", "a", "tau"),
    "linalg_eig": _safely("torch.linalg.eig", "eigenvalues", "eigenvectors"),
    "linalg.eigvals": _safely("torch.linalg.eigvals", "eigenvalues"),
    "linalg.matrix_rank": _safely("torch.linalg.matrix_rank"),
    "linalg.lstsq": _safely("torch.linalg.lstsq", "solution", "residuals", "rank", "singular_values"),
}


def refuse_out(rule: Rule, place: int, source: dtypes.dtype, target: dtypes.dtype) -> None:
    """RuntimeError where the tensor given for a result, the one at `place`, has a dtype that does not suit."""
    if rule.suits(source, target):
        return
    raise RuntimeError(
        rule.words[min(place, len(rule.words) - 1)].format(
            want=source.scalar_name,
            have=target.scalar_name,
            c_want=dtypes.c_name(source),
            c_have=dtypes.c_name(target),
            narrow=source is dtypes.int32,
        )
    )


RESIZED_QUIETLY = frozenset(
    "zeros ones empty full eye linspace logspace range rand randn randint randperm multinomial bernoulli addbmm "
    "logsigmoid narrow_copy".split()
)
"""Operators that give an `out=` tensor other sizes without a warning."""

COUNTED = frozenset(("arange", "fftfreq", "rfftfreq"))
"""Operators that warn of it as of a count that may have been rounded."""


def warn_of_resizing(name: str, given: list[int], sizes: list[int]) -> None:
    """Warn that an `out=` tensor that has elements gets other sizes, as the operator does."""
    if name in RESIZED_QUIETLY:
        return
    if name in COUNTED:
        checks.warn(
            f"The number of elements in the out tensor of shape {given} is {math.prod(given)} which does not match the "
            f"computed number of elements {math.prod(sizes)}. Note that this may occur as a result of rounding error. The "
            f"out tensor will be resized to a tensor of shape ({sizes[0]},)."
        )
        return
    checks.warn(
        f"An output with one or more elements was resized since it had shape {given}, which does not match the required "
        f"output shape {sizes}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
        "unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
        "elements with t.resize_(0)."
    )
