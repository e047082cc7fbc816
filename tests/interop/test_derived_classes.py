"""What packages make of PyTorch's classes: they derive their own, replace functions, and walk through what they find; judged by PyTorch."""

import io
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import xtensor
from tests.oracle import Cases, attempt
from xtensor.transforms.batches import add_batch_dim, maybe_remove_batch_dim
from xtensor.xla.addresses import memory_at_new_addresses

case = Cases()


def on_manifolds(T):
    class OnManifold(T.nn.Parameter):
        def __new__(cls, data, manifold=None, requires_grad=True):
            made = T.Tensor._make_subclass(cls, data, requires_grad)
            made.manifold = manifold
            return made

        def __repr__(self):
            return f"on {self.manifold}: {T.Tensor.__repr__(self)}"

    return OnManifold


@case
def parameters_with_arguments_of_their_own(T):
    made = on_manifolds(T)(T.ones(2), manifold="sphere")
    return [made.manifold, made.requires_grad, repr(made), str(made), f"{made}"]


@case
def parameters_that_answer_for_themselves_once_they_are_made(T):
    class Tagged(T.nn.Parameter):
        def __new__(cls, data, tag):
            return super().__new__(cls, data, requires_grad=True)

        def __init__(self, data, tag):
            self.tag = tag

        def __getattr__(self, name):
            return getattr(self.tag, name)

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            assert all(a.tag for a in args if isinstance(a, Tagged))
            return super().__torch_function__(function, types, args, kwargs or {})

    made = Tagged(T.ones(2), "mine")
    return [made.tag, made.upper(), made.requires_grad, (made * 2).tolist()]


@case
def how_parameters_print(T):
    class Own(T.nn.Parameter):
        pass

    plain = T.nn.Parameter(T.ones(2))
    lazy = T.nn.UninitializedParameter()
    return [*map(str, (plain, Own(T.ones(2)), lazy, T.nn.Buffer(T.ones(2)))), T.Tensor.__repr__(plain)]


@case
def loaders_with_a_beginning_of_their_own(T):
    class Loader(T.utils.data.DataLoader):
        def __init__(self, data):
            self.dataset = data
            self._dataset_kind = 0

    return [Loader([1, 2])._dataset_kind]


@case
def keywords_of_overloads(T):
    x = T.arange(6.0)  # of which random ones leave no choice
    calls = [
        lambda: T.tensor_split(x, sections=2),
        lambda: T.tensor_split(x, indices=(1, 4)),
        lambda: x.tensor_split(tensor_indices_or_sections=T.tensor(3)),
        lambda: T.hsplit(x, sections=3),
        lambda: T.randint_like(x, high=1),
        lambda: T.randint_like(x, low=2, high=3),
    ]
    return [attempt(call) for call in calls]


@case
def what_a_node_lists(T):
    x = T.ones(2, requires_grad=True)
    y = x.exp()
    node, found = y.grad_fn, []
    for _ in range(2):  # what was released is listed still
        found.append([name for name in dir(node) if "saved_" in name])
        if len(found) == 1:
            found.append(node._saved_result.detach())
            y.sum().backward()
    return found


@case
def functional_functions_that_are_replaced(T):
    F, x = T.nn.functional, T.ones(1, 2, 4, 4)
    layers = {
        "conv2d": T.nn.Conv2d(2, 2, 1),
        "conv_transpose2d": T.nn.ConvTranspose2d(2, 2, 1),
        "max_pool2d": T.nn.MaxPool2d(2),
        "avg_pool2d": T.nn.AvgPool2d(2),
        "adaptive_avg_pool2d": T.nn.AdaptiveAvgPool2d(1),
        "adaptive_max_pool2d": T.nn.AdaptiveMaxPool2d(1),
        "linear": T.nn.Linear(4, 2),
        "relu": T.nn.ReLU(),
    }
    seen = []
    for name, layer in layers.items():
        own = getattr(F, name)

        def counted(*args, own=own, name=name, **kwargs):
            seen.append(name)
            return own(*args, **kwargs)

        setattr(F, name, counted)
        try:
            layer(x)
        finally:
            setattr(F, name, own)
    return seen


