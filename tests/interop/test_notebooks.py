"""What IPython shows of an error: the user's frames and at most two of the package's."""

from __future__ import annotations

import subprocess
import sys
import traceback
from types import SimpleNamespace
from typing import Any

import pytest

import xtensor
from xtensor import nn
from xtensor.interop import notebooks


class Inner(nn.Module):
    def forward(self, x: Any) -> Any:
        return x @ xtensor.ones(7, 7)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Sequential(Inner()))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def hooked() -> Any:
    x = xtensor.ones(3, requires_grad=True)
    x.register_hook(lambda grad: grad + xtensor.ones(4))
    return x.sum().backward()


MISTAKES = {
    "operator": lambda: xtensor.ones(3) + xtensor.ones(4),
    "method": lambda: xtensor.ones(3).add_(xtensor.ones(4)),
    "view": lambda: xtensor.ones(3).view(4, 5),
    "creation": lambda: xtensor.zeros("a"),
    "ragged": lambda: xtensor.tensor([[1, 2], [3]]),
    "index": lambda: xtensor.ones(3)[7],
    "conversion": lambda: xtensor.ones(3).to("nowhere"),
    "item": lambda: xtensor.ones(3).item(),
    "layer": lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 6))(xtensor.ones(2, 3)),
    "module": lambda: Outer()(xtensor.ones(3)),
    "recurrent": lambda: nn.LSTM(3, 4)(xtensor.ones(5, 2, 6)),
    "attention": lambda: nn.MultiheadAttention(4, 2)(*[xtensor.ones(3, 1, 6)] * 3),
    "loss": lambda: nn.CrossEntropyLoss()(xtensor.ones(2, 3), xtensor.ones(2)),
    "backward": lambda: xtensor.ones(3, requires_grad=True).exp().backward(),
    "hook": hooked,
    "state": lambda: nn.Linear(3, 4).load_state_dict({}),
    "optimizer": lambda: xtensor.optim.SGD([], lr=0.1),
    "einsum": lambda: xtensor.einsum("ij,jk->ik", xtensor.ones(2, 3), xtensor.ones(4, 5)),
}


def names(error: BaseException) -> list[str]:
    return [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(error.__traceback__)]


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_frames(mistake: Any) -> None:
    with pytest.raises(Exception) as caught:
        mistake()
    before = names(caught.value)
    notebooks.shorten(caught.value)
    after = names(caught.value)
    assert sum(name.startswith("xtensor.") for name in after) <= 2
    theirs = [name for name in before if not name.startswith("xtensor.")]
    assert [name for name in after if not name.startswith("xtensor.")] == theirs
    assert before[-1] == after[-1]  # the line that raised


def test_errors_that_others_followed() -> None:
    with pytest.raises(KeyError) as caught:
        try:
            nn.Sequential(nn.Sequential(Inner()))(xtensor.ones(3))
        except RuntimeError as error:
            raise KeyError("x") from error
    notebooks.shorten(caught.value)
    cause = caught.value.__cause__
    assert cause is not None
    assert sum(name.startswith("xtensor.") for name in names(cause)) <= 2


class Shell:
    """What `install` asks of IPython's shell."""

    def __init__(self, mode: str = "Context") -> None:
        self.custom_exceptions: tuple[type[BaseException], ...] = ()
        self.InteractiveTB = SimpleNamespace(mode=mode)
        self.shown: list[int] = []

    def set_custom_exc(self, kinds: Any, handler: Any) -> None:
        self.custom_exceptions, self.handler = kinds, handler

    def showtraceback(self, told: Any, tb_offset: Any, running_compiled_code: bool) -> None:
        self.shown.append(len(list(traceback.walk_tb(told[2]))))

    def run(self, mistake: Any) -> None:
        try:
            mistake()
        except self.custom_exceptions as error:
            self.handler(self, type(error), error, error.__traceback__)


@pytest.mark.parametrize(("mode", "short"), [("Context", True), ("Verbose", False)])
def test_the_running_shell(monkeypatch: pytest.MonkeyPatch, mode: str, short: bool) -> None:
    shell = Shell(mode)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    notebooks.install()
    shell.run(MISTAKES["module"])
    assert (shell.shown[0] <= 6) == short  # this file's four and two of the package's
    handler = shell.handler
    notebooks.install()  # who is there stays
    assert shell.handler is handler


def test_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    notebooks.install()


CELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.run_cell("import xtensor\\nfrom xtensor import nn")
shell.run_cell("nn.Sequential(nn.Sequential(nn.Linear(3, 4)))(xtensor.ones(5, 6))")
"""


def test_a_cell() -> None:
    pytest.importorskip("IPython")
    ran = subprocess.run([sys.executable, "-c", CELL], capture_output=True, text=True, check=True)
    text = ran.stdout + ran.stderr
    assert "mat1 and mat2 shapes cannot be multiplied" in text
    assert text.count("xtensor/") + text.count("<xtensor ") <= 2, text
    assert "nn.Sequential(nn.Sequential" in text
