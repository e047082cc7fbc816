"""Models quantised as graphs: the same operators, layers, states and results as PyTorch's."""

import copy
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from .compared import LIBRARIES, engine, saturates, xtensor

pytest.importorskip("torch.ao.quantization.quantize_fx")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this


def waves(lib, *shape):
    """Numbers that are the same in both libraries."""
    count = int(np.prod(shape))
    return lib.tensor(np.sin(np.arange(count) * 1.7 + 0.3).astype(np.float32).reshape(shape))


def model_of(lib, layers, forward):
    """A module with these layers by their names, and with numbers that are the same in both libraries."""

    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            for name, layer in layers.items():
                setattr(self, name, layer)

    Net.forward = forward
    made = Net()
    with lib.no_grad():
        for number, param in enumerate(made.parameters()):
            values = np.sin(np.arange(param.numel()) * 0.9 + number).astype(np.float32)
            param.copy_(lib.tensor(values.reshape(tuple(param.shape))))
    return made


def linear(lib):
    return {"a": lib.nn.Linear(4, 4), "b": lib.nn.Linear(4, 4), "r": lib.nn.ReLU()}


def convolved(lib):
    nn = lib.nn
    return {
        "c": nn.Conv2d(2, 4, 3, padding=1), "bn": nn.BatchNorm2d(4), "c2": nn.Conv2d(4, 4, 1), "bn2": nn.BatchNorm2d(4),
        "fc": nn.Linear(4, 3), "pool": nn.AdaptiveAvgPool2d(1), "mp": nn.MaxPool2d(2),
    }  # fmt: skip


def weights(lib):
    return {"w": lib.nn.Parameter(lib.zeros(5, 4)), "b": lib.nn.Parameter(lib.zeros(5))}


def residual(lib):
    def forward(self, x):
        x = lib.relu(self.bn(self.c(x)))
        x = lib.nn.functional.relu(x + self.bn2(self.c2(x)))
        return self.fc(lib.flatten(self.pool(self.mp(x)), 1))

    return convolved(lib), forward


def blocks(lib):
    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.bn, self.r = lib.nn.Conv2d(2, 2, 3, padding=1), lib.nn.BatchNorm2d(2), lib.nn.ReLU()

        def forward(self, x):
            return self.r(self.bn(self.c(x))) + x

    layers = {"b1": Block(), "b2": lib.nn.Sequential(Block(), Block())}
    return layers, lambda self, x: self.b2(self.b1(x))


