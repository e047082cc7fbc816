"""Quantise the network of the digits in three ways: its linear layer as it runs, all of it after training, and in training.

    python examples/quantised_digits.py --seeds=3

Prints the accuracy on images that were not trained on, of the network in float32 and of each of the three, for several seeds.
"""

from __future__ import annotations

import copy

import digits
from absl import app, flags, logging

import xtensor
from xtensor import nn
from xtensor.ao import quantization as Q
from xtensor.utils.data import DataLoader, TensorDataset

FLAGS = flags.FLAGS
flags.DEFINE_integer("seeds", 3, "How many networks to train, and to quantise.", lower_bound=1)
flags.DEFINE_integer("tuning_epochs", 2, "Epochs of training with rounded numbers.", lower_bound=0)
flags.DEFINE_string("backend", "x86", "Whose settings to quantise with: x86, fbgemm, qnnpack or onednn.")

FUSED = [
    ["module.0", "module.1", "module.2"],
    ["module.4", "module.5", "module.6"],
]  # convolution, norm, ReLU


def fit(model: nn.Module, loader: DataLoader, epochs: int, rate: float) -> None:
    """Train a network."""
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=rate)
    schedule = xtensor.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(epochs, 1))
    for _ in range(epochs):
        digits.train_epoch(model, optimizer, loader)
        schedule.step()


def as_it_runs(model: nn.Module) -> nn.Module:
    """The weights of linear layers become integers, and what comes to them does as it comes."""
    return Q.quantize_dynamic(model)


def after_training(model: nn.Module, shown: xtensor.Tensor) -> nn.Module:
    """All numbers become integers, by what passes when some images are shown."""
    model = Q.fuse_modules(Q.QuantWrapper(copy.deepcopy(model).eval()), FUSED)
    model.qconfig = Q.get_default_qconfig(FLAGS.backend)
    return Q.quantize(model, lambda network: network(shown), ())


def in_training(model: nn.Module, loader: DataLoader) -> nn.Module:
    """All numbers become integers, after some training in which they are rounded so."""
    model = Q.fuse_modules_qat(Q.QuantWrapper(copy.deepcopy(model).train()), FUSED)
    model.qconfig = Q.get_default_qat_qconfig(FLAGS.backend)
    Q.prepare_qat(model, inplace=True)
    fit(model, loader, FLAGS.tuning_epochs, FLAGS.learning_rate / 10)
    return Q.convert(model.eval())


def accuracy(model: nn.Module, data: TensorDataset) -> float:
    return digits.evaluate(model, data)[1]


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    train, test = digits.make_data(xtensor.device("cpu"))
    loader = DataLoader(train, batch_size=FLAGS.batch_size, shuffle=True)
    rows = []
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        xtensor.manual_seed(seed)
        model = digits.make_model("cnn")
        fit(model, loader, FLAGS.epochs, FLAGS.learning_rate)
        ways = (as_it_runs(model), after_training(model, train.tensors[0]), in_training(model, loader))
        rows.append([accuracy(network, test) for network in (model, *ways)])
        shown = ", ".join(f"{value:.2%}" for value in rows[-1])
        print(f"seed {seed}: float32, as it runs, after training, in training: {shown}")
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    names = ("float32", "as it runs", "after training", "in training")
    print("means: " + ", ".join(f"{name} {mean:.2%}" for name, mean in zip(names, means, strict=True)))


if __name__ == "__main__":
    logging.set_verbosity(logging.WARNING)
    app.run(main)
