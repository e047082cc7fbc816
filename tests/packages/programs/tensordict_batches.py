"""tensordict: nested batches indexed, stacked, reshaped, and a module over them."""

import torch
from same import done, fill, numbers, show
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn

data = TensorDict({"x": numbers(4, 3, 5), "inner": {"y": numbers(4, 3, 2, seed=1)}}, batch_size=[4, 3])
show("one", data[1]["x"])
show("inner", data["inner", "y"])
show("flat", data.reshape(-1)["inner", "y"])
show("stacked", torch.stack([data, data * 2])["x"])
show("cat", torch.cat([data, data], 0)["inner", "y"])
show("sum", data.apply(lambda t: t.sum(-1, keepdim=True))["x"])
net = TensorDictSequential(
    TensorDictModule(nn.Linear(5, 4), in_keys=["x"], out_keys=["h"]),
    TensorDictModule(nn.Sequential(nn.ReLU(), nn.Linear(4, 2)), in_keys=["h"], out_keys=["out"]),
)
fill(net)
found = net(data)
show("out", found["out"])
((found["out"] - data["inner", "y"]) ** 2).mean().backward()
show("gradients", [float(p.grad.norm()) for p in net.parameters()])
parameters = TensorDict.from_module(net)
show("parameters", len(list(parameters.keys(True, True))))
done()
