"""stable-baselines3: PPO on a small environment of its own, from known numbers, saved and loaded."""

import tempfile

import gymnasium as gym
import numpy as np
import torch
from same import done, draw_from_numpy, fill, show
from stable_baselines3 import PPO


class Walk(gym.Env):
    observation_space, action_space = gym.spaces.Box(-5, 5, (2,), np.float32), gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.at, self.step_number = np.zeros(2, np.float32), 0
        return self.at.copy(), {}

    def step(self, action):
        self.at += np.float32([0.5, -0.25]) if action else np.float32([-0.5, 0.25])
        self.step_number += 1
        return np.clip(self.at, -5, 5), float(self.at[0]), False, self.step_number >= 10, {}


model = PPO(
    "MlpPolicy",
    Walk(),
    n_steps=32,
    batch_size=16,
    n_epochs=2,
    seed=3,
    device="cpu",
    policy_kwargs={"net_arch": [16]},
)
fill(model.policy)
rng = draw_from_numpy(2)
torch.multinomial = lambda p, n, replacement=False, **o: torch.from_numpy(
    np.asarray([[rng.choice(p.shape[-1], p=row / row.sum())] for row in p.detach().double().numpy()])
)
torch.distributions.Categorical.sample = lambda self, shape=(): torch.multinomial(self.probs, 1).squeeze(-1)
model.learn(64)
observation = torch.tensor([[0.5, -0.25], [1.0, 2.0]])
values, logs, entropy = model.policy.evaluate_actions(observation, torch.tensor([0, 1]))
show("train values", values)
show("train logs", logs)
show("train entropy", entropy)
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model")
    again = PPO.load(f"{folder}/model", device="cpu")
    show("loaded", float((again.policy.predict_values(observation) - values).abs().max()) < 1e-6)
show("action", model.predict(np.float32([0.5, 1.0]), deterministic=True)[0])
done()
