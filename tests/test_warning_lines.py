"""Every warning names the line of the user's program, whatever of the package lies between."""

from __future__ import annotations

import pathlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import xtensor
from xtensor import nn
from xtensor.nn import functional as F
from xtensor.utils.data import DataLoader, random_split

PACKAGE = pathlib.Path(xtensor.__file__).parent


def scheduled(step: Callable[[Any], Any]) -> None:
    optimizer = xtensor.optim.SGD([nn.Parameter(xtensor.ones(2))], lr=0.1)
    step(xtensor.optim.lr_scheduler.StepLR(optimizer, 1))


def graph_kept() -> None:
    x = xtensor.ones((), requires_grad=True)
    (x * x).backward(create_graph=True)
    x.grad = None


WARNINGS: dict[str, Callable[[], Any]] = {
    "implicit_softmax": lambda: F.softmax(xtensor.ones(3)),
    "implicit_softmax_module": lambda: nn.Sequential(nn.Softmax())(xtensor.ones(3)),
    "implicit_log_softmax": lambda: nn.LogSoftmax()(xtensor.ones(2, 3)),
    "mse_sizes": lambda: F.mse_loss(xtensor.ones(3, 1), xtensor.ones(3)),
    "mse_module": lambda: nn.Sequential(nn.MSELoss())[0](xtensor.ones(3, 1), xtensor.ones(3)),
    "l1_sizes": lambda: nn.L1Loss()(xtensor.ones(3, 1), xtensor.ones(3)),
    "size_average": lambda: nn.MSELoss(size_average=True),
    "kl_mean": lambda: F.kl_div(xtensor.ones(3), xtensor.ones(3), reduction="mean"),
    "upsample": lambda: F.upsample(xtensor.ones(1, 1, 2), 4),
    "grid_sample": lambda: F.grid_sample(xtensor.ones(1, 1, 2, 2), xtensor.zeros(1, 2, 2, 2)),
    "affine_grid": lambda: F.affine_grid(xtensor.ones(1, 2, 3), (1, 1, 2, 2)),
    "lstm_dropout": lambda: nn.LSTM(3, 4, dropout=0.5),
    "gru_dropout": lambda: nn.GRU(3, 4, dropout=0.5),
    "std_of_one": lambda: xtensor.ones(1).std(),
    "var_of_one": lambda: xtensor.var(xtensor.ones(1)),
    "cov_of_one": lambda: xtensor.cov(xtensor.ones(2, 1)),
    "tensor_of_tensor": lambda: xtensor.tensor(xtensor.ones(3)),
    "meshgrid": lambda: xtensor.meshgrid(xtensor.ones(2), xtensor.ones(3)),
    "range": lambda: xtensor.range(0, 3),
    "resize": lambda: xtensor.ones(4).resize(2, 2),
    "complex_to_real": lambda: xtensor.ones(3).copy_(xtensor.ones(3).to(xtensor.complex64)),
    "out_resized": lambda: xtensor.add(xtensor.ones(3), 1, out=xtensor.ones(4)),
    "kaiming_nothing": lambda: nn.init.kaiming_uniform_(xtensor.ones(0, 3)),
    "step_order": lambda: scheduled(lambda s: s.step()),
    "epoch": lambda: scheduled(lambda s: (s.optimizer.step(), s.step(3))),
    "create_graph": graph_kept,
    "anomaly": lambda: xtensor.autograd.detect_anomaly(),
    "requires_grad_item": lambda: float(xtensor.ones(1, requires_grad=True)),
    "older_add": lambda: xtensor.addcmul(xtensor.ones(2), 2, xtensor.ones(2), xtensor.ones(2)),  # pyright: ignore[reportCallIssue]
    "byte_mask": lambda: xtensor.ones(3)[xtensor.tensor([1, 0, 1], dtype=xtensor.uint8)],
    "split_of_none": lambda: random_split(range(3), [1.0, 0.0]),  # pyright: ignore[reportArgumentType]
    "workers": lambda: DataLoader(range(3), num_workers=512),
    "clip_nothing": lambda: nn.utils.clip_grad_norm_((p for p in ()), 1.0),
    "stft": lambda: xtensor.stft(xtensor.ones(16), 4, return_complex=True),
    "gumbel_eps": lambda: F.gumbel_softmax(xtensor.ones(3), eps=1e-9),
    "heads": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1), 1),
    "chain_matmul": lambda: xtensor.chain_matmul(xtensor.ones(2, 3), xtensor.ones(3, 2)),
    "trunc_normal": lambda: nn.init.trunc_normal_(xtensor.ones(3), mean=9.0),
    "older_init": lambda: nn.init.xavier_uniform(xtensor.ones(3, 3)),  # pyright: ignore[reportAttributeAccessIssue]
    "mode_on_a_class": lambda: xtensor.no_grad()(type("Made", (), {})),
    "expanded_mask": lambda: xtensor.ones(1).expand(3).masked_fill_(xtensor.ones(3) > 0, 1.0),
    "function_made": lambda: xtensor.autograd.Function(),
    "bags": lambda: F.embedding_bag(xtensor.ones(3, 2), xtensor.tensor([[0, 1]])),
}


@pytest.mark.parametrize("name", list(WARNINGS))
def test_the_line(name: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        WARNINGS[name]()
    assert {w.filename for w in seen} == {__file__}


def test_all_warnings_are_worded_by_one_helper() -> None:
    direct = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bwarnings\.warn\(", path.read_text("utf-8"))
    ]
    assert direct == ["checks.py"]
