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


def test_an_extension_of_torchvision_s_gives_the_operators(tmp_path):
    xtensor.library.ops.load_library(str(tmp_path / "torchvision" / "_C.so"))
    assert xtensor.library.ops.torchvision.nms(xtensor.zeros(0, 4), xtensor.zeros(0), 0.5).numel() == 0
    with pytest.raises(OSError, match="cannot be loaded"):
        xtensor.library.ops.load_library(str(tmp_path / "other" / "_C.so"))
