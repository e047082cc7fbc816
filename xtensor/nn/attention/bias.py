"""Masks of causal attention that are not written out: `scaled_dot_product_attention` takes them as `attn_mask`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Self

from ... import checks, devices, dtypes
from ...ops.create.creation import empty, ones
from ...ops.network.attention import scaled_dot_product_attention
from ...ops.shape.rearranging import tril
from ...tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a mask begins that is not square: at the first key, or so that it ends at the last."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(Tensor):
    """A mask by which a query sees no later key: its sizes and the place of its diagonal, and no values.

    Shape: `(seq_len_q, seq_len_kv)`.

    Raises: AssertionError where the variant is none; ValueError where attention is told `is_causal` too.

    Differs from PyTorch: its sizes are those of the mask.

    >>> from xtensor.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Self:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        made: Any = empty(seq_len_q, seq_len_kv, device="meta").as_subclass(cls)
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            checks.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
            )

    def _materialize(self, device: devices.DeviceLike = None) -> Tensor:
        """The mask with its values: whether a query sees a key."""
        lower = self.variant is CausalVariant.LOWER_RIGHT
        whole = ones(self.seq_len_q, self.seq_len_kv, dtype=dtypes.bool, device=device)
        return tril(whole, self.seq_len_kv - self.seq_len_q if lower else 0)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is scaled_dot_product_attention:
            return attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self, **_: Any) -> str:
        return repr(self._materialize())


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: CausalBias,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention under such a mask: by the formula that knows it as causal, or where its diagonal is shifted by its values."""
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    aligned = attn_mask.variant is CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
    return scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=None if aligned else attn_mask._materialize(query.device),
        dropout_p=dropout_p,
        is_causal=aligned,
        scale=scale,
        enable_gqa=enable_gqa,
    )


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of these two sizes whose diagonal begins at the first key."""
    return causal("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of these two sizes whose diagonal ends at the last query and key."""
    return causal("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def causal(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)
