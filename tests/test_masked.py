"""`xtensor.masked` against NumPy's own masked arrays."""

from __future__ import annotations

import numpy as np
import pytest

import xtensor
from xtensor import masked

VALUES = np.array([[1.0, -2.0, 3.5, 0.5], [4.0, 2.5, -1.0, 7.0], [0.0, 1.0, 2.0, 3.0]])
MASK = np.array([[True, False, True, True], [False, True, True, True], [True, True, False, False]])
KEPT = np.ma.array(VALUES, mask=~MASK)


def ours(name, *args, **kwargs):
    return getattr(masked, name)(xtensor.tensor(VALUES), *args, mask=xtensor.tensor(MASK), **kwargs)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize(
    "name, wanted",
    [
        ("sum", np.ma.sum),
        ("prod", np.ma.prod),
        ("mean", np.ma.mean),
        ("amax", np.ma.max),
        ("amin", np.ma.min),
        ("var", lambda a, axis: np.ma.var(a, axis, ddof=1)),
        ("std", lambda a, axis: np.ma.std(a, axis, ddof=1)),
        ("norm", lambda a, axis: np.sqrt(np.ma.sum(a * a, axis))),
        ("logsumexp", lambda a, axis: np.log(np.ma.sum(np.exp(a), axis))),
    ],
)
def test_reductions(name, wanted, dim):
    found = ours(name, dim=dim)
    np.testing.assert_allclose(found.numpy(), np.ma.filled(wanted(KEPT, axis=dim)), rtol=1e-12)
    assert found.shape == ours(name, dim=dim, keepdim=True).squeeze().shape


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_have_the_dtype_of_the_input(name):
    found = ours(name, 1)
    assert found.dtype is xtensor.float64
    np.testing.assert_array_equal(found.numpy(), getattr(np.ma, name)(KEPT, axis=1))


def test_running_sums_and_products():
    np.testing.assert_allclose(ours("cumsum", 1).numpy(), np.cumsum(np.where(MASK, VALUES, 0), 1))
    np.testing.assert_allclose(ours("cumprod", 0).numpy(), np.cumprod(np.where(MASK, VALUES, 1), 0))


def test_softmax_gives_what_does_not_count_nothing():
    found = ours("softmax", 1).numpy()
    exponentials = np.where(MASK, np.exp(VALUES), 0)
    np.testing.assert_allclose(found, exponentials / exponentials.sum(1, keepdims=True))
    np.testing.assert_allclose(ours("log_softmax", 1).numpy()[MASK], np.log(found[MASK]))
    inverse = np.where(MASK, np.exp(-VALUES), 0)
    np.testing.assert_allclose(ours("softmin", 1).numpy(), inverse / inverse.sum(1, keepdims=True))


def test_median_and_normalize():
    assert ours("median", 1).tolist() == [1.0, 2.5, 0.0]
    length = np.sqrt((np.where(MASK, VALUES, 0) ** 2).sum(1, keepdims=True))
    np.testing.assert_allclose(ours("normalize", 2.0, 1).numpy(), np.where(MASK, VALUES, 0) / length)


def test_logaddexp_takes_a_mask_for_each():
    a, b = xtensor.tensor(VALUES[0]), xtensor.tensor(VALUES[1])
    found = masked.logaddexp(a, b, input_mask=xtensor.tensor(MASK[0]), other_mask=xtensor.tensor(MASK[1]))
    np.testing.assert_allclose(found.numpy()[:2], [VALUES[0, 0], VALUES[1, 1]])
    np.testing.assert_allclose(found.numpy()[2:], np.logaddexp(VALUES[0, 2:], VALUES[1, 2:]))


def test_a_row_of_which_nothing_counts_gives_the_identity():
    nothing = xtensor.zeros(2, 3, dtype=xtensor.bool)
    x = xtensor.ones(2, 3)
    assert masked.sum(x, 1, mask=nothing).tolist() == [0, 0]
    assert masked.prod(x, 1, mask=nothing).tolist() == [1, 1]
    assert masked.amax(x, 1, mask=nothing).tolist() == [-np.inf, -np.inf]
    assert masked.mean(x, 1, mask=nothing).isnan().all()
    assert masked.amin(x.to(xtensor.int32), 1, mask=nothing).tolist() == [2**31 - 1] * 2
    with pytest.raises(ValueError, match="no fully masked out rows"):
        masked.median(x.to(xtensor.int64), 1, mask=nothing)


def test_gradients_stop_at_the_mask():
    x = xtensor.tensor(VALUES).requires_grad_()
    masked.mean(x, mask=xtensor.tensor(MASK)).backward()
    np.testing.assert_allclose(x.grad.numpy(), MASK / MASK.sum())


def test_what_is_refused():
    x = xtensor.ones(2, 3)
    with pytest.raises(IndexError, match="mask dimensionality higher than of the input"):
        masked.sum(x, mask=xtensor.ones(1, 2, 3, dtype=xtensor.bool))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(x.to(xtensor.int64))
    with pytest.raises(RuntimeError, match="appears multiple times"):
        masked.sum(x, (0, 0))
