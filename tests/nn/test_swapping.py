"""Tensors that exchange their contents, and states that are loaded so."""

import gc
import weakref
from collections import OrderedDict

import pytest

import xtensor as x
from xtensor import nn


@pytest.fixture
def swapping():
    x.__future__.set_swap_module_params_on_conversion(True)
    yield
    x.__future__.set_swap_module_params_on_conversion(False)


def test_class_attributes_values_and_gradients_change_places():
    a, b = x.zeros(2), nn.Parameter(x.ones(3))
    a.mark = "a"
    x.utils.swap_tensors(a, b)
    assert isinstance(a, nn.Parameter) and type(b) is x.Tensor
    assert not hasattr(a, "mark") and b.mark == "a"
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2, 2, 2] and b.tolist() == [0, 0]


def test_views_of_what_was_swapped_in_are_written_through():
    a, b = x.zeros(4), x.ones(4)
    row = b[:2]
    x.utils.swap_tensors(a, b)
    row.fill_(7)
    assert a.tolist() == [7, 7, 1, 1] and b.tolist() == [0, 0, 0, 0]
    alone = x.ones(2)
    x.utils.swap_tensors(alone, alone.detach())
    assert alone.tolist() == [1, 1]


def test_a_pass_through_what_was_swapped_is_refused():
    weight = nn.Parameter(x.ones(2))
    loss = weight.sum()
    x.utils.swap_tensors(weight, nn.Parameter(x.zeros(2)))
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()


def test_a_pass_through_a_module_that_was_converted_is_refused(swapping):
    layer = nn.Linear(2, 1)
    weight, loss = layer.weight, layer(x.ones(1, 2)).sum()
    layer.half()
    assert layer.weight is weight and weight.dtype is x.float16
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()


def test_other_slots_are_refused():
    class Slotted(x.Tensor):
        __slots__ = ("more",)

    with pytest.raises(RuntimeError, match="if they have different slots"):
        x.utils.swap_tensors(x.ones(1), x.ones(1).as_subclass(Slotted))


@pytest.mark.parametrize("assign", [False, True])
def test_parameters_stay_the_objects_they_are(swapping, assign):
    layer = nn.Linear(2, 1)
    weight = layer.weight
    state = {"weight": x.full((1, 2), 3.0), "bias": x.ones(1)}
    layer.load_state_dict(state, assign=assign)
    assert layer.weight is weight and weight.requires_grad and weight.tolist() == [[3, 3]]
    assert (state["weight"].data_ptr() == weight.data_ptr()) is assign
    layer(x.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1, 1]]


def test_a_class_says_what_is_swapped_in(swapping):
    class Doubled(x.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is x.Tensor.module_load:
                return args[1].detach() * 2
            return super().__torch_function__(func, types, args, kwargs)

    class Broken(x.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is x.Tensor.module_load:
                return args[1]
            return super().__torch_function__(func, types, args, kwargs)

    module = nn.Module()
    module.register_buffer("scale", x.ones(2).as_subclass(Doubled))
    module.load_state_dict({"scale": x.ones(2)})
    assert module.scale.tolist() == [2, 2]
    module.register_buffer("scale", x.ones(2).as_subclass(Broken))
    with pytest.raises(
        RuntimeError, match=r"While swapping the parameter .*module_load returned one of self"
    ):
        module.load_state_dict({"scale": x.ones(2)})


def test_loading_leaves_no_circle_behind():
    layer = nn.Linear(2, 2)
    state = OrderedDict(layer.state_dict())
    seen = weakref.ref(state["weight"])
    gc.collect()
    gc.disable()
    try:
        layer.load_state_dict(state)
        del state
        assert seen() is None
    finally:
        gc.enable()
