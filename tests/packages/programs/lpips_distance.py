"""lpips: a perceptual distance with its gradient."""

import lpips
import torch
from same import done, fill, numbers, show

for net in ("alex", "squeeze"):
    distance = fill(lpips.LPIPS(net=net, pretrained=False, pnet_rand=True, verbose=False)).eval()
    x, y = numbers(2, 3, 64, 64).tanh().requires_grad_(), numbers(2, 3, 64, 64, seed=1).tanh()
    found = distance(x, y)
    show(net, found)
    show(f"{net} gradient", torch.autograd.grad(found.sum(), x)[0])
done()
