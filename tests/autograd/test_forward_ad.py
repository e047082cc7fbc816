"""`torch.autograd.forward_ad` against PyTorch's: tangents, what has none, derivatives of tangents, refusals."""

import pytest

import xtensor
from xtensor import interop
from xtensor.autograd import forward_ad

# PyTorch's own, as it loads its decompositions.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

FUNCTIONS = {
    "product": lambda t, x, y: x * y + x.exp(),
    "matrix": lambda t, x, y: (x.view(2, 2) @ y.view(2, 2)).sum(0),
    "softmax": lambda t, x, y: t.softmax(x, 0).pow(2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_pytorch_s(torch, name):
    def found(t):
        fw = t.autograd.forward_ad
        x, y, v = (t.tensor(n) for n in ([1.0, 2.0, 3.0, 4.0], [0.5, 1.5, -1.0, 2.0], [1.0, 0.0, -1.0, 2.0]))
        with fw.dual_level():
            dual = fw.make_dual(x, v)
            value, tangent = fw.unpack_dual(FUNCTIONS[name](t, dual, y))
            assert fw.unpack_dual(dual).tangent.tolist() == v.tolist()
            assert fw.unpack_dual(y).tangent is None
        return value.tolist() + tangent.tolist()

    assert found(xtensor) == pytest.approx(found(torch), rel=1e-5)


def test_tangents_are_differentiable(torch):
    def found(t):
        fw = t.autograd.forward_ad
        x = t.tensor([1.0, 2.0], requires_grad=True)
        with fw.dual_level():
            tangent = fw.unpack_dual(fw.make_dual(x, t.tensor([1.0, 3.0])) ** 3).tangent
        return t.autograd.grad(tangent.sum(), x)[0].tolist()

    assert found(xtensor) == found(torch)


def test_refusals(torch):
    def found(t):
        fw = t.autograd.forward_ad
        for attempt in (
            lambda: fw.make_dual(t.ones(2), t.ones(2)),
            lambda: fw.exit_dual_level(),
        ):
            with pytest.raises(RuntimeError) as caught:
                attempt()
            yield str(caught.value)
        with fw.dual_level():
            with pytest.raises(RuntimeError) as caught:
                fw.enter_dual_level()
            yield str(caught.value)
            with pytest.raises(ValueError) as refused:
                fw.make_dual(t.ones(2, dtype=t.int64), t.ones(2))
            yield str(refused.value)

    with interop.installed() as alias:
        ours = list(found(alias))
    assert ours == list(found(torch))
    assert forward_ad.unpack_dual(xtensor.ones(1)).tangent is None
