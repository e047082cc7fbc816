"""A conditioned UNet of diffusers: a forward pass, a few steps on noise."""

import torch
from diffusers import UNet2DConditionModel
from same import done, fill, numbers, show, steps

model = fill(
    UNet2DConditionModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=8,
        norm_num_groups=8,
    )
).eval()
x, text, noise = numbers(2, 3, 8, 8), numbers(2, 5, 16, seed=1), numbers(2, 3, 8, 8, seed=2)
at = torch.tensor([3, 70])
show("out", model(x, at, encoder_hidden_states=text).sample)
model.train()
steps(model, lambda: ((model(x, at, text).sample - noise) ** 2).mean())
done()
