"""What programs ask of sparse, quantised and nested tensors, answered for dense ones.

Making a layout that is absent raises NotImplementedError; asking a dense tensor for its parts raises what PyTorch raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ... import checks, dtypes
from ...operators.attach import attach_methods
from ...operators.functions.overloads import overloads
from ...tensor import Tensor, sizes_of

__all__ = [
    "dequantize",
    "eig",
    "is_distributed",
    "lstsq",
    "matrix_rank",
    "solve",
    "symeig",
]


def refusal(name: str, kind: type[Exception], message: str, doc: str) -> Callable[..., NoReturn]:
    """A function that raises, whatever it is given."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise kind(message)

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = doc if "Raises: " in doc else f"{doc}\n\nRaises: {kind.__name__} whatever is given."
    return refused


def unsupported(name: str) -> Callable[..., NoReturn]:
    """A function that would make another layout."""
    message = f"{name}(): MKL-DNN layouts are not supported"
    return refusal(name, NotImplementedError, message, "Not supported: such a layout is absent.")


def removed(name: str, instead: str) -> Callable[..., NoReturn]:
    message = f"This function was deprecated since version 1.9 and is now removed. Use `{instead}` instead."
    return refusal(name, RuntimeError, message, f"Removed: use `{instead}`.")


def part(name: str, layout: str) -> Callable[..., NoReturn]:
    """A function that gives a part of a layout that no tensor has."""
    message = f"{name} expected {layout} tensor layout but got Strided"
    return refusal(
        name,
        RuntimeError,
        message,
        "What a tensor in another layout has.\n\nRaises: RuntimeError for a dense tensor.",
    )


eig, solve = removed("eig", "linalg.eig"), removed("solve", "linalg.solve")
symeig = removed("symeig", "linalg.eigh")
lstsq, matrix_rank = removed("lstsq", "linalg.lstsq"), removed("matrix_rank", "linalg.matrix_rank")


@overloads(
    "Tensor input",
    "tuple of Tensors tensors",
)
def dequantize(input: Any) -> Any:
    """The tensor in float32: of a quantised one the real numbers, of a list each tensor.

    Shape: that of the tensor itself.

    Raises: NotImplementedError for sparse tensors.
    """
    if isinstance(input, (list, tuple)):
        return [t.dequantize() for t in input]
    return input.to(dtypes.float32)


def is_distributed(input: Tensor) -> bool:
    """False: a tensor is one process's.

    Raises: nothing of its own.
    """
    return False


def sparse_dim(self: Tensor) -> int:
    """0: no dimension is sparse.

    Raises: NotImplementedError for quantised tensors.
    """
    return 0


def dense_dim(self: Tensor) -> int:
    """How many dimensions there are: all are dense.

    Raises: NotImplementedError for quantised tensors.
    """
    return len(sizes_of(self))


def to_dense(self: Tensor, dtype: dtypes.dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, or converted to `dtype`.

    Shape: that of the tensor itself.

    Raises: NotImplementedError for quantised tensors.
    """
    return self if dtype is None else self.to(dtype)


def const_data_ptr(self: Tensor) -> int:
    """`data_ptr`, for who only reads.

    Raises: RuntimeError for sparse tensors.
    """
    return self.data_ptr()


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """`reshape`, by its deprecated name.

    Shape: `(*)` of as many elements as `sizes`; result `sizes`.

    Raises: RuntimeError for another number of elements.
    """
    checks.warn("non-inplace resize is deprecated")
    return self.reshape(*sizes)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`reshape` to another tensor's sizes, by its deprecated name.

    Shape: `(*)` of as many elements as `tensor`; result that of `tensor`.

    Raises: RuntimeError where sizes do not fit.
    """
    checks.warn("non-inplace resize_as is deprecated")
    return self.reshape(tuple(sizes_of(tensor)))


MAKERS = ("to_mkldnn", "sparse_resize_", "sparse_resize_and_clear_")
MAKERS += ("resize_as_sparse_",)
PARTS = {
    "coalesce": "sparse coordinate",
    "is_coalesced": "sparse coordinate",
    "indices": "sparse coordinate",
    "values": "sparse",
    "crow_indices": "sparse row compressed",
    "col_indices": "sparse row compressed",
    "ccol_indices": "sparse column compressed",
    "row_indices": "sparse column compressed",
}
attach_methods(
    const_data_ptr,
    dense_dim,
    dequantize,
    eig,
    is_distributed,
    lstsq,
    resize,
    resize_as,
    solve,
    sparse_dim,
    to_dense,
)
attach_methods(
    **{name: unsupported(name) for name in MAKERS},
    **{name: part(name, layout) for name, layout in PARTS.items()},
    to_padded_tensor=refusal(
        "to_padded_tensor",
        NotImplementedError,
        "Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom build).",
        "Of nested tensors.\n\nRaises: NotImplementedError for a dense one.",
    ),
    reinforce=refusal("reinforce", RuntimeError, "reinforce() was removed.", "Removed."),
    symeig=symeig,
)
