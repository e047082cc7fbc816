"""torchkbnufft: Fourier transforms at any frequencies, their adjoint, and a reconstruction by gradient descent."""

import torch
import torchkbnufft
from same import done, numbers, show

image = torch.complex(numbers(1, 1, 8, 8), numbers(1, 1, 8, 8, seed=1))
places = numbers(2, 40).clamp(-3, 3)
forward = torchkbnufft.KbNufft(im_size=(8, 8))
adjoint = torchkbnufft.KbNufftAdjoint(im_size=(8, 8))
seen = forward(image, places)
show("real", seen.real)
show("imaginary", seen.imag)
show("adjoint", torch.view_as_real(adjoint(seen, places)))
guess = torch.zeros(1, 1, 8, 8, dtype=torch.complex64, requires_grad=True)
for step in range(3):
    loss = (forward(guess, places) - seen).abs().pow(2).sum()
    (grad,) = torch.autograd.grad(loss, guess)
    guess = (guess - 1e-3 * grad).detach().requires_grad_()
    show(f"loss {step}", loss)
done()
