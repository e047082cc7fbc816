"""Seven schedulers of diffusers: each takes a sample from noise to an image with one fixed model."""

from diffusers import (
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    HeunDiscreteScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
)
from same import done, draw_from_numpy, numbers, show

draw_from_numpy()
weight = numbers(3, 3, seed=5, scale=0.4)
for kind in (
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    HeunDiscreteScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
):
    scheduler = kind(num_train_timesteps=100, beta_schedule="linear")
    scheduler.set_timesteps(6)
    x = numbers(2, 3, 4, 4) * scheduler.init_noise_sigma
    for t in scheduler.timesteps:
        seen = scheduler.scale_model_input(x, t)
        guess = (seen.permute(0, 2, 3, 1) @ weight).tanh().permute(0, 3, 1, 2)
        x = scheduler.step(guess, t, x).prev_sample
    show(kind.__name__, x)
done()
