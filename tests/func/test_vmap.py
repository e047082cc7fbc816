"""`vmap` against PyTorch's: where samples lie, random numbers, writes, chunks, nesting, autograd around it, and refusals."""

import warnings

import numpy as np
import pytest

import xtensor

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:.*performance drop.*:UserWarning"
)


def rows(lib, *shape):
    return lib.tensor(np.random.default_rng(3).normal(size=shape or (5, 4)).astype("f"))


def ones(lib):
    return lib.tensor([1.0, 2.0, 3.0, 4.0])


def added(lib, target):
    """Every sample adds itself to a tensor."""
    lib.func.vmap(lambda x: target.add_(x))(rows(lib))
    return target


def written_argument(lib):
    target = rows(lib)
    lib.func.vmap(lambda x: x.add_(1))(target)
    return target


def in_place(lib, x):
    y = x.clone()
    y.add_(1)
    y[0] = 7
    y[1:].mul_(x[1:])
    z = lib.zeros_like(y)
    z.copy_(y)
    y.zero_()
    y += x
    return y, z


def network(lib):
    random = np.random.default_rng(0)
    net = lib.nn.Sequential(lib.nn.Linear(4, 6), lib.nn.Tanh(), lib.nn.Linear(6, 3))
    net.load_state_dict(
        {n: lib.tensor(random.normal(size=tuple(p.shape)).astype("f")) for n, p in net.state_dict().items()}
    )
    return net


def per_sample(lib):
    net = network(lib)
    parameters = {n: p.detach() for n, p in net.named_parameters()}

    def loss(p, x, t):
        found = lib.func.functional_call(net, p, (x.unsqueeze(0),))
        return lib.nn.functional.cross_entropy(found, t.unsqueeze(0))

    classes = lib.tensor([0, 2, 1, 1, 0])
    found = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(parameters, rows(lib), classes)
    return [found[name] for name in sorted(found)]


def ensemble(lib):
    nets = [network(lib) for _ in range(3)]
    parameters, buffers = lib.func.stack_module_state(nets)
    call = lambda p, b, x: lib.func.functional_call(nets[0], (p, b), (x,))
    return lib.vmap(call, in_dims=(0, 0, None))(parameters, buffers, rows(lib)).detach()


def through(lib, order):
    """A derivative of that order through `vmap`, of what goes in and of what the function has from outside."""
    x, w = rows(lib, 3, 4).requires_grad_(), ones(lib).requires_grad_()
    found = lib.vmap(lambda a: (a * w).sin() * a.sum() + w.exp())(x).sum()
    grads = lib.autograd.grad(found, (x, w), create_graph=order > 1)
    for _ in range(order - 1):
        grads = lib.autograd.grad(sum((g**2).sum() for g in grads), (x, w), create_graph=True)
    return [g.detach() for g in grads]


def batched_rows(lib):
    x = ones(lib).requires_grad_()
    y = x.sin() * x.sum()
    return lib.autograd.grad(y, x, lib.eye(4), is_grads_batched=True)[0]


def noisy(lib, randomness):
    found = lib.func.vmap(lambda x: (lib.randn(4) + 0 * x, lib.rand(2)), randomness=randomness)(rows(lib))
    return [bool((f == f[0]).all()) for f in found]


def dropped(lib, randomness):
    found = lib.func.vmap(lambda x: lib.nn.functional.dropout(x * 0 + 1, 0.5), randomness=randomness)(
        lib.ones(6, 32)
    )
    return bool((found == found[0]).all())


CALLS = {
    "dimensions": lambda L, F: F.vmap(lambda x, y: (x * y, x.sum()), in_dims=(0, 1), out_dims=(1, 0))(
        rows(L), rows(L).t()
    ),
    "negative": lambda L, F: F.vmap(lambda x: x * 2, in_dims=-1, out_dims=-1)(rows(L)),
    "trees": lambda L, F: F.vmap(
        lambda d, n: {"s": d["a"] + d["b"][0] * n, "t": [d["a"]]},
        in_dims=({"a": 0, "b": [None]}, None),
        out_dims={"s": 1, "t": [0]},
    )({"a": rows(L), "b": [ones(L)]}, 3),
    "the same for all": lambda L, F: F.vmap(lambda x: L.ones(2))(rows(L)),
    "a sample of none": lambda L, F: F.vmap(lambda x: x.sum())(L.ones(0, 3)),
    "nested": lambda L, F: F.vmap(F.vmap(lambda x, y: x * y, in_dims=(None, 0)), in_dims=(0, None))(
        ones(L), ones(L)
    ),
    "chunks": lambda L, F: F.vmap(lambda x: (x.sum(), x * 2), chunk_size=2, out_dims=(0, 1))(rows(L)),
    "jacrev in chunks": lambda L, F: F.jacrev(lambda x: x.cumsum(0) ** 2, chunk_size=3)(ones(L)),
    "in place": lambda L, F: F.vmap(lambda x: in_place(L, x))(rows(L)),
    "an argument that is written": lambda L, F: written_argument(L),
    "gradients of samples": lambda L, F: per_sample(L),
    "networks": lambda L, F: ensemble(L),
    "hessians": lambda L, F: F.vmap(F.hessian(lambda x: (x.sin() * x).sum()))(rows(L)),
    "jacobians": lambda L, F: F.vmap(F.jacrev(lambda x: x.tanh()))(rows(L)),
    "tangents": lambda L, F: F.vmap(lambda x: F.jvp(L.sin, (x,), (x,))[1])(rows(L)),
    "a first derivative through": lambda L, F: through(L, 1),
    "a third derivative through": lambda L, F: through(L, 3),
    "rows of gradients": lambda L, F: batched_rows(L),
    "gradient in gradient": lambda L, F: F.grad(lambda a: F.vmap(F.grad(lambda y: y**3))(a).sum())(ones(L)),
    "convolution": lambda L, F: F.vmap(L.nn.functional.conv2d)(
        rows(L, 2, 2, 1, 5, 5), rows(L, 2, 3, 1, 3, 3)
    ),
    "embedding": lambda L, F: F.vmap(L.nn.functional.embedding, in_dims=(0, None))(
        L.tensor([[0, 2], [1, 1]]), rows(L, 3, 2)
    ),
    "indices": lambda L, F: F.vmap(lambda x, i: x[i])(rows(L), L.tensor([[0], [3], [1], [2], [0]])),
    "linearized": lambda L, F: F.linearize(lambda x: x.sin() * x, ones(L))[1](ones(L)),
    "functionalized": lambda L, F: F.functionalize(lambda x: x.clone().add_(1))(ones(L)),
    "the same random numbers": lambda L, F: noisy(L, "same"),
    "different random numbers": lambda L, F: noisy(L, "different"),
    "the same dropout": lambda L, F: dropped(L, "same"),
    "different dropout": lambda L, F: dropped(L, "different"),
    "without running statistics": lambda L, F: [
        m.running_mean is None
        for m in F.replace_all_batch_norm_modules_(L.nn.Sequential(L.nn.BatchNorm1d(3), L.nn.BatchNorm2d(2)))
    ],
    "as text": lambda L, F: texts(L),
}


