"""Tensors in other libraries' hands: DLPack, JAX's pytrees, einops, pandas, scikit-learn, matplotlib, torch, pickles."""

import collections
import copy
import io
import multiprocessing.reduction
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor as xt
from xtensor import interop
from xtensor.nn import Parameter

# ---- DLPack ---------------------------------------------------------------------------------------------------------


def address(tensor):
    return tensor._xt_storage.array.unsafe_buffer_pointer()


def test_dlpack_copies_unless_told_not_to(torch):
    ours = xt.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    theirs = torch.from_dlpack(ours)
    theirs.fill_(9)
    assert ours.tolist() == [[0, 1, 2], [3, 4, 5]]
    shared = np.from_dlpack(ours, copy=False)
    assert shared.ctypes.data == address(ours) and not shared.flags.writeable
    assert torch.from_dlpack(ours, copy=False).data_ptr() == address(ours)
    ours.add_(1)  # an export never changes
    assert shared.tolist() == [[0, 1, 2], [3, 4, 5]]
    theirs = torch.arange(64.0)
    copied, taken = xt.from_dlpack(theirs), xt.from_dlpack(theirs, copy=False)
    theirs.zero_()
    assert copied.tolist() == list(range(64)) and address(taken) == theirs.data_ptr()


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool", "complex64"]
)
def test_dlpack_with_torch_numpy_and_jax(torch, dtype):
    ours = xt.tensor([[1, 0, 1], [0, 1, 1]]).to(getattr(xt, dtype))
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype == getattr(torch, dtype) and theirs.tolist() == ours.tolist()
    back = xt.from_dlpack(theirs.t())
    assert back.dtype is ours.dtype and back.tolist() == ours.t().tolist()
    if dtype != "bfloat16":  # NumPy's DLPack knows no bfloat16
        assert np.from_dlpack(ours).tolist() == ours.tolist()
        assert xt.from_dlpack(ours.numpy()).tolist() == ours.tolist()
    if not dtype.endswith("64"):  # JAX narrows them unless the user has told it otherwise
        assert jnp.from_dlpack(ours).dtype == ours.dtype.numpy
    array = jnp.ones((2, 3), "float32")
    assert xt.from_dlpack(array)._xt_storage.array.unsafe_buffer_pointer() == array.unsafe_buffer_pointer()


def test_dlpack_refuses_what_it_cannot_say(torch):
    for made, message in (
        (lambda T: T.ones(2, requires_grad=True), "require gradient"),
        (lambda T: (T.ones(2) * 1j).conj(), "conjugate bit"),
    ):
        with pytest.raises(BufferError, match=message):
            made(torch).__dlpack__()
        with pytest.raises(BufferError, match=message):
            made(xt).__dlpack__()


# ---- JAX ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def trained():
    model = xt.nn.Sequential(xt.nn.Linear(3, 4), xt.nn.Linear(4, 2))
    optimizer = xt.optim.Adam(model.parameters())
    model(xt.ones(5, 3)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_tensors_are_one_leaf():
    tensor = xt.arange(6.0).reshape(2, 3)
    leaves, structure = jax.tree_util.tree_flatten(tensor)
    assert len(leaves) == 1 and isinstance(leaves[0], jax.Array)
    back = jax.tree_util.tree_unflatten(structure, leaves)
    assert type(back) is xt.Tensor and back.tolist() == tensor.tolist()
    tensor.add_(1)
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]] and np.asarray(leaves[0]).tolist() == back.tolist()
    doubled = jax.tree_util.tree_map(lambda a: a * 2, {"a": tensor.t(), "b": [tensor]})
    assert doubled["a"].tolist() == (tensor.t() * 2).tolist() and type(doubled["b"][0]) is xt.Tensor
    (path, _), *_ = jax.tree_util.tree_flatten_with_path({"a": tensor})[0]
    assert str(path[0]) == "['a']"
    structures = {jax.tree_util.tree_structure(t) for t in (tensor, tensor + 1, xt.ones(5))}
    assert len(structures) == 1
    assert jax.tree_util.tree_unflatten(structure, [None])._xt_storage.array is None  # JAX's placeholders


def test_parameters_stay_parameters():
    parameter = Parameter(xt.ones(3))
    back = jax.tree_util.tree_map(lambda a: a + 1, parameter)
    assert type(back) is Parameter and back.requires_grad and back.is_leaf and back.tolist() == [2.0] * 3
    frozen = jax.tree_util.tree_map(lambda a: a, Parameter(xt.ones(3), requires_grad=False))
    assert type(frozen) is Parameter and not frozen.requires_grad
    (back * 2).sum().backward()
    assert back.grad.tolist() == [2.0] * 3 and parameter.grad is None


