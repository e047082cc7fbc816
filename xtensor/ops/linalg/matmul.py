"""Matrix products: `matmul` and `linear` of any rank, `mm`, `mv`, `bmm`, `dot` and their like."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.precision import accumulation, matmul_precision
from ...operators.schema import Array
from ...operators.write import write_out
from ...tensor import Tensor

__all__ = [
    "bilinear",
    "bmm",
    "chain_matmul",
    "dot",
    "ger",
    "inner",
    "linear",
    "matmul",
    "mm",
    "mv",
    "outer",
    "vdot",
]


# ---- products of arrays --------------------------------------------------------------------------------------------


def product(a: Any, b: Any) -> Any:
    """`a @ b` of two arrays of one dtype, short floats accumulated in float32."""
    wide = accumulation(a.dtype)
    out = jnp.matmul(a, b, precision=matmul_precision(), preferred_element_type=wide)
    return out if wide is None else out.astype(a.dtype)


def contract(equation: str, *arrays: Any) -> Any:
    """An einsum of arrays of one dtype, short floats accumulated in float32."""
    wide = accumulation(arrays[0].dtype)
    out = jnp.einsum(equation, *arrays, precision=matmul_precision(), preferred_element_type=wide)
    return out if wide is None else out.astype(arrays[0].dtype)


def letters(a_shape: Sequence[int], b_shape: Sequence[int]) -> tuple[str, str, str]:
    """The einsum letters of `a`, `b` and `a @ b`, where a batch dimension that is broadcast has none in its operand."""
    ndim = max(len(a_shape), len(b_shape), 2) - 2
    batch = string.ascii_letters[:ndim]
    n, k, m = "XYZ"
    of_a, of_b = "", ""
    for i, letter in enumerate(batch):
        at_a, at_b = i - ndim + len(a_shape) - 2, i - ndim + len(b_shape) - 2
        size_a = a_shape[at_a] if len(a_shape) > 2 and at_a >= 0 else 1
        size_b = b_shape[at_b] if len(b_shape) > 2 and at_b >= 0 else 1
        if size_a != 1 or (size_b == 1 and size_a == 1 and at_a >= 0 and len(a_shape) > 2):
            of_a += letter
        if size_b != 1 or (size_a == 1 and size_b == 1 and at_b >= 0 and len(b_shape) > 2):
            of_b += letter
    rows, columns = (n if len(a_shape) > 1 else ""), (m if len(b_shape) > 1 else "")
    return of_a + rows + k, of_b + k + columns, batch + rows + columns


def _squeezed(x: Any, names: str, matrix_dims: int) -> Any:
    """`x` without the batch dimensions of size one that `names` leaves out."""
    surplus = x.ndim - len(names)
    if surplus == 0:
        return x
    batch = range(x.ndim - matrix_dims)
    ones = [d for d in batch if x.shape[d] == 1][:surplus]
    return lax.squeeze(x, ones)


def _matmul_input(grad: Array, other: Array, input_shape: Any) -> Array:
    of_a, of_b, of_out = letters(input_shape, other.shape)
    b = _squeezed(jnp.conj(other), of_b, min(other.ndim, 2))
    kept = "".join(c for c in of_a if c in of_out or c in of_b)
    return contract(f"{of_out},{of_b}->{kept}", grad, b.astype(grad.dtype)).reshape(tuple(input_shape))


def _matmul_other(grad: Array, input: Array, other_shape: Any) -> Array:
    of_a, of_b, of_out = letters(input.shape, other_shape)
    a = _squeezed(jnp.conj(input), of_a, min(input.ndim, 2))
    kept = "".join(c for c in of_b if c in of_out or c in of_a)
    return contract(f"{of_a},{of_out}->{kept}", a.astype(grad.dtype), grad).reshape(tuple(other_shape))


def check_product(a: Any, b: Any) -> None:
    """PyTorch's errors for the shapes and dtypes of `a @ b`."""
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D"
        )
    if (a.ndim <= 2 and b.ndim <= 2) or b.ndim <= 2:
        rows = 1
        for size in a.shape[:-1]:
            rows *= size
        if a.ndim == 1 and b.ndim == 1:
            check_vectors(a, b)
        elif b.ndim == 1:
            if a.shape[-1] != b.shape[0]:
                raise RuntimeError(
                    f"size mismatch, got input ({rows}), mat ({rows}x{a.shape[-1]}), vec ({b.shape[0]})"
                )
        elif a.shape[-1] != b.shape[0]:
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {b.shape[0]}x{b.shape[1]})"
            )
    else:
        lead_a, lead_b = a.shape[:-2], b.shape[:-2]
        for offset in range(1, min(len(lead_a), len(lead_b)) + 1):
            x, y = lead_a[-offset], lead_b[-offset]
            if x != y and 1 not in (x, y):
                at = max(len(lead_a), len(lead_b)) - offset
                raise RuntimeError(
                    f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {at}"
                )
        if a.shape[-1] != b.shape[-2]:
            count = 1
            for size in jnp.broadcast_shapes(lead_a, lead_b):
                count *= size
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {a.shape[-1]}] but got: "
                f"[{count}, {b.shape[-2]}]."
            )
    x, y = dtype_of(a), dtype_of(b)
    if x is not y:
        if a.ndim == 1 and b.ndim == 1:
            raise RuntimeError(
                f"dot : expected both vectors to have same dtype, but found {x.scalar_name} and {y.scalar_name}"
            )
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {dtypes.c_name(x)} != {dtypes.c_name(y)}"
        )


