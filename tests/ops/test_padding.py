"""Padding by reflection, by the border and round the other side: with negative sizes too, to the last empty dimension."""

import random

import pytest

import xtensor

MODES = ("reflect", "replicate", "circular")
LINES = [((2, n), (low, high)) for n in range(4) for low in range(-5, 5) for high in range(-5, 5)]


def boxes(count):
    rng = random.Random(11)
    for _ in range(count):
        k = rng.choice((1, 2, 3))
        dims = k + rng.choice((1, 2))
        shape = tuple(0 if rng.random() < 0.04 else rng.randint(1, 4) for _ in range(dims))
        yield (
            shape,
            tuple(rng.randint(-5, 5) if rng.random() < 0.4 else rng.randint(-1, 3) for _ in range(2 * k)),
        )


def outcome(t, x, pad, mode):
    try:
        return tuple(t.nn.functional.pad(x, pad, mode=mode).shape)
    except RuntimeError as error:
        return str(error)


def wraps_what_is_cropped(shape, pad):
    """Where PyTorch's circular padding takes memory that nobody wrote, or copies one size to another."""
    return any(
        shape[-1 - i] + min(pad[2 * i], 0) + min(pad[2 * i + 1], 0) < max(pad[2 * i], pad[2 * i + 1], 0)
        or shape[-1 - i] + min(pad[2 * i], 0) + min(pad[2 * i + 1], 0) < 0
        for i in range(len(pad) // 2)
    )


@pytest.mark.parametrize("mode", MODES)
def test_shapes_and_errors(torch, mode):
    for shape, pad in [*LINES, *boxes(400)]:
        expected = outcome(torch, torch.zeros(shape), pad, mode)
        if mode == "circular" and wraps_what_is_cropped(shape, pad) and "Padding value" not in str(expected):
            continue
        if isinstance(expected, tuple) and min(expected) < 0:  # as PyTorch can make of an empty batch
            continue
        assert outcome(xtensor, xtensor.empty(shape, device="meta"), pad, mode) == expected, (shape, pad)


CASES = [
    ((2, 3), (1, 2)),
    ((2, 3), (-1, 2)),
    ((2, 3), (2, -1)),
    ((2, 4), (-6, 3)),
    ((2, 3), (-4, 2)),
    ((2, 3), (2, -4)),
    ((1, 2, 4, 1), (0, 0, -2, -2)),
    ((2, 4, 1, 4), (-1, -1, 0, -1)),
    ((2, 3, 4), (1, 1, -1, -2)),
    ((4, 3, 4), (-1, 1, 1, -4)),
    ((2, 4, 1), (-5, 5, 0, 1)),
    ((2, 2, 2, 2), (1, -1, 1, 1, 1, 0)),
    ((2, 2, 2, 2), (-1, -1, 1, 1, 1, 0)),
    ((0, 2, 3), (1, 1)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "pad"), CASES)
def test_values_and_gradients(torch, shape, pad, mode):
    if mode == "circular" and wraps_what_is_cropped(shape, pad):
        found = outcome(xtensor, xtensor.ones(shape), pad, mode)
        assert "wrapping around more than once" in found if isinstance(found, str) else 0 in found
        return

    def both(t):
        x = t.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape).requires_grad_()
        try:
            y = t.nn.functional.pad(x, pad, mode=mode)
        except RuntimeError as error:
            return str(error)
        (y * t.arange(2.0, 2.0 + y.numel()).reshape(tuple(y.shape))).sum().backward()
        # Of an empty result PyTorch's gradient is memory that nobody wrote.
        return tuple(y.shape), y.tolist(), x.grad.tolist() if y.numel() else [0.0] * x.numel()

    assert both(xtensor) == both(torch)


def test_the_gradient_of_nothing_is_zero():
    x = xtensor.ones(2, 4, 1, 4, requires_grad=True)
    xtensor.nn.functional.pad(x, (-1, -1, 0, -1), mode="replicate").sum().backward()
    assert x.grad.tolist() == xtensor.zeros(2, 4, 1, 4).tolist()
