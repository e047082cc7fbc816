"""vector-quantize-pytorch: nearest codes, residual codes and finite scalars, with gradients."""

import torch
from same import done, fill, numbers, show
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

x = numbers(2, 10, 8).requires_grad_()
codes = VectorQuantize(
    dim=8, codebook_size=16, ema_update=False, learnable_codebook=True, rotation_trick=False
)
fill(codes)
found, index, loss = codes(x)
show("codes", found)
show("index", index.float())
show("loss", loss)
show("gradient", torch.autograd.grad((found**2).sum() + loss.sum(), x)[0])
residual = fill(
    ResidualVQ(dim=8, codebook_size=16, num_quantizers=2, ema_update=False, learnable_codebook=True)
).eval()
show("residual", residual(x)[0])
show("finite", FSQ(levels=[5, 5, 5, 5])(x[..., :4])[0])
show("signs", LFQ(codebook_size=256, dim=8).eval()(x)[0])
done()
