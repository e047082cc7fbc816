"""Tables of quantised rows: each row has a scale and a floating zero point of its own."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn.modules.module import Module
from ......ops.create.creation import ones, zeros
from ......quantized.construct import _empty_per_channel_affine_quantized
from ......quantized.functions import embedding_bag_byte, embedding_byte
from ......tensor import Tensor
from .utils import _quantize_weight, shown

__all__ = ["Embedding", "EmbeddingBag"]


class EmbeddingPackedParams(Module):
    """The table."""

    _version = 1
    _packed_weight: Any

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: dtypes.dtype = dtypes.quint8) -> None:
        super().__init__()
        self.dtype = dtype
        self.set_weight(blank(num_embeddings, embedding_dim, dtype))

    def set_weight(self, weight: Any) -> None:
        """Hold a table."""
        check_dtype(self.dtype)
        self.__dict__["_packed_weight"] = weight

    def _weight(self) -> Any:
        return self._packed_weight

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_weight"] = self._weight()

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        self.dtype = state_dict.pop(f"{prefix}dtype")
        self.set_weight(state_dict.pop(f"{prefix}_packed_weight"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def __repr__(self) -> str:
        return repr(self._weight())


def check_dtype(dtype: dtypes.dtype) -> None:
    if dtype is not dtypes.quint8:
        raise NotImplementedError(
            f"Unsupported dtype on quantized embedding! Supports quint8. Got dtype: {dtype}"
        )


def blank(rows: int, columns: int, dtype: dtypes.dtype) -> Any:
    check_dtype(dtype)
    return _empty_per_channel_affine_quantized(
        rows, columns, scales=ones(rows), zero_points=zeros(rows), axis=0, dtype=dtype
    )


class Embedding(Module):
    """A table of quantised rows: indices to real rows.

    Differs from PyTorch: of 8 bits only.
    """

    _version = 1

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
        dtype: dtypes.dtype = dtypes.quint8,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is None:
            _weight = blank(num_embeddings, embedding_dim, dtype)
        elif list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        self._packed_params.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        """The rows, real."""
        return embedding_byte(self._packed_params._packed_weight, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return shown(self, EmbeddingPackedParams)

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Any) -> None:
        """Hold a table."""
        self._packed_params.set_weight(w)

    def weight(self) -> Any:
        """The table, quantised."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a real table with a qconfig; AssertionError for a scheme without floating zero points."""
        if not hasattr(mod, "weight_fake_quant") and not hasattr(mod, "qconfig"):
            raise AssertionError(f"{cls.__name__} input float module must have qconfig defined")
        seen = mod.weight_fake_quant if hasattr(mod, "weight_fake_quant") else mod.qconfig.weight()
        if seen.qscheme is not dtypes.per_channel_affine_float_qparams:
            raise AssertionError(
                f"{cls.__name__} quantization is only supported with float_qparams_weight_only_qconfig."
            )
        check_dtype(seen.dtype)
        seen(mod.weight)
        made = cls.like(mod, seen.dtype)
        made.set_weight(_quantize_weight(mod.weight.float(), seen))
        return made

    @classmethod
    def like(cls, mod: Any, dtype: dtypes.dtype) -> Any:
        """A table of the same size."""
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype)

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """Of a table that knows its scales, and computes with real numbers."""
        made = cls.like(ref_embedding, ref_embedding.weight_dtype)
        made.set_weight(ref_embedding.get_quantized_weight())
        return made


class EmbeddingBag(Embedding):
    """Sums of quantised rows: indices and offsets to real sums.

    Differs from PyTorch: of 8 bits only.
    """

    _version = 1

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "sum",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        dtype: dtypes.dtype = dtypes.quint8,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights, self.include_last_offset = mode, False, include_last_offset

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:
        """The sum of the rows of each bag, real."""
        table, last = self._packed_params._packed_weight, self.include_last_offset
        return embedding_bag_byte(
            table, indices, offsets, per_sample_weights=per_sample_weights, include_last_offset=last
        )

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def like(cls, mod: Any, dtype: dtypes.dtype) -> Any:
        """A table of the same size."""
        how = {"mode": mod.mode, "include_last_offset": mod.include_last_offset}
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype, **how)