def shared_relu(lib):
    """As in ResNet's blocks: one module, called twice."""

    class Block(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.bn, self.relu = (
                lib.nn.Conv2d(2, 2, 3, padding=1),
                lib.nn.BatchNorm2d(2),
                lib.nn.ReLU(),
            )

        def forward(self, x):
            return self.relu(self.relu(self.bn(self.c(x))) + x)

    return {"b": lib.nn.Sequential(Block(), Block())}, lambda self, x: self.b(x)


ROWS, IMAGES = (3, 4), (2, 2, 8, 8)
MODELS = {
    "mlp": (lambda lib: (linear(lib), lambda s, x: s.b(s.r(s.a(x)))), ROWS),
    "residual": (residual, IMAGES),
    "blocks": (blocks, IMAGES),
    "shared relu": (shared_relu, IMAGES),
    "norms": (
        lambda lib: (
            convolved(lib)
            | {"g": lib.nn.Parameter(lib.zeros(4)), "i": lib.nn.InstanceNorm2d(4, affine=True)},
            lambda s, x: lib.nn.functional.instance_norm(s.i(s.c(x)), weight=s.g, bias=s.g),
        ),
        IMAGES,
    ),
    "functional": (
        lambda lib: (
            weights(lib),
            lambda s, x: lib.nn.functional.relu(lib.nn.functional.linear(x, s.w, s.b)),
        ),
        ROWS,
    ),
    "pairs": (
        lambda lib: (linear(lib), lambda s, x: lib.cat([s.a(x) * s.b(x), s.a(x) + 1, 2 * s.b(x)], 1)),
        ROWS,
    ),
    "views": (
        lambda lib: (
            linear(lib),
            lambda s, x: s.b(
                s.a(x).view(x.size(0), -1).reshape(-1, 4).permute(1, 0).transpose(0, 1).contiguous()
            ),
        ),
        ROWS,
    ),
    "activations": (
        lambda lib: (linear(lib), lambda s, x: s.b(lib.nn.functional.hardswish(s.a(x)).sigmoid().tanh())),
        ROWS,
    ),
    "slopes": (
        lambda lib: (
            linear(lib),
            lambda s, x: lib.nn.functional.leaky_relu(lib.nn.functional.elu(s.a(x)), 0.2),
        ),
        ROWS,
    ),
    "norm": (lambda lib: (linear(lib) | {"n": lib.nn.LayerNorm(4)}, lambda s, x: s.b(s.n(s.a(x)))), ROWS),
    "real": (lambda lib: (linear(lib), lambda s, x: s.b(lib.sin(s.a(x)))), ROWS),
    "product": (lambda lib: (linear(lib), lambda s, x: lib.matmul(s.a(x), s.b(x).t())), ROWS),
    "sizes": (
        lambda lib: (linear(lib), lambda s, x: s.b(s.a(x).reshape(x.shape[0], -1)).view(-1, x.shape[1] * 1)),
        ROWS,
    ),
    "pooled": (
        lambda lib: (
            convolved(lib),
            lambda s, x: lib.nn.functional.max_pool2d(lib.nn.functional.relu(s.c(x)), 2),
        ),
        IMAGES,
    ),
    "norm first": (
        lambda lib: (
            {"bn": lib.nn.BatchNorm2d(2), "r": lib.nn.ReLU(), "c": lib.nn.Conv2d(2, 2, 1)},
            lambda s, x: s.c(s.r(s.bn(x))),
        ),
        IMAGES,
    ),
    "groups": (
        lambda lib: (convolved(lib) | {"g": lib.nn.GroupNorm(2, 4)}, lambda s, x: s.c2(s.g(s.c(x)))),
        IMAGES,
    ),
}


def mapping(lib, kind):
    """What a model is quantised with: the defaults, or these."""
    Q = lib.ao.quantization
    default = Q.get_default_qconfig_mapping("x86")
    return {
        "default": lambda: default,
        "dynamic": lambda: Q.QConfigMapping().set_global(Q.default_dynamic_qconfig),
        "half": lambda: Q.QConfigMapping().set_global(Q.float16_dynamic_qconfig),
        "without b": lambda: default.set_module_name("b", None),
        "b alone": lambda: Q.QConfigMapping().set_module_name("b", Q.default_qconfig),
        "expression": lambda: Q.QConfigMapping().set_module_name_regex("a.*", Q.default_qconfig),
        "functions": lambda: default.set_object_type(lib.add, None),
        "order": lambda: default.set_module_name_object_type_order("", lib.add, 1, None),
    }[kind]()


def text(module):
    """A graph's code, by PyTorch's names."""
    code = re.sub(r"\bxtensor\.", "torch.", module.code.strip())
    return code.replace("torch._C._nn.", "torch.nn.functional.")


def of_both(run):
    """What a program gives in each library."""
    return [
        run(lib, __import__(f"{lib.__name__}.ao.quantization.quantize_fx", fromlist=["x"]))
        for lib in LIBRARIES
    ]


def told(module):
    """The graph, the classes of its modules, and the names of its state, of the model's own numbers with their dtypes."""
    state = module.state_dict()
    own = [
        (n, str(v.dtype).rpartition(".")[2])
        for n, v in state.items()
        if n.endswith("_0") and hasattr(v, "dtype")
    ]
    return text(module), {n: type(m).__name__ for n, m in module.named_modules()}, sorted(state), own


def assert_close(expected, found, few=0.2):
    """Not further apart than a quantum, and few by that."""
    (a, b), scale = (t.detach().numpy() for t in (expected, found)), 1 / 32
    assert a.shape == b.shape and np.abs(a - b).max() <= scale * max(1, np.abs(a).max())
    assert (~np.isclose(a, b, atol=1e-4)).mean() <= few


def both_ways(make, shape, kind="default"):
    def run(lib, fx):
        model, x = model_of(lib, *make(lib)).eval(), waves(lib, *shape)
        observed = fx.prepare_fx(copy.deepcopy(model), mapping(lib, kind), (x,))
        prepared = text(observed), {n: type(m).__name__ for n, m in observed.named_children()}
        observed(x)
        made = fx.convert_fx(observed)
        return prepared, told(made), made(x)

    expected, found = of_both(run)
    assert found[:2] == expected[:2]
    return expected[2], found[2]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.one_in(2)
def test_graphs_are_pytorchs(monkeypatch, name):
    engine(monkeypatch)
    expected, found = both_ways(*MODELS[name])
    if name != "activations" or not saturates():  # tanh's numbers take all eight bits
        assert_close(expected, found)


SUMS = (lambda lib: (linear(lib), lambda s, x: s.b(lib.add(lib.add(s.a(x), 1), x))), ROWS)


@pytest.mark.parametrize(
    "kind", ["dynamic", "half", "without b", "b alone", "expression", "functions", "order"]
)
def test_what_is_quantised_with_what(kind):
    assert_close(*both_ways(*SUMS, kind))


def test_functions_quantised_as_they_run():
    make = lambda lib: (
        weights(lib),
        lambda s, x: lib.nn.functional.relu(lib.nn.functional.linear(x, s.w, s.b)) + 1,
    )
    assert_close(*both_ways(make, ROWS, "dynamic"))


def test_recurrent_layers_and_tables():
    make = lambda lib: (
        {"l": lib.nn.LSTM(4, 5), "f": lib.nn.Linear(5, 2)},
        lambda s, x: s.f(s.l(x)[0]),
    )
    assert_close(*both_ways(make, (2, 3, 4), "dynamic"))

    def run(lib, fx):
        Q = lib.ao.quantization
        layers = {"e": lib.nn.Embedding(10, 4), "f": lib.nn.Linear(4, 2)}
        model = model_of(lib, layers, lambda s, x: s.f(s.e(x))).eval()
        chosen = Q.get_default_qconfig_mapping("x86").set_object_type(
            lib.nn.Embedding, Q.float_qparams_weight_only_qconfig
        )
        x = lib.tensor([1, 2, 3])
        observed = fx.prepare_fx(model, chosen, (x,))
        observed(x)
        made = fx.convert_fx(observed)
        return told(made), made(x)

    expected, found = of_both(run)
    assert found[0] == expected[0]
    assert_close(expected[1], found[1])


def trained(lib, fx, layers, forward, shape):
    model, x = model_of(lib, layers, forward).train(), waves(lib, *shape)
    observed = fx.prepare_qat_fx(model, lib.ao.quantization.get_default_qat_qconfig_mapping("x86"), (x,))
    prepared = told(observed)
    optimizer = lib.optim.SGD(observed.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        loss = observed(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    made = fx.convert_fx(observed.eval())
    return prepared, told(made), losses, made(x)


def test_training_of_what_will_be_quantised():
    def run(lib, fx):
        forward = lambda s, x: s.fc(
            lib.flatten(s.pool(lib.nn.functional.relu(s.bn(s.c(x))) + s.c2(s.c(x))), 1)
        )
        return trained(lib, fx, convolved(lib), forward, IMAGES)

    expected, found = of_both(run)
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-3)
    assert_close(expected[3], found[3], few=1)  # trained weights differ in the last place


def test_layers_fused():
    def run(lib, fx):
        model = model_of(lib, *residual(lib)).eval()
        made = fx.fuse_fx(model)
        return told(made), made(waves(lib, *IMAGES))

    expected, found = of_both(run)
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1].detach().numpy(), expected[1].detach().numpy(), atol=1e-5)


