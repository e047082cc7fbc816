"""The autoencoder of diffusers: moments, a decoded image, a few steps."""

from diffusers import AutoencoderKL
from same import done, fill, numbers, show, steps

model = fill(
    AutoencoderKL(
        in_channels=3,
        out_channels=3,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        block_out_channels=(16, 16),
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=8,
        sample_size=16,
    )
).eval()
x = numbers(2, 3, 16, 16)
code = model.encode(x).latent_dist
show("mean", code.mean)
show("deviation", code.std)
show("image", model.decode(code.mode()).sample)
model.train()
steps(model, lambda: ((model(x).sample - x) ** 2).mean() + model.encode(x).latent_dist.kl().mean() * 1e-3)
done()
