"""vit-pytorch: four vision transformers, one of them trained."""

import torch
from same import done, fill, integers, numbers, show, steps
from vit_pytorch import MAE, SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT

x = numbers(2, 3, 16, 16)
options = dict(image_size=16, patch_size=4, num_classes=5, dim=32, heads=4, mlp_dim=48)
vit = fill(ViT(depth=2, **options))
show("vit", vit(x))
show("simple", fill(SimpleViT(depth=2, **options))(x))
show("cait", fill(CaiT(depth=1, cls_depth=1, **options)).eval()(x))
show(
    "cct",
    fill(
        CCT(
            img_size=(16, 16),
            embedding_dim=32,
            n_conv_layers=1,
            kernel_size=3,
            stride=2,
            padding=1,
            pooling_kernel_size=3,
            pooling_stride=2,
            pooling_padding=1,
            num_layers=1,
            num_heads=4,
            mlp_ratio=2.0,
            num_classes=5,
            positional_embedding="learnable",
        )
    ).eval()(x),
)
steps(vit, lambda: torch.nn.functional.cross_entropy(vit(x), integers(5, 2)))
show("masked", float(MAE(encoder=vit, masking_ratio=0.5, decoder_dim=16)(x)) > 0)
done()