def test_a_norm_between_a_linear_layer_and_relu():
    """PyTorch drops the ReLU."""
    nn = xtensor.nn
    layers = {"q": nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))}
    fx = xtensor.ao.quantization.quantize_fx
    model, x = model_of(xtensor, layers, lambda s, x: s.q(x)).eval(), waves(xtensor, 3, 4)
    observed = fx.prepare_fx(model, mapping(xtensor, "default"), (x,))
    observed(x)
    made = fx.convert_fx(observed)
    assert type(made.q.get_submodule("0")).__name__ == "LinearReLU"
    assert (made(x) - model(x)).abs().max() < 0.05


def test_what_is_left_alone():
    class Asks:
        def forward(self, x):
            return x if x.sum() > 1e9 else self.layer(x)

    def run(lib, fx):
        kind = type("Asks", (lib.nn.Module,), {"forward": Asks.forward})
        inner = kind()
        inner.layer = lib.nn.Linear(4, 4)
        custom = lib.ao.quantization.fx.custom_config.PrepareCustomConfig()
        custom = custom.set_non_traceable_module_names(["w"]).set_preserved_attributes(["tag"])
        model = model_of(lib, linear(lib) | {"w": inner}, lambda s, x: s.b(s.w(s.a(x)))).eval()
        model.tag, x = "kept", waves(lib, *ROWS)
        observed = fx.prepare_fx(model, mapping(lib, "default"), (x,), prepare_custom_config=custom)
        observed(x)
        made = fx.convert_fx(observed)
        return told(made), made(x), observed.tag

    expected, found = of_both(run)
    assert found[0] == expected[0] and found[2] == expected[2]
    assert_close(expected[1], found[1])


