"""torchvision's detection: boxes suppressed, regions cut out with a gradient, a Faster R-CNN's losses and boxes."""

import numpy as np
import torch
from same import done, fill, numbers, show
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.ops import MultiScaleRoIAlign, batched_nms, box_iou, generalized_box_iou, nms, roi_align

rng = np.random.default_rng(3)
corner, extent = rng.random((60, 2)) * 20, rng.random((60, 2)) * 8 + 1
boxes = torch.from_numpy(np.concatenate([corner, corner + extent], 1).astype(np.float32))
scores = torch.from_numpy(rng.permutation(60).astype(np.float32))
show("kept", nms(boxes, scores, 0.3).tolist())
show("kept by class", batched_nms(boxes, scores, torch.arange(60) % 3, 0.2).tolist())
show("overlaps", box_iou(boxes[:8], boxes[8:16]))
show("generalized", generalized_box_iou(boxes[:8], boxes[8:16]))
maps = numbers(2, 4, 16, 16).requires_grad_()
rois = torch.cat([(torch.arange(60) % 2).float()[:, None], boxes], 1)
for name, options in {
    "fixed": dict(output_size=(3, 5), spatial_scale=0.5, sampling_ratio=2),
    "adaptive": dict(output_size=2, spatial_scale=0.5),
    "aligned": dict(output_size=2, spatial_scale=0.5, aligned=True),
}.items():
    found = roi_align(maps, rois, **options)
    show(name, found)
    show(f"{name} gradient", torch.autograd.grad((found**2).sum(), maps)[0])


class Small(torch.nn.Module):
    out_channels = 8

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2, 1)
        )

    def forward(self, x):
        return self.net(x)


model = FasterRCNN(
    Small(),
    num_classes=3,
    min_size=64,
    max_size=64,
    rpn_anchor_generator=AnchorGenerator(((16, 32),), ((0.5, 1.0),)),
    box_roi_pool=MultiScaleRoIAlign(["0"], 4, 2),
    box_batch_size_per_image=10000,
    rpn_batch_size_per_image=10000,
    rpn_post_nms_top_n_train=40,
    rpn_post_nms_top_n_test=20,
    box_score_thresh=0.2,
    image_mean=[0.0] * 3,
    image_std=[1.0] * 3,
)
fill(model)
images = [numbers(3, 64, 64, seed=5), numbers(3, 64, 64, seed=6)]
targets = [
    {"boxes": torch.tensor([[4.0, 6, 30, 40]]), "labels": torch.tensor([1])},
    {"boxes": torch.tensor([[20.0, 10, 50, 30], [5, 5, 20, 20]]), "labels": torch.tensor([2, 1])},
]
losses = model(images, targets)
for name in sorted(losses):
    show(name, losses[name])
sum(losses.values()).backward()
show("gradients", sum(float(p.grad.norm()) for p in model.parameters() if p.grad is not None))
with torch.no_grad():
    found = model.eval()(images)
show("boxes", found[0]["boxes"])
show("scores", found[0]["scores"])
done()
