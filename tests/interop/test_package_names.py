"""What packages of models and optimizers take of PyTorch by private or older names."""

from __future__ import annotations

import dataclasses
import importlib
import pickle
import warnings
from collections import OrderedDict

import pytest

import xtensor
from tests.oracle import Cases, attempt
from xtensor import interop
from xtensor.interop.private import NAMES

case = Cases()


def named(T, path):
    """What `torch.<path>` is under a library; PyTorch imports some modules only when asked."""
    if T is xtensor:
        return NAMES[path]
    home, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"torch.{home}"), name)


@pytest.fixture
def alias():
    with interop.installed() as module:
        yield module


# ---- judged by PyTorch ----------------------------------------------------------------------------------------------


@case
def conditions_of_tensors(T):
    check = T._check_tensor_all_with
    yes, no = T.tensor([True]), T.tensor([True, False])
    return [
        check(ValueError, yes),
        attempt(lambda: check(ValueError, no, lambda: "hey")),
        attempt(lambda: check(IndexError, no)),
        attempt(lambda: check(ValueError, no.int())),
        attempt(lambda: check(ValueError, False)),
    ]


@case
def tensors_in_groups(T):
    group = named(T, "utils._foreach_utils._group_tensors_by_device_and_dtype")
    a, b = T.ones(1), T.zeros(2, dtype=T.float64)
    lists = [([[a, b, a], [None, b, a]], True), ([[a, b], []], False), ([[a], [b]], False)]
    wrong = [[], [[]], [[None]], [[a], [a.int()]], [[a], [a, a]], [[a], [T.ones(1, device="meta")]]]
    made = [
        {dtype.itemsize: (place.type, *found) for (place, dtype), found in group(*given).items()}
        for given in lists
    ]
    return [[dict(sorted(one.items())) for one in made], [attempt(lambda w=w: group(w)) for w in wrong]]


@case
def operators_with_a_dtype(T):
    run, aten = named(T, "_higher_order_ops.out_dtype.out_dtype"), T.ops.aten
    x = T.full((2, 2), 100, dtype=T.int8)
    return [
        run(aten.mm.default, T.int32, x, x),
        run(aten.mul.Scalar, T.int32, x, 3),
        attempt(lambda: run(T.mm, T.int32, x, x)),
        attempt(lambda: run(aten.add_.Tensor, T.int32, x, x)),
        attempt(lambda: run(aten.add.Tensor, T.int32, x, x)),
    ]


@case
def whether_a_checkpoint_may_run_its_backward(T):
    valid = named(T, "autograd._is_checkpoint_valid")
    told = [valid()]

    class Telling(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            told.append(valid())
            return grad

    x = T.ones(1, requires_grad=True)
    Telling.apply(x).backward()
    T.autograd.grad(Telling.apply(x), x)
    Telling.apply(x).backward(inputs=[x])
    return told


@case
def gradients_by_sample(T):
    per_sample = named(T, "nn.utils._per_sample_grad.call_for_per_sample_grads")

    def made(reduction):
        model = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.Tanh(), T.nn.Linear(3, 1, bias=False))
        for i, p in enumerate(model.parameters()):
            p.data = T.linspace(-1, 1, p.numel()).reshape(p.shape) + i
        out = per_sample(model, loss_reduction=reduction)(T.arange(8.0).reshape(4, 2) / 8)
        (out.sum() if reduction == "sum" else out.mean()).backward()
        return [out, *((p.grad, p.grad_sample) for p in model.parameters()), model]

    *found, model = made("sum")
    return [
        found,
        made("mean")[:-1],
        attempt(lambda: per_sample(model, loss_reduction="max")),
        attempt(lambda: per_sample(3)),
        attempt(lambda: per_sample(T.nn.Linear(1, 1), batch_size=0)),
        attempt(lambda: per_sample(T.nn.Linear(1, 1))()),
        attempt(lambda: per_sample(T.nn.Bilinear(1, 1, 1))(T.ones(2, 1), T.ones(3, 1))),
    ]


@case
def classes_behind_relaxed_distributions(T):
    logit = named(T, "distributions.relaxed_bernoulli.LogitRelaxedBernoulli")
    categorical = named(T, "distributions.relaxed_categorical.ExpRelaxedCategorical")
    half, probs = T.tensor(0.5), T.tensor([0.3, 0.7])
    return [
        logit(half, probs=probs).log_prob(T.tensor([0.2, -1.0])),
        categorical(half, probs=probs).log_prob(T.tensor([-0.5, -1.5])),
    ]


test_what_packages_take_is_pytorch_s = case.test()


# ---- names ----------------------------------------------------------------------------------------------------------


def test_names_under_the_alias(alias):
    from torch.backends.cuda import (
        SDPAParams,
        can_use_cudnn_attention,
        can_use_efficient_attention,
        can_use_flash_attention,
    )
    from torch.distributed._tensor import Shard
    from torch.distributed._tensor.experimental import implicit_replication

    experimental = xtensor.distributed.tensor.experimental
    assert implicit_replication is experimental.implicit_replication and Shard(0).is_shard()
    assert alias.legacy_contiguous_format is alias.contiguous_format
    q = alias.ones(1, 1, 2, 8)
    asked = SDPAParams(q, q, q, None, 0.5, True, False)
    assert asked.query is asked.key is asked.value is q and asked.attn_mask is None
    assert (asked.dropout, asked.is_causal, asked.enable_gqa) == (0.5, True, False)
    for can in (can_use_flash_attention, can_use_efficient_attention, can_use_cudnn_attention):
        assert can(asked) is False
    there = alias.cuda.is_available()
    assert (
        len(alias.cuda.default_generators) == alias.cuda.device_count() and alias.cuda._initialized is there
    )
    assert isinstance(alias.cuda.default_generators, tuple)
    support = alias.utils._foreach_utils._has_foreach_support
    assert support([q, None], q.device) and not support([object()], q.device)


