"""piq: measures of image quality with a gradient."""

import piq
import torch
from same import done, numbers, show

x = numbers(2, 3, 48, 48).sigmoid().requires_grad_()
y = (x.detach() + 0.1 * numbers(2, 3, 48, 48, seed=1)).clamp(0, 1)
for name in ("psnr", "ssim", "gmsd", "vsi", "fsim", "haarpsi", "mdsi"):
    show(name, getattr(piq, name)(x, y))
show("variation", piq.total_variation(x))
show("gradient", torch.autograd.grad(piq.SSIMLoss()(x, y), x)[0])
done()
