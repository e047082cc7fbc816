"""Train a small GPT, character by character, on the text of Python's own documentation.

    python examples/gpt.py                       # a minute or two on a laptop's CPU
    python examples/gpt.py --device cuda --width 256 --layers 6 --steps 5000
    python examples/gpt.py --steps 2000 --resume
    python examples/gpt.py --compile             # every step as one program

The text ships with Python: the topics that `help()` explains, and the Zen. Prints the loss, writes a checkpoint as it
goes (a crash leaves the last one whole), and ends with text of its own. `--resume` continues a run exactly.
"""

from __future__ import annotations

import contextlib
import io
import math
import pathlib
import time
from pydoc_data.topics import topics

from absl import app, flags, logging
from tqdm import tqdm

import xtensor
from xtensor import nn
from xtensor.nn import functional as F

FLAGS = flags.FLAGS
flags.DEFINE_string("device", "cpu", "Where to train: cpu, cpu:1, cuda, tpu, ...")
flags.DEFINE_integer("steps", 500, "How many steps to make in all.", lower_bound=1)
flags.DEFINE_integer("batch_size", 16, "Pieces of text per step.", lower_bound=1)
flags.DEFINE_integer("context", 64, "Characters that the model looks back on.", lower_bound=2)
flags.DEFINE_integer("width", 96, "Size of a character's vector.", lower_bound=1)
flags.DEFINE_integer("heads", 4, "Attention heads; they divide the width.", lower_bound=1)
flags.DEFINE_integer("layers", 3, "Transformer blocks.", lower_bound=1)
flags.DEFINE_float("learning_rate", 3e-3, "AdamW's learning rate at its highest.", lower_bound=0.0)
flags.DEFINE_float(
    "dropout", 0.0, "Share of activations dropped in training.", lower_bound=0.0, upper_bound=1.0
)
flags.DEFINE_integer("characters", 200_000, "How much of the text to use.", lower_bound=1000)
flags.DEFINE_integer("save_every", 100, "Steps between checkpoints.", lower_bound=1)
flags.DEFINE_integer("sample", 300, "Characters to write at the end.", lower_bound=0)
flags.DEFINE_float("temperature", 0.8, "How freely they are drawn.", lower_bound=1e-3)
flags.DEFINE_integer("seed", 0, "Where all random numbers start from.")
flags.DEFINE_bool("compile", False, "Run a training step as one program.")
flags.DEFINE_bool("resume", False, "Continue from the checkpoint in --out, if there is one.")
flags.DEFINE_string("out", "gpt-out", "Folder for the checkpoint.")


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: xtensor.Tensor) -> xtensor.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a two-layer network, each normalised before and added to what came in."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: xtensor.Tensor) -> xtensor.Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class GPT(nn.Module):
    """Scores of the next character at every place of pieces of text (N, L)."""

    def __init__(
        self, vocabulary: int, context: int, width: int, heads: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.characters.weight
        self.apply(self.initialise)
        for name, parameter in self.named_parameters():
            if name.endswith("out.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, text: xtensor.Tensor) -> xtensor.Tensor:
        places = xtensor.arange(text.shape[1], device=text.device)
        x = self.characters(text) + self.places(places)
        return self.head(self.norm(self.blocks(x)))

    @xtensor.no_grad()
    def write(self, text: xtensor.Tensor, count: int, temperature: float) -> xtensor.Tensor:
        """The text (1, L) and `count` characters after it, drawn one by one; L is at least the context."""
        self.eval()
        for _ in range(count):
            scores = self(text[:, -self.context :])[:, -1] / temperature
            text = xtensor.cat([text, xtensor.multinomial(scores.softmax(-1), 1)], dim=1)
        self.train()
        return text


def read_text() -> str:
    """The Zen of Python and the topics of `help()`, the first `--characters` of them."""
    with contextlib.redirect_stdout(io.StringIO()) as zen:
        import this  # noqa: F401
    text = "\n\n".join([zen.getvalue(), *(topics[name] for name in sorted(topics))])
    return "".join(c for c in text if c.isascii())[: FLAGS.characters]


def pieces(text: xtensor.Tensor, count: int, length: int) -> tuple[xtensor.Tensor, xtensor.Tensor]:
    """Random pieces of a text and, for each character, the one after it."""
    starts = xtensor.randint(len(text) - length - 1, (count, 1), device=text.device)
    places = starts + xtensor.arange(length + 1, device=text.device)
    found = text[places]
    return found[:, :-1], found[:, 1:]


@xtensor.no_grad()
def evaluate(model: GPT, text: xtensor.Tensor) -> float:
    """The loss on text that was not trained on: the same pieces every time."""
    model.eval()
    length = model.context
    count = min(16, (len(text) - 1) // length)
    inputs = text[: count * length].view(count, length)
    targets = text[1 : count * length + 1].view(count, length)
    loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    model.train()
    return loss.item()


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    started = time.perf_counter()
    device, checkpoint = xtensor.device(FLAGS.device), pathlib.Path(FLAGS.out) / "gpt.pt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    xtensor.manual_seed(FLAGS.seed)
    text = read_text()
    characters = sorted(set(text))
    number_of = {c: i for i, c in enumerate(characters)}
    numbers = xtensor.tensor([number_of[c] for c in text], device=device)
    train, test = numbers[: len(text) * 9 // 10], numbers[len(text) * 9 // 10 :]

    model = GPT(len(characters), FLAGS.context, FLAGS.width, FLAGS.heads, FLAGS.layers, FLAGS.dropout).to(
        device
    )
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = xtensor.optim.AdamW(groups, lr=FLAGS.learning_rate, betas=(0.9, 0.95))
    warm_up = max(1, FLAGS.steps // 20)
    schedule = xtensor.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(
            (step + 1) / warm_up, 0.1 + 0.45 * (1 + math.cos(math.pi * min(1, step / FLAGS.steps)))
        ),
    )
    losses: list[float] = []
    if FLAGS.resume and checkpoint.exists():
        state = xtensor.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        xtensor.set_rng_state(state["random"], device)
        losses = state["losses"]
        print(f"continuing from {checkpoint} after step {len(losses)}")

    def train_step() -> xtensor.Tensor:
        inputs, targets = pieces(train, FLAGS.batch_size, FLAGS.context)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss

    if FLAGS.compile:
        train_step = xtensor.compile(train_step)
    progress = tqdm(range(len(losses), FLAGS.steps), initial=len(losses), total=FLAGS.steps, unit="step")
    for step in progress:
        losses.append(train_step().item())
        progress.set_postfix(loss=f"{losses[-1]:.3f}")
        if (step + 1) % FLAGS.save_every == 0 or step + 1 == FLAGS.steps:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
                "random": xtensor.get_rng_state(device),
                "losses": losses,
            }
            xtensor.save(state, checkpoint)

    if FLAGS.sample:
        start = numbers[: FLAGS.context].unsqueeze(0)
        written = model.write(start, FLAGS.sample, FLAGS.temperature)[0, FLAGS.context :].tolist()
        print("".join(characters[i] for i in written))
    edge = max(1, len(losses) // 10)
    first, last = sum(losses[:edge]) / edge, sum(losses[-edge:]) / edge
    seconds = time.perf_counter() - started
    count = sum(p.numel() for p in model.parameters())
    print(
        f"loss: {first:.3f} at the start, {last:.3f} at the end, {evaluate(model, test):.3f} on other text "
        f"({count:,} parameters on {device}, {len(losses)} steps, {seconds:.0f} s)"
    )


if __name__ == "__main__":
    logging.set_verbosity(logging.WARNING)
    app.run(main)
