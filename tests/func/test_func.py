"""torch.func and torch.testing: gradients, Jacobians and batches of functions; assertions on tensors."""

import pytest

import xtensor

CALLS = {
    "grad": lambda t, f: f.grad(lambda x: (x.sin() * x).sum())(t.arange(3.0)),
    "grad of the second": lambda t, f: f.grad(lambda x, y: (x * y**2).sum(), argnums=1)(
        t.arange(3.0), t.ones(3)
    ),
    "grad of grad": lambda t, f: f.grad(f.grad(lambda x: x**3))(t.tensor(2.0)),
    "grad of both": lambda t, f: f.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(t.arange(2.0), t.ones(2))[
        0
    ],
    "grad of a dict": lambda t, f: f.grad(lambda p: (p["w"] * 3).sum())({"w": t.ones(2)})["w"],
    "grad and aux": lambda t, f: f.grad(lambda x: (x**2, x + 1), has_aux=True)(t.tensor(3.0))[1],
    "value": lambda t, f: f.grad_and_value(lambda x: x**2)(t.tensor(3.0))[1],
    "vjp": lambda t, f: f.vjp(lambda x: x.exp(), t.arange(3.0))[1](t.ones(3))[0],
    "jvp": lambda t, f: f.jvp(lambda x: x.exp(), (t.arange(3.0),), (t.ones(3),))[1],
    "jacrev": lambda t, f: f.jacrev(lambda x: x.sin().outer(x))(t.arange(2.0)),
    "jacfwd": lambda t, f: f.jacfwd(lambda x: x.cumsum(0) ** 2)(t.arange(3.0)),
    "hessian": lambda t, f: f.hessian(lambda x: (x.exp() * x.roll(1)).sum())(t.arange(3.0)),
    "vmap": lambda t, f: f.vmap(t.dot)(t.arange(6.0).reshape(3, 2), t.ones(3, 2)),
    "vmap out": lambda t, f: f.vmap(lambda x: x * 2, in_dims=1, out_dims=1)(t.arange(6.0).reshape(3, 2)),
    "vmap one": lambda t, f: f.vmap(lambda x, y: x + y, in_dims=(0, None))(t.arange(3.0), t.ones(2)),
    "vmap of grad": lambda t, f: f.vmap(f.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(
        t.ones(2), t.arange(6.0).reshape(3, 2)
    ),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, on its way there
@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(torch, name):
    ours, theirs = CALLS[name](xtensor, xtensor.func), CALLS[name](torch, torch.func)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.flatten().tolist() == pytest.approx(theirs.flatten().tolist(), rel=1e-5)


def test_modules_with_other_parameters():
    module = xtensor.nn.Sequential(xtensor.nn.Linear(2, 2), xtensor.nn.BatchNorm1d(2))
    module.eval()
    state = {name: xtensor.ones_like(p) for name, p in module.named_parameters()}
    x = xtensor.ones(1, 2)
    before = {name: p.clone() for name, p in module.named_parameters()}
    found = xtensor.func.functional_call(module, state, (x,))
    assert found.tolist()[0] == pytest.approx([3 / (1 + 1e-5) ** 0.5 + 1] * 2)
    assert all(xtensor.equal(p, before[name]) for name, p in module.named_parameters())
    grads = xtensor.func.grad(lambda p: xtensor.func.functional_call(module, p, (x,)).sum())(state)
    assert grads["0.weight"].shape == (2, 2) and all(p.grad is None for p in module.parameters())
    parameters, buffers = xtensor.func.stack_module_state([module, module, module])
    assert parameters["0.weight"].shape == (3, 2, 2) and buffers["1.running_mean"].shape == (3, 2)


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="to return a scalar Tensor"):
        xtensor.func.grad(lambda x: x)(xtensor.ones(2))
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        xtensor.vmap(lambda x, y: x)(xtensor.ones(2), xtensor.ones(3))


PAIRS = [
    ([1.0, 2.0], [1.0, 2.00001], {}),
    ([1.0, 2.0], [1.0, 2.1], {}),
    ([1.0, 2.0], [1.0], {}),
    ([1.0, float("nan")], [1.0, float("nan")], {}),
    ([1.0, float("nan")], [1.0, float("nan")], {"equal_nan": True}),
    ([1.0, float("inf")], [1.0, float("inf")], {}),
    ([1, 2], [1, 3], {}),
    ([1, 2], [1, 3], {"rtol": 0, "atol": 1}),
    (1.0, 1.5, {}),
    ([], [], {}),
]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_assertions_are_pytorch_s(torch, number):
    a, b, options = PAIRS[number]

    def verdict(t):
        try:
            t.testing.assert_close(t.tensor(a), t.tensor(b), **options)
        except AssertionError as error:
            return str(error).replace("torch.", "").split("\n")[0]
        return None

    assert (verdict(xtensor) is None) == (verdict(torch) is None)
    if verdict(torch) is not None:
        assert verdict(xtensor).replace("xtensor.", "") == verdict(torch)


def test_assertions_on_structures():
    close = xtensor.testing.assert_close
    close({"a": [1.0, xtensor.ones(2)]}, {"a": [1.0, xtensor.ones(2)]})
    with pytest.raises(AssertionError, match=r"item \['a'\]\[1\]"):
        close({"a": [1.0, xtensor.ones(2)]}, {"a": [1.0, xtensor.zeros(2)]})
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        close(xtensor.ones(1), xtensor.ones(1).double())
    close(xtensor.ones(1), xtensor.ones(1).double(), check_dtype=False)
    with pytest.raises(AssertionError, match="own words"):
        close(1, 2, msg="own words")
    with pytest.raises(ValueError, match="must be either specified or unspecified"):
        close(1, 1, rtol=0.1)


def test_made_tensors():
    made = xtensor.testing.make_tensor((3, 4), dtype=xtensor.float32, device="cpu", low=1, high=2)
    assert made.shape == (3, 4) and ((made >= 1) & (made < 2)).all()
    odd = xtensor.testing.make_tensor(
        4, 4, dtype=xtensor.int64, device="cpu", noncontiguous=True, exclude_zero=True
    )
    assert not odd.is_contiguous() and (odd != 0).all() and odd.dtype is xtensor.int64
    assert xtensor.testing.make_tensor((), dtype=xtensor.float32, device="cpu").shape == ()
    assert xtensor.testing.make_tensor(
        2, dtype=xtensor.complex64, device="cpu", requires_grad=True
    ).requires_grad
