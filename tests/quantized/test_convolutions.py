"""Quantised convolutions: how results lie in memory, kernels of two dimensions over rows, and large ones block by block."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xtensor.quantized import windows
from xtensor.quantized.windows import Window, window_sums

from .compared import engine, names, outcome, quantised, torch, weight, xtensor

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this

PROGRAMS = """nnq.Conv1d(4, 6, 3)(rows)
nnq.Conv2d(4, 6, 3, padding=1, padding_mode='reflect')(images)
nnq.Conv2d(4, 1, 3)(images)
nnq.Conv2d(4, 6, (6, 5))(images)
nnq.Conv3d(4, 6, 3)(volumes)
nnq.ConvTranspose1d(4, 6, 3)(rows)
nnq.ConvTranspose1d(4, 6, (3, 5), stride=(2, 1), padding=(4, 2))(rows)
nnq.ConvTranspose1d(4, 6, 3, stride=(2, 3))(rows)
nnq.Conv1d(4, 6, (1, 3), padding=2)(rows)
nnq.ConvTranspose2d(4, 6, 3, stride=2)(images)
nnq.ConvTranspose3d(4, 6, 3)(volumes)
nnd.Conv1d(4, 6, 3)(rows.dequantize())
nnd.ConvTranspose2d(4, 6, 3)(images.dequantize())
nni.quantized.ConvReLU1d(4, 6, 3)(rows)
nni.quantized.ConvReLU2d(4, 6, 3)(images)
nni.quantized.ConvReLU3d(4, 6, 3)(volumes)
F.conv1d(rows, weight(lib, k[..., 0, 0]), None)
F.conv2d(images, weight(lib, k[..., 0]), None)
F.conv2d(images[:0], weight(lib, k[..., 0]), None)
F.conv3d(volumes, weight(lib, k), None)
F.conv2d(images[:, :2], weight(lib, k[..., 0]), None)
F.conv2d(images[..., :2], weight(lib, k[..., 0]), None)
nnq.ConvTranspose2d(4, 6, 2, padding=5)(images)
lib.quantized_batch_norm(images, v, v, v, v, 1e-5, .1, 3)
lib.quantized_batch_norm(volumes, v, v, v, v, 1e-5, .1, 3)
lib.quantized_batch_norm(rows, v, v, v, v, 1e-5, .1, 3)
lib.quantized_batch_norm(images[..., :1, :1], v, v, v, v, 1e-5, .1, 3)
nnq.Conv1d(4, 6, 3)(rows).int_repr()
nnq.Conv2d(4, 6, 3)(images).int_repr()
nnq.Conv2d(4, 6, 3)(images).dequantize()
nnq.Conv2d(4, 6, 3)(images).clone()
lib.relu(nnq.Conv3d(4, 6, 3)(volumes))
lib.relu(nnq.Conv1d(4, 6, 3)(rows))""".split("\n")


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_strides(monkeypatch, program, last):
    """Channels lie last in results, whatever way those of the input lie; errors are PyTorch's."""
    engine(monkeypatch)
    kernel = np.zeros((6, 4, 3, 3, 3), np.float32)

    def run(lib):
        given = {"lib": lib, "weight": weight, "k": kernel, "v": lib.ones(4)}
        for name, sizes in (("rows", (9,)), ("images", (6, 5)), ("volumes", (6, 5, 4))):
            made = quantised(lib, np.zeros((2, 4, *sizes), np.float32))
            if last and name != "rows":
                n = len(sizes)
                made = made.permute(0, *range(2, n + 2), 1).contiguous().permute(0, n + 1, *range(1, n + 1))
            given[name] = made
        return eval(program, names(lib) | given)

    def laid(lib):
        found = []
        error = outcome(lambda: found.append(run(lib)))
        return error or (tuple(found[0].shape), tuple(found[0].stride()))

    assert laid(xtensor) == laid(torch)


