"""torchrl: advantages over a batch of paths, the losses of PPO and DQN, specs and a replay buffer."""

import warnings

import torch
from same import done, fill, integers, numbers, show
from tensordict import TensorDict
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torch import nn
from torchrl.data import Bounded, LazyTensorStorage, SamplerWithoutReplacement, TensorDictReplayBuffer
from torchrl.modules import MLP, ProbabilisticActor, QValueActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss, DQNLoss, SoftUpdate
from torchrl.objectives.value import GAE

warnings.simplefilter("ignore")


def after(*shape):
    ends = torch.zeros(*shape, 1, dtype=torch.bool)
    ends[..., -1, :] = True
    return {
        "observation": numbers(*shape, 3, seed=2),
        "reward": numbers(*shape, 1, seed=3),
        "done": ends,
        "terminated": ends.clone(),
    }


net = fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2), NormalParamExtractor()))
actor = ProbabilisticActor(
    TensorDictModule(net, ["observation"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    spec=Bounded(-1, 1, shape=(1,)),
    distribution_class=TanhNormal,
    distribution_kwargs={"low": -1, "high": 1},
    return_log_prob=True,
)
value = ValueOperator(fill(MLP(in_features=3, out_features=1, num_cells=[8])), in_keys=["observation"])
data = TensorDict({"observation": numbers(2, 5, 3), "next": after(2, 5)}, [2, 5])
data["action"] = numbers(2, 5, 1, seed=4).tanh() * 0.9
data["action_log_prob"] = actor.get_dist(data).log_prob(data["action"]).detach() + 0.1
gae = GAE(gamma=0.99, lmbda=0.95, value_network=value, average_gae=False)
gae(data)
show("advantage", data["advantage"])
show("target", data["value_target"])
loss_of = ClipPPOLoss(actor, value, clip_epsilon=0.2, entropy_bonus=False)
optimizer, losses = torch.optim.Adam(loss_of.parameters(), 1e-2), []
for _ in range(3):
    gae(data)
    found = loss_of(data)
    loss = found["loss_objective"] + found["loss_critic"]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show("train losses", losses)
buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(20), sampler=SamplerWithoutReplacement(), batch_size=10
)
buffer.extend(data.reshape(-1))
show("buffer", [len(buffer), float(buffer.sample()["observation"].sum())])
values = QValueActor(
    fill(MLP(in_features=3, out_features=4, num_cells=[8])),
    in_keys=["observation"],
    action_space="categorical",
)
loss_of = DQNLoss(values, action_space="categorical", delay_value=True, double_dqn=True)
update = SoftUpdate(loss_of, eps=0.9)
batch = TensorDict({"observation": numbers(6, 3), "action": integers(4, 6), "next": after(6)}, [6])
loss = loss_of(batch)["loss"]
loss.backward()
update.step()
show("values", [loss.item(), sum(float(p.grad.norm()) for p in loss_of.parameters() if p.grad is not None)])
done()
