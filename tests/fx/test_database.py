"""The modules of PyTorch's own database, traced into by both libraries: the same nodes, and the same results."""

import warnings

import numpy as np
import pytest

import xtensor

from .judge import described, leaves

pytest.importorskip("torch")
pytest.importorskip("expecttest")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from torch.testing._internal.common_modules import module_db

    from tests.modules.translate import counterpart, ours, tensor

# What is written otherwise here: the node that stands for PyTorch's.
OTHERWISE = {
    "nn.Sigmoid": "a method",
    "nn.Tanh": "a method",
    "nn.LogSigmoid": "PyTorch's function is called log_sigmoid inside",
    "nn.Threshold": "PyTorch's function is called _threshold inside",
}
SAMPLED = 9


class Inside:
    """A tracer that enters every module."""

    def is_leaf_module(self, module, path):
        return False


def inside(library, module):
    kind = type("Tracer", (Inside, library.fx.Tracer), {})
    try:
        return library.fx.GraphModule(module, kind().trace(module)), None
    except Exception as error:
        return None, error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "entry",
    [pytest.param(i, marks=() if i % SAMPLED == 0 else pytest.mark.full) for i in range(len(module_db))],
)
def test_traced_into_alike(entry):
    info = module_db[entry]
    if "Lazy" in info.name:
        pytest.skip("made of what they are called with")
    torch.manual_seed(0)
    sample = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
    )[0]
    made, given = sample.constructor_input, sample.forward_input
    theirs = info.module_cls(*made.args, **made.kwargs).eval()
    mine = counterpart(info.module_cls)(*ours(made.args), **ours(made.kwargs)).eval()
    mine.load_state_dict({name: tensor(value) for name, value in theirs.state_dict().items()})
    expected, refused = inside(torch, theirs)
    got, ours_refused = inside(xtensor, mine)
    if refused is not None or ours_refused is not None:
        # Where PyTorch's own forward asks for values, ours may not.
        assert refused is not None
        return
    if info.name not in OTHERWISE:
        assert [n[:3] for n in described(got.graph)] == [n[:3] for n in described(expected.graph)]
    try:
        wanted = expected(*given.args, **given.kwargs)
    except Exception:
        return  # what PyTorch traced cannot be called this way
    found = got(*ours(given.args), **ours(given.kwargs))
    for a, b in zip(leaves(wanted), leaves(found), strict=True):
        if hasattr(a, "detach"):
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_written_otherwise_is_in_the_database():
    assert set(OTHERWISE) <= {info.name for info in module_db}
