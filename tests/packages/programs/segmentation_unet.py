"""segmentation-models-pytorch: three decoders, losses and metrics, a few steps."""

import segmentation_models_pytorch as smp
import torch
from same import done, fill, numbers, show, steps

x = numbers(2, 3, 64, 64)
y = (numbers(2, 1, 64, 64, seed=2) > 0).float()
for kind in (smp.Unet, smp.FPN, smp.DeepLabV3Plus):
    model = fill(kind("resnet18", encoder_weights=None, in_channels=3, classes=1)).eval()
    show(kind.__name__, model(x))
model = fill(smp.Unet("resnet18", encoder_weights=None, classes=1, decoder_channels=(32, 16, 16, 8, 8)))
dice, focal = smp.losses.DiceLoss("binary"), smp.losses.FocalLoss("binary")
steps(
    model,
    lambda: dice(model(x), y) + focal(model(x), y),
    optimizer=torch.optim.Adam(model.parameters(), 1e-3),
)
found = smp.metrics.get_stats(x[:, :1].sigmoid(), y.long(), mode="binary", threshold=0.5)
show("iou", smp.metrics.iou_score(*found, reduction="micro"))
done()