def test_quantised_arguments_and_results():
    def run(lib, fx):
        custom = lib.ao.quantization.fx.custom_config.PrepareCustomConfig()
        custom = custom.set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
        model, x = model_of(lib, linear(lib), lambda s, x: s.b(s.a(x))).eval(), waves(lib, *ROWS)
        observed = fx.prepare_fx(model, mapping(lib, "default"), (x,), prepare_custom_config=custom)
        observed(x)
        made = fx.convert_fx(observed)
        return told(made), made(lib.quantize_per_tensor(x, 0.05, 128, lib.quint8))

    expected, found = of_both(run)
    assert found[0] == expected[0] and found[1].is_quantized
    assert (found[1].int_repr().numpy() == expected[1].int_repr().numpy()).all()


def test_reference_graphs():
    def run(lib, fx):
        model, x = model_of(lib, *residual(lib)).eval(), waves(lib, *IMAGES)
        observed = fx.prepare_fx(model, mapping(lib, "default"), (x,))
        observed(x)
        made = fx.convert_to_reference_fx(observed)
        return text(made), {n: type(m).__name__ for n, m in made.named_modules()}, made(x)

    expected, found = of_both(run)
    assert found[:2] == expected[:2]
    assert_close(expected[2], found[2])


def test_reference_graphs_of_what_was_trained():
    def run(lib, fx):
        layers = convolved(lib) | {"q": lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.ReLU())}
        relu = lib.nn.functional.relu
        forward = lambda s, x: s.fc(s.q(lib.flatten(s.pool(s.c2(relu(s.bn(s.c(x))))), 1)))
        model, x = model_of(lib, layers, forward).train(), waves(lib, *IMAGES)
        observed = fx.prepare_qat_fx(model, lib.ao.quantization.get_default_qat_qconfig_mapping("x86"), (x,))
        observed(x)
        made = fx.convert_to_reference_fx(observed.eval())
        return text(made), {n: type(m).__name__ for n, m in made.named_modules()}, made(x)

    expected, found = of_both(run)
    assert found[:2] == expected[:2]
    assert_close(expected[2], found[2])


def test_states_of_quantised_graphs_are_saved_and_loaded():
    fx = xtensor.ao.quantization.quantize_fx
    forward = lambda s, x: s.l(xtensor.nn.functional.linear(x, s.w, s.b)).relu()
    layers = lambda: weights(xtensor) | {"l": xtensor.nn.Linear(5, 2)}
    model, x = model_of(xtensor, layers(), forward).eval(), waves(xtensor, *ROWS)

    def made(seen):
        observed = fx.prepare_fx(copy.deepcopy(model), mapping(xtensor, "default"), (x,))
        if seen:
            observed(x)
        return fx.convert_fx(observed)

    first, again = made(True), made(False)
    file = io.BytesIO()
    xtensor.save(first.state_dict(), file)
    file.seek(0)
    again.load_state_dict(xtensor.load(file, weights_only=False))
    assert xtensor.equal(first(x), again(x)) and xtensor.equal(copy.deepcopy(first)(x), first(x))


