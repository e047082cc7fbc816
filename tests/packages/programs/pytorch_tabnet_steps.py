"""pytorch-tabnet: the network of tables, its sparse masks, and training."""

import torch
import torch.nn.functional as F
from pytorch_tabnet.tab_network import TabNet
from same import done, fill, integers, numbers, show, steps

model = fill(TabNet(5, 3, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(5)))
x, y = numbers(16, 5), integers(3, 16)


def loss():
    found, sparsity = model(x)
    return F.cross_entropy(found, y) - 1e-3 * sparsity


steps(model, loss)
model.eval()
show("outputs", model(x)[0])
explained, masks = model.forward_masks(x)
show("explained", explained)
for at, mask in masks.items():
    show(f"mask {at}", mask)
done()