def test_a_history_is_not_dropped_silently():
    with pytest.raises(RuntimeError, match=r"has a grad_fn as a JAX pytree.*detach\(\)"):
        jax.tree_util.tree_leaves(xt.ones(2, requires_grad=True) * 2)


def test_jit_takes_and_gives_tensors(trained):
    model, optimizer = trained

    @jax.jit
    def forward(state, x):
        hidden = x @ state["0.weight"].t() + state["0.bias"]
        return hidden @ state["1.weight"].t() + state["1.bias"]

    x = xt.arange(6.0).reshape(2, 3)
    out = forward(model.state_dict(), x)
    assert type(out) is xt.Tensor and out.device == x.device
    np.testing.assert_allclose(out.numpy(), model(x).detach().numpy(), rtol=1e-6)
    assert forward._cache_size() == 1
    forward(model.state_dict(), x + 1)
    assert forward._cache_size() == 1
    state = jax.jit(lambda s: jax.tree_util.tree_map(lambda a: a * 2, s))(optimizer.state_dict())
    assert (
        state["state"][0]["exp_avg"].tolist() == (optimizer.state_dict()["state"][0]["exp_avg"] * 2).tolist()
    )
    written = jax.jit(lambda t: t.clone().add_(1)[:, 1].mul_(2))(x)
    assert written.tolist() == [4.0, 10.0] and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert jax.jit(lambda p: (p * 2).sum())(model[0].bias).requires_grad is False


def test_backward_inside_a_traced_function():
    @jax.jit
    def gradient(t):
        leaf = t.detach().requires_grad_()
        (leaf**3).sum().backward()
        return leaf.grad

    for _ in range(4):  # often enough for a plan
        gradient.clear_cache()
        assert gradient(xt.arange(3.0)).tolist() == [0.0, 3.0, 12.0]
    assert jax.vmap(gradient)(xt.ones(2, 3)).tolist() == [[3.0] * 3] * 2


def test_64_bits_through_jit():
    wide = xt.arange(3) * 2**40
    assert jax.jit(lambda t: t + 1)(wide).tolist() == (wide + 1).tolist()
    third = xt.ones(2, dtype=xt.float64) / 3
    assert jax.jit(lambda t: t * 2)(third).tolist() == (third * 2).tolist()


def test_numbers_made_in_a_trace_do_not_leak_out():
    """A constant that is first seen while JAX traces is a value, not a tracer, to whoever meets it next."""
    tensor = xt.arange(3.0)
    assert jax.jit(lambda t: t * 1.2345 + 77)(tensor).tolist() == (tensor * 1.2345 + 77).tolist()
    assert jax.jit(lambda t: t + xt.tensor([5.0, 6.0, 7.0]))(tensor).tolist() == [5.0, 7.0, 9.0]
    assert (tensor * 1.2345 + 77).tolist() == pytest.approx([77, 78.2345, 79.469])


def test_vmap_scan_grad_and_shapes():
    rows, others = xt.arange(6.0).reshape(2, 3), xt.ones(3)
    assert jax.vmap(lambda r, o: (r + o).sum(), in_axes=(0, None))(rows, others).tolist() == [6.0, 15.0]
    assert jax.vmap(lambda a, b: a @ b)(xt.ones(5, 2, 3), xt.ones(5, 3, 4)).shape == (5, 2, 4)
    total, partial = jax.lax.scan(lambda c, r: (c + r, c), xt.zeros(3), rows)
    assert total.tolist() == [3.0, 5.0, 7.0] and partial.tolist() == [[0, 0, 0], [0, 1, 2]]
    gradient = jax.grad(lambda p: jnp.sum(jnp.asarray(p["w"]) ** 2))({"w": Parameter(others)})
    assert gradient["w"].tolist() == [2.0] * 3
    value, pushed = jax.jvp(lambda t: t * t, (others,), (rows[1],))
    assert value.tolist() == [1.0] * 3 and pushed.tolist() == [6.0, 8.0, 10.0]
    shaped = jax.eval_shape(lambda t: t @ t.t(), rows)
    assert shaped.is_meta and shaped.shape == (2, 2)


def test_device_put_takes_states(trained):
    model, optimizer = trained
    second = jax.devices("cpu")[1]
    state = jax.device_put(model.state_dict(), second)
    assert type(state) is collections.OrderedDict and str(state["0.weight"].device) == "cpu:1"
    assert state["0.weight"].tolist() == model.state_dict()["0.weight"].tolist()
    moved = jax.device_put(optimizer.state_dict()["state"], second)
    assert str(moved[0]["exp_avg"].device) == "cpu:1"
    assert jax.block_until_ready(model.state_dict())["0.bias"].tolist() == model[0].bias.tolist()


