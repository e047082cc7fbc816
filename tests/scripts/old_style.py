"""A program in the style of PyTorch's first years: Variables, typed constructors, `.data`, in-place functions."""

import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from same import fill
from torch.autograd import Variable

use_cuda = torch.cuda.is_available()
FloatTensor = torch.cuda.FloatTensor if use_cuda else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if use_cuda else torch.LongTensor


class Memory(nn.Module):
    def __init__(self, size):
        super(Memory, self).__init__()  # noqa: UP008
        self.size = size
        self.i2h = nn.Linear(3 + size, size)
        self.i2o = nn.Linear(3 + size, 2)

    def forward(self, input, hidden):
        combined = torch.cat((input, hidden), 1)
        return F.log_softmax(self.i2o(combined), dim=1), torch.sigmoid(self.i2h(combined))

    def init_hidden(self, batch):
        return Variable(torch.zeros(batch, self.size))


def clip_by_hand(model, most):
    total = 0
    for p in model.parameters():
        total += p.grad.data.norm(2).item() ** 2
    factor = most / (total**0.5 + 1e-6)
    if factor < 1:
        for p in model.parameters():
            p.grad.data.mul_(factor)


def main():
    random = np.random.RandomState(7)
    model = fill(Memory(4))
    if use_cuda:
        model.cuda()
    inputs = FloatTensor(random.standard_normal((5, 2, 3)).tolist())
    targets = LongTensor(random.randint(0, 2, (5, 2)).tolist())
    losses = []
    for _ in range(4):
        hidden = model.init_hidden(2)
        model.zero_grad()
        loss = Variable(FloatTensor([0]))
        for t in range(5):
            output, hidden = model(Variable(inputs[t]), hidden)
            loss += F.nll_loss(output, Variable(targets[t]))
        loss.backward()
        clip_by_hand(model, 1.0)
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-0.3)
        losses.append(loss.data[0].item() / 5)
    buffer = torch.Tensor(2, 3).fill_(1.5)
    torch.sigmoid_(buffer)
    mask = torch.ByteTensor([[1, 0, 1], [0, 1, 0]]).bool()
    picked = buffer.masked_select(mask).sum().item()
    kinds = [
        isinstance(buffer, torch.FloatTensor),
        torch.is_tensor(loss),
        buffer.type() == "torch.FloatTensor",
    ]
    converted = buffer.type(torch.DoubleTensor).type_as(torch.HalfTensor(1))
    return [
        *losses,
        picked,
        *(float(k) for k in kinds),
        float(converted.element_size()),
        float(buffer.new(2, 2).numel()),
    ]


if __name__ == "__main__":
    print(json.dumps(main()))
