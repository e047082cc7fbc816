"""foolbox: attacks on a small classifier by its gradient and by its decisions."""

import foolbox
import torch
from foolbox import attacks
from same import done, fill, numbers, show
from torch import nn

net = nn.Sequential(
    nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 64, 5)
).eval()
model = foolbox.PyTorchModel(fill(net), bounds=(0, 1), device="cpu")
x = numbers(4, 3, 16, 16).sigmoid()
y = net(x).argmax(1)
show("accuracy", foolbox.accuracy(model, x, y))
made = {
    "fgsm": attacks.FGSM(random_start=False),
    "pgd": attacks.LinfPGD(steps=4, random_start=False),
    "basic": attacks.L2BasicIterativeAttack(steps=4),
    "deepfool": attacks.L2DeepFoolAttack(steps=5),
    "carlini": attacks.L2CarliniWagnerAttack(binary_search_steps=2, steps=5),
    "contrast": attacks.L2ContrastReductionAttack(),
}
for name, attack in made.items():
    raw, clipped, success = attack(model, x, y, epsilons=[0.05, 0.5])
    show(name, torch.stack(clipped) - x)
    show(f"{name} success", success.double())
goal = foolbox.criteria.TargetedMisclassification((y + 1) % 5)
attack = attacks.L2CarliniWagnerAttack(binary_search_steps=2, steps=5)
show("targeted", attack(model, x, goal, epsilons=None)[0])
done()
