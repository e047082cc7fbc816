"""JAX's functions as operators and modules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor.autograd import gradcheck, gradgradcheck


def product(x, y):
    return {"value": jnp.sin(x) * y, "place": jnp.argmax(x)}


@pytest.fixture
def pair(seed):
    xtensor.manual_seed(seed)
    made = xtensor.randn(2, 3, dtype=xtensor.float64)
    return made[0].clone().requires_grad_(), made[1].clone().requires_grad_()


def test_derivatives_to_second_order(pair):
    function = xtensor.jax.from_jax(product)
    assert gradcheck(lambda x, y: function(x, y)["value"], pair)
    assert gradgradcheck(lambda x, y: function(x, y)["value"], pair)
    assert not function(*pair)["place"].requires_grad


def test_transforms(pair):
    x, y = (t.detach() for t in pair)
    function = xtensor.jax.from_jax(product)
    value = lambda x, y: function(x, y)["value"]
    rows = xtensor.func.vmap(value, in_dims=(0, None))(xtensor.stack([x, 2 * x]), y)
    assert xtensor.allclose(rows[1], (2 * x).sin() * y)
    _, tangent = xtensor.func.jvp(lambda x: value(x, y), (x,), (xtensor.ones_like(x),))
    assert xtensor.allclose(tangent, x.cos() * y)
    hessian = xtensor.func.hessian(lambda x: value(x, y).sum())(x)
    assert xtensor.allclose(hessian, xtensor.diag(-x.sin() * y))
    by_sample = xtensor.func.vmap(xtensor.func.grad(lambda x: value(x, y).sum()))(xtensor.stack([x, 2 * x]))
    assert xtensor.allclose(by_sample[1], (2 * x).cos() * y)


def test_complex_gradients_are_pytorchs():
    z = xtensor.tensor([1 + 2j, 0.5 - 1j], dtype=xtensor.complex128, requires_grad=True)
    other = z.detach().clone().requires_grad_()
    (xtensor.jax.from_jax(lambda z: z * jnp.conj(z) * z)(z)).abs().sum().backward()
    (other * other.conj() * other).abs().sum().backward()
    assert xtensor.allclose(z.grad, other.grad)


def test_what_is_no_tensor_chooses_the_program():
    traced = []

    def power(x, n, *, scale=1):
        traced.append(n)
        return scale * x**n

    function = xtensor.jax.from_jax(power)
    x = xtensor.tensor([2.0])
    assert [function(x, 2).item(), function(x, 3, scale=2).item(), function(x, 2).item()] == [4.0, 16.0, 4.0]
    assert traced == [2, 3]
    by_value = xtensor.jax.from_jax(lambda x: x if x.sum() > 0 else -x, jit=False)
    assert by_value(-x).item() == 2.0


def test_types_follow_the_arguments():
    function = xtensor.jax.from_jax(lambda x: x + jnp.arange(2))
    assert function(xtensor.ones(2)).dtype is xtensor.float32
    assert function(xtensor.ones(2, dtype=xtensor.float64)).dtype is xtensor.float64
    assert function(xtensor.ones(2, dtype=xtensor.int64)).dtype is xtensor.int64


def test_a_module_of_a_functions_parameters(seed):
    def dense(parameters, x):
        return jnp.tanh(x @ parameters["dense"]["kernel"] + parameters["dense"]["bias"])

    module = xtensor.jax.from_jax(
        dense, {"dense": {"kernel": jnp.ones((3, 2)), "bias": np.zeros(2, np.float32)}}
    )
    assert [name for name, _ in module.named_parameters()] == ["dense_bias", "dense_kernel"]
    optimizer = xtensor.optim.SGD(module.parameters(), lr=0.1)
    x = xtensor.ones(4, 3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = module(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]
    clone = xtensor.jax.from_jax(
        dense, {"dense": {"kernel": jnp.zeros((3, 2)), "bias": np.ones(2, np.float32)}}
    )
    clone.load_state_dict(module.state_dict())
    assert xtensor.equal(clone(x), module(x))


def test_there_and_back(pair):
    x, _ = pair
    inner = xtensor.nn.Linear(3, 3).double()
    function, parameters = xtensor.jax.to_jax(inner)
    across = xtensor.jax.from_jax(lambda p, x: jnp.sin(function(p, x)))
    given = {name: xtensor.from_numpy(np.asarray(p)).requires_grad_() for name, p in parameters.items()}
    across(given, x).sum().backward()
    own = x.grad.clone()
    x.grad = None
    inner(x).sin().sum().backward()
    assert xtensor.allclose(own, x.grad) and xtensor.allclose(given["weight"].grad, inner.weight.grad)
    outer = xtensor.jax.to_jax(lambda x: xtensor.jax.from_jax(jnp.sin)(x) * 2)
    gradient = jax.grad(lambda a: outer(a).sum())(jnp.ones(2))
    np.testing.assert_allclose(gradient, 2 * np.cos(np.ones(2)), rtol=1e-6)
