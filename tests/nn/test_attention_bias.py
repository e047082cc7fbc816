"""Causal masks that are not written out."""

from importlib import import_module

import pytest

import xtensor as x
from xtensor.nn.attention.bias import (
    CausalBias,
    CausalVariant,
    causal_lower_right,
    causal_upper_left,
)

attend = x.nn.functional.scaled_dot_product_attention


@pytest.mark.parametrize("made", [causal_lower_right, causal_upper_left])
@pytest.mark.parametrize("keys", [3, 5])
def test_attention_is_that_under_their_values(torch, made, keys):
    query, key = x.linspace(-1, 1, 12).reshape(1, 3, 4), x.linspace(0, 2, keys * 4).sin().reshape(1, keys, 4)
    bias = made(3, keys)
    found = attend(query, key, key, attn_mask=bias)
    assert x.allclose(found, attend(query, key, key, attn_mask=bias._materialize()), atol=1e-6)
    theirs = getattr(import_module("torch.nn.attention.bias"), made.__name__)(3, keys)
    assert bias._materialize().tolist() == theirs._materialize().tolist()
    assert repr(bias) == repr(theirs)


def test_errors():
    query = x.ones(1, 2, 4)
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attend(query, query, query, attn_mask=causal_upper_left(2, 2), is_causal=True)
    with pytest.raises(AssertionError, match="causal_upper_left only supports 2D tensors"):
        causal_upper_left(1, 2, 3)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        CausalBias(1, 2, 3)
    with pytest.warns(UserWarning, match="will produce NaNs in the output when seq_len_q > seq_len_kv"):
        assert causal_lower_right(3, 2).variant is CausalVariant.LOWER_RIGHT
