"""Layers: values against PyTorch from the same weights, how they print, and their initial values."""

import threading
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.nn import functional as F
from xtensor.xla import segments
from xtensor.xla.compiles import unwatch, watch
from xtensor.xla.pending import workers

# ---- values --------------------------------------------------------------------------------------------------------

LAYERS = [
    ("Linear(4, 3)", (2, 4)),
    ("Conv1d(2, 4, 3, padding='same', dilation=2)", (2, 2, 8)),
    ("Conv2d(2, 4, 3, padding=1, padding_mode='circular', groups=2)", (1, 2, 6, 5)),
    ("Conv2d(2, 3, (3, 2), stride=2, bias=False)", (2, 6, 5)),
    ("ConvTranspose2d(2, 3, 3, stride=2, padding=1)", (1, 2, 4, 4)),
    ("BatchNorm1d(3)", (5, 3)),
    ("BatchNorm2d(3, momentum=None)", (4, 3, 2, 2)),
    ("InstanceNorm1d(3, affine=True)", (2, 3, 5)),
    ("LayerNorm((3, 4))", (2, 3, 4)),
    ("GroupNorm(2, 4)", (2, 4, 3)),
    ("RMSNorm(4)", (3, 4)),
    ("PReLU(3)", (2, 3, 4)),
    ("GLU(1)", (2, 4)),
    (
        "Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2))",
        (2, 1, 6, 6),
    ),
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("text, shape", LAYERS)
def test_values_from_the_same_weights(torch, rng, text, shape, training):
    ours = eval("nn." + text, {"nn": nn}).train(training)
    theirs = eval("nn." + text, {"nn": torch.nn}).train(training)
    with torch.no_grad():
        for value in theirs.state_dict().values():
            if value.is_floating_point():
                value.copy_(torch.tensor(np.abs(rng.normal(size=tuple(value.shape))) + 0.1))
    ours.load_state_dict({k: xtensor.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    data = rng.normal(size=shape).astype(np.float32)
    x, y = xtensor.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    for _ in range(2):
        ours(x).square().sum().backward()
        theirs(y).square().sum().backward()
    np.testing.assert_allclose(ours(x).detach().numpy(), theirs(y).detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-3, atol=1e-4)
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-3, err_msg=name)
    for (name, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_dropout_scales_what_it_keeps():
    x = xtensor.ones(1000)
    module = nn.Dropout(0.25)
    kept = module(x)
    assert set(np.unique(kept.numpy()).tolist()) <= {0.0, float(np.float32(1 / 0.75))}
    assert 0.65 < (kept != 0).float().mean().item() < 0.85
    assert (module.eval()(x) == x).all()


def test_modules_call_the_functions_they_name():
    x = xtensor.randn(2, 3)
    assert (nn.ReLU()(x) == F.relu(x)).all()
    assert (nn.Softmax(1)(x).sum(1) - 1).abs().max() < 1e-6
    assert nn.Identity(1, two=2)(x) is x
    assert nn.Flatten()(xtensor.ones(2, 3, 4)).shape == (2, 12)
    assert nn.Unflatten(1, (1, 3))(x).shape == (2, 1, 3)


# ---- text ----------------------------------------------------------------------------------------------------------

TEXTS = [
    "nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(1, 2, 3, padding=1, bias=False)))",
    "nn.ModuleList([nn.Linear(1, 1) for _ in range(3)] + [nn.Tanh()])",
    "nn.ModuleDict({'a': nn.Identity(), 'b': nn.Sequential()})",
    "nn.Conv3d(2, 4, (1, 2, 3), stride=2, dilation=2, groups=2, padding_mode='reflect', padding=1)",
    "nn.ConvTranspose2d(1, 1, 3, stride=2, output_padding=1)",
    "nn.Conv1d(1, 1, 3, padding='same')",
    "nn.BatchNorm2d(3, affine=False)",
    "nn.InstanceNorm1d(3)",
    "nn.GroupNorm(1, 2)",
    "nn.LayerNorm((2, 3), bias=False)",
    "nn.RMSNorm(4)",
    "nn.LocalResponseNorm(2)",
    "nn.MaxPool2d(2)",
    "nn.AvgPool1d(2)",
    "nn.AvgPool2d((2, 1), 2)",
    "nn.AdaptiveAvgPool2d((None, 2))",
    "nn.LPPool2d(2, 3)",
    "nn.MaxUnpool2d(2)",
    "nn.Embedding(3, 2, padding_idx=-1, max_norm=1.0)",
    "nn.Dropout(0.1)",
    "nn.AlphaDropout(0.1, True)",
    "nn.ZeroPad2d(1)",
    "nn.ConstantPad1d((1, 2), 3.5)",
    "nn.ReflectionPad1d(2)",
    "nn.CircularPad3d(1)",
    "nn.Unflatten(1, (2, 3))",
    "nn.Flatten()",
    "nn.Bilinear(1, 2, 3)",
    "nn.GELU('tanh')",
    "nn.Hardtanh(-2, 2, True)",
    "nn.ReLU6(True)",
    "nn.LeakyReLU(0.2)",
    "nn.PReLU(3)",
    "nn.Softmax(1)",
    "nn.Softplus(2)",
    "nn.RReLU(inplace=True)",
    "nn.Threshold(0.1, 2)",
    "nn.CrossEntropyLoss(label_smoothing=0.1)",
    "nn.CosineSimilarity()",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_pytorchs(torch, text):
    ours, theirs = eval(text, {"nn": nn}), eval(text, {"nn": torch.nn})
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_text_of_parameter_containers(torch):
    for text in ("ParameterList([lib.ones(2, 3), 1])", "ParameterDict({'a': lib.ones(2), 'b': 'x'})"):
        ours = repr(eval("lib.nn." + text, {"lib": xtensor}))
        assert ours.replace("xtensor.", "torch.") == repr(eval("lib.nn." + text, {"lib": torch}))


# ---- initial values ------------------------------------------------------------------------------------------------

INITIAL = {
    "Linear(100, 80)": ("weight", "bias"),
    "Conv2d(16, 32, 3)": ("weight", "bias"),
    "ConvTranspose1d(16, 32, 3)": ("weight", "bias"),
    "Embedding(100, 50)": ("weight",),
    "Bilinear(20, 30, 10)": ("weight", "bias"),
}


@pytest.mark.parametrize("text", INITIAL)
def test_initial_distributions_are_pytorchs(torch, text):
    xtensor.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = eval("nn." + text, {"nn": nn}), eval("nn." + text, {"nn": torch.nn})
    for name in INITIAL[text]:
        a, b = getattr(ours, name).detach().numpy().ravel(), getattr(theirs, name).detach().numpy().ravel()
        assert abs(a.std() - b.std()) < 5 * b.std() / np.sqrt(len(b))
        assert abs(a.mean() - b.mean()) < 7 * b.std() / np.sqrt(len(b))
        if "Embedding" not in text:
            assert np.abs(a).max() <= np.abs(b).max() * 1.25


def test_init_functions():
    w = xtensor.empty(64, 32)
    assert nn.init.constant_(w, 3) is w
    assert (w == 3).all()
    assert nn.init.eye_(xtensor.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.xavier_uniform_(w).abs().max() <= np.sqrt(6 / 96)
    assert abs(nn.init.kaiming_normal_(w, nonlinearity="relu").std().item() - np.sqrt(2 / 32)) < 0.02
    assert nn.init.trunc_normal_(w, std=5.0).abs().max() <= 2
    q = nn.init.orthogonal_(w, gain=2)
    np.testing.assert_allclose((q.t() @ q).detach().numpy(), 4 * np.eye(32), atol=1e-4)
    zeros = (nn.init.sparse_(w, 0.25) == 0).sum(0)
    assert (zeros == 16).all()
    d = nn.init.dirac_(xtensor.empty(4, 3, 3), groups=2)
    assert (d.sum().item(), d[0, 0, 1].item(), d[2, 0, 1].item()) == (4, 1, 1)
    assert nn.init.calculate_gain("leaky_relu", 0.2) == pytest.approx(np.sqrt(2 / 1.04))
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        nn.init.kaiming_uniform_(xtensor.empty(3))
    with pytest.warns(FutureWarning, match=r"nn.init.uniform_"):
        nn.init.uniform(w)


def test_the_average_of_all_batches_compiles_nothing_per_batch() -> None:
    # Calls that stop waiting need a program that the segment did not.
    with segments.paused():
        _average_of_all_batches()


def _average_of_all_batches() -> None:
    # A width that no other test has. What one program for several widths has answered often gets a program of its own: before.
    width = 1187
    norm = xtensor.nn.BatchNorm1d(width, momentum=None)
    names: list[str] = []

    def watcher(name: str) -> Any:
        # Threads may be compiling for the tests before.
        here = threading.current_thread() is threading.main_thread()
        return lambda loaded: None if loaded is None or not here else names.append(name)

    batches = [xtensor.randn(9, width) for _ in range(50)]
    for batch in batches[:44]:
        norm(batch)
    workers.wait()
    for batch in batches[44:47]:
        norm(batch)
    watch(watcher)
    try:
        for batch in batches[47:]:
            norm(batch)
    finally:
        unwatch(watcher)
    assert names == []
    assert norm.running_mean is not None and norm.running_var is not None
    assert norm.running_mean.allclose(xtensor.stack([b.mean(0) for b in batches]).mean(0), atol=1e-6)
    assert norm.running_var.allclose(xtensor.stack([b.var(0) for b in batches]).mean(0), atol=1e-6)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_ctc_within_programs(joined: bool, listed: bool) -> None:
    """Lengths are values of a program, numbers where they are a tuple; those that do not fit give NaN there."""
    targets, inputs, labels = xtensor.randint(1, 7, (3, 5)), (12, 11, 10), (5, 4, 3)
    if joined:
        targets = xtensor.cat([row[:n] for row, n in zip(targets, labels, strict=True)])
    lengths: list[Any] = [inputs, labels] if listed else [xtensor.tensor(inputs), xtensor.tensor(labels)]

    def loss(x: Any, targets: Any, inputs: Any, labels: Any) -> Any:
        return F.ctc_loss(x.log_softmax(2), targets, inputs, labels)

    x = xtensor.randn(12, 3, 7, requires_grad=True)
    compiled = xtensor.compile(loss, fullgraph=True)
    for _ in range(2):
        ours, wanted = compiled(x, targets, *lengths), loss(x, targets, *lengths)
        assert ours.allclose(wanted)
        for found, expected in zip(
            xtensor.autograd.grad(ours, x), xtensor.autograd.grad(wanted, x), strict=True
        ):
            assert found.allclose(expected, atol=1e-6)
    if not listed:
        assert compiled(x, targets, xtensor.tensor((13, 11, 10)), lengths[1]).isnan()


def test_smoothing_is_checked_before_sizes(torch):
    for T in (xtensor, torch):
        for target in (T.arange(4), T.zeros(3, 4)):
            with pytest.raises(RuntimeError, match=r"label_smoothing must be between 0.0 and 1.0. Got: 1.2"):
                T.nn.functional.cross_entropy(T.zeros(3, 4), target, label_smoothing=1.2)


def test_padding_of_bags_has_no_part_in_a_sparse_gradient(torch):
    def gradient(T):
        table = T.ones(6, 2, requires_grad=True)
        indices = T.tensor([[1, 3, 3, 2, 5]])
        T.nn.functional.embedding_bag(indices, table, padding_idx=3, sparse=True).sum().backward()
        return table.grad._indices().tolist(), table.grad._values().tolist()

    assert gradient(xtensor) == gradient(torch)


@pytest.mark.parametrize("count", [0, 2])
def test_rows_of_no_columns_have_a_sparse_gradient(count):
    table = xtensor.nn.Embedding(count, 0, sparse=True)
    table(xtensor.arange(count)).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.shape == (count, 0)


@pytest.mark.parametrize(
    ("indices", "offsets"), [((2, 0, 0), (1,)), ((), (1,)), ((1,), ()), ((1,), (1, 1)), ((1, 1), (1,))]
)
def test_dimensions_of_bags(torch, indices, offsets):
    def told(T):
        try:
            table = T.ones(2, 3)
            found = T.embedding_bag(table, T.zeros(indices, dtype=T.int64), T.zeros(offsets, dtype=T.int64))
        except RuntimeError as error:
            return str(error)
        return found[0].tolist()

    assert told(xtensor) == told(torch)


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 2, 3, 1)])
def test_a_grid_is_walked_back_twice(torch, size):
    def gradient(T):
        n = len(size) - 2
        theta = T.linspace(-1, 1, 2 * n * (n + 1), dtype=T.float64).reshape(2, n, n + 1).requires_grad_()
        grid = T.nn.functional.affine_grid(theta, size, align_corners=False)
        weight = T.linspace(0, 1, grid.numel(), dtype=T.float64).reshape(grid.shape)
        for _ in range(2):  # nothing was saved that the first pass would have freed
            grid.backward(weight)
        return theta.grad.numpy()

    np.testing.assert_allclose(gradient(xtensor), gradient(torch), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(("n", "shape"), [(1, (1, 3)), (2, (1, 3, 4, 4)), (3, (1, 3, 4, 4))])
def test_no_windows_have_no_gradient(torch, kind, n, shape):
    def told(T):
        pooled = getattr(T.nn.functional, f"adaptive_{kind}_pool{n}d")(T.ones(shape, requires_grad=True), 0)
        with pytest.raises(RuntimeError, match="to have non-zero size for non-batch dimensions") as caught:
            pooled.sum().backward()
        return str(caught.value).partition("\n")[0]

    assert told(xtensor) == told(torch)


BROADCASTS = {
    "broadcast_tensors": lambda T, a, b: T.broadcast_tensors(a, b),
    "cosine_similarity": lambda T, a, b: T.nn.functional.cosine_similarity(a, b),
    "l1_loss": lambda T, a, b: T.nn.functional.l1_loss(a, b),
    "shapes": lambda T, a, b: T.broadcast_shapes(a.shape, b.shape),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", BROADCASTS)
def test_sizes_that_do_not_broadcast_are_named_from_the_back(torch, name):
    def told(T):
        with pytest.raises(RuntimeError) as caught:
            BROADCASTS[name](T, T.ones(2, 3, 4), T.ones(2, 4, 5))
        return str(caught.value).partition("\n")[0].replace("xtensor", "torch")

    assert told(xtensor) == told(torch)


def test_states_of_cells_have_the_inputs_dimensions(torch):
    for T in (xtensor, torch):
        with pytest.raises(RuntimeError, match="hidden0 has inconsistent hidden_size: got 1, expected 3"):
            T.nn.RNNCell(2, 3)(T.ones(2), T.ones(1, 3))
