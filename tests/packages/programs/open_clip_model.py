"""open_clip: a small CLIP, features of images and texts, its loss, a few steps."""

import torch
from open_clip import CLIP
from open_clip.loss import ClipLoss
from same import done, fill, integers, numbers, show, steps

model = fill(
    CLIP(
        embed_dim=16,
        vision_cfg={"image_size": 16, "layers": 1, "width": 32, "head_width": 8, "patch_size": 4},
        text_cfg={"context_length": 12, "vocab_size": 50, "width": 32, "heads": 4, "layers": 1},
    ),
    scale=0.2,
)
with torch.no_grad():
    model.logit_scale.fill_(2.0)
images, texts = numbers(4, 3, 16, 16), integers(50, 4, 12)
show("images", model.encode_image(images, normalize=True))
show("texts", model.encode_text(texts, normalize=True))
loss = ClipLoss()
steps(model, lambda: loss(*model(images, texts)), optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3))
done()