def test_modules_prepared_by_themselves_and_users_own():
    nn, Q = xtensor.nn, xtensor.ao.quantization
    fx, custom = Q.quantize_fx, Q.fx.custom_config.PrepareCustomConfig()
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    custom.set_standalone_module_name("inner", None, (waves(xtensor, 3, 4),), None, None)
    model = model_of(xtensor, linear(xtensor) | {"inner": inner}, lambda s, x: s.b(s.inner(s.a(x)))).eval()
    x = waves(xtensor, *ROWS)
    observed = fx.prepare_fx(model, mapping(xtensor, "default"), (x,), custom)
    observed(x)
    made = fx.convert_fx(observed)
    assert "quantize_per_tensor" in made.inner.code and (made(x) - model(x)).abs().max() < 0.2

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x)

    class Seen(Own):
        @classmethod
        def from_float(cls, mod):
            made = cls()
            made.layer = mod.layer
            return made

    class Quantised(nn.Module):
        @classmethod
        def from_observed(cls, mod):
            made = cls()
            made.scale, made.zero_point = mod.activation_post_process.calculate_qparams()
            return made

        def forward(self, x):
            return xtensor.quantize_per_tensor(x.dequantize(), self.scale, self.zero_point, x.dtype)

    prepare = Q.fx.custom_config.PrepareCustomConfig().set_float_to_observed_mapping(Own, Seen)
    convert = Q.fx.custom_config.ConvertCustomConfig().set_observed_to_quantized_mapping(Seen, Quantised)
    model = model_of(xtensor, linear(xtensor) | {"own": Own()}, lambda s, x: s.b(s.own(s.a(x)))).eval()
    observed = fx.prepare_fx(model, mapping(xtensor, "default"), (x,), prepare)
    assert type(observed.own) is Seen
    observed(x)
    made = fx.convert_fx(observed, convert)
    assert type(made.own) is Quantised and made(x).shape == (3, 4)


def test_modules_prepared_by_themselves_that_take_quantised_tensors():
    def run(lib, fx):
        custom = lambda: lib.ao.quantization.fx.custom_config.PrepareCustomConfig()
        ends = custom().set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
        x = waves(lib, *ROWS)
        whole = custom().set_standalone_module_name("inner", None, (x,), ends, None)
        inner = lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.ReLU(), lib.nn.Linear(4, 4))
        model = model_of(lib, linear(lib) | {"inner": inner}, lambda s, x: s.b(s.inner(s.a(x)))).eval()
        observed = fx.prepare_fx(model, mapping(lib, "default"), (x,), prepare_custom_config=whole)
        prepared = text(observed)
        observed(x)
        made = fx.convert_fx(observed)
        return prepared, text(made), text(made.inner), made(x)

    expected, found = of_both(run)
    assert found[:3] == expected[:3]
    assert_close(expected[3], found[3])


def test_sums_of_float_functional_are_operators():
    def run(lib, fx):
        layers = linear(lib) | {"f": lib.ao.nn.quantized.FloatFunctional()}
        model, x = model_of(lib, layers, lambda s, x: s.b(s.f.add_relu(s.a(x), x))).eval(), waves(lib, *ROWS)
        observed = fx.prepare_fx(model, mapping(lib, "default"), (x,))
        observed(x)
        made = fx.convert_fx(observed)
        return told(made), made(x)

    expected, found = of_both(run)
    assert found[0] == expected[0]
    assert_close(expected[1], found[1])


def test_refusals():
    fx = xtensor.ao.quantization.quantize_fx
    with pytest.raises(ValueError, match="prepare_fx"):
        fx.convert_fx(xtensor.nn.Linear(2, 2))
    with pytest.raises(NotImplementedError, match="equalise"):
        fx.prepare_fx(
            xtensor.nn.Linear(2, 2), mapping(xtensor, "default"), (), _equalization_config=SimpleNamespace()
        )


def test_configurations_as_dicts():
    B = xtensor.ao.quantization.backend_config
    config = B.get_native_backend_config()
    again = B.BackendConfig.from_dict(config.to_dict())
    assert [c.to_dict() for c in again.configs] == [c.to_dict() for c in config.configs]
    P = xtensor.ao.quantization.fx.custom_config.PrepareCustomConfig
    custom = P().set_non_traceable_module_names(["a"]).set_preserved_attributes(["b"])
    assert P.from_dict(custom.to_dict()).to_dict() == custom.to_dict()
    with pytest.raises(ValueError, match="no 'nothing'"):
        P.from_dict({"nothing": 1})
