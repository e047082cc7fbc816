"""Tensors without values that say they lie on a device."""

from __future__ import annotations

import copy

import pytest

import xtensor
from xtensor.fx.fake_tensors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeCopyMode,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    detect_fake_mode,
    is_fake,
    unset_fake_temporarily,
)
from xtensor.fx.passes.fake_tensor_prop import FakeTensorProp


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_a_model_is_made_and_differentiated_without_values(mode):
    with mode:
        net = xtensor.nn.Sequential(
            xtensor.nn.Conv2d(3, 8, 3), xtensor.nn.BatchNorm2d(8), xtensor.nn.ReLU(), xtensor.nn.Flatten()
        )
        found = net(xtensor.randn(2, 3, 9, 9))
        assert is_fake(found) and found.shape == (2, 392) and found.device.type == "cpu"
        found.sum().backward()
        weight = net[0].weight
        assert isinstance(weight, xtensor.nn.Parameter) and is_fake(weight.grad)
        assert weight.grad.shape == (8, 3, 3, 3)
        xtensor.optim.Adam(net.parameters()).step()


def test_a_device_that_is_not_there_is_said(mode):
    with mode:
        a = xtensor.empty(2, 3, device="cuda")
        assert str((a @ a.t()).device) == "cuda:0"
        assert str((a + xtensor.tensor(1.0)).device) == "cuda:0"
        with pytest.raises(RuntimeError, match="same device"):
            a + xtensor.empty(2, 3)
        assert repr(a) == "FakeTensor(..., device='cuda:0', size=(2, 3))"


def test_it_prints_its_form(mode):
    with mode:
        x = xtensor.empty(2, 3, dtype=xtensor.float64, requires_grad=True)
        assert repr(x) == "FakeTensor(..., size=(2, 3), dtype=xtensor.float64, requires_grad=True)"
        assert repr(x * 2) == "FakeTensor(..., size=(2, 3), dtype=xtensor.float64, grad_fn=<MulBackward0>)"
        layer = xtensor.nn.Linear(3, 4)
        assert repr(layer.weight) == "Parameter(FakeTensor(..., size=(4, 3), requires_grad=True))"


@pytest.mark.parametrize(
    "read",
    [lambda x: x.sum().item(), lambda x: bool(x.sum() > 0), lambda x: int(x.sum()), lambda x: float(x[0, 0])],
)
def test_what_depends_on_a_value_is_refused(mode, read):
    with mode:
        x = xtensor.ones(2, 3)
        with pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
            read(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.nonzero(),
        lambda x: xtensor.unique(x),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0),
    ],
)
def test_sizes_that_depend_on_values_are_refused(mode, call):
    with mode:
        x = xtensor.ones(2, 3)
        with pytest.raises(DynamicOutputShapeException):
            call(x)


def test_a_number_that_was_written_down_is_known_until_it_is_written_to(mode):
    with mode:
        x = xtensor.tensor(3.0)
        assert x.item() == 3.0 and (x + x).item() == 6.0 and bool(x > 2)
        view = x.view(1)
        view.add_(1)
        with pytest.raises(DataDependentOutputException):
            x.item()


def test_plain_tensors_are_converted_or_refused(mode):
    plain = xtensor.rand(4, 4)
    with mode, pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first"):
        plain + plain
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert is_fake(plain + plain)
    fake = mode.from_tensor(plain)
    assert mode.from_tensor(plain) is fake and is_fake(fake + fake)
    with mode:
        assert is_fake(mode.from_tensor(xtensor.rand(2)) * 2)
    with pytest.raises(UnsupportedFakeTensorException):
        mode.from_tensor(plain.to_sparse())


def test_writes_give_the_tensor_itself(mode):
    with mode:
        x = xtensor.empty(4)
        assert x.add_(1) is x
        assert x[1:].storage_offset() == 1


def test_a_copied_module_has_no_memory(mode):
    layer = xtensor.nn.Linear(3, 4)
    with FakeCopyMode(mode):
        copied = copy.deepcopy(layer)
    assert isinstance(copied.weight, xtensor.nn.Parameter) and is_fake(copied.weight)
    assert not is_fake(layer.weight)
    assert copied(mode.from_tensor(xtensor.ones(2, 3))).shape == (2, 4)


def test_the_mode_is_found_and_left(mode):
    assert detect_fake_mode() is None
    with mode:
        assert detect_fake_mode() is mode
        with unset_fake_temporarily() as found:
            assert found is mode and not is_fake(xtensor.ones(2))
        assert is_fake(xtensor.ones(2))
    assert detect_fake_mode([FakeTensor.from_tensor(xtensor.ones(2), mode)]) is mode


def test_two_modes_do_not_mix(mode):
    a, b = mode.from_tensor(xtensor.ones(2)), FakeTensorMode().from_tensor(xtensor.ones(2))
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        a + b


def test_a_graph_runs_on_forms():
    traced = xtensor.fx.symbolic_trace(
        xtensor.nn.Sequential(xtensor.nn.Linear(3, 4), xtensor.nn.ReLU(), xtensor.nn.Linear(4, 2))
    )
    found = FakeTensorProp(traced).propagate(xtensor.ones(5, 3))
    assert is_fake(found) and found.shape == (5, 2)
    assert [tuple(n.meta["val"].shape) for n in traced.graph.nodes] == [
        (5, 3),
        (5, 4),
        (5, 4),
        (5, 2),
        (5, 2),
    ]
