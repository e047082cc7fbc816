"""denoising-diffusion-pytorch: its UNet, the loss of noised images, a sample of few steps."""

import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from same import done, draw_from_numpy, fill, numbers, show, steps

net = fill(
    Unet(dim=8, dim_mults=(1, 2), flash_attn=False, channels=1, resnet_block_groups=4)
    if False
    else Unet(dim=16, dim_mults=(1, 2), flash_attn=False)
)
diffusion = GaussianDiffusion(net, image_size=16, timesteps=20, sampling_timesteps=3)
images = numbers(2, 3, 16, 16).sigmoid()
show("noise", net(images, torch.tensor([3, 11])))
draw_from_numpy(3)
at, noise = torch.tensor([2, 15]), numbers(2, 3, 16, 16, seed=9)
steps(
    net,
    lambda: diffusion.p_losses(images * 2 - 1, at, noise=noise),
    optimizer=torch.optim.Adam(net.parameters(), 1e-4),
)
done()