GEOMETRIES = [
    ((3, 8, 9), Window((2,), (1,), (2,)), (6, 8, 3)),
    ((2, 6, 7, 9), Window((1, 2), (2, 1), (1, 1), 3), (9, 2, 3, 2)),
    ((2, 4, 6, 7), Window((2, 1), (1, 0), (1, 2), 4), (8, 1, 3, 3)),
    ((2, 3, 7, 5), Window((3, 2), (2, 1), (1, 2), 1, True, (1, 0)), (3, 4, 4, 3)),
    ((2, 4, 5, 6), Window((2, 2), (1, 1), (1, 1), 2, True, (1, 1)), (4, 3, 3, 1)),
    ((1, 4, 5, 4, 6), Window((2, 1, 3), (1, 1, 0), (1, 1, 2), 1, True, (0, 0, 2)), (4, 2, 3, 3, 2)),
]


def expected_sums(x, point, w, points, at):
    """The sums as PyTorch's convolution of float64 has them, which is exact."""
    parts = points.reshape(at.groups, 1, -1, *[1] * len(at.stride))
    whole = w.reshape(at.groups, -1, *w.shape[1:]).astype(float)
    whole = whole - (parts if at.transposed else parts.swapaxes(1, 2))
    given = [torch.tensor(a) for a in (x.astype(float) - point, whole.reshape(w.shape))]
    name, more = f"conv{len(at.stride)}d", {}
    if at.transposed:
        name, more = name.replace("conv", "conv_transpose"), {"output_padding": at.output_padding}
    how = {"stride": at.stride, "padding": at.padding, "dilation": at.dilation, "groups": at.groups}
    return getattr(torch.nn.functional, name)(*given, **how, **more).movedim(1, -1).numpy()


@pytest.mark.parametrize("limit", [1, 400, 3000, 1 << 24])
@pytest.mark.parametrize("case", range(len(GEOMETRIES)))
def test_block_by_block(monkeypatch, case, limit):
    """Blocks of any size give the exact sums."""
    monkeypatch.setattr(windows, "CPU_BLOCK", limit)
    sizes, at, kernel = GEOMETRIES[case]
    rng = np.random.default_rng(case)
    x, w = rng.integers(0, 256, sizes).astype(np.uint8), rng.integers(-128, 128, kernel).astype(np.int8)
    out = kernel[1] * at.groups if at.transposed else kernel[0]
    points = rng.integers(-9, 9, out) * (limit in (1, 3000))
    given = np.moveaxis(x, 1, -1), 7, w, points if points.any() else None
    found = jax.jit(lambda x, p, w, q: window_sums(x, p, w, q, at, "int32", lambda sums: sums))(*given)
    np.testing.assert_array_equal(found, expected_sums(x, 7, w, points, at))


LARGE = [
    ((20, 56, 56, 56, 16), (33, 16, 3, 5, 5), Window((2, 1, 1), (4, 2, 2), (1, 1, 1))),
    ((20, 50, 100, 100, 16), (16, 33, 3, 3, 5), Window((2, 1, 1), (4, 2, 2), (1, 1, 1), 1, True, (0, 0, 0))),
    ((1, 4096, 4096, 64), (64, 64, 3, 3), Window((1, 1), (1, 1), (1, 1))),
]


@pytest.mark.parametrize(("sizes", "kernel", "at"), LARGE)
def test_memory(sizes, kernel, at):
    """What is held beside arguments and results is the padded input and little more."""

    def convolve(x, w):
        return window_sums(x, 0, w, None, at, "uint8", lambda sums: sums.astype(jnp.uint8))

    shapes = [jax.ShapeDtypeStruct(sizes, jnp.uint8), jax.ShapeDtypeStruct(kernel, jnp.int8)]
    held = jax.jit(convolve).lower(*shapes).compile().memory_analysis()
    assert held is not None
    assert held.temp_size_in_bytes < 1.3 * np.prod(sizes) + (64 << 20)