def check_vectors(a: Any, b: Any) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    x, y = dtype_of(a), dtype_of(b)
    if x is not y:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {x.scalar_name} and {y.scalar_name}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have the same number "
            f"of elements, but got {a.shape[0]} and {b.shape[0]} elements respectively"
        )


def refuse_bool(kernel: str, a: Any, b: Any = None) -> None:
    """NotImplementedError for products of booleans, unless both factors are given and one is empty."""
    if a.dtype == jnp.bool_ and (b is None or (a.size and b.size)):
        raise checks.not_implemented_for(kernel, dtypes.bool)


def check_expand(x: Any, shape: Sequence[int]) -> None:
    """RuntimeError, in the words of `expand`, unless `x` broadcasts to `shape`."""
    if x.ndim > len(shape):
        raise RuntimeError(
            f"expand(torch.{dtype_of(x).scalar_name}Tensor{{{list(x.shape)}}}, size={list(shape)}): the number of sizes "
            f"provided ({len(shape)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim})"
        )
    for d in range(1, x.ndim + 1):
        if x.shape[-d] not in (1, shape[-d]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-d]}) must match the existing size ({x.shape[-d]}) at "
                f"non-singleton dimension {len(shape) - d}.  Target sizes: {list(shape)}.  Tensor sizes: {list(x.shape)}"
            )


# ---- matmul and its named cases ------------------------------------------------------------------------------------


# What it multiplies, which the rank of the result tells, names its nodes.
NODES = {0: "DotBackward0", 1: "MvBackward0", 2: "MmBackward0"}


@general(
    autocast="short",
    method=True,
    out="exact",
    node=lambda node: NODES.get(len(node.aval.shape), "UnsafeViewBackward0"),
    derivatives=dict(input=_matmul_input, other=_matmul_other),
)
def matmul(input: Array, other: Array) -> Array:
    """The matrix product of vectors, matrices or batches of matrices, whose batch dimensions broadcast.

    Shape: `(n) @ (n)` is `()`, `(n, m) @ (m, p)` is `(n, p)`, `(n, m) @ (m)` is `(n)`,
    `(*, n, m) @ (*, m, p)` is `(*, n, p)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.tensor([[1.0, 2.0], [3.0, 4.0]]) @ xtensor.tensor([1.0, 1.0])
    tensor([3., 7.])
    >>> xtensor.matmul(xtensor.zeros(5, 2, 3), xtensor.zeros(3, 4)).shape
    xtensor.Size([5, 2, 4])
    """
    check_product(input, other)
    if input.ndim == other.ndim == 1:
        refuse_bool("dot", input)
    else:
        kernels = {1: "addmv_impl_cpu", 2: "addmm_impl_cpu_"}
        refuse_bool(kernels.get(other.ndim, "bmm"), input, other)
    return product(input, other)


def mm_input(grad: Array, mat2: Array) -> Array:
    return product(grad, jnp.conj(jnp.swapaxes(mat2, -1, -2)).astype(grad.dtype))


