"""torchvision's operators: boxes suppressed and regions cut out, against NumPy."""

import numpy as np
import pytest

import xtensor
from xtensor.compat import vision


def boxes_of(rng, count, room):
    corner, extent = rng.random((count, 2)) * room, rng.random((count, 2)) * room / 2
    return np.concatenate([corner, corner + extent], 1).astype(np.float32)


def suppressed(boxes, scores, threshold):
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        common = [
            np.clip(min(boxes[i, 2 + d], boxes[j, 2 + d]) - max(boxes[i, d], boxes[j, d]), 0, None)
            for j in kept
            for d in (0, 1)
        ]
        area = np.prod(boxes[:, 2:] - boxes[:, :2], 1)
        covers = [w * h / (area[i] + area[j] - w * h) for j, w, h in zip(kept, common[::2], common[1::2])]
        if all(c <= threshold for c in covers):
            kept.append(i)
    return kept


@pytest.mark.parametrize("count", [1, 7, 40])
def test_nms(rng, count):
    boxes, scores = boxes_of(rng, count, 10), rng.permutation(count).astype(np.float32)
    found = vision.nms(xtensor.from_numpy(boxes), xtensor.from_numpy(scores), 0.3)
    assert found.tolist() == suppressed(boxes, scores, 0.3)
    assert vision.nms(xtensor.zeros(0, 4), xtensor.zeros(0), 0.5).tolist() == []


def sample(image, y, x):
    height, width = image.shape[-2:]
    if y < -1 or y > height or x < -1 or x > width:
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    i, j = int(y), int(x)
    k, m = min(i + 1, height - 1), min(j + 1, width - 1)
    a, b = y - i, x - j
    return (image[:, i, j] * (1 - a) + image[:, k, j] * a) * (1 - b) + (
        image[:, i, m] * (1 - a) + image[:, k, m] * a
    ) * b


@pytest.mark.parametrize(("ratio", "aligned"), [(2, False), (-1, False), (-1, True)])
def test_roi_align(rng, ratio, aligned):
    maps = rng.standard_normal((2, 2, 6, 8)).astype(np.float32)
    rois = np.concatenate([[[0], [1], [1]], boxes_of(rng, 3, 14)], 1).astype(np.float32)
    wanted = np.zeros((3, 2, 2, 3))
    for k, roi in enumerate(rois):
        left, top, right, bottom = roi[1:] * 0.5 - (0.5 if aligned else 0)
        h, w = (bottom - top, right - left) if aligned else (max(bottom - top, 1), max(right - left, 1))
        rows, columns = (ratio, ratio) if ratio > 0 else (int(np.ceil(h / 2)), int(np.ceil(w / 3)))
        for p in range(2):
            for q in range(3):
                points = [
                    sample(
                        maps[int(roi[0])],
                        top + (p + (i + 0.5) / rows) * h / 2,
                        left + (q + (j + 0.5) / columns) * w / 3,
                    )
                    for i in range(rows)
                    for j in range(columns)
                ]
                wanted[k, :, p, q] = np.sum(points, 0) / max(rows * columns, 1)
    x = xtensor.from_numpy(maps).requires_grad_()
    found = vision.roi_align(x, xtensor.from_numpy(rois), 0.5, 2, 3, ratio, aligned)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    # It is linear in the maps: its gradient along them is its value.
    found.sum().backward()
    np.testing.assert_allclose((x.grad * x).sum().item(), wanted.sum(), rtol=1e-3, atol=1e-4)


def own_channels(wide, size):
    """Of `(k, c * rows * columns, rows, columns)` what each bin has of its own channels."""
    rows, columns = size
    parts = wide.reshape(len(wide), -1, rows, columns, rows, columns)
    return np.stack(
        [np.stack([parts[:, :, i, j, i, j] for j in range(columns)], -1) for i in range(rows)], -2
    )


@pytest.mark.parametrize("ratio", [2, -1])
def test_ps_roi_align_has_channels_of_its_own_for_each_bin(rng, ratio):
    maps = xtensor.from_numpy(rng.standard_normal((2, 12, 6, 8)).astype(np.float32)).requires_grad_()
    rois = xtensor.from_numpy(np.concatenate([[[0], [1], [1]], boxes_of(rng, 3, 14)], 1).astype(np.float32))
    wanted = own_channels(vision.roi_align(maps, rois, 0.5, 2, 3, ratio, True).detach().numpy(), (2, 3))
    found, _ = vision.ps_roi_align(maps, rois, 0.5, 2, 3, ratio)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    found.sum().backward()
    np.testing.assert_allclose((maps.grad * maps).sum().item(), wanted.sum(), rtol=1e-3, atol=1e-4)


def test_ps_roi_pool(rng):
    maps = rng.standard_normal((1, 6, 7, 9)).astype(np.float32)
    wanted = np.zeros((1, 6, 2, 3))
    for i, (low, high) in enumerate([(1, 3), (3, 5)]):
        for j, (left, right) in enumerate([(2, 4), (4, 6), (6, 8)]):
            wanted[0, :, i, j] = maps[0, :, low:high, left:right].mean((1, 2))
    rois = xtensor.tensor([[0.0, 4, 2, 16, 10]])
    found, _ = vision.ps_roi_pool(xtensor.from_numpy(maps), rois, 0.5, 2, 3)
    np.testing.assert_allclose(found.numpy(), own_channels(wanted, (2, 3)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_deform_conv2d(rng, masked):
    shapes = (2, 4, 5, 6), (6, 2, 3, 2), (2, 24, 3, 2), (2, 12, 3, 2), (6,)
    given = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    image, weight, offset, mask, bias = given
    wanted = np.zeros((2, 6, 3, 2)) + bias[:, None, None]
    for n, o, y, x, i, j in np.ndindex(*wanted.shape, 3, 2):
        for c in range(2):
            # Two groups of channels, of outputs and of offsets: of each, the first has the first half.
            group, tap = o // 3, 2 * i + j
            at = 12 * group + 2 * tap
            row, column = 2 * y - 1 + i + offset[n, at, y, x], 2 * x - 1 + 2 * j + offset[n, at + 1, y, x]
            padded = np.pad(image[n, 2 * group + c], 9)
            r, q = int(np.floor(row)), int(np.floor(column))
            a, b = row - r, column - q
            four = padded[r + 9 : r + 11, q + 9 : q + 11]
            value = np.array([1 - a, a]) @ four @ np.array([1 - b, b])
            wanted[n, o, y, x] += (
                weight[o, c, i, j] * value * (mask[n, 6 * group + tap, y, x] if masked else 1)
            )
    tensors = [xtensor.from_numpy(v).requires_grad_() for v in given]
    maps, taps, moved, factors, more = tensors
    found = vision.deform_conv2d(maps, taps, moved, factors, more, 2, 2, 1, 1, 1, 2, 2, 2, masked)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-4, atol=1e-4)
    found.sum().backward()
    # It is linear in the image, and in the weight: the gradient along either is the value without the bias.
    for t in (maps, taps):
        np.testing.assert_allclose(
            (t.grad * t).sum().item(), (wanted - bias[:, None, None]).sum(), rtol=1e-3, atol=1e-3
        )


def test_an_extension_of_torchvision_s_gives_the_operators(tmp_path):
    xtensor.library.ops.load_library(str(tmp_path / "torchvision" / "_C.so"))
    assert xtensor.library.ops.torchvision.nms(xtensor.zeros(0, 4), xtensor.zeros(0), 0.5).numel() == 0
    with pytest.raises(OSError, match="cannot be loaded"):
        xtensor.library.ops.load_library(str(tmp_path / "other" / "_C.so"))
