"""torchvision: classifiers, transforms, a segmentation head, a few steps."""

import torch
import torchvision
from same import done, fill, integers, numbers, show, steps
from torchvision.transforms import functional as TF
from torchvision.transforms import v2

x, y = numbers(2, 3, 64, 64), integers(5, 2)
resnet = fill(torchvision.models.resnet18(weights=None, num_classes=5)).eval()
show("resnet", resnet(x))
mobile = fill(torchvision.models.mobilenet_v3_small(weights=None, num_classes=5)).eval()
show("mobilenet", mobile(x))
vit = fill(torchvision.models.VisionTransformer(64, 16, 1, 2, 16, 32, num_classes=5)).eval()
show("vit", vit(x))
image = (numbers(3, 24, 20).sigmoid() * 255).to(torch.uint8)
show("resized", TF.resize(image, [12, 10], antialias=True).float())
show("turned", TF.rotate(image, 30.0).float())
show("gray", TF.rgb_to_grayscale(image).float())
show("jittered", TF.adjust_saturation(TF.adjust_contrast(image, 1.5), 0.5).float())
chain = v2.Compose(
    [v2.CenterCrop(16), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3)]
)
show("v2", chain(image))
show("grid", torchvision.utils.make_grid(x, nrow=2, normalize=True))
show(
    "focal",
    torchvision.ops.sigmoid_focal_loss(numbers(8), (numbers(8, seed=2) > 0).float(), reduction="mean"),
)
resnet.train()
steps(resnet, lambda: torch.nn.functional.cross_entropy(resnet(x), y))
done()
