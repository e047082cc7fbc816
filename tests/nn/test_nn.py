"""Modules: parameters, registration, containers, state, conversion and utilities."""

import copy
import pickle
import re
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import xtensor
from tests.oracle import same_error
from xtensor import nn


class Small(nn.Module):
    """Two layers, a buffer that is saved and one that is not."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2, bias=False)
        self.register_buffer("scale", xtensor.ones(2))
        self.register_buffer("scratch", xtensor.zeros(2), persistent=False)
        self.register_parameter("nothing", None)

    def forward(self, x):
        return self.second(self.first(x).relu()) * self.scale


def values(tensor):
    return tensor.detach().numpy()


# ---- parameters ----------------------------------------------------------------------------------------------------


def test_parameter_shares_memory_and_version():
    data = xtensor.ones(2)
    param = nn.Parameter(data)
    data.add_(1)
    assert param.tolist() == [2, 2]
    assert param._version == data._version == 1
    with xtensor.no_grad():
        param.mul_(3)
    assert data.tolist() == [6, 6]
    assert (data.is_leaf, data.requires_grad, param.is_leaf, param.requires_grad) == (True, False, True, True)


def test_parameter_of_a_view_is_that_view():
    base = xtensor.zeros(2, 3)
    param = nn.Parameter(base[1])
    with xtensor.no_grad():
        param.fill_(5)
    assert base.tolist() == [[0, 0, 0], [5, 5, 5]]


def test_parameter_text_and_kind():
    param = nn.Parameter(xtensor.ones(1))
    assert repr(param) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert type(param.data) is type(param + 1) is type(param.detach()) is xtensor.Tensor
    assert nn.Parameter().shape == (0,)
    with pytest.raises(
        RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"
    ):
        nn.Parameter(xtensor.ones(1, dtype=xtensor.int64))
    assert not nn.Parameter(xtensor.ones(1, dtype=xtensor.int64), requires_grad=False).requires_grad


def test_parameter_of_a_subclass_keeps_its_class():
    class Special(xtensor.Tensor):
        pass

    data = xtensor.ones(2)
    special = object.__new__(Special)
    special._xt_storage, special._xt_view, special._xt_edge, special._xt_meta = (
        data._xt_storage,
        data._xt_view,
        None,
        None,
    )
    param = nn.Parameter(special)
    assert type(param) is Special
    assert isinstance(param, nn.Parameter)
    assert not isinstance(special, nn.Parameter)


def test_deepcopy_of_a_parameter_leaves_its_gradient():
    param = nn.Parameter(xtensor.ones(2))
    param.grad = xtensor.ones(2)
    twin = copy.deepcopy(param)
    assert (type(twin), twin.grad, twin.requires_grad) == (nn.Parameter, None, True)
    with xtensor.no_grad():
        twin.zero_()
    assert param.tolist() == [1, 1]


def test_buffers_are_marked_tensors():
    buffer = nn.Buffer(xtensor.ones(2), persistent=False)
    assert type(buffer) is xtensor.Tensor
    assert isinstance(buffer, nn.Buffer)
    assert not isinstance(xtensor.ones(2), nn.Buffer)
    module = nn.Module()
    module.kept, module.left = nn.Buffer(xtensor.ones(1)), buffer
    assert list(module.state_dict()) == ["kept"]
    assert [name for name, _ in module.named_buffers()] == ["kept", "left"]


# ---- registration --------------------------------------------------------------------------------------------------


def test_what_is_assigned_is_registered():
    module = Small()
    assert [n for n, _ in module.named_parameters()] == ["first.weight", "first.bias", "second.weight"]
    assert [n for n, _ in module.named_buffers()] == ["scale", "scratch"]
    assert [n for n, _ in module.named_children()] == ["first", "second"]
    assert [n for n, _ in module.named_modules(prefix="net")] == ["net", "net.first", "net.second"]
    assert list(module.parameters(recurse=False)) == []
    assert module.nothing is None
    assert {"first", "scale", "nothing", "training"} <= set(dir(module))
    module.first = None
    assert [n for n, _ in module.named_children()] == ["second"]
    del module.second
    with pytest.raises(AttributeError, match="'Small' object has no attribute 'second'"):
        module.second  # noqa: B018


def test_shared_members_are_listed_once():
    module = nn.Module()
    module.a = module.b = nn.Linear(2, 2)
    module.c = nn.Linear(2, 2)
    module.c.weight = module.a.weight
    assert [n for n, _ in module.named_parameters()] == ["a.weight", "a.bias", "c.bias"]
    assert [n for n, _ in module.named_parameters(remove_duplicate=False)] == [
        "a.weight",
        "a.bias",
        "b.weight",
        "b.bias",
        "c.weight",
        "c.bias",
    ]
    assert len(list(module.modules())) == 3
    assert list(module.state_dict()) == ["a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"]


def assign(library, name, value):
    module = library.nn.Linear(2, 2)
    module.register_buffer("kept", library.ones(1))
    module.part = library.nn.ReLU()
    setattr(module, name, value(library))


BAD_ASSIGNMENTS = [
    ("weight", lambda lib: 3),
    ("weight", lambda lib: lib.ones(2)),
    ("kept", lambda lib: 3),
    ("part", lambda lib: lib.ones(2)),
]
BAD_REGISTRATIONS = {
    "buffer that is no tensor": lambda lib: lib.nn.Module().register_buffer("x", 3),
    "buffer with a dot": lambda lib: lib.nn.Module().register_buffer("a.b", None),
    "buffer without a name": lambda lib: lib.nn.Module().register_buffer("", None),
    "buffer over an attribute": lambda lib: lib.nn.Module().register_buffer("training", None),
    "buffer name that is no string": lambda lib: lib.nn.Module().register_buffer(3, None),
    "parameter that is a tensor": lambda lib: lib.nn.Module().register_parameter("x", lib.ones(1)),
    "parameter with a dot": lambda lib: lib.nn.Module().register_parameter("a.b", None),
    "module that is none": lambda lib: lib.nn.Module().add_module("x", 3),
    "module with a dot": lambda lib: lib.nn.Module().add_module("a.b", None),
    "module without a name": lambda lib: lib.nn.Module().add_module("", None),
    "module over an attribute": lambda lib: lib.nn.Module().add_module("training", None),
    "unknown keyword": lambda lib: lib.nn.Module(a=3),
    "unknown argument": lambda lib: lib.nn.Module(3),
    "no forward": lambda lib: lib.nn.Module()(3),
    "train with a number": lambda lib: lib.nn.Module().train(1),
    "to an integer dtype": lambda lib: lib.nn.Linear(1, 1).to(lib.int32),
    "unknown submodule": lambda lib: lib.nn.Sequential(lib.nn.ReLU()).get_submodule("0.x"),
    "submodule that is none": lambda lib: lib.nn.Linear(1, 1).get_submodule("weight"),
    "unknown parameter": lambda lib: lib.nn.Linear(1, 1).get_parameter("x"),
    "parameter that is none": lambda lib: lib.nn.Linear(1, 1).get_parameter("in_features"),
    "buffer that is none": lambda lib: lib.nn.Linear(1, 1).get_buffer("weight"),
    "submodule without a name": lambda lib: lib.nn.Module().set_submodule("", lib.nn.ReLU()),
    "submodule that is not there": lambda lib: lib.nn.Module().set_submodule("x", lib.nn.ReLU(), strict=True),
    "list index": lambda lib: lib.nn.ModuleList([lib.nn.ReLU()])[1],
    "list of nothing iterable": lambda lib: lib.nn.ModuleList(3),
    "sequential index": lambda lib: lib.nn.Sequential(lib.nn.ReLU())[2],
    "sequential times none": lambda lib: lib.nn.Sequential() * 0,
    "dictionary of pairs": lambda lib: lib.nn.ModuleDict([("a",)]),
    "dictionary of a number": lambda lib: lib.nn.ModuleDict(3),
    "parameter list of a tensor": lambda lib: lib.nn.ParameterList(lib.ones(2)),
    "parameter list called": lambda lib: lib.nn.ParameterList()(1),
    "parameter dictionary key": lambda lib: lib.nn.ParameterDict({3: lib.ones(1)}),
    "dropout out of range": lambda lib: lib.nn.Dropout(1.5),
    "convolution groups": lambda lib: lib.nn.Conv2d(3, 4, 1, groups=2),
    "convolution same with stride": lambda lib: lib.nn.Conv1d(1, 1, 3, stride=2, padding="same"),
    "transposed convolution padding": lambda lib: lib.nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect"),
    "group norm channels": lambda lib: lib.nn.GroupNorm(2, 3),
    "batch norm dimensions": lambda lib: lib.nn.BatchNorm2d(3)(lib.ones(2, 3)),
    "embedding padding": lambda lib: lib.nn.Embedding(3, 2, padding_idx=5),
    "unflatten": lambda lib: lib.nn.Unflatten(1, 3),
    "bilinear": lambda lib: lib.nn.Bilinear(0, 1, 1),
    "margin": lambda lib: lib.nn.TripletMarginLoss(margin=0),
    "delta": lambda lib: lib.nn.HuberLoss(delta="x"),
}


@pytest.mark.parametrize("name, value", BAD_ASSIGNMENTS)
def test_bad_assignments_raise_pytorchs_errors(torch, name, value):
    same_error(lambda lib: assign(lib, name, value), torch)


@pytest.mark.parametrize("case", BAD_REGISTRATIONS)
def test_misuse_raises_pytorchs_errors(torch, case):
    same_error(BAD_REGISTRATIONS[case], torch)


@pytest.mark.parametrize("what", ["Parameter", "Module", "Buffer"])
def test_assignment_before_init(torch, what):
    def make(lib):
        class Early(lib.nn.Module):
            def __init__(self):
                self.x = lib.nn.Module() if what == "Module" else getattr(lib.nn, what)(lib.ones(1))

        Early()

    same_error(make, torch)


def test_submodules_by_path():
    module = nn.Sequential(nn.Sequential(nn.Linear(1, 2)), nn.ReLU())
    assert module.get_submodule("0.0") is module[0][0]
    assert module.get_parameter("0.0.weight") is module[0][0].weight
    module.set_submodule("0.0", nn.Identity())
    assert isinstance(module[0][0], nn.Identity)


# ---- containers ----------------------------------------------------------------------------------------------------


def test_sequential():
    a, b, c = nn.ReLU(), nn.Sigmoid(), nn.Tanh()
    module = nn.Sequential(a, b)
    assert module.append(c) is module
    assert list(module) == [a, b, c]
    assert list(module[1:]) == [b, c]
    assert module[-1] is c
    del module[0]
    assert list(module._modules) == ["0", "1"]
    module.insert(0, a)
    module[2] = a
    assert list(module) == [a, b, a]
    assert list(module + nn.Sequential(c)) == [a, b, a, c]
    assert list(nn.Sequential(a, b) * 2) == [a, b, a, b]
    assert module.pop(1) is b
    named = nn.Sequential(OrderedDict(one=nn.Linear(1, 1), two=a))
    assert list(named.state_dict()) == ["one.weight", "one.bias"]
    assert named.two is a


def test_module_list_and_dict():
    a, b = nn.ReLU(), nn.Tanh()
    items = nn.ModuleList([a])
    items += [b]
    items.insert(1, a)
    assert list(items) == [a, a, b]
    assert isinstance(items[:2], nn.ModuleList)
    assert items.pop(0) is a
    assert list(items._modules) == ["0", "1"]
    table = nn.ModuleDict({"x": a})
    table.update([("y", b)])
    assert (list(table.keys()), table["y"], "x" in table, len(table)) == (["x", "y"], b, True, 2)
    assert table.pop("x") is a


def test_parameter_list_and_dict():
    items = nn.ParameterList([xtensor.ones(2), 3])
    items.append(nn.Parameter(xtensor.zeros(1)))
    assert [n for n, _ in items.named_parameters()] == ["0", "2"]
    assert (items[1], len(items), items[-1].tolist()) == (3, 3, [0])
    table = nn.ParameterDict({"b": xtensor.ones(1), "a": xtensor.zeros(1)})
    assert list(table) == ["a", "b"]
    assert table.get("c", 5) == 5
    assert list((table | nn.ParameterDict({"c": xtensor.ones(1)})).keys()) == ["a", "b", "c"]
    assert table.popitem()[0] == "b"


# ---- state ---------------------------------------------------------------------------------------------------------


def test_state_dict_shares_memory():
    module = Small()
    state = module.state_dict()
    assert list(state) == ["scale", "first.weight", "first.bias", "second.weight"]
    assert not any(t.requires_grad for t in state.values())
    assert state["first.weight"].data_ptr() == module.first.weight.data_ptr()
    assert module.state_dict(keep_vars=True)["first.weight"] is module.first.weight
    assert list(module.state_dict(prefix="net.")) == ["net." + key for key in state]
    assert state._metadata[""] == {"version": 1}
    assert set(state._metadata) == {"", "first", "second"}


def test_load_state_dict():
    one, other = Small(), Small()
    assert repr(other.load_state_dict(one.state_dict())) == "<All keys matched successfully>"
    x = xtensor.randn(5, 3)
    assert (one(x) == other(x)).all()
    weight = other.first.weight
    state = {k: v.clone() for k, v in one.state_dict().items()}
    other.load_state_dict(state, assign=True)
    assert other.first.weight is not weight
    assert isinstance(other.first.weight, nn.Parameter)
    assert other.first.weight.data_ptr() == state["first.weight"].data_ptr()


def test_load_state_dict_tells_every_error(torch):
    def load(lib, strict=True):
        module = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2))
        state = {
            "0.weight": lib.ones(3, 3),
            "0.bias": 5,
            "1.weight": lib.ones(2),
            "x": lib.ones(1),
            "1.y": lib.ones(1),
        }
        return module.load_state_dict(state, strict=strict)

    message = same_error(load, torch)
    for word in (
        "Missing key(s)",
        "Unexpected key(s)",
        "size mismatch for 0.weight",
        'parameter named "0.bias"',
    ):
        assert word in message
    same_error(lambda lib: load(lib, strict=False), torch)
    found = nn.Linear(1, 1).load_state_dict(
        {"weight": xtensor.ones(1, 1), "x": xtensor.ones(1)}, strict=False
    )
    assert (found.missing_keys, found.unexpected_keys) == (["bias"], ["x"])
    same_error(lambda lib: lib.nn.Linear(1, 1).load_state_dict([]), torch)


def test_state_hooks_and_extra_state():
    calls = []

    class Extra(nn.Linear):
        def get_extra_state(self):
            return {"n": 3}

        def set_extra_state(self, state):
            self.loaded = state

    module = Extra(1, 1)
    module.register_state_dict_pre_hook(lambda m, prefix, keep: calls.append("save"))
    module.register_state_dict_post_hook(lambda m, state, prefix, meta: state.update(more=1))
    module.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("more"))
    module.register_load_state_dict_post_hook(lambda m, keys: calls.append(keys.missing_keys))
    state = module.state_dict()
    assert list(state) == ["weight", "bias", "_extra_state", "more"]
    module.load_state_dict(state)
    assert (calls, module.loaded) == (["save", []], {"n": 3})


def test_old_batch_norm_states_load():
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    nn.BatchNorm1d(2).load_state_dict(state)


def test_copies_and_pickles():
    module = Small()
    module.again = module.first
    module.first.weight.grad = xtensor.ones(4, 3)
    x = xtensor.randn(2, 3)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert (twin(x) == module(x)).all()
        assert twin.again is twin.first
        assert twin.first.weight.requires_grad
        assert list(twin.state_dict()) == list(module.state_dict())
        with xtensor.no_grad():
            twin.first.weight.zero_()
        assert module.first.weight.abs().sum() > 0


# ---- conversion ----------------------------------------------------------------------------------------------------


def test_conversion_keeps_parameters():
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight, pointers = module[0].weight, set(map(id, module.parameters()))
    weight.grad = xtensor.ones(2, 2)
    assert module.double() is module
    assert set(map(id, module.parameters())) == pointers
    assert (weight.dtype, weight.grad.dtype, module[1].running_mean.dtype) == (xtensor.float64,) * 3
    assert module[1].num_batches_tracked.dtype is xtensor.int64
    assert module.to(xtensor.bfloat16)[0].weight.dtype is xtensor.bfloat16
    assert module.float().half()[0].bias.dtype is xtensor.float16


def test_devices():
    module = nn.Linear(2, 2)
    weight = module.weight
    module.to("cpu:1")
    assert (module.weight is weight, str(weight.device), weight.requires_grad) == (True, "cpu:1", True)
    module(xtensor.ones(1, 2, device="cpu:1")).sum().backward()
    assert str(weight.grad.device) == "cpu:1"
    module.cpu()
    assert str(weight.device) == str(weight.grad.device) == "cpu"


def test_meta_modules_get_memory_later():
    module = nn.Sequential(nn.Linear(2, 3, device="meta"), nn.BatchNorm1d(3, device="meta"))
    assert module(xtensor.ones(4, 2, device="meta")).shape == (4, 3)
    with pytest.raises(
        NotImplementedError, match=re.escape("Please use xtensor.nn.Module.to_empty() instead")
    ):
        module.to("cpu")
    module.to_empty(device="cpu")
    assert all(isinstance(p, nn.Parameter) and not p.is_meta for p in module.parameters())
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    module.load_state_dict(other.state_dict())
    assert (module[0].weight == other[0].weight).all()


def test_modes_and_gradients():
    module = Small()
    assert not module.eval().first.training
    assert module.train().first.training
    module.requires_grad_(False)
    assert not any(p.requires_grad for p in module.parameters())
    module.requires_grad_()
    module(xtensor.ones(1, 3)).sum().backward()
    module.zero_grad(set_to_none=False)
    assert module.first.weight.grad.abs().sum() == 0
    module.zero_grad()
    assert module.first.weight.grad is None
    seen = []
    assert module.apply(lambda m: seen.append(type(m).__name__)) is module
    assert seen == ["Linear", "Linear", "Small"]


# ---- utilities -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [2.0, 1.0, 0.5, float("inf")])
def test_clip_grad_norm_as_pytorch(torch, rng, norm_type):
    shapes = [(3, 2), (4,), ()]
    grads = [rng.normal(size=s).astype(np.float32) for s in shapes]
    results = []
    for lib in (xtensor, torch):
        params = [lib.nn.Parameter(lib.zeros(s)) for s in shapes]
        for p, g in zip(params, grads, strict=True):
            p.grad = lib.tensor(g)
        norm = lib.nn.utils.clip_grad_norm_(params, 0.7, norm_type)
        results.append([norm.item(), *[p.grad.numpy().copy() for p in params]])
        lib.nn.utils.clip_grad_value_(params, 0.1)
        results[-1] += [p.grad.numpy() for p in params]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_clipping_writes_to_the_gradients_own_memory():
    param = nn.Parameter(xtensor.ones(64, 64))
    param.grad = xtensor.ones(64, 64)
    nn.utils.clip_grad_norm_(param, 32.0)  # of ones that others may share

    def clip():
        nn.utils.clip_grad_value_([param], 0.125)
        return param.grad._xt_storage.array.block_until_ready().unsafe_buffer_pointer()

    # Not always: XLA copies a buffer that a thread has not let go of.
    assert any(clip() == clip() for _ in range(10))
    assert param.grad._version in range(3, 22)
    seen = param.grad.detach().numpy()
    nn.utils.clip_grad_norm_(param, 1.0)
    np.testing.assert_allclose(seen, np.full((64, 64), 1 / 64), rtol=1e-5)  # NumPy sees the write


def test_clip_grad_norm_refuses_what_is_not_finite():
    param = nn.Parameter(xtensor.zeros(2))
    param.grad = xtensor.tensor([float("inf"), 1.0])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(param, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    module = Small()
    vector = nn.utils.parameters_to_vector(module.parameters())
    assert vector.shape == (24,)
    other = Small()
    nn.utils.vector_to_parameters(vector.detach(), other.parameters())
    assert all((a == b).all() for a, b in zip(module.parameters(), other.parameters(), strict=True))


def test_deprecated_reduction_flags():
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nn.MSELoss().reduction == "mean"
