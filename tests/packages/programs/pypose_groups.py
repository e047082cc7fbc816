"""pypose and roma: rotations and rigid motions as Lie groups, their exponentials, actions and interpolation."""

import pypose
import roma
import torch
from same import done, numbers, show

quaternions = roma.rotvec_to_unitquat(numbers(4, 3))
matrices = roma.unitquat_to_rotmat(quaternions)
show("quaternions", quaternions)
show("matrices", matrices)
show("vectors", roma.rotmat_to_rotvec(matrices))
show("nearest", roma.special_procrustes(numbers(2, 3, 3)))
show("between", roma.unitquat_slerp(quaternions[:1], quaternions[1:2], torch.linspace(0, 1, 3)))
turns = pypose.so3(numbers(3, 3)).Exp()
show("turns", turns.tensor())
show("logarithm", turns.Log().tensor())
show("product", (turns * turns).tensor())
show("acts", turns.Act(numbers(3, 3)))
motions = pypose.se3(numbers(2, 6)).Exp()
show("motions", motions.tensor())
show("inverse", motions.Inv().tensor())
show("adjoint", motions.Adj(pypose.se3(numbers(2, 6, seed=2))).tensor())
pose = pypose.Parameter(pypose.SE3(motions.tensor()))
pose.Act(numbers(2, 3)).pow(2).sum().backward()
show("gradient", pose.grad)
done()
