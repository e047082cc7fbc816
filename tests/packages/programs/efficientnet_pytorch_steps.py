"""efficientnet_pytorch: a small image through B0: its logits, its inner maps, training steps."""

import torch
from efficientnet_pytorch import EfficientNet
from same import done, fill, numbers, show, steps

model = fill(
    EfficientNet.from_name(
        "efficientnet-b0", num_classes=5, image_size=64, dropout_rate=0.0, drop_connect_rate=0.0
    )
)
x = numbers(2, 3, 64, 64)
model.eval()
with torch.no_grad():
    show("logits", model(x))
    for name, value in model.extract_endpoints(x).items():
        show(name, value)
    model.set_swish(memory_efficient=False)
    show("swish", model(x))
    model.set_swish(memory_efficient=True)
model.train()
steps(model, lambda: torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3])), 2)
done()
