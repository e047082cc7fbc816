"""autocast: which operator computes in which dtype, the cast cache, custom Functions; and GradScaler."""

import pickle

import pytest

import xtensor
from xtensor import amp, nn
from xtensor.nn import functional as F


# Calls on float32 operands whose result dtype autocast decides.
def packed(t, a):
    return t.nn.utils.rnn.pack_sequence([a, a[:2]])


CALLS = {
    "matmul": lambda t, a, b: a @ b,
    "mm": lambda t, a, b: t.mm(a, b),
    "bmm": lambda t, a, b: t.bmm(a[None], b[None]),
    "addmm": lambda t, a, b: t.addmm(a, a, b),
    "baddbmm": lambda t, a, b: t.baddbmm(a[None], a[None], b[None]),
    "linear": lambda t, a, b: t.nn.functional.linear(a, b),
    "conv1d": lambda t, a, b: t.nn.functional.conv1d(a[None], b[:, :, None]),
    "attention": lambda t, a, b: t.nn.functional.scaled_dot_product_attention(a[None], b[None], b[None]),
    "exp of short": lambda t, a, b: t.exp(a @ b),
    "softmax of short": lambda t, a, b: t.softmax(a @ b, -1),
    "sum of short": lambda t, a, b: (a @ b).sum(),
    "layer_norm of short": lambda t, a, b: t.nn.functional.layer_norm(a @ b, (4,), b[0], b[1]),
    "prod of short": lambda t, a, b: (a @ b).prod(),
    "mse_loss": lambda t, a, b: t.nn.functional.mse_loss(a @ b, a),
    "cross_entropy": lambda t, a, b: t.nn.functional.cross_entropy(a @ b, t.arange(4)),
    "bce with logits": lambda t, a, b: t.nn.functional.binary_cross_entropy_with_logits(a @ b, b),
    "cat": lambda t, a, b: t.cat([a @ b, a]),
    "stack of short": lambda t, a, b: t.stack([a @ b, b @ a]),
    "add": lambda t, a, b: (a @ b) + a,
    "double": lambda t, a, b: a.double() @ b.double(),
    "einsum": lambda t, a, b: t.einsum("ij,jk->ik", a, b),
    "einsum that ends in a product of elements": lambda t, a, b: t.einsum("ij,j,k->k", a, b[0], b[1]),
    "einsum that ends in a product of matrices": lambda t, a, b: t.einsum("ij,jk,k->i", a, b, b[0]),
    "tensordot": lambda t, a, b: t.tensordot(a, b, 1),
    "mv": lambda t, a, b: t.mv(a, b[0]),
    "dot": lambda t, a, b: t.dot(a[0], b[0]),
    "inner": lambda t, a, b: t.inner(a, b),
    "bilinear": lambda t, a, b: t.nn.functional.bilinear(a, a, t.ones(2, 4, 4)),
    "multi_dot": lambda t, a, b: t.linalg.multi_dot([a, b, a]),
    "lstm": lambda t, a, b: t.nn.LSTM(4, 2)(a[None])[0],
    "lstm of packed": lambda t, a, b: t.nn.LSTM(4, 2)(packed(t, a))[0].data,
    "lstm of packed that projects": lambda t, a, b: t.nn.LSTM(4, 2, proj_size=1)(packed(t, a))[0].data,
    "cell state of what projects": lambda t, a, b: t.nn.LSTM(4, 2, proj_size=1)(a[None])[1][1],
    "prelu": lambda t, a, b: t.nn.functional.prelu(a @ b, t.ones(1)),
    "solve": lambda t, a, b: t.linalg.solve(b @ b, a @ b),
    "quantile": lambda t, a, b: t.quantile(a @ b, 0.5),
    "reflect": lambda t, a, b: t.nn.functional.pad(a @ b, (1, 1), mode="reflect"),
    "max_pool3d": lambda t, a, b: t.nn.functional.max_pool3d((a @ b)[None, None], (1, 2, 2)),
    "multi-head": lambda t, a, b: t.nn.MultiheadAttention(4, 2)(a, a, a)[0],
    "gru": lambda t, a, b: t.nn.GRU(4, 2)(a[None])[0],
    "matrix_power": lambda t, a, b: t.linalg.matrix_power(b, 3),
    "gelu of short": lambda t, a, b: t.nn.functional.gelu(a @ b),
    "smooth_l1": lambda t, a, b: t.nn.functional.smooth_l1_loss(a @ b, a),
    "cdist": lambda t, a, b: t.cdist(a @ b, a @ b),
}


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_are_pytorch_s(torch, name):
    def dtype_on(t):
        a, b = t.arange(16.0).reshape(4, 4) / 10, t.eye(4) + 0.5
        with t.autocast("cpu"):
            return str(CALLS[name](t, a, b).dtype).split(".")[1]

    found = dtype_on(xtensor)
    try:
        wanted = dtype_on(torch)
    except RuntimeError as error:
        if "could not create a primitive" not in str(error):
            raise
        pytest.skip("PyTorch does not compute this on this processor")
    assert found == wanted


