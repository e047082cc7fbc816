"""torchvision: deformable convolutions, regions whose bins have channels of their own, and images of bytes resized."""

import torch
from same import done, fill, numbers, show
from torchvision.ops import DeformConv2d, PSRoIAlign, PSRoIPool, deform_conv2d
from torchvision.transforms import v2

x = numbers(2, 4, 9, 10).requires_grad_()
weight = numbers(6, 2, 3, 2, seed=2).requires_grad_()
for name, options in {
    "plain": {"offset": (2, 24, 7, 9), "mask": None},
    "masked": {
        "offset": (2, 24, 5, 10),
        "mask": (2, 12, 5, 10),
        "stride": (2, 1),
        "padding": 1,
        "dilation": (1, 2),
    },
}.items():
    mask = options.pop("mask")
    offset = (numbers(*options.pop("offset"), seed=3) * 2).requires_grad_()
    mask = None if mask is None else numbers(*mask, seed=4).sigmoid()
    out = deform_conv2d(x, offset, weight, mask=mask, **options)
    show(name, out)
    gradients = torch.autograd.grad((out * numbers(*out.shape, seed=5)).sum(), [x, offset, weight])
    for of, gradient in zip(["x", "offset", "weight"], gradients):
        show(f"{name} {of}", gradient)
layer = fill(DeformConv2d(4, 6, 3, padding=1))
show("layer", layer(x, numbers(2, 18, 9, 10, seed=6)))

maps = numbers(2, 18, 11, 12).requires_grad_()
rois = torch.tensor([[0.0, 1, 2, 9, 8], [1, 0, 0, 5, 5], [0, -3, -2, 4, 12]])
for name, pool in {
    "align": PSRoIAlign((3, 2), 0.8, -1),
    "two": PSRoIAlign((3, 2), 0.8, 2),
    "pool": PSRoIPool((3, 2), 0.8),
}.items():
    out = pool(maps, rois)
    show(name, out)
    show(f"{name} gradient", torch.autograd.grad((out * numbers(*out.shape, seed=7)).sum(), maps)[0])

image = (numbers(3, 40, 50).abs() * 60).clamp(0, 255).to(torch.uint8)
steps = v2.Compose(
    [
        v2.Resize((24, 32)),
        v2.CenterCrop(20),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.5] * 3, [0.2] * 3),
    ]
)
show("transformed", steps(image))
show("rotated", v2.functional.rotate(image, 30))
show("hue", v2.functional.adjust_hue(image, 0.1))
show("blurred", v2.functional.gaussian_blur(image, [5, 5]))
done()