def texts(lib):
    seen = []
    lib.vmap(lambda x: seen.append(repr(x)) or x)(lib.ones(2, 3))
    lib.func.jvp(lambda x: seen.append(repr(x)) or x, (lib.ones(2),), (lib.ones(2),))
    return seen


def flat(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(torch, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = flat(CALLS[name](torch, torch.func))
    ours = flat(CALLS[name](xtensor, xtensor.func))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if not hasattr(b, "shape"):
            assert a == b
            continue
        assert tuple(a.shape) == tuple(b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-4, atol=1e-5)


REFUSED = {
    "a value": lambda L, F: F.vmap(lambda x: x * x.sum().item())(rows(L)),
    "a choice": lambda L, F: F.vmap(lambda x: x if x.sum() > 0 else -x)(rows(L)),
    "what is not zero": lambda L, F: F.vmap(lambda x: x.nonzero())(rows(L)),
    "distinct": lambda L, F: F.vmap(lambda x: x.unique())(rows(L)),
    "selected": lambda L, F: F.vmap(lambda x: x.masked_select(x > 0))(rows(L)),
    "random": lambda L, F: F.vmap(lambda x: x + L.randn(4))(rows(L)),
    "dropout": lambda L, F: F.vmap(lambda x: L.nn.functional.dropout(x, 0.5))(rows(L)),
    "a number": lambda L, F: F.vmap(lambda x: 1.0)(rows(L)),
    "added to one": lambda L, F: added(L, L.zeros(4)),
    "copied to one": lambda L, F: F.vmap(lambda x: L.zeros(4).copy_(x))(rows(L)),
    "an element of one": lambda L, F: F.vmap(lambda x: L.zeros(4).__setitem__(0, x[0]))(rows(L)),
    "no place for samples": lambda L, F: F.vmap(lambda x: x, out_dims=None)(rows(L)),
    "a place there is not": lambda L, F: F.vmap(lambda x: x, out_dims=5)(rows(L)),
    "a strange place": lambda L, F: F.vmap(lambda x: (x, x), out_dims="a")(rows(L)),
    "a dimension there is not": lambda L, F: F.vmap(lambda x: x, in_dims=5)(rows(L)),
    "a list of dimensions": lambda L, F: F.vmap(lambda x: x, in_dims=[0, 0])(rows(L)),
    "a dimension of a number": lambda L, F: F.vmap(lambda x: x, in_dims=(0,))(1.0),
    "nothing to map": lambda L, F: F.vmap(lambda x: x, in_dims=(None,))(rows(L)),
    "sizes": lambda L, F: F.vmap(lambda x, y: x, in_dims=(0, 0))(rows(L), L.ones(2)),
    "no arguments": lambda L, F: F.vmap(lambda: 1)(),
    "a number to map": lambda L, F: F.vmap(lambda x, y: x * y)(rows(L), 2),
    "running statistics": lambda L, F: F.vmap(
        lambda x: L.nn.functional.batch_norm(x, L.zeros(4), L.ones(4), training=True)
    )(L.ones(3, 2, 4)),
}


def message(lib, call):
    with pytest.raises((RuntimeError, ValueError, IndexError)) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(lib, lib.func)
    return caught.type, str(caught.value).replace("xtensor.", "torch.")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(torch, name):
    assert message(xtensor, REFUSED[name]) == message(torch, REFUSED[name])


def test_a_tensor_that_escapes_is_refused_by_the_name_of_its_transform():
    kept = []
    xtensor.vmap(lambda x: kept.append(x) or x)(xtensor.ones(2, 3))
    with pytest.raises(RuntimeError, match="vmap: a Tensor that was made inside"):
        kept[0] + 1
    xtensor.func.jvp(lambda x: kept.append(x * 2) or x, (xtensor.ones(2),), (xtensor.ones(2),))
    assert (kept[1] + 1).tolist() == [3.0, 3.0]  # a value with its tangent is a value, as in PyTorch


def test_the_function_runs_once():
    seen = []
    xtensor.vmap(lambda x: seen.append(x.shape) or x)(xtensor.ones(7, 3))
    assert seen == [(3,)]
