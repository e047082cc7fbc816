"""Versions of tensors and what is said when a saved value was written, judged by PyTorch where it says as much."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import xtensor
from tests.oracle import Cases, attempt, leaf

case = Cases()


# -- versions


@case
def versions_of_views(T):
    y = T.zeros(4)
    v, w = y[1:], y.view(2, 2)
    v.add_(1)
    w[0].mul_(2)
    y[1] = 3.0
    return y._version, v._version, w._version


@case
def saved_input_written(T):
    x = leaf(T, 3)
    y = x * 2
    z = y * y
    y.add_(1)
    attempt(lambda: z.sum().backward())
    return attempt(lambda: z.sum().backward())[:2]


@case
def saved_result_written(T):
    x = leaf(T, 3)
    y = x.exp()
    y.add_(1)
    return attempt(lambda: y.sum().backward())[:2]


@case
def saved_base_of_view_written(T):
    x = leaf(T, 3)
    y = x * 2
    z = y[1:] * y[1:]
    y[0] = 0.0
    return attempt(lambda: z.sum().backward())[:2]


@case
def written_before_save(T):
    x = leaf(T, 3)
    y = x * 2
    y.add_(1)
    (y * y).sum().backward()
    return x.grad


@case
def unsaved_operand_written(T):
    x = leaf(T, 3)
    c = T.ones(3, dtype=T.float64)
    z = x * c
    w = x + c
    c.mul_(2)
    w.sum().backward()
    return attempt(lambda: z.sum().backward())[:2], x.grad


# -- what differs from PyTorch, or says more


def test_writes_to_data_leave_saved_values_alone():
    x = leaf(xtensor, 3)
    y = x * x
    x.data.mul_(2)
    y.sum().backward()
    assert x._version == 0
    assert x.grad.tolist() == [1.0, 1.5, 2.0]  # PyTorch computes with the new values, silently


def test_version_error_names_operator_shape_versions_and_line():
    x = leaf(xtensor, 2, 3)
    y = x.exp()
    z = y * y
    y.t().add_(1)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert "[xtensor.DoubleTensor [2, 3]], which is output 0 of" in text
    assert "is at version 1; expected version 0 instead" in text
    assert f"saved for Mul and written by add_ at {__file__}:{line}" in text


def test_version_error_names_the_line_of_every_kind_of_write():
    def setitem(y):
        y[0] = 1.0

    writes = [
        lambda y: y.mul_(2),
        lambda y: y[1:].mul_(2),
        lambda y: y.copy_(xtensor.ones(3)),
        lambda y: y.zero_(),
        lambda y: xtensor.add(xtensor.ones(3), 1, out=y.detach()),
        setitem,
    ]
    for write in writes:
        y = leaf(xtensor, 3) * 1
        z = y * y
        write(y)
        with pytest.raises(
            RuntimeError, match=rf"written by \w+ at .*test_autograd_versions\.py:{line_of(write)}"
        ):
            z.sum().backward()


def line_of(function: Any) -> int:
    return function.__code__.co_firstlineno + (function.__name__ == "setitem")


test_versions = case.test()
