"""What random numbers are not written to, and arguments that come in tensors."""

import pytest

import xtensor as x


@pytest.mark.parametrize(
    "draw",
    [
        lambda t: t.bernoulli_(),
        lambda t: t.bernoulli_(x.ones(3) / 2),
        lambda t: t.normal_(),
        lambda t: t.random_(),
        lambda t: t.uniform_(),
        lambda t: t.exponential_(),
    ],
)
def test_elements_that_share_memory_are_not_drawn(draw):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        draw(x.ones(1).expand(3))


def test_sections_in_a_tensor():
    with pytest.raises(RuntimeError, match="to have dtype of long, but got Float"):
        x.ones(3).tensor_split(x.tensor(1.5))
    with pytest.raises(
        RuntimeError, match="zero-dimensional or one-dimensional tensor, but got a tensor with 2 dims"
    ):
        x.ones(3).tensor_split(x.ones(2, 2, dtype=x.int64))
    assert [len(p) for p in x.ones(5).tensor_split(x.tensor([1, 3]))] == [1, 2, 2]


def test_a_length_in_a_tensor_is_a_length():
    part = x.arange(6.0).narrow(0, x.tensor(1, dtype=x.int32), x.tensor(2, dtype=x.int32))
    assert part.shape == (2,)
    assert part.sum().item() == 3