@case
def attention_of_one_tensor_turns_it_once(T):
    seen = []

    class Log(T.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    layer, x = T.nn.MultiheadAttention(8, 2, batch_first=True), T.ones(1, 4, 8)
    with Log():
        layer(x, x, x)
    return [seen.count("transpose")]


@case
def a_trace_stays_in_the_mode_of_its_module(T):
    layer = T.nn.BatchNorm1d(2).eval()
    traced = T.jit.trace(layer, T.ones(1, 2))
    layer.train()
    return [traced(T.tensor([[1.0, 2.0], [3.0, 5.0]])).detach(), traced.training, layer.training]


test_as_pytorch = case.test()


def test_a_pass_where_no_group_is():
    """`torch.distributed` is imported by many packages, and a group is rarely made."""
    assert not xtensor.distributed.is_initialized()
    batches = iter(xtensor.utils.data.DataLoader([1, 2, 3], batch_size=2))
    assert (batches._rank, batches._world_size) == (0, 1)
    assert [b.tolist() for b in batches] == [[1, 2], [3]]


def elsewhere(T, own_way):
    class Elsewhere(T.Tensor):
        @staticmethod
        def __new__(cls, held, scale):
            return T.Tensor._make_wrapper_subclass(cls, held.shape, dtype=T.float32)

        def __init__(self, held, scale):
            self.held, self.scale = held, scale

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if "detach" in str(func):
                return cls(args[0].held, args[0].scale)
            raise NotImplementedError(func)

    class OwnWay(Elsewhere):
        def __reduce_ex__(self, protocol):
            return super().__reduce_ex__(protocol)

    kind = OwnWay if own_way else Elsewhere
    kind.__module__, kind.__qualname__ = __name__, "Saved"
    return kind


@pytest.mark.parametrize("own_way", [False, True], ids=["plain", "a method of its own"])
@pytest.mark.parametrize("way", ["own", "to", "from"])
def test_tensors_without_memory_are_saved(torch, monkeypatch, own_way, way):
    """Of a class that keeps its values in attributes, as quantised weights are; to PyTorch, and from it."""
    write, read = {"own": (xtensor, xtensor), "to": (xtensor, torch), "from": (torch, xtensor)}[way]
    kinds = {T: elsewhere(T, own_way) for T in (write, read)}
    monkeypatch.setitem(globals(), "Saved", kinds[write])
    kept = kinds[write](write.ones(2, 3, dtype=write.int8), write.tensor(0.5))
    file = io.BytesIO()
    write.save({"weight": write.nn.Parameter(kept, requires_grad=False), "plain": kept}, file)
    file.seek(0)
    monkeypatch.setitem(globals(), "Saved", kinds[read])
    found = read.load(file, weights_only=False)
    for loaded in found.values():
        assert type(loaded) is kinds[read] and tuple(loaded.shape) == (2, 3)
        assert loaded.held.tolist() == [[1] * 3] * 2 and loaded.scale.item() == 0.5
    assert isinstance(found["weight"], read.nn.Parameter) and not isinstance(
        found["plain"], read.nn.Parameter
    )


class Collection:
    """Tensors under names, that share their first dimensions: tensordict's protocol."""

    is_locked = False

    def __init__(self, held, sizes):
        self.held, self.shape = held, sizes

    def dim(self):
        return len(self.shape)

    def clone(self, recurse=True):
        return Collection(dict(self.held), self.shape)

    def __getitem__(self, index):
        held = {name: t[index] for name, t in self.held.items()}
        return Collection(held, next(iter(held.values())).shape[: self.dim()])

    def _add_batch_dim(self, *, in_dim, vmap_level):
        held = {name: add_batch_dim(t, in_dim, vmap_level) for name, t in self.held.items()}
        return Collection(held, self.shape[:in_dim] + self.shape[in_dim + 1 :])

    def _maybe_remove_batch_dim(self, name, vmap_level, batch_size, out_dim):
        held = {
            n: maybe_remove_batch_dim(name, t, vmap_level, batch_size, out_dim) for n, t in self.held.items()
        }
        return Collection(held, (*self.shape[:out_dim], batch_size, *self.shape[out_dim:]))


@pytest.mark.parametrize("dim", [0, 1])
def test_collections_that_batch_themselves(dim):
    x = xtensor.arange(30.0).reshape(2, 5, 3)
    seen = []

    def total(rows):
        seen.append((rows.shape, tuple(rows.held["x"].shape)))
        return Collection({"sum": rows.held["x"].sum(-1), "same": xtensor.ones(rows.shape)}, rows.shape)

    found = xtensor.vmap(total, dim, dim)(Collection({"x": x}, (2, 5)))
    inner = (5,) if dim == 0 else (2,)
    assert seen == [(inner, (*inner, 3))] and found.shape == (2, 5)
    assert found.held["sum"].equal(x.sum(-1)) and found.held["same"].equal(xtensor.ones(2, 5))


def test_collections_in_chunks():
    x = xtensor.arange(12.0).reshape(4, 3)
    found = xtensor.vmap(lambda rows: rows.held["x"] * 2, chunk_size=3)(Collection({"x": x}, (4,)))
    assert found.equal(x * 2)


def test_memory_at_new_addresses_keeps_what_is_written():
    """Pieces of many sizes, taken and let go by two threads: none has another's address or bytes."""
    seen: set[int] = set()

    def take(seed):
        rng, alive = random.Random(seed), []
        for i in range(1500):
            piece = memory_at_new_addresses(
                rng.choice((1, 63, 100, 4096, 65000, 65535, 65536, 70000, 300000))
            )
            assert piece.ctypes.data % 64 == 0 and piece.ctypes.data not in seen
            seen.add(piece.ctypes.data)
            piece[:] = i % 251
            alive.append((piece, i % 251))
            if len(alive) > 40:
                piece, value = alive.pop(rng.randrange(40))
                assert (piece == value).all()
        return all((piece == value).all() for piece, value in alive)

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(take, (0, 1)))


def test_two_tensors_that_live_at_once_have_two_addresses():
    for i in range(50):
        a, b = xtensor.ones(4, 5) * i, xtensor.ones(4, 5) + i
        first = a.data_ptr()
        del a
        assert b.data_ptr() != first
