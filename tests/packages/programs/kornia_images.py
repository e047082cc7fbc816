"""kornia: colours, filters, warps with gradients, cameras, losses."""

import kornia
import torch
from same import done, numbers, show

x = numbers(2, 3, 16, 20).sigmoid().requires_grad_()
show("gray", kornia.color.rgb_to_grayscale(x))
show("hsv", kornia.color.rgb_to_hsv(x))
show("lab", kornia.color.rgb_to_lab(x))
show("blur", kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
show("sobel", kornia.filters.sobel(x))
show("median", kornia.filters.median_blur(x, (3, 3)))
show("canny", kornia.filters.canny(x)[0])
turn = kornia.geometry.get_rotation_matrix2d(
    torch.tensor([[10.0, 8.0]] * 2), torch.tensor([15.0, 30.0]), torch.ones(2, 2)
)
warped = kornia.geometry.warp_affine(x, turn, (16, 20))
show("warped", warped)
show("gradient", torch.autograd.grad((warped**2).sum(), x)[0])
points = torch.tensor([[[0.0, 0], [19, 0], [19, 15], [0, 15]]] * 2)
moved = points + numbers(2, 4, 2, seed=3)
matrix = kornia.geometry.get_perspective_transform(points, moved)
show("perspective", matrix)
show("warp", kornia.geometry.warp_perspective(x, matrix, (16, 20)))
show("rotation", kornia.geometry.axis_angle_to_rotation_matrix(numbers(3, 3, seed=5)))
show("ssim", kornia.losses.ssim_loss(x, x.flip(-1), 5))
show("eroded", kornia.morphology.erosion(x, torch.ones(3, 3)))
show("resized", kornia.geometry.resize(x, (8, 9)))
show("pyramid", kornia.geometry.transform.pyrdown(x))
done()
