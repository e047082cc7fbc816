"""`flex_attention` and block masks: PyTorch's lists and values, and the gradients of dense attention."""

import numpy as np
import pytest

import xtensor
from xtensor.nn.attention import flex_attention as flex

DOCUMENTS = [0] * 7 + [1] * 9 + [2] * 8


def mask_of(t):
    document = t.tensor(DOCUMENTS)
    return lambda b, h, q, k: (q >= k) & (document[q] == document[k]) & ((b == 0) | (k > 2))


def inputs(t, rng, heads=2):
    shapes = (2, 4, 20, 4), (2, heads, 24, 4), (2, heads, 24, 4)
    return [t.from_numpy(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


def blocks(t, create, size):
    return create(mask_of(t), 2, None, 20, 24, device="cpu", BLOCK_SIZE=size)


@pytest.mark.parametrize("size", [8, (4, 8), 32])
def test_masks_list_the_blocks_that_pytorch_lists(torch, size):
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    a, b = blocks(xtensor, flex.create_block_mask, size), blocks(torch, theirs.create_block_mask, size)
    for name in flex.BlockMask.LISTS:
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    assert a.shape == b.shape and a.numel() == b.numel() and a.sparsity() == pytest.approx(b.sparsity())
    assert a.to_dense().tolist() == b.to_dense().tolist() and a[0].shape == b[0].shape
    assert a._adjust(9, 11).kv_num_blocks.tolist() == b._adjust(9, 11).kv_num_blocks.tolist()
    assert repr(a).splitlines()[9:] == repr(b).splitlines()[9:]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [8, 32])
def test_values_are_pytorch_s(torch, rng, size):
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    state = rng.bit_generator.state
    found = []
    for t, f in ((xtensor, flex), (torch, theirs)):
        rng.bit_generator.state = state
        q, k, v = inputs(t, rng)
        bias = t.from_numpy(rng.standard_normal((4, 24)).astype(np.float32))
        chosen = {"block_mask": blocks(t, f.create_block_mask, size), "enable_gqa": True, "return_lse": True}
        score = lambda s, b, h, i, j, bias=bias: s + bias[h, j] - (i - j).abs() * 0.1
        found.append([x.numpy() for x in f.flex_attention(q, k, v, score_mod=score, scale=0.4, **chosen)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert np.isneginf(found[0][1]).any()


def test_gradients_are_those_of_dense_attention(rng):
    q, k, v = (x.requires_grad_() for x in inputs(xtensor, rng, 4))
    allowed = flex.create_mask(mask_of(xtensor), 2, 4, 20, 24)
    dense = xtensor.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    made = flex.flex_attention(q, k, v, block_mask=blocks(xtensor, flex.create_block_mask, 8))
    (dense**2).sum().backward()
    expected = [x.grad.clone() for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    (made**2).sum().backward()
    np.testing.assert_allclose(made.detach().numpy(), dense.detach().numpy(), rtol=1e-5, atol=1e-6)
    for x, wanted in zip((q, k, v), expected):
        np.testing.assert_allclose(x.grad.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_a_mask_without_a_pair_gives_zeros():
    mask = flex.create_block_mask(lambda b, h, q, k: q - k >= 64, None, None, 64, 64, BLOCK_SIZE=16)
    x = xtensor.ones(1, 1, 64, 4)
    assert float(flex.flex_attention(x, x, x, block_mask=mask).abs().sum()) == 0
    assert mask.sparsity() == 100


def test_shapes_are_checked():
    x = xtensor.ones(1, 2, 5, 4)
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        flex.flex_attention(x, x[:, :1], x[:, :1])
    with pytest.raises(ValueError, match="block_mask was created for"):
        flex.flex_attention(x, x, x, block_mask=flex.create_block_mask(flex.noop_mask, None, None, 9, 9))
    with pytest.raises(NotImplementedError, match="must be 4D tensors"):
        flex.flex_attention(x[0], x[0], x[0])