def test_what_quantisation_imports(alias):
    from torch._dynamo.utils import disable_cache_limit
    from torch._inductor.decomposition import register_decomposition
    from torch._library.infer_schema import infer_schema
    from torch._prims_common import make_contiguous_strides_for, suggest_memory_format
    from torch.utils import _pytree

    def doubled(x: xtensor.Tensor) -> xtensor.Tensor:
        return x * 2

    with disable_cache_limit():
        assert register_decomposition([alias.ops.aten.add.Tensor])(doubled) is doubled
    assert infer_schema(doubled, mutates_args={}) == "(Tensor x) -> Tensor"
    assert make_contiguous_strides_for((2, 0, 3)) == (3, 3, 1)
    images = alias.ones(2, 3, 4, 4)
    assert suggest_memory_format(images) is alias.contiguous_format
    assert suggest_memory_format(images.to(memory_format=alias.channels_last)) is alias.channels_last
    older = alias.ops.c10d_functional
    assert str(older.all_gather_into_tensor.default) == "c10d_functional.all_gather_into_tensor.default"

    @dataclasses.dataclass(frozen=True)
    class Config:
        norm: str

    _pytree.register_constant(Config)
    leaves, spec = _pytree.tree_flatten([Config("l2"), 1])
    assert leaves == [1] and _pytree.tree_unflatten([2], spec) == [Config("l2"), 2]
    assert spec == _pytree.tree_structure([Config("l2"), 1]) != _pytree.tree_structure([Config("l1"), 1])
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        _pytree.register_constant(type("Plain", (), {}))


def test_the_base_of_tensors_has_their_methods(alias):
    base = alias._C.TensorBase
    assert issubclass(alias.Tensor, base) and isinstance(alias.ones(1), base) and not issubclass(int, base)
    assert base.add(alias.ones(1), 1).item() == 2 and "add" in dir(base)
    assert base.untyped_storage is alias.Tensor.untyped_storage and base.data_ptr and base.__add__
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = base.nothing_of_the_kind


def test_compiled_modules_are_known_as_such(alias):
    made = alias.compile(alias.nn.Linear(2, 2))
    assert isinstance(made, alias._dynamo.eval_frame.OptimizedModule)
    assert alias._dynamo.OptimizedModule is alias._dynamo.eval_frame.OptimizedModule


def test_errors_and_warnings_have_pytorch_s_names():
    kind = xtensor.linalg.LinAlgError
    with interop.installed() as alias:
        with pytest.raises(alias.linalg.LinAlgError) as caught:
            alias.linalg.cholesky(-alias.eye(2))
        assert (kind.__name__, kind.__module__) == ("_LinAlgError", "torch._C")
        assert type(pickle.loads(pickle.dumps(caught.value))) is kind
        with pytest.warns(UserWarning, match=r"rather than torch\.tensor\(sourceTensor\)"):
            alias.tensor(alias.ones(1))
    assert kind.__name__ == kind.__qualname__ == "LinAlgError" and kind.__module__.startswith("xtensor.")


# ---- pickles --------------------------------------------------------------------------------------------------------


def test_plain_pickles_of_pytorch_s(torch):
    noted = torch.ones(2)
    noted.note = "kept"
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    shaped = torch.arange(6.0, dtype=torch.bfloat16).reshape(2, 3).t()[1:]
    kinds = [torch.float32, torch.Size([2]), torch.strided, torch.device("cpu")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written = pickle.dumps(
            {
                "shaped": shaped,
                "wants": torch.ones(2, requires_grad=True),
                "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])),
                "noted": noted,
                "sparse": torch.eye(2).to_sparse(),
                "storage": torch.tensor([1, 2], dtype=torch.uint8).untyped_storage(),
                "state": model.state_dict(),
                "model": model,
                "optimizer": torch.optim.Adam(model.parameters()).state_dict(),
                "kinds": kinds,
            }
        )
    values, x = model(torch.eye(2)).flatten().tolist(), shaped.tolist()
    with interop.installed() as alias:
        found = pickle.loads(written)
        assert found["shaped"].tolist() == x and found["shaped"].dtype is alias.bfloat16
        assert found["shaped"].stride() == (1, 3) and found["wants"].requires_grad
        assert type(found["parameter"]) is alias.nn.Parameter and found["parameter"].tolist() == [1, 2]
        assert found["noted"].note == "kept" and found["sparse"].to_dense().tolist() == [[1, 0], [0, 1]]
        assert found["storage"].tolist() == [1, 2] and found["optimizer"]["state"] == {}
        assert type(found["state"]) is OrderedDict and found["kinds"] == [
            alias.float32,
            alias.Size([2]),
            alias.strided,
            alias.device("cpu"),
        ]
        assert found["model"](alias.eye(2)).flatten().tolist() == pytest.approx(values, abs=1e-4)
        fresh = alias.nn.Sequential(alias.nn.Linear(2, 3), alias.nn.BatchNorm1d(3))
        fresh.load_state_dict(found["state"])
        found["wants"].mul(2).sum().backward()
        assert found["wants"].grad.tolist() == [2, 2]


def test_modules_within_modules_are_found_as_attributes(alias) -> None:
    """spaCy asks for this one when it is imported."""
    assert isinstance(alias.cuda.amp.common.amp_definitely_not_available(), bool)
    with pytest.raises(AttributeError, match=r"torch.cuda.amp.nothing is not in xtensor"):
        alias.cuda.amp.nothing  # noqa: B018
