"""Public PyTorch programs that run unmodified: where they are, at which commit, and the arguments that make them short.

None of their code is in this repository: `benchmarks/start.py` fetches the files named here. Data that they would download is made up.
"""

from __future__ import annotations

import pathlib
import random
import shutil
import struct
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["REPOSITORIES", "SCRIPTS", "Absent", "Repository", "Script", "fetch"]

WHERE = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"


class Absent(Exception):
    """A repository's files that cannot be had now, and why."""


class Repository(NamedTuple):
    """A repository, a commit of it, and the files that its scripts need. made: files of ours beside them, by path."""

    commit: str
    files: tuple[str, ...]
    made: dict[str, Callable[[], bytes]] = {}


class Script(NamedTuple):
    """A program: what stands behind `python`, where it runs, and what it needs. path: its repository's folders to import from."""

    kind: str
    repository: str
    command: tuple[str, ...]
    folder: str = "."
    path: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    environment: dict[str, str] = {}


def words(lines: int) -> Callable[[], bytes]:
    """A text of some lines over 300 words."""

    def text() -> bytes:
        draw = random.Random(lines)
        return "".join(
            " ".join(f"w{draw.randrange(300)}" for _ in range(14)) + "\n" for _ in range(lines)
        ).encode()

    return text


def tokens(count: int) -> Callable[[], bytes]:
    """Numbers below 200, of 16 bits each."""

    def data() -> bytes:
        draw = random.Random(count)
        return struct.pack(f"<{count}H", *(draw.randrange(200) for _ in range(count)))

    return data


MODELS = (
    "vgg dpn lenet senet pnasnet densenet googlenet shufflenet shufflenetv2 resnet resnext preact_resnet mobilenet mobilenetv2 "
    "efficientnet regnet dla_simple dla"
).split()
SOLVERS = (
    "__init__ adaptive_heun adjoint bosh3 dopri5 dopri8 event_handling fehlberg2 fixed_adams fixed_grid fixed_grid_implicit interp "
    "misc odeint rk_common scipy_wrapper solvers tsit5"
).split()
EINOPS = (
    "__init__ _backends _torch_specific array_api einops packing parsing layers/__init__ layers/_einmix layers/torch "
    "experimental/__init__ experimental/indexing tests/__init__ tests/test_ops tests/test_einsum tests/test_packing"
).split()

REPOSITORIES: dict[str, Repository] = {
    "arogozhnikov/einops": Repository(
        "ccb89f27599f26d7140a1bd2703305309fe3a3bd", tuple(f"einops/{name}.py" for name in EINOPS)
    ),
    "graykode/nlp-tutorial": Repository(
        "d05e31ec81d56d70c1db89b99ab07e948f7ebc11",
        (
            "3-2.TextLSTM/TextLSTM.py",
            "5-1.Transformer/Transformer(Greedy_decoder).py",
        ),
    ),
    "hunkim/PyTorchZeroToAll": Repository(
        "e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289",
        (
            "03_auto_gradient.py",
            "05_linear_regression.py",
            "06_logistic_regression.py",
            "09_01_softmax_loss.py",
            "12_1_rnn_basics.py",
            "12_2_hello_rnn.py",
            "12_4_hello_rnn_emb.py",
            "13_1_rnn_classification_basics.py",
            "name_dataset.py",
            "data/names_train.csv.gz",
            "data/names_test.csv.gz",
        ),
    ),
    "jcjohnson/pytorch-examples": Repository(
        "0003fcdc606a79951e53bf8f46f8574fa4739f23",
        (
            "tensor/two_layer_net_tensor.py",
            "autograd/two_layer_net_autograd.py",
            "nn/two_layer_net_optim.py",
            "nn/dynamic_net.py",
        ),
    ),
    "karpathy/makemore": Repository("988aa59e4d8fefa526d06f3b453ad116258398d4", ("makemore.py", "names.txt")),
    "karpathy/minGPT": Repository(
        "37baab71b9abea1b76ab957409a1cc2fbfba8a26",
        (
            "projects/adder/adder.py",
            "mingpt/__init__.py",
            "mingpt/model.py",
            "mingpt/trainer.py",
            "mingpt/utils.py",
        ),
    ),
    "karpathy/nanoGPT": Repository(
        "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        ("train.py", "model.py", "configurator.py"),
        {"data/made/train.bin": tokens(20_000), "data/made/val.bin": tokens(5_000)},
    ),
    "karpathy/ng-video-lecture": Repository(
        "52201428ed7b46804849dea0b3ccf0de9df1a5c3", ("bigram.py", "input.txt")
    ),
    "kuangliu/pytorch-cifar": Repository(
        "49b7aa97b0c12fe0d4054e670403a16b6b834ddd",
        ("models/__init__.py", *(f"models/{name}.py" for name in MODELS)),
    ),
    "locuslab/TCN": Repository(
        "2f8c2b817050206397458dfd1f5a25ce8a32fe65",
        (
            "TCN/__init__.py",
            "TCN/tcn.py",
            "TCN/adding_problem/add_test.py",
            "TCN/adding_problem/model.py",
            "TCN/adding_problem/utils.py",
            "TCN/copy_memory/copymem_test.py",
            "TCN/copy_memory/model.py",
            "TCN/copy_memory/utils.py",
        ),
    ),
    "MorvanZhou/PyTorch-Tutorial": Repository(
        "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
        (
            "tutorial-contents/202_variable.py",
            "tutorial-contents/305_batch_train.py",
            "tutorial-contents/306_optimizer.py",
        ),
    ),
    "pytorch/examples": Repository(
        "77f55b912142e11fcfdf5b530231fb9c52f181e8",
        (
            "word_language_model/main.py",
            "word_language_model/model.py",
            "word_language_model/data.py",
        ),
        {
            "word_language_model/made/train.txt": words(300),
            "word_language_model/made/valid.txt": words(60),
            "word_language_model/made/test.txt": words(61),
        },
    ),
    "rtqichen/torchdiffeq": Repository(
        "657943acefa826ef04c025ebeb1ff5e9d60dc268",
        (
            "examples/ode_demo.py",
            "examples/bouncing_ball.py",
            "tests/api_tests.py",
            "tests/problems.py",
            "torchdiffeq/__init__.py",
            *(f"torchdiffeq/_impl/{name}.py" for name in SOLVERS),
        ),
    ),
}


