"""torchao: weights in eight bits, saved and loaded, and activations in eight bits as they come."""

import tempfile
import warnings

import torch
from same import done, fill, numbers, show
from torch import nn
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

warnings.simplefilter("ignore")


def made():
    return fill(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))).eval()


net, moving, x = made(), made(), numbers(4, 32)
with torch.no_grad():
    show("float", net(x))
    quantize_(net, Int8WeightOnlyConfig())
    show("weights", net(x))
    show("restored", net[0].weight.dequantize())
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), f"{folder}/net.pt")
        again = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16)).eval()
        again.load_state_dict(torch.load(f"{folder}/net.pt", weights_only=False), assign=True)
    show("loaded", again(x))
    show("same type", type(again[0].weight) is type(net[0].weight))
    quantize_(moving, Int8DynamicActivationInt8WeightConfig())
    show("activations", moving(x))
done()
