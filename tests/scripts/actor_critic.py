"""An actor-critic on a tiny environment: log probabilities gathered, returns by a loop, entropy bonus."""

import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from same import fill


class Line:
    """Walk to the right end of a line; every step costs."""

    def reset(self):
        self.at, self.steps = 2, 0
        return self.state()

    def state(self):
        state = np.zeros(6, np.float32)
        state[self.at] = 1
        return state

    def step(self, action):
        self.at = min(max(self.at + (1 if action == 1 else -1), 0), 5)
        self.steps += 1
        done = self.at == 5 or self.steps == 8
        return self.state(), 1.0 if self.at == 5 else -0.1, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(6, 10)
        self.action_head = nn.Linear(10, 2)
        self.value_head = nn.Linear(10, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def main():
    model = fill(Policy())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    uniform = np.random.RandomState(3)
    env = Line()
    eps = np.finfo(np.float32).eps.item()
    losses = []
    for _ in range(4):
        state, done = env.reset(), False
        saved, rewards, entropies = [], [], []
        while not done:
            probs, value = model(torch.from_numpy(state).float().unsqueeze(0))
            action = torch.searchsorted(
                probs.detach().cumsum(-1), torch.tensor([[uniform.rand()]]).float()
            ).clamp(max=1)
            log_prob = probs.gather(1, action).log().squeeze()
            entropies.append(-(probs * probs.log()).sum())
            state, reward, done = env.step(action.item())
            saved.append((log_prob, value))
            rewards.append(reward)
        R, returns = 0.0, []
        for r in rewards[::-1]:
            R = r + 0.99 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        policy_losses, value_losses = [], []
        for (log_prob, value), R in zip(saved, returns):
            advantage = R - value.item()
            policy_losses.append(-log_prob * advantage)
            value_losses.append(F.smooth_l1_loss(value.squeeze(0), torch.tensor([R])))
        optimizer.zero_grad()
        loss = (
            torch.stack(policy_losses).sum()
            + torch.stack(value_losses).sum()
            - 0.01 * torch.stack(entropies).sum()
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
