"""A program that raises has run once, and its error carries few of the package's frames."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import xtensor
from xtensor.operators.operator import REGISTRY
from xtensor.xla import sizes


def counting(monkeypatch: pytest.MonkeyPatch, table: dict[Any, Any], key: Any) -> list[int]:
    """The program at `key`, replaced by one that counts its calls."""
    program, calls = table[key], []

    def counted(*args: Any) -> Any:
        calls.append(len(args))
        return program(*args)

    monkeypatch.setitem(table, key, counted)
    return calls


def frames_of_ours(error: BaseException) -> int:
    return sum(
        frame.f_globals.get("__name__", "").startswith("xtensor.")
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def test_a_call_that_is_answered_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    # The functions are made when they are first called.
    assert (xtensor.add(xtensor.ones(3), xtensor.ones(3)) + 1).add(0).tolist() == [3, 3, 3]
    calls = counting(monkeypatch, REGISTRY["add"].waits, ())
    for call in (xtensor.add, xtensor.Tensor.add, lambda x, y: x + y):
        with pytest.raises(RuntimeError) as caught:
            call(xtensor.ones(3), xtensor.ones(4))
        assert len(calls) == 1 and frames_of_ours(caught.value) <= 2
        calls.clear()


def test_a_call_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xtensor.ones(3)
    x.add_(1).add_(1)
    calls = counting(monkeypatch, REGISTRY["add"].variants, ("inplace", (), True))
    with pytest.raises(RuntimeError) as caught:
        x.add_(xtensor.ones(4))
    assert len(calls) == 1 and frames_of_ours(caught.value) <= 2
    assert x._version == 2 and x.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: xtensor.ones(3).sum(5),
        lambda: xtensor.ones(3, 4).t() + xtensor.ones(5),
        lambda: xtensor.ones(3).sum("no"),
        lambda: xtensor.add(xtensor.ones(3), "no"),
        lambda: xtensor.add(xtensor.ones(3), xtensor.ones(4), out=xtensor.ones(3)),
        lambda: xtensor.ones(3) @ xtensor.ones(4),
    ],
)
def test_frames_of_other_calls(call: Callable[[], Any]) -> None:
    with pytest.raises((RuntimeError, TypeError, IndexError)) as caught:
        call()
    assert frames_of_ours(caught.value) <= 3


class Stop(Exception):
    """What a handler of a signal raises."""


class Missing(LookupError):
    """What a handler raises that the inline path could take for its own."""


@pytest.mark.parametrize("kind", [Stop, Missing, RuntimeError])
def test_what_a_handler_raises_while_a_program_is_traced_is_not_ours(kind: type[Exception]) -> None:
    """The handler runs inside the first call of a signature, between bytecodes of JAX's or of a kernel's."""

    def handler(number: int, frame: Any) -> None:
        raise kind("stop")

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_name == "promote" or frame.f_globals.get("__name__", "").startswith(
            "jax._src.pjit"
        ):
            sys.settrace(None)
            signal.raise_signal(signal.SIGUSR1)
        return None

    before = signal.signal(signal.SIGUSR1, handler)
    # A shape of its own for each, which no program for several sizes answers: the signature is new.
    x = xtensor.ones(7, len(kind.__name__))
    try:
        with sizes.paused(), pytest.raises(kind, match=r"^stop"):
            sys.settrace(trace)
            try:
                xtensor.atan2(x, x)
            finally:
                sys.settrace(None)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert xtensor.atan2(x, x).shape == x.shape
