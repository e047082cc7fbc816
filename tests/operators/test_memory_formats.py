"""Channels last in, channels last out: operators on images keep the order of their input in memory, as in PyTorch."""

import numpy as np
import pytest

import xtensor as x

IMAGE = np.random.default_rng(5).standard_normal((2, 8, 4, 6)).astype(np.float32)

CALLS = {
    "adaptive average": lambda T, v: T.nn.functional.adaptive_avg_pool2d(v, 2),
    "adaptive maximum": lambda T, v: T.nn.functional.adaptive_max_pool2d(v, 2),
    "average": lambda T, v: T.nn.functional.avg_pool2d(v, 2),
    "batch norm": lambda T, v: T.nn.functional.batch_norm(v, None, None, training=True),
    "batch norm of statistics": lambda T, v: T.nn.functional.batch_norm(v, T.zeros(8), T.ones(8)),
    "bilinear": lambda T, v: T.nn.functional.interpolate(v, scale_factor=2, mode="bilinear"),
    "cat": lambda T, v: T.cat([v, v], 1),
    "cat of two formats": lambda T, v: T.cat([v, v.contiguous()], 1),
    "channel shuffle": lambda T, v: T.nn.functional.channel_shuffle(v, 2),
    "circular": lambda T, v: T.nn.functional.pad(v, (1, 1, 1, 1), mode="circular"),
    "convolution": lambda T, v: T.nn.functional.conv2d(v, T.ones(4, 8, 3, 3)),
    "convolution transposed": lambda T, v: T.nn.functional.conv_transpose2d(v, T.ones(8, 4, 3, 3)),
    "cross entropy of logits": lambda T, v: T.nn.functional.binary_cross_entropy_with_logits(
        v, v.sigmoid(), reduction="none"
    ),
    "flip": lambda T, v: v.flip(1),
    "glu": lambda T, v: T.nn.functional.glu(v, 1),
    "group norm": lambda T, v: T.nn.functional.group_norm(v, 2),
    "maximum": lambda T, v: T.nn.functional.max_pool2d(v, 2),
    "maximum and where": lambda T, v: T.nn.functional.max_pool2d(v, 2, return_indices=True)[1],
    "native channel shuffle": lambda T, v: T.native_channel_shuffle(v, 2),
    "nearest": lambda T, v: T.nn.functional.interpolate(v, scale_factor=2),
    "pad": lambda T, v: T.nn.functional.pad(v, (1, 2)),
    "pixel shuffle": lambda T, v: T.nn.functional.pixel_shuffle(v, 2),
    "reflect": lambda T, v: T.nn.functional.pad(v, (1, 1, 1, 1), mode="reflect"),
    "roll": lambda T, v: v.roll(1, 1),
    "softmax": lambda T, v: T.nn.functional.softmax(v, 1),
    "squared error": lambda T, v: T.nn.functional.mse_loss(v, v.contiguous(), reduction="none"),
    "weight's format": lambda T, v: T.nn.functional.conv2d(
        v.contiguous(), T.ones(4, 8, 3, 3).to(memory_format=T.channels_last)
    ),
    "weight's format of one channel": lambda T, v: T.nn.functional.conv2d(
        v.contiguous(), T.ones(8, 1, 3, 3).to(memory_format=T.channels_last), groups=8
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_strides_and_values_are_pytorchs(torch, name):
    found, wanted = [
        CALLS[name](T, T.tensor(IMAGE).contiguous(memory_format=T.channels_last)) for T in (x, torch)
    ]
    assert found.stride() == wanted.stride()
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["batch norm", "cat", "convolution", "maximum", "squared error"])
def test_the_format_does_not_depend_on_earlier_calls(name):
    image = x.tensor(IMAGE).contiguous(memory_format=x.channels_last)
    first = CALLS[name](x, image).stride()
    CALLS[name](x, x.tensor(IMAGE))
    image.sum()  # its values have been read, and are kept
    assert [CALLS[name](x, image).stride() for _ in range(2)] == [first, first]


@pytest.mark.parametrize("sizes", [(4, 1, 3, 3), (4, 3, 1, 1), (1, 2, 2, 1), (1, 1, 1, 1)])
def test_sizes_of_one_leave_the_format_to_the_strides(torch, sizes):
    def formats(T):
        plain = T.zeros(sizes)
        moved = plain.to(memory_format=T.channels_last)
        shrunk = [T.nn.functional.interpolate(v, scale_factor=2.0).stride() for v in (plain, moved)]
        return (
            plain.stride(),
            moved.stride(),
            plain.contiguous(memory_format=T.channels_last).stride(),
            shrunk,
        )

    assert formats(x) == formats(torch)


@pytest.mark.parametrize("name", ["batch norm", "cat", "convolution", "maximum", "pad"])
def test_gradients_do_not_depend_on_the_format(name):
    grads = []
    for memory_format in (x.contiguous_format, x.channels_last):
        image = x.tensor(IMAGE).contiguous(memory_format=memory_format).requires_grad_()
        (CALLS[name](x, image) ** 2).sum().backward()
        grads.append(image.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-4, atol=1e-4)


def test_volumes_too():
    volume = x.ones(2, 4, 2, 4, 4).contiguous(memory_format=x.channels_last_3d)
    assert x.nn.functional.max_pool3d(volume, 2).is_contiguous(memory_format=x.channels_last_3d)
    assert x.nn.functional.avg_pool3d(volume, 2).is_contiguous()  # as PyTorch's kernel on the CPU
    assert x.nn.functional.conv3d(volume, x.ones(3, 4, 1, 1, 1)).is_contiguous(
        memory_format=x.channels_last_3d
    )


def test_a_template_gives_its_format():
    template = x.ones(1, 2, 3, 4).contiguous(memory_format=x.channels_last)
    found = x.ones(24).resize_as_(template, memory_format=x.preserve_format)
    assert found.stride() == template.stride()
    assert x.ones(6).resize_as_(x.ones(2, 3).t(), memory_format=x.preserve_format).stride() == (2, 1)
