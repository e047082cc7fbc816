"""What programs do all day beside steps and kernels, against PyTorch: small calls, loaders, metrics, checkpoints, new modules.

    python benchmarks/idioms.py                all; the slowest beside PyTorch come last
    python benchmarks/idioms.py loader pad     those whose name has one of these words

Each case is a few lines as tutorials have them. Both libraries take turns in one process.
"""

from __future__ import annotations

import copy
import io
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from operators import arguments, compared, libraries


def idioms(lib: Any) -> dict[str, Callable[[], Any]]:
    """The cases of one library."""
    nn, functional, distributions, data = lib.nn, lib.nn.functional, lib.distributions, lib.utils.data
    draw = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        return lib.tensor(draw.random(shape).astype(np.float32))

    def whole(most: int, *shape: int) -> Any:
        return lib.tensor(draw.integers(0, most, shape))

    a, v, logits, y, idx = real(64, 64), real(100), real(64, 10), whole(10, 64), whole(64, 20)
    lens, weights = whole(12, 8), real(64).requires_grad_()
    mask, images, labels = a > 0.5, draw.random((640, 28, 28)).astype(np.float32), draw.integers(0, 10, 640)
    sequences = [real(n, 8) for n in draw.integers(3, 20, 16)]
    array, wide = draw.random((64, 32)).astype(np.float32), draw.random((64, 32))
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Dropout(0.1), nn.Linear(64, 10))
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = lib.optim.Adam(net.parameters())
    functional.cross_entropy(net(real(64, 32)), y).backward()
    average = [p.detach().clone() for p in net.parameters()]
    state, file = copy.deepcopy(net.state_dict()), io.BytesIO()
    lib.save(net.state_dict(), file)

    class Images(data.Dataset):
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, i: int) -> Any:
            return lib.from_numpy(images[i]).unsqueeze(0), int(labels[i])

    loader = data.DataLoader(Images(), batch_size=64, shuffle=True)
    pairs = data.DataLoader(
        data.TensorDataset(lib.tensor(images), lib.tensor(labels)), batch_size=64, shuffle=True
    )

    def act() -> Any:
        with lib.no_grad():
            return lib.multinomial(
                functional.softmax(policy(lib.from_numpy(np.zeros((1, 4), np.float32))), -1), 1
            ).item()

    def returns() -> Any:
        total, found = 0.0, []
        for reward in range(30):
            total = reward + 0.99 * total
            found.insert(0, total)
        made = lib.tensor(found)
        return (made - made.mean()) / (made.std() + 1e-5)

    def running() -> Any:
        total = 0.0
        for i in range(20):
            total += v[i] * 2
        return total

    def by_hand() -> None:
        with lib.no_grad():
            for p in net.parameters():
                p -= 0.0 * p.grad

    def read() -> Any:
        file.seek(0)
        return lib.load(file)

    return {
        "loader over NumPy's images": lambda: [x.shape for x, _ in loader],
        "loader over tensors": lambda: [x.shape for x, _ in pairs],
        "pad_sequence": lambda: nn.utils.rnn.pad_sequence(sequences, batch_first=True),
        "accuracy, item": lambda: (logits.argmax(1) == y).float().mean().item(),
        "correct, item": lambda: (logits.argmax(1) == y).sum().item(),
        "max, item": lambda: v.max().item(),
        "if v[0] > 0": lambda: bool(v[0] > 0),
        "item of 50 elements": lambda: [v[i].item() for i in range(50)],
        "float of 100 elements": lambda: [float(element) for element in v],
        "a sum in a loop": running,
        "returns of an episode": returns,
        "an action": act,
        "tolist": lambda: v.tolist(),
        "detach, cpu, numpy": lambda: a.detach().cpu().numpy(),
        "isnan, any": lambda: bool(lib.isnan(a).any()),
        "allclose": lambda: lib.allclose(a, a),
        "state_dict": lambda: net.state_dict(),
        "load_state_dict": lambda: net.load_state_dict(state),
        "save": lambda: lib.save(net.state_dict(), io.BytesIO()),
        "load": read,
        "deepcopy of a model": lambda: copy.deepcopy(net),
        "a new model": lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)),
        "a new LSTM": lambda: nn.LSTM(16, 16),
        "repr of a model": lambda: repr(net),
        "repr of a matrix": lambda: repr(a),
        "norms of parameters": lambda: lib.stack([p.norm() for p in net.parameters()]).norm().item(),
        "clip_grad_norm_": lambda: nn.utils.clip_grad_norm_(net.parameters(), 1.0),
        "an optimizer's step": lambda: optimizer.step(),
        "descent by hand": by_hand,
        "moving averages": lambda: [
            q.mul_(0.99).add_(p.data, alpha=0.01) for q, p in zip(average, net.parameters(), strict=True)
        ],
        "Normal, rsample": lambda: distributions.Normal(a, 1.0).rsample(),
        "Normal, log_prob": lambda: distributions.Normal(0.0, 1.0).log_prob(a),
        "Categorical, sample": lambda: distributions.Categorical(logits=logits).sample(),
        "Categorical, log_prob": lambda: distributions.Categorical(logits=logits).log_prob(y),
        "multinomial": lambda: lib.multinomial(logits, 1),
        "one_hot": lambda: functional.one_hot(y, 10).float(),
        "one hot by scatter_": lambda: lib.zeros(64, 10).scatter_(1, y[:, None], 1.0),
        "rows by a mask": lambda: a[mask].sum(),
        "rows by indices": lambda: a[idx],
        "logits of targets": lambda: logits[lib.arange(64), y],
        "gather of targets": lambda: logits.gather(1, y[:, None]).squeeze(1),
        "a row written": lambda: a.clone().__setitem__(3, v[:64]),
        "a column written": lambda: a.clone().__setitem__((slice(None), 0), 1.0),
        "a mask written": lambda: a.clone().__setitem__(mask, 0.0),
        "mask of lengths": lambda: lib.arange(12)[None, :] < lens[:, None],
        "causal mask": lambda: lib.tril(lib.ones(12, 12)),
        "masked_fill": lambda: a.masked_fill(mask, float("-inf")),
        "cat of slices": lambda: lib.cat([a[:10], a[10:20]]),
        "chunks": lambda: [part + 1 for part in a.chunk(4)],
        "columns normalised": lambda: (a - a.mean(0)) / (a.std(0) + 1e-8),
        "heads apart": lambda: a.view(8, 8, 64).transpose(0, 1).reshape(8, -1),
        "unique": lambda: y.unique(),
        "bincount": lambda: y.bincount(minlength=10),
        "nonzero": lambda: mask.nonzero(),
        "linspace": lambda: lib.linspace(0, 1, 50),
        "randint": lambda: lib.randint(0, 10, (64,)),
        "a dropout mask": lambda: (lib.rand(64, 64) < 0.9).float(),
        "zeros of a state": lambda: (lib.zeros(1, 64, 32), lib.zeros(1, 64, 32)),
        "tensor of a list": lambda: lib.tensor([1.0, 2.0, 3.0]),
        "tensor of an array": lambda: lib.tensor(array),
        "tensor of doubles": lambda: lib.tensor(wide, dtype=lib.float32),
        "as_tensor of an array, added": lambda: lib.as_tensor(array) + 1,
        "gradient": lambda: lib.autograd.grad((weights**2).sum(), weights),
        "gradient of a gradient": lambda: lib.autograd.grad(
            lib.autograd.grad((weights**3).sum(), weights, create_graph=True)[0].sum(), weights
        ),
        "cross entropy in two": lambda: functional.nll_loss(functional.log_softmax(logits, -1), y),
        "smooth_l1_loss": lambda: functional.smooth_l1_loss(a, a * 2),
    }


def waits(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call, which gives what waits for its result where that is a tensor."""

    def run() -> Any:
        made = call()
        return made.detach().numpy if hasattr(made, "detach") else lambda: made

    return run


def main(argv: list[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    warnings.simplefilter("ignore")
    known = {title: idioms(lib) for title, lib in libraries().items()}
    names = [
        name for name in known["xtensor"] if not options.words or any(word in name for word in options.words)
    ]
    compared(options, {name: {title: waits(of[name]) for title, of in known.items()} for name in names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
