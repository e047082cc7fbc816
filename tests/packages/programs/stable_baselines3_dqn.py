"""stable-baselines3: the networks and a gradient step of DQN, SAC and TD3 over one filled buffer."""

import gymnasium as gym
import numpy as np
from same import done, draw_from_numpy, fill, show
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.logger import configure


def environment(discrete):
    space = gym.spaces.Discrete(3) if discrete else gym.spaces.Box(-1, 1, (2,), np.float32)

    class Fixed(gym.Env):
        observation_space, action_space = gym.spaces.Box(-5, 5, (3,), np.float32), space

        def reset(self, seed=None, options=None):
            return np.zeros(3, np.float32), {}

        def step(self, action):
            return np.zeros(3, np.float32), 0.0, True, False, {}

    return Fixed()


for kind in (DQN, SAC, TD3):
    draw_from_numpy(4)
    model = kind(
        "MlpPolicy",
        environment(kind is DQN),
        buffer_size=64,
        batch_size=16,
        seed=1,
        device="cpu",
        policy_kwargs={"net_arch": [16]},
    )
    model.set_logger(configure(format_strings=[]))
    fill(model.policy)
    rng = np.random.default_rng(5)
    for _ in range(32):
        action = rng.integers(0, 3, (1, 1)) if kind is DQN else rng.uniform(-1, 1, (1, 2)).astype(np.float32)
        model.replay_buffer.add(
            rng.standard_normal((1, 3)).astype(np.float32),
            rng.standard_normal((1, 3)).astype(np.float32),
            action,
            rng.standard_normal(1),
            np.zeros(1),
            [{}],
        )
    np.random.seed(7)  # noqa: NPY002
    model._current_progress_remaining = 1.0
    model.train(gradient_steps=3, batch_size=16)
    show(f"train {kind.__name__}", sum(float(p.detach().abs().sum()) for p in model.policy.parameters()))
    show(f"train {kind.__name__} first", next(iter(model.policy.parameters())))
done()
