"""torchaudio's operators against their definitions, written out."""

import itertools
import pathlib

import numpy as np
import pytest

import xtensor


@pytest.fixture(scope="module", autouse=True)
def extension():
    for name in ("_torchaudio.abi3.so", "libtorchaudio.abi3.so"):
        xtensor.library.ops.load_library(pathlib.Path("somewhere") / "torchaudio" / "lib" / name)


def ops():
    return xtensor.library.ops.torchaudio


def normal(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32)


def test_the_library_tells_of_itself():
    assert xtensor.library.ops._torchaudio.cuda_version() is None
    assert xtensor.library.ops._torchaudio.is_align_available() is True


@pytest.mark.parametrize("order", [1, 2, 4])
def test_recursive_filters(order):
    x = normal(2, 3, 131)
    a = normal(3, order, seed=1, scale=0.2)
    a[:, -1] = 1
    out = xtensor.zeros(2, 3, 131 + order - 1)
    out[..., : order - 1] = 0.5
    ops()._lfilter_core_loop(xtensor.tensor(x), xtensor.tensor(a), out)
    right = np.zeros(out.shape, np.float64)
    right[..., : order - 1] = 0.5
    for t in range(131):
        right[..., t + order - 1] = x[..., t] - (right[..., t : t + order] * a).sum(-1)
    np.testing.assert_allclose(out.numpy(), right, rtol=1e-4, atol=1e-5)


def test_overdrive():
    wave, driven = normal(2, 131), normal(2, 131, seed=1)
    last_in, last_out, out = (xtensor.zeros(2), xtensor.zeros(2), xtensor.zeros(2, 131))
    ops()._overdrive_core_loop(xtensor.tensor(wave), xtensor.tensor(driven), last_in, last_out, out)
    held, made, right = np.zeros(2), np.zeros(2), np.zeros((2, 131))
    for t in range(131):
        made = driven[:, t] - held + 0.995 * made
        held = driven[:, t]
        right[:, t] = wave[:, t] * 0.5 + made * 0.75
    np.testing.assert_allclose(out.numpy(), right, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last_in.numpy(), held)
    np.testing.assert_allclose(last_out.numpy(), made, rtol=1e-5)


def loss_of(shares, target, frames, length, blank):
    """Over all paths: which of the steps emit."""
    total = -np.inf
    for emits in itertools.combinations(range(frames - 1 + length), length):
        t = u = 0
        path = 0.0
        for step in range(frames - 1 + length):
            if step in emits:
                path += shares[t, u, target[u]]
                u += 1
            else:
                path += shares[t, u, blank]
                t += 1
        total = np.logaddexp(total, path + shares[t, u, blank])
    return -total


@pytest.mark.parametrize("fused", [True, False])
def test_transducers(fused):
    logits = normal(2, 4, 3, 5)
    targets, frames, lengths = np.array([[1, 3], [2, 0]]), np.array([4, 3]), np.array([2, 1])
    shares = logits.astype(np.float64)
    if fused:
        shares = shares - np.log(np.exp(shares).sum(-1, keepdims=True))
    given = [xtensor.tensor(v, dtype=xtensor.int32) for v in (targets, frames, lengths)]
    costs, grads = ops().rnnt_loss_forward(xtensor.tensor(logits), *given, 4, -1.0, fused)
    right = [loss_of(s, t, f, n, 4) for s, t, f, n in zip(shares, targets, frames, lengths)]
    np.testing.assert_allclose(costs.numpy(), right, rtol=1e-5)
    moved = logits.astype(np.float64)
    for place in [(0, 1, 1, 3), (0, 0, 0, 4), (1, 2, 1, 4), (1, 3, 2, 0)]:
        found = []
        for sign in (1, -1):
            tried = moved.copy()
            tried[place] += sign * 1e-5
            if fused:
                tried = tried - np.log(np.exp(tried).sum(-1, keepdims=True))
            i = place[0]
            found.append(loss_of(tried[i], targets[i], frames[i], lengths[i], 4))
        assert grads[place].item() == pytest.approx((found[0] - found[1]) / 2e-5, rel=1e-3, abs=1e-6)
    _, clamped = ops().rnnt_loss_forward(xtensor.tensor(logits), *given, 4, 0.1, fused)
    np.testing.assert_array_equal(clamped.numpy(), grads.clamp(-0.1, 0.1).numpy())
    with pytest.raises(RuntimeError, match="output length mismatch"):
        ops().rnnt_loss_forward(xtensor.tensor(logits[:, :, :2]), *given, 4, -1.0, fused)


@pytest.mark.parametrize("labels", [[1, 2], [2, 2], [1], [3, 1, 1]])
def test_alignments_are_the_likeliest(labels):
    shares = normal(6, 4, seed=len(labels))
    shares -= np.log(np.exp(shares).sum(-1, keepdims=True))
    given = xtensor.tensor(shares[None]), xtensor.tensor([labels])
    path, scores = ops().forced_align(*given, xtensor.tensor([6]), xtensor.tensor([len(labels)]), 0)

    def read(path):
        return [p for p, _ in itertools.groupby(path) if p]

    best = max(
        (p for p in itertools.product(range(4), repeat=6) if read(p) == labels),
        key=lambda p: shares[np.arange(6), p].sum(),
    )
    assert path.tolist() == [list(best)] and path.dtype is xtensor.int64
    assert scores.tolist() == given[0].tolist()


def test_an_alignment_needs_a_frame_for_every_label():
    given = xtensor.zeros(1, 3, 4), xtensor.tensor([[1, 1, 2]])
    with pytest.raises(RuntimeError, match="too long for CTC"):
        ops().forced_align(*given, xtensor.tensor([3]), xtensor.tensor([3]), 0)
