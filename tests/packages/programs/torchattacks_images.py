"""torchattacks: adversarial images by several methods."""

import torchattacks
from same import done, fill, integers, numbers, show
from torch import nn

model = fill(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))).eval()
x, y = numbers(4, 3, 8, 8).sigmoid(), integers(3, 4)
for attack in (
    torchattacks.FGSM(model, eps=0.03),
    torchattacks.PGD(model, eps=0.03, alpha=0.01, steps=3, random_start=False),
    torchattacks.BIM(model, steps=3),
    torchattacks.CW(model, steps=5),
    torchattacks.DeepFool(model, steps=3),
    torchattacks.MIFGSM(model, steps=3),
):
    show(attack.attack, attack(x, y))
done()
