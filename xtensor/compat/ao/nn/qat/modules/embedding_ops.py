"""Tables whose rows are rounded in training."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn import functional as F
from ......nn.modules import sparse as floating
from ......nn.parameter import Parameter
from ......tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


def rounding(module: Any, qconfig: Any) -> None:
    """Give a table what rounds it; AssertionError for a scheme without floating zero points."""
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    made = qconfig.weight()
    if made.qscheme is not dtypes.per_channel_affine_float_qparams:
        raise AssertionError(
            f"Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams Got {made.qscheme}"
        )
    module.qconfig, module.weight_fake_quant = qconfig, made


def check_float(cls: Any, mod: Any) -> None:
    if type(mod) is not cls._FLOAT_MODULE:
        raise AssertionError(f" qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")
    if mod.qconfig.weight().qscheme is not dtypes.per_channel_affine_float_qparams:
        raise AssertionError(
            "Embedding weights requires a qscheme of torch.per_channel_affine_float_qparams "
            f"Got {mod.qconfig.weight().qscheme}"
        )


class Embedding(floating.Embedding):
    """A table with rounded rows."""

    _FLOAT_MODULE: Any = floating.Embedding

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        device: Any = None,
        dtype: Any = None,
        qconfig: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            device=device,
            dtype=dtype,
        )
        rounding(self, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        """The rounded rows."""
        weight = self.weight_fake_quant(self.weight)
        how = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, weight, *how)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float table with a qconfig, whose parameter it is."""
        check_float(cls, mod)
        how = (mod.padding_idx, mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.sparse)
        return cls(mod.num_embeddings, mod.embedding_dim, *how, mod.weight, qconfig=mod.qconfig)

    def to_float(self) -> Any:
        """A float table with a copy of the parameter."""
        how = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        made = floating.Embedding(self.num_embeddings, self.embedding_dim, *how, None)
        made.weight = Parameter(self.weight.detach())
        made.train(self.training)
        return made


class EmbeddingBag(floating.EmbeddingBag):
    """Sums of rounded rows."""

    _FLOAT_MODULE: Any = floating.EmbeddingBag

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight,
            include_last_offset,
            padding_idx,
            device=device,
            dtype=dtype,
        )
        rounding(self, qconfig)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """The sum, or what the mode says, of the rounded rows of each bag."""
        weight = self.weight_fake_quant(self.weight)
        return F.embedding_bag(
            input,
            weight,
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

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float table with a qconfig, whose parameter it is."""
        check_float(cls, mod)
        given: Any = (*sizes(mod), mod.weight, mod.include_last_offset, mod.padding_idx)
        return cls(*given, qconfig=mod.qconfig)

    def to_float(self) -> Any:
        """A float table with a copy of the parameter."""
        given: Any = (*sizes(self), None, self.include_last_offset, self.padding_idx)
        made = floating.EmbeddingBag(*given)
        made.weight = Parameter(self.weight.detach())
        made.train(self.training)
        return made


def sizes(mod: Any) -> Any:
    how = (mod.max_norm, mod.norm_type, mod.scale_grad_by_freq, mod.mode, mod.sparse)
    return (mod.num_embeddings, mod.embedding_dim, *how)
