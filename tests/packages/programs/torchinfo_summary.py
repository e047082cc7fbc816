"""torchinfo and torchsummary: the layers of networks with their sizes and numbers of parameters."""

import torch
from same import done, show
from torch import nn
from torchinfo import summary

net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
found = summary(
    net,
    input_size=(2, 3, 8, 8),
    verbose=0,
    col_names=("input_size", "output_size", "num_params", "mult_adds", "trainable"),
)
show(
    "totals",
    [
        found.total_params,
        found.trainable_params,
        found.total_mult_adds,
        found.total_output_bytes,
        found.total_input,
    ],
)
show("length", [len(str(found).splitlines()), len(found.summary_list)])
show("text", [sum(map(ord, str(found)))])
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)
found = summary(encoder, input_data=torch.zeros(1, 5, 16), verbose=0, depth=3)
show("encoder", [found.total_params, len(found.summary_list)])
rnn = summary(nn.LSTM(4, 6, 2, batch_first=True), input_size=(2, 3, 4), verbose=0)
show("lstm", [rnn.total_params, rnn.total_mult_adds])
done()
