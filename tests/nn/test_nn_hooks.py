"""Hooks of modules: before and after forward, on gradients, and those of all modules."""

import gc
import warnings

import numpy as np
import pytest

import xtensor
from tests.oracle import same_error
from xtensor import nn


def test_forward_hooks_change_arguments_and_results():
    module = nn.Linear(2, 2)
    x = xtensor.ones(1, 2)
    plain = module(x)
    first = module.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    doubled = module(x)
    second = module.register_forward_hook(lambda m, args, out: out + args[0].sum())
    assert module(x).detach().numpy() == pytest.approx((doubled + 4).detach().numpy())
    first.remove()
    second.remove()
    assert (module(x) == plain).all()
    order = []
    module.register_forward_hook(lambda *_: order.append("last"))
    with module.register_forward_hook(lambda *_: order.append("first"), prepend=True):
        module(x)
    module(x)
    assert order == ["first", "last", "last"]


def test_hooks_with_kwargs():
    class Scaled(nn.Module):
        def forward(self, x, factor=1):
            return x * factor

    module = Scaled()
    seen = []
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, kwargs | {"factor": 5}), with_kwargs=True)
    module.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    assert module(xtensor.ones(1)).item() == 5
    assert seen == [{"factor": 5}]
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        module(xtensor.ones(1))


def test_always_called_hooks():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    seen = []
    module = Broken()
    module.register_forward_hook(lambda *_: seen.append("never"))
    module.register_forward_hook(lambda *_: seen.append("always"), always_call=True)
    with pytest.raises(ValueError, match="broken"):
        module(1)
    assert seen == ["always"]


def test_hooks_of_all_modules():
    seen = []
    with nn.modules.module.register_module_forward_hook(lambda m, args, out: seen.append(type(m).__name__)):
        nn.Sequential(nn.ReLU(), nn.Tanh())(xtensor.ones(1))
    assert seen == ["ReLU", "Tanh", "Sequential"]
    with nn.modules.module.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)):
        nn.Linear(1, 1)
    assert seen[3:] == ["weight", "bias"]


def backward_calls(lib, pre=False, replace=False):
    """What full backward hooks of a layer between two others see, and the gradients that come out."""
    module = lib.nn.Sequential(lib.nn.Linear(3, 3), lib.nn.Linear(3, 2))
    for p in module.parameters():
        with lib.no_grad():
            p.copy_(lib.arange(p.numel(), dtype=lib.float32).view(p.shape) / 10)
    seen = []

    def hook(m, grad_input, grad_output):
        seen.append([g.tolist() for g in (*grad_input, *grad_output)])
        return (grad_input[0] * 2,) if replace else None

    module[1].register_full_backward_hook(hook)
    if pre:
        module[1].register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10,))
    x = lib.ones(1, 3, requires_grad=True)
    module(x).sum().backward()
    return seen, [p.grad.tolist() for p in (*module.parameters(), x)]


@pytest.mark.parametrize("options", [{}, {"pre": True}, {"replace": True}, {"pre": True, "replace": True}])
def test_full_backward_hooks_as_pytorchs(torch, options):
    ours, theirs = backward_calls(xtensor, **options), backward_calls(torch, **options)
    for a, b in zip(ours, theirs, strict=True):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_allclose(
                np.concatenate([np.ravel(v) for v in one]),
                np.concatenate([np.ravel(v) for v in other]),
                rtol=1e-5,
            )


def test_backward_hooks_without_inputs_that_require_grad():
    module = nn.Linear(2, 2)
    seen = []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_input))
    with pytest.warns(UserWarning, match="Full backward hook is firing"):
        module(xtensor.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


def test_backward_hooks_of_both_kinds_do_not_mix(torch):
    def mix(lib):
        module = lib.nn.ReLU()
        module.register_full_backward_hook(lambda *_: None)
        module.register_backward_hook(lambda *_: None)

    same_error(mix, torch)


def test_hooks_do_not_keep_modules_alive():
    module = nn.Linear(2, 2)
    handle = module.register_forward_hook(lambda *_: None)
    del module
    gc.collect()
    assert handle.hooks_dict_ref() is None


OLDER_HOOKS = {
    "a list goes in": lambda T, a, b: (lambda pair: (pair[0].clone(), pair[1].clone()), ([a, b],)),
    "a list comes out": lambda T, a, b: (lambda a, b: [a.clone(), b.clone()], (a, b)),
    "nested": lambda T, a, b: (lambda a: {"x": a.clone()}, (a,)),
    "one node": lambda T, a, b: (lambda a: a.clone(), (a * 2,)),
    "two nodes": lambda T, a, b: (lambda a: a.clone().clone(), (a * 2,)),
    "two outputs": lambda T, a, b: (lambda a, b: (a.clone(), b.clone()), (a, b)),
}


@pytest.mark.parametrize("name", OLDER_HOOKS)
def test_hooks_at_the_last_node_tell_what_they_miss(torch, name):
    def told(T):
        function, args = OLDER_HOOKS[name](T, T.ones(2, requires_grad=True), T.ones(2, requires_grad=True))

        class Calls(T.nn.Module):
            def forward(self, *given):
                return function(*given)

        module = Calls()
        module.register_backward_hook(lambda *_: None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module(*args)
        return [(w.category, str(w.message)) for w in caught]

    assert told(xtensor) == told(torch)