def mm_other(grad: Array, input: Array) -> Array:
    return product(jnp.conj(jnp.swapaxes(input, -1, -2)).astype(grad.dtype), grad)


def check_matrices(mat1: Any, mat2: Any, first: str = "mat1") -> None:
    if mat1.ndim != 2:
        raise RuntimeError(
            f"{first} must be a matrix"
            if first == "self"
            else f"{first} must be a matrix, got {mat1.ndim}-D tensor"
        )
    if mat2.ndim != 2:
        raise RuntimeError(
            "mat2 must be a matrix" if first == "self" else f"mat2 must be a matrix, got {mat2.ndim}-D tensor"
        )
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )


@general(
    autocast="short", method=True, out="exact", derivatives=dict(input=mm_input, mat2=mm_other), several=True
)
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices.

    Shape: `input` `(n, m)`, `mat2` `(m, p)`, result `(n, p)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.mm(xtensor.tensor([[1.0, 2.0], [3.0, 4.0]]), xtensor.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([[2., 1.],
            [4., 3.]])
    """
    check_matrices(input, mat2, "self")
    check_product(input, mat2)
    refuse_bool("addmm_impl_cpu_", input, mat2)
    return product(input, mat2)


@general(
    autocast=dict(accelerator="short"),
    method=True,
    out="exact",
    derivatives=dict(
        input=lambda grad, vec: grad[:, None] * jnp.conj(vec)[None, :],
        vec=lambda grad, input: product(jnp.conj(input).T.astype(grad.dtype), grad),
    ),
)
def mv(input: Array, vec: Array) -> Array:
    """The product of a matrix and a vector.

    Shape: `input` `(n, m)`, `vec` `(m)`, result `(n)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    check_product(input, vec)
    refuse_bool("addmv_impl_cpu", input, vec)
    return product(input, vec)


def check_batches(batch1: Any, batch2: Any) -> None:
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    b, _, k = batch1.shape
    if batch2.shape[:2] != (b, k):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{b}, {k}] but got: "
            f"[{batch2.shape[0]}, {batch2.shape[1]}]."
        )
    x, y = dtype_of(batch1), dtype_of(batch2)
    if x is not y:
        raise RuntimeError(f"expected scalar type {x.scalar_name} but found {y.scalar_name}")


