"""Proximal policy optimisation on given transitions: torch.distributions, ratios, clipping, advantages."""

import json

import torch
import torch.nn as nn
from same import classes, fill, numbers, tensor
from torch.distributions import Categorical, Independent, Normal, kl_divergence


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 12), nn.Tanh())
        self.move = nn.Linear(12, 3)
        self.force = nn.Linear(12, 2)
        self.log_std = nn.Parameter(torch.zeros(2))
        self.value = nn.Linear(12, 1)

    def forward(self, x):
        h = self.body(x)
        force = Independent(Normal(self.force(h), self.log_std.exp().expand(x.shape[0], 2)), 1)
        return Categorical(logits=self.move(h)), force, self.value(h).squeeze(-1)


def advantages_of(rewards, values, gamma=0.9, lam=0.95):
    found, last = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        following = values[t + 1] if t + 1 < len(rewards) else 0.0
        delta = rewards[t] + gamma * following - values[t]
        last = delta + gamma * lam * last
        found[t] = last
    return found


def main():
    agent = fill(Agent())
    optimizer = torch.optim.Adam(agent.parameters(), lr=0.02, eps=1e-5)
    states, moves = tensor(10, 5, seed=1), classes(10, count=3, seed=2)
    forces, rewards = tensor(10, 2, seed=3), torch.as_tensor(numbers(10, seed=4))
    with torch.no_grad():
        move, force, values = agent(states)
        before = move.log_prob(moves) + force.log_prob(forces)
        advantages = advantages_of(rewards, values)
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    losses = []
    for _ in range(4):
        new_move, new_force, value = agent(states)
        ratio = (new_move.log_prob(moves) + new_force.log_prob(forces) - before).exp()
        clipped = torch.clamp(ratio, 0.8, 1.2) * advantages
        entropy = new_move.entropy() + new_force.entropy()
        loss = -torch.min(ratio * advantages, clipped).mean()
        loss = loss + 0.5 * (value - returns).pow(2).mean() - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        new_move, new_force, _ = agent(states)
        drift = kl_divergence(move, new_move).mean() + kl_divergence(force, new_force).mean()
    assert move.sample().shape == (10,) and force.sample((2,)).shape == (2, 10, 2)
    return [*losses, drift.item()]


if __name__ == "__main__":
    print(json.dumps(main()))