def test_jax_numpy_takes_tensors():
    tensor = xt.arange(6.0).reshape(2, 3)
    for made, expected in (
        (jnp.asarray(tensor), tensor),
        (jnp.array(tensor), tensor),
        (jnp.add(tensor, 1), tensor + 1),
        (jnp.stack([tensor, tensor]), xt.stack([tensor, tensor])),
        (jnp.dot(tensor, tensor.t()), tensor @ tensor.t()),
        (jnp.ones((2, 3)) * tensor, tensor),
    ):
        values = made.tolist() if isinstance(made, xt.Tensor) else np.asarray(made).tolist()
        assert values == expected.tolist()


# ---- einops ---------------------------------------------------------------------------------------------------------


def test_einops_takes_tensors():
    einops = pytest.importorskip("einops")
    tensor = xt.arange(24.0).reshape(2, 3, 4).requires_grad_()
    array = tensor.detach().numpy()
    for call in (
        lambda t: einops.rearrange(t, "a b c -> c (b a)"),
        lambda t: einops.rearrange(t, "a b (c d) -> d a (b c)", d=2),
        lambda t: einops.rearrange([t, t], "n a b c -> a b (n c)"),
        lambda t: einops.reduce(t, "a b c -> c b", "mean"),
        lambda t: einops.reduce(t, "a b c -> b", "max"),
        lambda t: einops.reduce(t, "a b c -> () b ()", "min"),
        lambda t: einops.reduce(t, "a b c -> b", "prod"),
        lambda t: einops.reduce(t, "a (b1 b2) c -> a b1", "sum", b1=3),
        lambda t: einops.repeat(t, "a b c -> a (r b) c d", r=2, d=3),
        lambda t: einops.einsum(t, t, "a b c, a b d -> c d"),
        lambda t: einops.pack([t, t[0]], "* b c")[0],
    ):
        made = call(tensor)
        assert isinstance(made, xt.Tensor) and made.requires_grad
        np.testing.assert_allclose(made.detach().numpy(), call(array), rtol=1e-6)
    assert einops.parse_shape(tensor, "a b _") == {"a": 2, "b": 3}
    assert einops.reduce(tensor.detach() > 3, "a b c -> a", "any").tolist() == [True, True]
    einops.repeat(tensor, "a b c -> a b c d", d=5).sum().backward()
    assert tensor.grad.tolist() == xt.full((2, 3, 4), 5.0).tolist()


@pytest.mark.parametrize("order", ["import einops, xtensor", "import xtensor, einops"])
def test_einops_before_and_after(order):
    pytest.importorskip("einops")
    script = f"{order}; print(tuple(einops.rearrange(xtensor.ones(2, 3), 'a b -> b a').shape)); import einops._backends as b"
    script += "; print(type(b.__spec__.loader).__name__)"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert run.stdout.split("\n")[:2] == ["(3, 2)", "SourceFileLoader"], run.stderr


# ---- pandas, scikit-learn, matplotlib -------------------------------------------------------------------------------


def test_pandas_takes_tensors():
    pandas = pytest.importorskip("pandas")
    tensor = xt.arange(6.0).reshape(2, 3)
    assert pandas.DataFrame(tensor).to_numpy().tolist() == tensor.tolist()
    frame = pandas.DataFrame({"x": tensor[0], "n": xt.arange(3)})
    assert [str(d) for d in frame.dtypes] == ["float32", "int64"]
    assert pandas.Series(tensor[1]).sum() == 12.0
    assert xt.tensor(frame["x"].to_numpy()).tolist() == [0.0, 1.0, 2.0]
    frame["y"] = tensor[1]
    assert frame["y"].tolist() == [3.0, 4.0, 5.0]


def test_scikit_learn_takes_tensors():
    sklearn = pytest.importorskip("sklearn")
    from sklearn import linear_model, metrics, model_selection, preprocessing

    inputs = xt.arange(60.0).reshape(20, 3) % 7
    targets = inputs[:, 0] * 2 + 1
    model = linear_model.LinearRegression().fit(inputs, targets)
    assert model.score(inputs, targets) == pytest.approx(1.0), sklearn.__version__
    labels = xt.arange(20) % 2
    assert metrics.accuracy_score(labels, labels) == 1.0
    assert preprocessing.StandardScaler().fit_transform(inputs).shape == (20, 3)
    train, _, wanted, _ = model_selection.train_test_split(inputs, labels, test_size=0.25, random_state=0)
    assert len(train) == len(wanted) == 15