@general(
    autocast="short", method=True, out="exact", derivatives=dict(input=mm_input, mat2=mm_other), several=True
)
def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices.

    Shape: `input` `(b, n, m)`, `mat2` `(b, m, p)`, result `(b, n, p)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.bmm(xtensor.zeros(10, 3, 4), xtensor.zeros(10, 4, 5)).shape
    xtensor.Size([10, 3, 5])
    """
    check_batches(input, mat2)
    refuse_bool("bmm", input, mat2)
    return product(input, mat2)


@general(
    autocast=dict(accelerator="widest"),
    method=True,
    out="exact",
    derivatives=dict(
        input=lambda grad, tensor: grad * jnp.conj(tensor), tensor=lambda grad, input: grad * jnp.conj(input)
    ),
)
def dot(input: Array, tensor: Array) -> Array:
    """The dot product of two vectors of one length.

    Shape: `input` `(n)`, `tensor` `(n)`, result `()`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.dot(xtensor.tensor([1.0, 2.0]), xtensor.tensor([3.0, 4.0]))
    tensor(11.)
    """
    check_vectors(input, tensor)
    refuse_bool("dot", input)
    return product(input, tensor)


@general(
    autocast=dict(accelerator="widest"),
    method=True,
    out="exact",
    derivatives=dict(
        input=lambda grad, other: jnp.conj(grad) * other, other=lambda grad, input: grad * input
    ),
)
def vdot(input: Array, other: Array) -> Array:
    """The dot product of two vectors, the first conjugated.

    Shape: `input` `(n)`, `other` `(n)`, result `()`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    check_vectors(input, other)
    refuse_bool("dot", input)
    return product(jnp.conj(input), other)


def _inner_grad(grad: Any, known: Any, shape: Any, first: bool) -> Any:
    """The gradient of an operand of `inner`; its result has the leading dimensions of `input`, then `other`'s."""
    if not shape:
        return jnp.sum(grad * jnp.conj(known))
    if known.ndim == 0:
        return grad * jnp.conj(known)
    lead = len(shape) - 1
    ours = tuple(range(lead)) if first else tuple(range(grad.ndim - lead, grad.ndim))
    theirs = tuple(d for d in range(grad.ndim) if d not in ours)
    folded = lax.dot_general(
        grad,
        jnp.conj(known).astype(grad.dtype),
        ((theirs, tuple(range(known.ndim - 1))), ((), ())),
        precision=matmul_precision(),
        preferred_element_type=accumulation(grad.dtype),
    )
    return folded.astype(grad.dtype)


@general(
    # Vectors are multiplied by `dot`, which the CPU's autocast leaves alone.
    autocast=dict(
        cpu=lambda input, other: (
            "short" if min(ranks := (input.dim(), other.dim())) > 0 and max(ranks) > 1 else None
        )
    ),
    method=True,
    out="exact",
    derivatives=dict(
        input=lambda grad, other, input_shape: _inner_grad(grad, other, input_shape, True),
        other=lambda grad, input, other_shape: _inner_grad(grad, input, other_shape, False),
    ),
)
def inner(input: Array, other: Array) -> Array:
    """The sum of products over the last dimension of both; a plain product if one is a number.

    Shape: `input` `(*a, n)`, `other` `(*b, n)`, result `(*a, *b)`.

    Raises: RuntimeError where sizes do not fit.
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    x, y = dtype_of(input), dtype_of(other)
    if x is not y:
        raise RuntimeError(f"expected scalar type {x.scalar_name} but found {y.scalar_name}")
    if input.ndim == other.ndim == 1:
        refuse_bool("dot", input)
    wide = accumulation(input.dtype)
    dims = (((input.ndim - 1,), (other.ndim - 1,)), ((), ()))
    out = lax.dot_general(input, other, dims, precision=matmul_precision(), preferred_element_type=wide)
    return out.astype(input.dtype)


def _outer_kernel(input: Any, vec2: Any, name: str = "outer") -> Any:
    for what, vector in (("self", input), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"{name}: Expected 1-D argument {what}, but got {vector.ndim}-D")
    dtype = dtypes.promote_types(dtype_of(input), dtype_of(vec2)).numpy
    return input.astype(dtype)[:, None] * vec2.astype(dtype)[None, :]


@general(
    aliases=("ger",),
    method=True,
    out=True,
    derivatives=dict(
        input=lambda grad, vec2: product(grad, jnp.conj(vec2).astype(grad.dtype)),
        vec2=lambda grad, input: product(grad.T, jnp.conj(input).astype(grad.dtype)),
    ),
)
def outer(input: Array, vec2: Array) -> Array:
    """The outer product of two vectors.

    Shape: `input` `(n)`, `vec2` `(m)`, result `(n, m)`.

    >>> xtensor.outer(xtensor.tensor([1, 2]), xtensor.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    return _outer_kernel(input, vec2)


ger = outer


# ---- linear --------------------------------------------------------------------------------------------------------


def _linear_input(grad: Array, weight: Array) -> Array:
    wide = accumulation(grad.dtype)
    dims = (((grad.ndim - 1,), (0,)), ((), ()))
    if weight.ndim == 1:
        return grad[..., None] * jnp.conj(weight).astype(grad.dtype)
    out = lax.dot_general(
        grad,
        jnp.conj(weight).astype(grad.dtype),
        dims,
        precision=matmul_precision(),
        preferred_element_type=wide,
    )
    return out.astype(grad.dtype)


def _linear_weight(grad: Array, input: Array, weight_shape: Any) -> Array:
    wide = accumulation(grad.dtype)
    batch = tuple(range(input.ndim - 1))
    out = lax.dot_general(
        grad,
        jnp.conj(input).astype(grad.dtype),
        ((batch, batch), ((), ())),
        precision=matmul_precision(),
        preferred_element_type=wide,
    )
    return out.astype(grad.dtype).reshape(tuple(weight_shape))


@general(
    autocast="short",
    out="exact",
    derivatives=dict(input=_linear_input, weight=_linear_weight, bias=lambda grad: grad),
)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """`input @ weight.T + bias` over the last dimension of `input`; `weight` is `(out, in)` or `(in,)`.

    Shape: `input` `(*, in)`, `weight` `(out, in)` or `(in)`, `bias` `(out)` or `()`; result `(*, out)` or
    `(*)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> weight, bias = xtensor.tensor([[1.0, 1.0], [0.0, 2.0]]), xtensor.tensor([0.5, 0.5])
    >>> F.linear(xtensor.tensor([1.0, 2.0]), weight, bias)
    tensor([3.5000, 4.5000])
    """
    if input.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if weight.ndim == 1:
        check_product(input, weight)
    else:
        rows = 1
        for size in input.shape[:-1]:
            rows *= size
        if input.shape[-1] != weight.shape[1]:
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and "
                f"{weight.shape[1]}x{weight.shape[0]})"
            )
    x, w = dtype_of(input), dtype_of(weight)
    if x is not w:
        if bias is not None:
            raise RuntimeError(
                f"mat1 and mat2 must have the same dtype, but got {x.scalar_name} and {w.scalar_name}"
            )
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {dtypes.c_name(x)} != {dtypes.c_name(w)}"
        )
    if bias is not None and dtype_of(bias) is not x:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {dtype_of(bias).scalar_name} and {w.scalar_name}"
        )
    refuse_bool("addmm_impl_cpu_", input, weight)
    wide = accumulation(input.dtype)
    dims = (((input.ndim - 1,), (weight.ndim - 1,)), ((), ()))
    out = lax.dot_general(input, weight, dims, precision=matmul_precision(), preferred_element_type=wide)
    if bias is not None:
        check_expand(bias, out.shape)
        out = out + bias.astype(out.dtype)
    return out.astype(input.dtype)


# ---- more operands -------------------------------------------------------------------------------------------------


@general(
    autocast=dict(accelerator="widest"),
    derivatives=dict(
        input1=lambda grad, input2, weight: contract(
            "...o,...j,oij->...i", grad, jnp.conj(input2), jnp.conj(weight)
        ),
        input2=lambda grad, input1, weight: contract(
            "...o,...i,oij->...j", grad, jnp.conj(input1), jnp.conj(weight)
        ),
        weight=lambda grad, input1, input2: contract(
            "bo,bi,bj->oij",
            grad.reshape(-1, grad.shape[-1]),
            jnp.conj(input1).reshape(-1, input1.shape[-1]),
            jnp.conj(input2).reshape(-1, input2.shape[-1]),
        ),
        bias=lambda grad: grad,
    ),
)
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """`input1 @ weight[o] @ input2 + bias[o]` for every output `o`; `weight` is `(out, in1, in2)`.

    Shape: `input1` `(*, in1)`, `input2` `(*, in2)`, `weight` `(out, in1, in2)`, `bias` `(out)`, result `(*,
    out)`.

    Raises: RuntimeError where sizes do not fit.
    """
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for d in range(input1.ndim - 1):
        if input1.shape[d] != input2.shape[d]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {input1.shape[d]} and {input2.shape[d]}"
            )
    for i, given in ((1, input1), (2, input2)):
        if given.shape[-1] != weight.shape[i]:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {given.shape[-1]} but expected "
                f"{weight.shape[i]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )
    out = contract("...i,oij,...j->...o", input1, weight, input2)
    return out if bias is None else out + bias


@of_tensors()
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, multiplied in the order that costs least. Deprecated: use `linalg.multi_dot`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for bool
    tensors.
    """
    checks.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        UserWarning,
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.dim()}, expected 2 instead.")
    given = list(matrices)
    if len(given) > 1:
        return multiply_chain(given, out)
    if out is None:
        return given[0]
    write_out("chain_matmul", out, given[0].to(out.dtype), given)
    return out


def multiply_chain(matrices: list[Tensor], out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices by the cheapest bracketing (the classic dynamic program)."""
    sizes = [m.shape[0] for m in matrices] + [matrices[-1].shape[1]]
    n = len(matrices)
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )

    def product_of(i: int, j: int) -> Tensor:
        if i == j:
            return matrices[i]
        k = split[i][j]
        top = (i, j) == (0, n - 1)
        return mm(product_of(i, k), product_of(k + 1, j), out=out if top else None)

    return product_of(0, n - 1)
