"""Sparse tensors as PyTorch prints them."""

from __future__ import annotations

from typing import Any

from .. import checks, dtypes, printing
from ..ops.tensor.display import grad_fn_name
from ..tensor import Tensor
from .construct import names_of
from .layout import HANDLERS, SparseTensor, handles, is_coo

__all__: list[str] = []


def part(name: str, tensor: Tensor, indent: str) -> str:
    """One of the parts; of an empty one its sizes too."""
    text = repr(tensor.detach())
    if tensor.is_meta:
        text = f"tensor(..., size={tuple(tensor.shape)})"
    elif tensor.numel() == 0:
        text = f"tensor([], size={tuple(tensor.shape)})"
    else:
        text = plain_dtype(text)
    pad = " " * (len(indent) + len(name) + 1)
    return f"{name}=" + "\n".join(
        [line and (pad + line if i else line) for i, line in enumerate(text.split("\n"))]
    )


def plain_dtype(text: str) -> str:
    """A part's text without its dtype, which the whole says."""
    head, found, _ = text.rpartition(", dtype=")
    if found:
        return head.rstrip() + ")"
    head, found, _ = text.rpartition(",\n       dtype=")
    return head + ")" if found else text


@handles("__repr__", "__str__")
def represent(self: SparseTensor, *, tensor_contents: str | None = None) -> str:
    """The tensor as text."""
    indent = "tensor("
    size = tuple(self.shape)
    if is_coo(self):
        names: Any = ("indices",)
    else:
        names = names_of(self._layout)
    parts = [part(n, t, indent) for n, t in zip((*names, "values"), self._held, strict=True)]
    nnz = HANDLERS["_nnz"](self)
    ends = [f"size={size}"] if self.is_meta else [f"size={size}", f"nnz={nnz}"]
    if str(self.device) != "cpu":
        ends.insert(0, f"device='{self.device}'")
    if self.dtype not in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool, dtypes.complex64):
        ends.append(f"dtype={self.dtype}")
    ends.append(f"layout={checks.spelled(str(self._layout).partition('.')[2])}")
    edge = grad_fn_name(self)
    if edge is not None:
        ends.append(f"grad_fn=<{edge}>")
    elif self.requires_grad:
        ends.append("requires_grad=True")
    text = indent + (",\n" + " " * len(indent)).join(parts)
    return printing.add_suffixes(text, ends, len(indent), apart=is_coo(self))


SparseTensor.__repr__ = represent
