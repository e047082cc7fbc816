"""timm: three kinds of models with features and a new head, a few steps with its optimizer and schedule."""

import timm
import torch
from same import done, fill, integers, numbers, show, steps
from timm.optim import create_optimizer_v2

x, y = numbers(2, 3, 32, 32), integers(5, 2)
for name, options in (
    ("resnet10t", {}),
    ("vit_tiny_patch16_224", {"img_size": 32, "depth": 2}),
    ("efficientnet_lite0", {"drop_rate": 0.0}),
):
    model = fill(timm.create_model(name, pretrained=False, num_classes=5, **options)).eval()
    show(f"{name} logits", model(x))
    show(f"{name} features", model.forward_features(x))
model = fill(timm.create_model("resnet10t", pretrained=False, num_classes=5))
steps(
    model,
    lambda: torch.nn.functional.cross_entropy(model(x), y),
    optimizer=create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05),
)
show(
    "blocks",
    len(timm.create_model("resnet10t", features_only=True, pretrained=False).feature_info.channels()),
)
done()
