"""Embeddings: rows of a table by their numbers."""

from __future__ import annotations

from typing import Any, TypeVar

from ...engine import no_grad
from ...ops.create.creation import empty
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]

E = TypeVar("E", bound="_Table")


def checked_padding(padding_idx: int | None, rows: int) -> int | None:
    """The row that stands for padding, counted from the front."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < max(rows, 1):
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def sizes_of_table(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return embeddings.shape[0], embeddings.shape[1]


class _Table(Module):
    weight: Tensor
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool

    def _set_table(
        self, rows: int, columns: int, weight: Tensor | None, freeze: bool, device: Any, dtype: Any
    ) -> None:
        if weight is None:
            made = empty((rows, columns), device=device, dtype=dtype)
            self.weight = Parameter(made, requires_grad=not freeze)
            self.reset_parameters()
            return
        if list(weight.shape) != [rows, columns]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=not freeze)

    def _told_norms(self) -> str:
        text = "" if self.max_norm is None else f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text

    def reset_parameters(self) -> None:
        """Draw the table from a normal distribution, the padding row zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of `num_embeddings` vectors; the input holds row numbers.

    The gradient of row `padding_idx` is zero. With `max_norm`, longer rows are scaled down where they are used.

    Shape: input `(*)` of integers, output `(*, embedding_dim)`.

    Raises: IndexError where an index is out of range; AssertionError where `padding_idx` is out of range.

    >>> table = nn.Embedding(10, 3, padding_idx=0)
    >>> table(xtensor.tensor([[1, 2], [0, 4]])).shape
    xtensor.Size([2, 2, 3])
    >>> table(xtensor.tensor([0])).tolist()
    [[0.0, 0.0, 0.0]]
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = checked_padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._set_table(num_embeddings, embedding_dim, _weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        text += self._told_norms()
        if self.sparse is not False:
            text += ", sparse=True"
        return text

    @classmethod
    def from_pretrained(
        cls: type[Any],
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Any:
        """An Embedding over a given table, which learns only if not frozen."""
        rows, columns = sizes_of_table(embeddings)
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table, without the rows themselves.

    The input is (B, N), or a row of indices with `offsets`, the place at which each bag begins.

    Shape: input `(B, N)`, or `(N)` with offsets `(B)`; output `(B, embedding_dim)`.

    Raises: ValueError for an input of one dimension without `offsets`.

    >>> bags = nn.EmbeddingBag.from_pretrained(xtensor.tensor([[1.0, 1.0], [3.0, 5.0]]))
    >>> bags(xtensor.tensor([0, 1, 1]), xtensor.tensor([0, 2]))
    tensor([[2., 3.],
            [3., 5.]])
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None and not -num_embeddings <= padding_idx < max(num_embeddings, 1):
            raise AssertionError("padding_idx must be within num_embeddings")
        self.padding_idx = checked_padding(padding_idx, num_embeddings)
        self._set_table(num_embeddings, embedding_dim, _weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """One row (B, embedding_dim) per bag; `per_sample_weights` are for mode "sum" only."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += self._told_norms()
        text += f", mode={self.mode!r}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text

    @classmethod
    def from_pretrained(
        cls: type[Any],
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:
        """An EmbeddingBag over a given table, which learns only if not frozen."""
        rows, columns = sizes_of_table(embeddings)
        made = cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