def test_off_and_disabled():
    a = xtensor.ones(2, 2)
    with xtensor.autocast("cpu", enabled=False):
        assert (a @ a).dtype is xtensor.float32
    with xtensor.autocast("cpu", dtype=xtensor.float16):
        assert (a @ a).dtype is xtensor.float16 and xtensor.is_autocast_enabled("cpu")
        with xtensor.autocast("cpu", enabled=False):
            assert (a @ a).dtype is xtensor.float32
        assert (a @ a).dtype is xtensor.float16
    assert (a @ a).dtype is xtensor.float32 and not xtensor.is_autocast_enabled("cpu")
    assert xtensor.get_autocast_dtype("cpu") is xtensor.bfloat16
    with (
        pytest.warns(UserWarning, match="target dtype is not supported"),
        xtensor.autocast("cpu", xtensor.float32),
    ):
        assert (a @ a).dtype is xtensor.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        xtensor.autocast("cuda")
    with pytest.raises(RuntimeError, match="device type at start of device string"):
        xtensor.autocast("abacus")


def test_as_a_decorator_and_through_exceptions():
    @xtensor.autocast("cpu")
    def product(a):
        if a.dim() == 1:
            raise KeyError
        return a @ a

    assert product(xtensor.ones(2, 2)).dtype is xtensor.bfloat16
    with pytest.raises(KeyError):
        product(xtensor.ones(2))
    assert not xtensor.is_autocast_enabled("cpu")


def test_gradients_reach_float32_parameters(torch):
    def run(t):
        layer = t.nn.Linear(3, 2)
        with t.no_grad():
            layer.weight.copy_(t.arange(6.0).reshape(2, 3) / 7)
            layer.bias.zero_()
        with t.autocast("cpu"):
            loss = layer(t.ones(4, 3)).float().pow(2).sum()
        loss.backward()
        return layer.weight.grad

    ours, theirs = run(xtensor), run(torch)
    assert ours.dtype is xtensor.float32
    for row, expected in zip(ours.tolist(), theirs.tolist(), strict=True):
        assert row == pytest.approx(expected, rel=1e-2)


def test_casts_of_parameters_are_kept_until_they_are_written():
    layer, x = nn.Linear(2, 2, bias=False), xtensor.ones(1, 2)
    with xtensor.autocast("cpu"):
        first, second = layer(x), layer(x)
        assert first.grad_fn is not second.grad_fn
        kept = [node for node, _ in first.grad_fn.next_functions if node is not None]
        assert kept and kept == [node for node, _ in second.grad_fn.next_functions if node is not None]
        before = layer(x).float().sum().item()
        with xtensor.no_grad():
            layer.weight.add_(1)
        assert layer(x).float().sum().item() == pytest.approx(before + 4, abs=0.1)
    with xtensor.autocast("cpu", cache_enabled=False):
        one, other = layer(x).grad_fn.next_functions, layer(x).grad_fn.next_functions
        assert [n for n, _ in one if n] != [n for n, _ in other if n]


def test_custom_functions():
    seen = []

    class Square(xtensor.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=xtensor.float32)
        def forward(ctx, x):
            seen.append((x.dtype, xtensor.is_autocast_enabled("cpu")))
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            seen.append((grad.dtype, xtensor.is_autocast_enabled("cpu")))
            return grad @ x.t() + x.t() @ grad

    x = xtensor.eye(2).bfloat16().requires_grad_()
    with xtensor.autocast("cpu"):
        y = Square.apply(x)
    y.sum().backward()
    assert y.dtype is xtensor.float32
    assert seen == [(xtensor.float32, False), (xtensor.float32, False)]