def script(kind: str, repository: str, *command: str, **options: Any) -> Script:
    return Script(kind, repository, command, **options)


def cifar(name: str) -> Script:
    """The model's own `test()`: it makes the network and runs it forward on a random image or two."""
    return script("image model", "kuangliu/pytorch-cifar", "-c", f"from models.{name} import test; test()")


def makemore(kind: str, name: str) -> Script:
    return script(kind, "karpathy/makemore", "makemore.py", "--type", name, "--max-steps", "10", "-n", "0")


def language_model(kind: str, name: str) -> Script:
    sizes = ("--emsize", "64", "--nhid", "64", "--bptt", "20", "--epochs", "1", "--data", "made")
    return script(kind, "pytorch/examples", "main.py", "--model", name, *sizes, folder="word_language_model")


def einops(name: str) -> Script:
    return script(
        "operator suite",
        "arogozhnikov/einops",
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"einops/tests/test_{name}.py"),
        needs=("pytest",),
        environment={"EINOPS_TEST_BACKENDS": "numpy,torch"},
    )


def ode(kind: str, *command: str) -> Script:
    return script(kind, "rtqichen/torchdiffeq", *command, path=(".",), needs=("scipy", "matplotlib"))


NANO = (
    "--dataset=made --device=cpu --compile=False --dtype=float32 --eval_iters=2 --eval_interval=5 --log_interval=1 --block_size=64 "
    "--gradient_accumulation_steps=2 "
    "--batch_size=4 --n_layer=4 --n_head=4 --n_embd=64 --max_iters=10 --lr_decay_iters=10"
).split()

