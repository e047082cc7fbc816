"""einops: rearrangements, reductions and its layers, trained."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from same import done, fill, numbers, show, steps
from torch import nn

x = numbers(2, 3, 8, 8)
show("patches", rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4))
show("mean", reduce(x, "b c (h 2) (w 2) -> b c h w", "mean"))
show("max", reduce(x, "b c h w -> b c", "max"))
show("repeated", repeat(x[:, :, 0], "b c w -> b c r w", r=3))
packed, shapes = pack([x[:, 0], x[:, 1, 0]], "b *")
show("packed", packed)
show("unpacked", unpack(packed, shapes, "b *")[1])
show("einsum", einsum(x, x, "b c h w, b d h w -> b c d"))
net = fill(
    nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
        nn.Linear(48, 16),
        nn.GELU(),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=16, d=8),
        Reduce("b t d -> b d", "mean"),
        nn.Linear(8, 3),
    )
)
steps(net, lambda: nn.functional.cross_entropy(net(x), torch.tensor([0, 2])))
done()