def steps(t, scaler, grads):
    """What a scaler does over iterations in which the gradient is as given."""
    p = t.nn.Parameter(t.ones(2))
    optimizer = t.optim.SGD([p], lr=1.0)
    seen = []
    for g in grads:
        optimizer.zero_grad()
        scaler.scale((p * g).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), *p.tolist()))
    return seen, scaler.state_dict()


def test_grad_scaler_is_pytorch_s(torch):
    grads = [1.0, float("inf"), 0.5, 0.25, float("nan"), 1.0, 1.0]
    options = dict(init_scale=8.0, growth_interval=2, growth_factor=4.0, backoff_factor=0.25)
    ours = steps(xtensor, xtensor.amp.GradScaler("cpu", **options), grads)
    theirs = steps(torch, torch.amp.GradScaler("cpu", **options), grads)
    assert ours == theirs


def test_grad_scaler_states():
    scaler = xtensor.amp.GradScaler("cpu", init_scale=4.0)
    p = nn.Parameter(xtensor.ones(1))
    optimizer = xtensor.optim.SGD([p], lr=1.0)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    loss, (other,) = scaler.scale([p.sum(), (p.sum(),)])
    assert (loss.item(), other.item()) == (4.0, 4.0)
    loss.backward()
    scaler.unscale_(optimizer)
    assert p.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step.. has already been called"):
        scaler.step(optimizer)
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0 and p.item() == 0.0
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    again = pickle.loads(pickle.dumps(scaler))
    assert again.state_dict() == scaler.state_dict()
    fresh = xtensor.amp.GradScaler("cpu")
    fresh.load_state_dict(scaler.state_dict())
    assert fresh.get_scale() == 16.0


def test_a_scaler_without_its_device_does_nothing():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = xtensor.amp.GradScaler()
    p = nn.Parameter(xtensor.ones(1))
    optimizer = xtensor.optim.SGD([p], lr=1.0)
    loss = scaler.scale(p.sum())
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    assert (p.item(), scaler.get_scale(), scaler.state_dict()) == (0.0, 1.0, {})


def test_functional_modules_see_it():
    with xtensor.autocast("cpu"):
        assert F.relu(nn.Conv2d(1, 2, 3)(xtensor.ones(1, 1, 4, 4))).dtype is xtensor.bfloat16


def test_optimizers_that_unscale_themselves(torch):
    def found(lib):
        seen = []

        class Asked(lib.optim.SGD):
            _step_supports_amp_scaling = True

            def step(self, closure=None):
                seen.append((self.grad_scale.item(), self.found_inf.item()))

        class Given(Asked):
            def step(self, closure=None, *, grad_scaler=None):
                seen.append((grad_scaler.get_scale(), hasattr(self, "found_inf")))

        scaler = lib.amp.GradScaler("cpu", init_scale=2.0)
        for factor in (1.0, float("inf")):
            p = lib.nn.Parameter(lib.ones(1))
            optimizers = Asked([p]), Given([p])
            scaler.scale((p * factor).sum()).backward()
            scaler.step(optimizers[0])
            with pytest.warns(FutureWarning, match="going to stop passing itself"):
                scaler.step(optimizers[1])
            scaler.update()
            seen.append((scaler.get_scale(), hasattr(optimizers[0], "grad_scale")))
        return seen

    assert found(xtensor) == found(torch)


def test_older_names_of_the_scaler_warn():
    with pytest.warns(FutureWarning, match=r"`xtensor.cpu.amp.GradScaler\(args...\)` is deprecated"):
        assert xtensor.cpu.amp.GradScaler(init_scale=4.0).is_enabled()


def test_a_scaler_shows_its_scale_as_pytorch_s_does() -> None:
    scaler = xtensor.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    assert scaler._scale is None
    scaler.scale(xtensor.ones(()))
    assert (
        scaler._scale.dtype is xtensor.float32
        and scaler._scale.item() == 8
        and scaler._growth_tracker.item() == 0
    )
    scaler._scale = xtensor.tensor(2.0)
    assert scaler.get_scale() == 2 and scaler.state_dict()["scale"] == 2
    state = scaler.__getstate__()
    older = xtensor.amp.GradScaler.__new__(xtensor.amp.GradScaler)
    names = {"_factor": "_scale", "_good": "_growth_tracker"}
    older.__setstate__({names.get(name, name): value for name, value in state.items()})
    assert older.get_scale() == 2 and older.state_dict()["_growth_tracker"] == 0
