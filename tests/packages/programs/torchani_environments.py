"""torchani: atomic environment vectors of a molecule and the forces on its atoms."""

import torch
import torchani
from same import done, numbers, show

environments = torchani.AEVComputer.like_2x()
atoms = torch.tensor([[0, 1, 2, 3, 0]])
places = numbers(1, 5, 3, scale=1.5).requires_grad_()
found = environments(atoms, places)
found = getattr(found, "aevs", found)
show("environments", found)
found.pow(2).sum().backward()
show("forces", places.grad)
done()
