"""Train a network on scikit-learn's handwritten digits: 1,797 images of 8 by 8 pixels, which come with the package.

    python examples/digits.py --model=cnn

Prints the accuracy on images that were not trained on, plots loss and accuracy and the digits that were taken for
others, and keeps a checkpoint from which `--resume` continues exactly where the last whole epoch ended.
"""

from __future__ import annotations

import pathlib
import time
from typing import Any

import checkpoints
import matplotlib.pyplot as plt
from absl import app, flags, logging
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import xtensor
from xtensor import nn
from xtensor.nn import functional as F
from xtensor.utils.data import DataLoader, TensorDataset

FLAGS = flags.FLAGS
flags.DEFINE_enum("model", "mlp", ["mlp", "cnn"], "Which network to train.")
flags.DEFINE_string("device", "cpu", "Where to train: cpu, cpu:1, cuda, tpu, ...")
flags.DEFINE_integer("epochs", 25, "How many times to go through the training images.", lower_bound=1)
flags.DEFINE_integer("batch_size", 64, "Images per step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 3e-3, "AdamW's learning rate at the start.", lower_bound=0.0)
flags.DEFINE_float("noise", 0.2, "Standard deviation of noise added to training images.", lower_bound=0.0)
flags.DEFINE_integer("seed", 0, "Where all random numbers start from.")
flags.DEFINE_bool("resume", False, "Continue from the checkpoint in --out, if there is one.")
flags.DEFINE_string("out", "digits-out", "Folder for the checkpoint and the plots.")
flags.DEFINE_bool("plot", True, "Whether to draw the plots.")

History = dict[str, list[float]]


def make_model(name: str) -> nn.Module:
    """The network of that name: images (N, 1, 8, 8) to scores (N, 10)."""
    if name == "mlp":
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, 256),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(128, 10),
        )
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(128, 10),
    )


def make_data(device: xtensor.device) -> tuple[TensorDataset, TensorDataset]:
    """Images from 0 to 1 and their digits: four fifths to train on, one fifth to test on, always the same."""
    digits = load_digits()
    parts = train_test_split(
        digits.images, digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    train_images, test_images = (
        xtensor.tensor(part, dtype=xtensor.float32).div(16).unsqueeze(1).to(device) for part in parts[:2]
    )
    train_labels, test_labels = (xtensor.tensor(part).to(device) for part in parts[2:])
    return TensorDataset(train_images, train_labels), TensorDataset(test_images, test_labels)


def train_epoch(model: nn.Module, optimizer: xtensor.optim.Optimizer, loader: DataLoader[Any]) -> float:
    """One step per batch; the mean loss."""
    model.train()
    total, count = xtensor.zeros((), device=next(model.parameters()).device), 0
    for images, labels in loader:
        optimizer.zero_grad()
        noisy = images + FLAGS.noise * xtensor.randn_like(images)
        loss = F.cross_entropy(model(noisy), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        total += loss.detach() * len(labels)
        count += len(labels)
    return total.item() / count


@xtensor.no_grad()
def evaluate(model: nn.Module, data: TensorDataset) -> tuple[float, float, xtensor.Tensor]:
    """Loss, accuracy and predictions."""
    model.eval()
    images, labels = data.tensors
    scores = model(images)
    predictions = scores.argmax(1)
    accuracy = (predictions == labels).float().mean()
    return F.cross_entropy(scores, labels).item(), accuracy.item(), predictions


def plot_history(history: History, path: pathlib.Path) -> None:
    """Loss and accuracy by epoch."""
    epochs = range(1, len(history["train loss"]) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    left.plot(epochs, history["train loss"], label="train")
    left.plot(epochs, history["test loss"], label="test")
    left.set(title="loss", xlabel="epoch", yscale="log")
    left.legend()
    right.plot(epochs, history["accuracy"], color="tab:green")
    right.set(title="test accuracy", xlabel="epoch")
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_mistakes(
    data: TensorDataset, predictions: xtensor.Tensor, path: pathlib.Path, most: int = 15
) -> None:
    """The digits that were taken for others."""
    images, labels = (tensor.cpu() for tensor in data.tensors)
    predictions = predictions.cpu()
    wrong = (predictions != labels).nonzero().flatten().tolist()[:most]
    figure, axes = plt.subplots(3, 5, figsize=(7, 5), layout="constrained")
    figure.suptitle(f"{len(wrong)} of the digits taken for others" if wrong else "no digit taken for another")
    for axis, i in zip(axes.flat, wrong, strict=False):
        axis.imshow(images[i, 0], cmap="gray_r")
        axis.set_title(f"{labels[i].item()} taken for {predictions[i].item()}", fontsize=8)
    for axis in axes.flat:
        axis.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    started = time.perf_counter()
    device, out = xtensor.device(FLAGS.device), pathlib.Path(FLAGS.out)
    xtensor.manual_seed(FLAGS.seed)
    train, test = make_data(device)
    model = make_model(FLAGS.model).to(device)
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=FLAGS.learning_rate)
    schedule = xtensor.optim.lr_scheduler.CosineAnnealingLR(optimizer, FLAGS.epochs)
    loader = DataLoader(train, batch_size=FLAGS.batch_size, shuffle=True)
    history: History = {"train loss": [], "test loss": [], "accuracy": []}

    checkpoint = out / f"{FLAGS.model}.npz"
    if FLAGS.resume:
        checkpoints.tidy(checkpoint)
    if not checkpoint.exists() or not FLAGS.resume:
        print(f"starting anew; a checkpoint of every epoch goes to {checkpoint}")
    else:
        state = checkpoints.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        for place, random in state["random"].items():
            xtensor.set_rng_state(random, place)
        history = state["history"]
        print(f"continuing from {checkpoint} after epoch {len(history['accuracy'])}")

    done = len(history["accuracy"])
    progress = tqdm(range(done, FLAGS.epochs), initial=done, total=FLAGS.epochs, unit="epoch")
    for _ in progress:
        history["train loss"].append(train_epoch(model, optimizer, loader))
        schedule.step()
        loss, accuracy, _ = evaluate(model, test)
        history["test loss"].append(loss)
        history["accuracy"].append(accuracy)
        progress.set_postfix({name: f"{values[-1]:.4f}" for name, values in history.items()})
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            # The order of the images is drawn on the CPU, noise and dropout where the network is.
            "random": {place: xtensor.get_rng_state(place) for place in ("cpu", str(device))},
            "history": history,
        }
        checkpoints.save(state, checkpoint)

    _, accuracy, predictions = evaluate(model, test)
    if FLAGS.plot:
        plot_history(history, out / f"{FLAGS.model}-curves.png")
        plot_mistakes(test, predictions, out / f"{FLAGS.model}-mistakes.png")
        print(f"plots and checkpoint are in {out}")
    seconds = time.perf_counter() - started
    print(
        f"test accuracy: {accuracy:.2%} ({FLAGS.model} on {device}, {FLAGS.epochs} epochs, {seconds:.0f} s)"
    )


if __name__ == "__main__":
    logging.set_verbosity(logging.WARNING)
    app.run(main)