SCRIPTS: dict[str, Script] = {
    "cifar resnet": cifar("resnet"),
    "cifar densenet": cifar("densenet"),
    "cifar vgg": cifar("vgg"),
    "cifar googlenet": cifar("googlenet"),
    "cifar mobilenetv2": cifar("mobilenetv2"),
    "cifar shufflenetv2": cifar("shufflenetv2"),
    "cifar efficientnet": cifar("efficientnet"),
    "cifar senet": cifar("senet"),
    "makemore transformer": makemore("gpt", "transformer"),
    "minGPT adder": script(
        "gpt",
        "karpathy/minGPT",
        *("projects/adder/adder.py", "--trainer.max_iters=10", "--trainer.num_workers=0"),
        path=(".",),
    ),
    "nanoGPT train": script("gpt", "karpathy/nanoGPT", "train.py", *NANO),
    "bigram": script("gpt", "karpathy/ng-video-lecture", "bigram.py"),
    "examples transformer": language_model("gpt", "Transformer"),
    "nlp Transformer": script(
        "gpt",
        "graykode/nlp-tutorial",
        "Transformer(Greedy_decoder).py",
        folder="5-1.Transformer",
        needs=("matplotlib",),
    ),
    "makemore rnn": makemore("recurrent", "rnn"),
    "makemore gru": makemore("recurrent", "gru"),
    "examples lstm": language_model("recurrent", "LSTM"),
    "examples gru": language_model("recurrent", "GRU"),
    "nlp TextLSTM": script("recurrent", "graykode/nlp-tutorial", "TextLSTM.py", folder="3-2.TextLSTM"),
    "zero-to-all 12_1": script("recurrent", "hunkim/PyTorchZeroToAll", "12_1_rnn_basics.py"),
    "zero-to-all 12_2": script("recurrent", "hunkim/PyTorchZeroToAll", "12_2_hello_rnn.py"),
    "zero-to-all 12_4": script("recurrent", "hunkim/PyTorchZeroToAll", "12_4_hello_rnn_emb.py"),
    "zero-to-all 13_1": script("recurrent", "hunkim/PyTorchZeroToAll", "13_1_rnn_classification_basics.py"),
    # Their switch `--cuda` turns it off.
    "TCN adding": script(
        "sequence",
        "locuslab/TCN",
        *"TCN/adding_problem/add_test.py --cuda --epochs 1 --seq_len 20 --batch_size 1000 --nhid 8 --levels 3".split(),
        path=(".",),
    ),
    "TCN copying": script(
        "sequence",
        "locuslab/TCN",
        *"TCN/copy_memory/copymem_test.py --cuda --epochs 1 --blank_len 20 --batch_size 500 --levels 3".split(),
        path=(".",),
    ),
    "makemore bow": makemore("tutorial", "bow"),
    "makemore mlp": makemore("tutorial", "mlp"),
    "makemore bigram": makemore("tutorial", "bigram"),
    "zero-to-all 03": script("tutorial", "hunkim/PyTorchZeroToAll", "03_auto_gradient.py"),
    "zero-to-all 05": script("tutorial", "hunkim/PyTorchZeroToAll", "05_linear_regression.py"),
    "zero-to-all 06": script("tutorial", "hunkim/PyTorchZeroToAll", "06_logistic_regression.py"),
    "zero-to-all 09_01": script("tutorial", "hunkim/PyTorchZeroToAll", "09_01_softmax_loss.py"),
    "two layers tensor": script("tutorial", "jcjohnson/pytorch-examples", "tensor/two_layer_net_tensor.py"),
    "two layers autograd": script(
        "tutorial", "jcjohnson/pytorch-examples", "autograd/two_layer_net_autograd.py"
    ),
    "two layers optim": script("tutorial", "jcjohnson/pytorch-examples", "nn/two_layer_net_optim.py"),
    "dynamic net": script("tutorial", "jcjohnson/pytorch-examples", "nn/dynamic_net.py"),
    "tutorial 202": script("tutorial", "MorvanZhou/PyTorch-Tutorial", "tutorial-contents/202_variable.py"),
    "tutorial 305": script("tutorial", "MorvanZhou/PyTorch-Tutorial", "tutorial-contents/305_batch_train.py"),
    "tutorial 306": script(
        "tutorial",
        "MorvanZhou/PyTorch-Tutorial",
        "tutorial-contents/306_optimizer.py",
        needs=("matplotlib",),
    ),
    "ode demo": ode(
        "differential equation",
        *("examples/ode_demo.py", "--niters", "10", "--data_size", "100", "--test_freq", "10"),
    ),
    "ode bouncing ball": ode("differential equation", "examples/bouncing_ball.py", "3"),
    "ode tests of its interface": ode("operator suite", "tests/api_tests.py"),
    "einops operators": einops("ops"),
    "einops einsum": einops("einsum"),
    "einops packing": einops("packing"),
}


def fetch(name: str, cache: pathlib.Path, clones: pathlib.Path | None) -> pathlib.Path:
    """The folder with a repository's files; `Absent` where they cannot be had.

    clones: a folder with git clones, as owner/name, to take them from instead of from GitHub.
    """
    repository = REPOSITORIES[name]
    folder = cache / f"{name.replace('/', '+')}-{repository.commit[:12]}"
    if folder.exists():
        return folder
    aside = folder.with_suffix(".part")
    shutil.rmtree(aside, ignore_errors=True)
    for path in repository.files:
        content = read(name, repository.commit, path, clones)
        (aside / path).parent.mkdir(parents=True, exist_ok=True)
        (aside / path).write_bytes(content)
    for path, make in repository.made.items():
        (aside / path).parent.mkdir(parents=True, exist_ok=True)
        (aside / path).write_bytes(make())
    aside.rename(folder)
    return folder


def read(name: str, commit: str, path: str, clones: pathlib.Path | None) -> bytes:
    """One file of a repository at a commit."""
    if clones is not None:
        done = subprocess.run(
            ["git", "-C", str(clones / name), "show", f"{commit}:{path}"], capture_output=True, check=False
        )
        if done.returncode:
            raise Absent(done.stderr.decode(errors="replace").strip())
        return done.stdout
    try:
        with urllib.request.urlopen(
            WHERE.format(repository=name, commit=commit, path=urllib.parse.quote(path)), timeout=30
        ) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise Absent(str(error)) from None