def test_matplotlib_takes_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x, y = xt.arange(4.0), xt.arange(4.0) ** 2
    figure, axes = pyplot.subplots()
    try:
        (line,) = axes.plot(x, y)
        assert np.asarray(line.get_ydata()).tolist() == [0.0, 1.0, 4.0, 9.0]
        axes.scatter(x, y, c=y)
        axes.bar(x, y)
        axes.hist(y)
        axes.fill_between(x, y)
        axes.errorbar(x, y, yerr=x)
        assert axes.imshow(xt.ones(2, 3)).get_array().shape == (2, 3)
        figure.canvas.draw()
    finally:
        pyplot.close(figure)


# ---- torch ----------------------------------------------------------------------------------------------------------


def test_states_to_and_from_torch(torch):
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 3))
    their_optimizer = torch.optim.Adam(theirs.parameters())
    theirs(torch.ones(2, 3)).sum().backward()
    their_optimizer.step()
    ours = xt.nn.Sequential(xt.nn.Linear(3, 4), xt.nn.Linear(4, 3))
    tied = theirs.state_dict()
    tied["1.weight"] = tied["0.weight"].t()
    state = interop.from_torch(tied)
    assert state["1.weight"]._xt_storage is state["0.weight"]._xt_storage and state["1.weight"].stride() == (
        1,
        3,
    )
    assert type(state) is collections.OrderedDict and state._metadata == theirs.state_dict()._metadata
    ours.load_state_dict(interop.from_torch(theirs.state_dict()))
    optimizer = xt.optim.Adam(ours.parameters())
    optimizer.load_state_dict(interop.from_torch(their_optimizer.state_dict()))
    ours(xt.ones(2, 3)).sum().backward()
    optimizer.step()
    back = interop.to_torch(ours.state_dict())
    theirs.load_state_dict(back)
    their_optimizer.load_state_dict(interop.to_torch(optimizer.state_dict()))
    for name, tensor in theirs.state_dict().items():
        assert tensor.tolist() == ours.state_dict()[name].tolist()
    again = interop.to_torch(state)
    assert again["1.weight"].untyped_storage().data_ptr() == again["0.weight"].untyped_storage().data_ptr()
    parameters = interop.from_torch(dict(theirs.named_parameters()))
    assert all(type(p) is Parameter and p.requires_grad for p in parameters.values())
    assert type(interop.to_torch([parameters["0.bias"]])[0]) is torch.nn.Parameter


def test_containers_to_and_from_torch(torch):
    point = collections.namedtuple("point", "x y")
    base = torch.arange(6.0)
    value = {
        "a": (base[2:], [base.view(2, 3).t()]),
        3: point(torch.ones(2, dtype=torch.bfloat16), "text"),
        "n": None,
    }
    ours = interop.from_torch(value, device="cpu:1")
    ours["a"][0][0] = 99
    assert (
        ours["a"][1][0][2, 0] == 99
        and str(ours[3].x.device) == "cpu:1"
        and ours[3].y == "text"
        and ours["n"] is None
    )
    assert base[2] == 2
    back = interop.to_torch(ours)
    back["a"][0][0] = 7
    assert back["a"][1][0][2, 0] == 7 and back[3].x.dtype == torch.bfloat16 and ours["a"][0][0] == 99
    assert interop.from_torch("text") == "text"


# ---- pickles, copies, processes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        lambda v: pickle.loads(pickle.dumps(v)),
        lambda v: pickle.loads(pickle.dumps(v, protocol=2)),
        lambda v: pickle.loads(bytes(multiprocessing.reduction.ForkingPickler.dumps(v))),
        copy.deepcopy,
    ],
    ids=["pickle", "protocol 2", "multiprocessing", "deepcopy"],
)
def test_modules_and_optimizers_travel_whole(how, trained):
    model, optimizer = trained
    model[1].tied = model[0].weight
    made, made_optimizer = how((model, optimizer))
    assert made[1].tied is made[0].weight
    assert made_optimizer.param_groups[0]["params"][0] is made[0].weight
    x = xt.ones(2, 3)
    assert made(x).tolist() == model(x).tolist()
    before = model[0].weight.tolist()
    made(x).sum().backward()
    made_optimizer.step()
    assert model[0].weight.tolist() == before != made[0].weight.tolist()


def test_lazy_tensors_travel(tmp_path):
    xt.save([xt.arange(4.0)], tmp_path / "m.pt")
    for how in (copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        (loaded,) = xt.load(tmp_path / "m.pt", mmap=True)
        made = how(loaded)
        made.add_(1)
        assert loaded.tolist() == [0, 1, 2, 3] and made.tolist() == [1, 2, 3, 4]
    stream = io.BytesIO()
    xt.save(xt.load(tmp_path / "m.pt", mmap=True), stream)
    stream.seek(0)
    assert xt.load(stream)[0].tolist() == [0, 1, 2, 3]
