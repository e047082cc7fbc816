"""`gradcheck` writes the inputs themselves, and names what is wrong."""

import numpy as np
import pytest

import xtensor as x
from xtensor.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian
from xtensor.interop import alias


def doubles(*shape, **options):
    values = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) / 7
    return x.tensor(values, dtype=x.float64, requires_grad=True, **options)


def hooked(hook):
    def run(v):
        y = v.clone()
        y.register_hook(hook)
        return y

    return run


def test_parameters_of_a_module_are_checked_though_the_function_does_not_read_its_arguments():
    layer = x.nn.Linear(2, 2, dtype=x.float64)
    given = doubles(3, 2)
    before = layer.weight.detach().clone()
    assert x.autograd.gradcheck(lambda *parameters: layer(given), tuple(layer.parameters()))
    assert x.autograd.gradgradcheck(lambda *parameters: layer(given).sin(), tuple(layer.parameters()))
    assert x.equal(layer.weight, before)


def test_the_inputs_require_grad_while_they_are_written():
    seen = set()

    def run(v):
        seen.add(v.requires_grad)
        return v * v if v.requires_grad else v * 0

    assert x.autograd.gradcheck(run, doubles(2))
    assert seen == {True}


def test_an_output_that_is_the_input_itself():
    assert x.autograd.gradcheck(lambda v: v, doubles(2, 2))
    assert x.autograd.gradcheck(lambda v: v[1], doubles(2, 2))


@pytest.mark.parametrize(
    ("run", "given", "kind", "words"),
    [
        (hooked(lambda g: g * 2), doubles(2), RuntimeError, "Jacobian mismatch"),
        (hooked(lambda g: g + 1e-7), doubles(2), RuntimeError, "backward not multiplied by grad_output"),
        (lambda v: x.tensor([float(v.detach().sum())]), doubles(2), RuntimeError, "expected to be zero"),
        (lambda v: v, x.ones(1, dtype=x.float64, requires_grad=True).expand(2), RuntimeError, "stride 0"),
        (lambda v: x.cat([v, v]) if bool((v >= 1).all()) else v, x.ones(1, dtype=x.float64, requires_grad=True), AssertionError, "same shape"),
        (lambda v: v.float() if bool((v >= 1).all()) else v, x.ones(1, dtype=x.float64, requires_grad=True), AssertionError, "same dtype"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(run, given, kind, words):
    with pytest.raises(kind, match=words):
        x.autograd.gradcheck(run, given)


def test_a_hook_that_cannot_take_an_undefined_gradient():
    def refuse(grad):
        if grad is None:
            raise RuntimeError("undefined")

    with (
        pytest.warns(UserWarning, match="undefined gradient support"),
        pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"),
    ):
        x.autograd.gradcheck(hooked(refuse), doubles(2))


def test_single_precision_is_warned_of():
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert x.autograd.gradcheck(lambda v: v, x.ones(1, requires_grad=True), atol=0.1)


def test_jacobians_by_hand():
    a, b = doubles(2), doubles(2)
    with pytest.warns(FutureWarning, match="get_numerical_jacobian"):
        found = get_numerical_jacobian(lambda given: 2 * given[0] + given[1], (a, b), eps=1e-6)
    assert x.allclose(found[0], 2 * x.eye(2, dtype=x.float64))
    assert x.allclose(found[1], x.eye(2, dtype=x.float64))
    with pytest.warns(FutureWarning, match="get_analytical_jacobian"):
        jacobians, same, sizes, types = get_analytical_jacobian((a, b), 2 * a + b)
    assert x.equal(jacobians[0], 2 * x.eye(2, dtype=x.float64))
    assert same and sizes and types


def test_importing_the_module_leaves_the_function_where_it_is():
    with alias.installed() as torch:
        exec("import torch.autograd.gradcheck\nfrom torch.autograd.gradcheck import GradcheckError")
        assert torch.autograd.gradcheck is x.autograd.gradcheck
        assert callable(torch.autograd.gradcheck)
