"""Tensors on a mesh of eight devices: `test_mesh.py` runs these in a process that has so many."""

from __future__ import annotations

import copy
import itertools
import os
import pathlib
import pickle

import numpy as np
import pytest

import xtensor
from tests.distributed.judge import differences
from tests.table import ROWS
from xtensor import nn
from xtensor.distributed import checkpoint
from xtensor.distributed.ahead import ahead, collectives
from xtensor.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from xtensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from xtensor.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from xtensor.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    local_map,
    ones,
    randn,
    zeros,
)
from xtensor.distributed.tensor.experimental import context_parallel, implicit_replication, ring_attention
from xtensor.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from xtensor.distributed.visualize import visualize

F = nn.functional


@pytest.fixture(scope="module")
def mesh() -> DeviceMesh:
    return init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))


def placed(mesh, *placements):
    return distribute_tensor(xtensor.arange(32.0).reshape(8, 4), mesh, list(placements))


# ---- meshes


def test_a_mesh_tells_what_it_is(mesh):
    assert mesh.shape == (4, 2) and mesh.ndim == 2 and mesh.size() == 8 and mesh.size("model") == 2
    assert mesh.mesh.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and mesh.get_coordinate() == [0, 0]
    assert repr(mesh) == "DeviceMesh((data=4, model=2), 'cpu', [[0, 1], [2, 3], [4, 5], [6, 7]])"
    assert mesh["data"].mesh.tolist() == [0, 2, 4, 6] and mesh["data"].get_local_rank() == 0
    assert mesh["model", "data"].shape == (2, 4)
    assert mesh._flatten("all").size() == 8 and mesh["all"].shape == (8,)
    assert (
        pickle.loads(pickle.dumps(mesh)) == mesh and pickle.loads(pickle.dumps(mesh["data"])) == mesh["data"]
    )
    assert mesh != DeviceMesh("cpu", mesh.mesh.reshape(2, 4)) and len({mesh, copy.deepcopy(mesh)}) == 1


def test_what_no_mesh_is_refused(mesh):
    with pytest.raises(
        RuntimeError, match="Mesh should not be bigger than default world size 8, but found 16"
    ):
        init_device_mesh("cpu", (4, 4))
    with pytest.raises(RuntimeError, match="should have same length"):
        init_device_mesh("cpu", (4, 2), mesh_dim_names=("data",))
    with pytest.raises(RuntimeError, match="Each mesh_dim_name must be unique"):
        init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "data"))
    with pytest.raises(KeyError, match="Invalid mesh_dim_name 'rows'"):
        mesh["rows"]
    with pytest.raises(RuntimeError, match="without mesh_dim_names"):
        init_device_mesh("cpu", (8,))["data"]
    with pytest.raises(RuntimeError, match="process group has not been initialized"):
        mesh.get_group("data")


def test_a_mesh_is_a_device(mesh):
    place = mesh.device
    assert str(place) == "cpu mesh(data=4, model=2)" and place.type == "cpu" and place.index is None
    assert pickle.loads(pickle.dumps(place)) is place
    x = xtensor.ones(2, 3, device=place)
    assert x.device is place and (x + 1).device is place and "device='cpu mesh(data=4, model=2)'" in repr(x)
    with pytest.raises(RuntimeError, match=r"two devices, cpu mesh\(data=4, model=2\) and cpu!"):
        x + xtensor.ones(2, 3)
    assert (x + xtensor.tensor(2.0)).device is place and (xtensor.tensor(2.0) * x.sum()).device is place
    with place:
        assert xtensor.zeros(3).device is place and xtensor.rand(2, 2).device is place
    assert x.cpu().device == xtensor.device("cpu") and xtensor.arange(3).to(place).device is place
    x.numpy()[0, 0] = 7  # a copy: arrays of several devices share no memory
    assert x[0, 0].item() == 1


# ---- tensors


def test_placements_are_read_from_the_array(mesh):
    x = placed(mesh, Shard(0), Shard(1))
    assert (
        isinstance(x, DTensor)
        and not isinstance(xtensor.ones(1), DTensor)
        and not hasattr(xtensor.ones(1), "placements")
    )
    assert x.placements == (Shard(0), Shard(1)) and x.device_mesh == mesh
    assert (x * 2).placements == (Shard(0), Shard(1)) and x.t().placements == (Shard(1), Shard(0))
    assert placed(mesh, Replicate(), Shard(-1)).placements == (Replicate(), Shard(1))
    assert x._xt_storage.array.addressable_shards[0].data.shape == (2, 2)
    both = distribute_tensor(xtensor.zeros(8), mesh, [Shard(0), Shard(0)])
    assert both.placements == (Shard(0), Shard(0)) and both.to_local().shape == (1,)
    assert distribute_tensor(xtensor.zeros(7), mesh, [Shard(0), Replicate()]).placements == (
        Replicate(),
        Replicate(),
    )
    assert distribute_tensor(xtensor.zeros(8), mesh["model"], [Shard(0)]).placements == (
        Replicate(),
        Shard(0),
    )
    with pytest.raises(ValueError, match=r"same length as `device_mesh\.ndim`"):
        distribute_tensor(xtensor.zeros(8), mesh, [Shard(0)])
    with pytest.raises(ValueError, match="Partial"):
        x.redistribute(mesh, [Partial(), Replicate()])


def write_in_place(x, y):
    x.add_(y)


def write_an_index(x, y):
    x[1] = 3.0


def write_through_a_view(x, y):
    x.view(-1).mul_(2)


def write_a_copy(x, y):
    x.copy_(y)


def write_from_one_device(x, y):
    x.copy_(xtensor.ones(8, 4))


def write_one_value(x, y):
    x.fill_(3)


def write_out(x, y):
    xtensor.add(y, y, out=x)


def write_by_mask(x, y):
    x[y > 0] = -1


WRITES = (
    write_in_place,
    write_an_index,
    write_through_a_view,
    write_a_copy,
    write_from_one_device,
    write_one_value,
    write_out,
    write_by_mask,
)


@pytest.mark.parametrize("write", WRITES, ids=lambda w: w.__name__)
def test_a_write_keeps_the_placement(mesh, write):
    plain, given = xtensor.arange(32.0).reshape(8, 4).clone(), xtensor.arange(-5.0, 27.0).reshape(8, 4)
    write(plain, given)
    for first in ((Shard(0), Replicate()), (Replicate(), Replicate()), (Shard(0), Shard(1))):
        x = placed(mesh, *first)
        write(x, distribute_tensor(given, mesh, [Replicate(), Shard(1)]))
        assert x.placements == first, write
        assert x.full_tensor().tolist() == plain.tolist()


def test_what_is_like_a_tensor_lies_like_it(mesh):
    x = placed(mesh, Shard(0), Shard(1))
    for made in (xtensor.zeros_like(x), xtensor.ones_like(x), xtensor.full_like(x, 2), xtensor.randn_like(x)):
        assert made.placements == x.placements
    assert xtensor.zeros_like(x, device="cpu").device == xtensor.device("cpu")


def test_random_numbers_are_those_of_one_device(mesh):
    xtensor.manual_seed(3)
    alone = xtensor.randn(8, 4)
    xtensor.manual_seed(3)
    assert (
        randn(8, 4, device_mesh=mesh, placements=[Shard(0), Shard(1)]).full_tensor().tolist()
        == alone.tolist()
    )


def test_factories(mesh):
    x = ones(
        8, 4, device_mesh=mesh, placements=[Shard(0), Replicate()], dtype=xtensor.float64, requires_grad=True
    )
    assert x.requires_grad and x.dtype is xtensor.float64 and x.placements == (Shard(0), Replicate())
    with mesh:
        assert zeros((2, 2)).placements == (Replicate(), Replicate())
    with pytest.raises(RuntimeError, match="No device mesh is currently active"):
        zeros(2)


def test_redistribute_and_its_gradient(mesh):
    x = placed(mesh, Shard(0), Replicate()).requires_grad_()
    y = x.redistribute(placements=[Replicate(), Shard(1)])
    assert y.placements == (Replicate(), Shard(1)) and y.full_tensor().tolist() == x.full_tensor().tolist()
    (y.full_tensor() * xtensor.arange(4.0)).sum().backward()
    assert x.grad.full_tensor()[5].tolist() == [0, 1, 2, 3] and x.grad.placements == (Shard(0), Replicate())
    with pytest.raises(NotImplementedError, match="Cross device mesh"):
        x.redistribute(init_device_mesh("cpu", (8,)), [Shard(0)])


def test_local_parts(mesh):
    x = placed(mesh, Shard(0), Replicate()).requires_grad_()
    part = x.to_local()
    assert part.device == xtensor.device("cpu") and part.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    part.sum().backward()
    assert x.grad.full_tensor().sum(1).tolist() == [4, 4, 0, 0, 0, 0, 0, 0]
    own = xtensor.ones(2, 2, requires_grad=True)
    whole = DTensor.from_local(own, mesh, [Shard(0), Partial()])
    assert whole.shape == (8, 2) and whole.placements == (Shard(0), Replicate()) and whole.sum().item() == 32
    whole.sum().backward()
    assert own.grad.tolist() == [[8, 8], [8, 8]]
    assert (
        DTensor.from_local(own, mesh, [Partial("avg"), Partial("max")]).full_tensor().tolist() == own.tolist()
    )


def test_local_map(mesh):
    x = placed(mesh, Shard(0), Replicate()).requires_grad_()
    total = local_map(
        lambda part, k: (part * k).sum(0),
        [Partial(), Replicate()],
        ([Shard(0), Replicate()], None),
        device_mesh=mesh,
    )
    y = total(x, 2.0)
    assert y.full_tensor().tolist() == [224, 240, 256, 272]
    y.sum().backward()
    assert x.grad.full_tensor().unique().tolist() == [2]
    with pytest.raises(ValueError, match="mismatching placements"):
        total(x.redistribute(placements=[Replicate(), Replicate()]), 2.0)


def test_implicit_replication(mesh):
    x = placed(mesh, Shard(0), Replicate())
    with implicit_replication():
        assert (x + xtensor.ones(4)).placements == (Shard(0), Replicate())
    with pytest.raises(RuntimeError, match="on the same device"):
        x + xtensor.ones(4)


def test_checkpoints_of_tensors_on_a_mesh(mesh, tmp_path):
    x = placed(mesh, Shard(0), Shard(1))
    xtensor.save({"x": x}, tmp_path / "x.pt")
    assert xtensor.load(tmp_path / "x.pt", map_location="cpu")["x"].tolist() == x.full_tensor().tolist()
    assert copy.deepcopy(x).placements == x.placements


# ---- modules


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 32)
        self.down = nn.Linear(32, 8)
        self.head = nn.Linear(8, 16)

    def forward(self, x):
        h = self.embedding(x) + xtensor.arange(x.shape[1])[:, None] * 0.01
        return self.head(h + self.down(F.gelu(self.up(self.norm(h)))))


PLAN = {
    "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "u*": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Shard(1)),
    "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1)),
}


def losses(prepare, batch=lambda x: x, steps=6):
    """The losses of some steps of a model that `prepare` has changed."""
    xtensor.manual_seed(0)
    model = Block()
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)
    model = prepare(model) or model
    x, y = (batch(xtensor.randint(0, 16, (8, 6))) for _ in range(2))
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        with loss_parallel():
            loss = F.cross_entropy(model(x).reshape(-1, 16), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found, model, optimizer


@pytest.fixture(scope="module")
def alone():
    return losses(lambda model: None)[0]


def test_tensor_parallel_training_follows_one_device(mesh, alone):
    found, model, optimizer = losses(lambda m: parallelize_module(m, mesh["model"], PLAN))
    np.testing.assert_allclose(found, alone, rtol=1e-4)
    assert model.up.weight.placements == (Replicate(), Shard(0))
    assert model.down.weight.placements == (Replicate(), Shard(1))
    assert model.down.bias.placements == (Replicate(), Replicate())
    assert isinstance(model.up.weight, nn.Parameter) and isinstance(model.up.weight, DTensor)
    state = optimizer.state[model.up.weight]
    assert state["exp_avg"].placements == model.up.weight.placements and state["step"].item() == 6


def test_data_parallel_training_follows_one_device(mesh, alone):
    def batch(x):
        return distribute_tensor(x, mesh, [Shard(0), Replicate()])

    found, model, _ = losses(
        lambda m: parallelize_module(distribute_module(m, mesh), mesh["data"], {}), batch
    )
    np.testing.assert_allclose(found, alone, rtol=1e-4)
    assert all(p.placements == (Replicate(), Replicate()) for p in model.parameters())


def test_both_together_and_compiled(mesh, alone):
    def prepare(model):
        parallelize_module(model, mesh["model"], PLAN)

    xtensor.manual_seed(0)
    model = Block()
    prepare(model)
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = (
        distribute_tensor(xtensor.randint(0, 16, (8, 6)), mesh, [Shard(0), Replicate()]) for _ in range(2)
    )

    def step():
        optimizer.zero_grad()
        with implicit_replication():
            loss = F.cross_entropy(model(x).reshape(-1, 16), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    np.testing.assert_allclose([step().item() for _ in range(6)], alone, rtol=1e-4)
    compiled = xtensor.compile(step)
    later = [compiled().item() for _ in range(4)]
    assert later == sorted(later, reverse=True) and later[0] < alone[-1]
    assert model.up.weight.placements == (Replicate(), Shard(0))


def test_prepared_inputs_and_outputs(mesh):
    model = nn.Linear(4, 4)
    with xtensor.no_grad():
        expected = model(xtensor.ones(8, 4)).tolist()
    parallelize_module(
        model,
        mesh["data"],
        PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate()),
    )
    parallelize_module(
        model,
        mesh["data"],
        PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0)),
    )
    made = model(ones(8, 4, device_mesh=mesh))
    assert made.placements == (Shard(0), Replicate()) and made.full_tensor().tolist() == expected
    assert not isinstance(model(xtensor.ones(8, 4)), DTensor)
    with pytest.raises(AssertionError, match="same length"):
        PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=(Shard(0), Shard(1)))
    with pytest.raises(NotImplementedError, match=r"only support nn\.Linear and nn\.Embedding"):
        parallelize_module(nn.LayerNorm(4), mesh["data"], ColwiseParallel())


# ---- operators

SOME = (
    "add as_strided_scatter cat clamp conv2d cumsum einsum embedding flip gather gelu index_select layer_norm linalg_svd "
    "masked_fill matmul max_pool2d norm roll scatter softmax sort sum topk tril where"
).split()


def test_operators_agree_with_one_device():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
    rows = [row for row in ROWS if row.name in SOME]
    assert len(rows) > 20
    assert list(itertools.chain.from_iterable(differences(row, mesh) for row in rows)) == []


# ---- fully sharded


def bytes_here(tensors):
    """The bytes that the first device holds."""
    return sum(t._xt_storage.array.addressable_shards[0].data.nbytes for t in tensors)


@pytest.mark.parametrize("shape", [pytest.param((8,), marks=pytest.mark.full), (2, 4)])
def test_fully_sharded_training_follows_one_device(shape, alone):
    mesh = init_device_mesh("cpu", shape)

    def prepare(model):
        for part in (model.up, model.down):
            fully_shard(part, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    found, model, optimizer = losses(prepare)
    np.testing.assert_allclose(found, alone, rtol=1e-4)
    assert isinstance(model, FSDPModule) and isinstance(model, Block) and type(model).__name__ == "FSDPBlock"
    parameters = list(model.parameters())
    assert bytes_here(parameters) <= 1.05 * sum(p.nbytes for p in parameters) / shape[-1]
    states = [optimizer.state[p]["exp_avg"] for p in parameters]
    assert [s.placements for s in states] == [p.placements for p in parameters]


def test_a_module_on_the_meta_device_lies_so_once_it_has_values(mesh):
    with xtensor.device("meta"):
        model = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8))
    fully_shard(model[0], mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    weight = model[0].weight
    assert weight.is_meta and weight.device_mesh == mesh and weight.placements == (Shard(0), Replicate())
    state = {name: xtensor.ones(t.shape, dtype=t.dtype) for name, t in model.state_dict().items()}
    model.to_empty(device="cpu")
    model[0].reset_parameters()
    assert model[0].weight.placements == (Shard(0), Replicate()) and isinstance(model[0].weight, nn.Parameter)
    set_model_state_dict(model, state)
    assert model[0].weight.placements == (Shard(0), Replicate()) and isinstance(
        model[1].running_mean, DTensor
    )
    assert model.eval()(xtensor.ones(8, 16)).mean().item() == pytest.approx(17, rel=1e-4)
    assert model.double()[0].weight.placements == (Shard(0), Replicate())


def test_two_dimensions_and_mixed_precision(mesh):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    parallelize_module(model, mesh["model"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(
        model,
        mesh=mesh["data"],
        mp_policy=MixedPrecisionPolicy(xtensor.bfloat16, output_dtype=xtensor.float32),
    )
    assert model[0].weight.placements == (Shard(1), Shard(0)) and model[2].weight.placements == (
        Shard(0),
        Shard(1),
    )
    made = model(xtensor.ones(8, 8))
    assert made.dtype is xtensor.float32 and model[0].weight.dtype is xtensor.float32
    made.sum().backward()
    assert model[0].weight.grad.dtype is xtensor.float32


@pytest.mark.parametrize("way", [lambda f: f, xtensor.compile], ids=["line by line", "compiled"])
def test_equal_counts_of_steps_are_one_array(mesh, way):
    model = fully_shard(nn.Linear(8, 8), mesh=mesh)
    optimizer = xtensor.optim.AdamW(model.parameters())
    x = distribute_tensor(xtensor.ones(8, 8), mesh, [Shard(0), Replicate()])

    @way
    def step():
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    for count in range(1, 5):
        step()
        counters = [optimizer.state[p]["step"] for p in model.parameters()]
        assert len({id(c._xt_storage.array) for c in counters}) == 1
        assert all(c.item() == count and c.device == xtensor.device("cpu") for c in counters)


def test_the_norm_of_all_gradients_is_one_message(mesh):
    def clipped(spread):
        xtensor.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 8), nn.Linear(8, 3))
        x = xtensor.randn(8, 8)
        if spread:
            plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
            parallelize_module(model, mesh["model"], plan)
            fully_shard(model, mesh=mesh["data"])
            x = distribute_tensor(x, mesh, [Shard(0), Replicate()])

        def step(clip=True):
            model.zero_grad()
            (9 * model(x)).pow(2).sum().backward()
            return nn.utils.clip_grad_norm_(model.parameters(), 1.0) if clip else None

        return model, step

    (one, alone), (other, step) = clipped(False), clipped(True)
    compiled, plain = xtensor.compile(step), xtensor.compile(lambda: step(False))
    expected = alone().item()
    for found in (step, compiled, compiled):
        assert found().item() == pytest.approx(expected, rel=1e-5)
        for p, q in zip(one.parameters(), other.parameters()):
            np.testing.assert_allclose(q.grad.full_tensor().tolist(), p.grad.tolist(), rtol=1e-4, atol=1e-6)
    plain()
    plain()
    more, before = (collectives(s)["all-reduce"] for s in (compiled, plain))
    assert more[0] == before[0] + 1 and more[1] == before[1] + 4 * len(list(other.parameters()))


# ---- checkpoints in parts


def trained(mesh, steps=2):
    def prepare(model):
        if mesh is not None:
            fully_shard(model, mesh=mesh)

    _, model, optimizer = losses(prepare, steps=steps)
    return model, optimizer


def test_a_checkpoint_is_read_on_any_mesh(tmp_path):
    model, optimizer = trained(init_device_mesh("cpu", (8,)))
    state, steps = get_state_dict(model, optimizer)
    checkpoint.save({"model": state, "optimizer": steps, "epoch": 3}, checkpoint_id=tmp_path)
    wanted = {name: p.full_tensor().tolist() for name, p in model.named_parameters()}
    for mesh in (None, init_device_mesh("cpu", (2, 4)), init_device_mesh("cpu", (4,))):
        other, second = trained(mesh, steps=0)  # the state is read before the first step
        state, steps = get_state_dict(other, second)
        whole = {"model": state, "optimizer": steps, "epoch": 0}
        checkpoint.load(whole, checkpoint_id=tmp_path)
        set_state_dict(other, second, model_state_dict=whole["model"], optim_state_dict=whole["optimizer"])
        assert whole["epoch"] == 3
        for name, p in other.named_parameters():
            assert (p if mesh is None else p.full_tensor()).tolist() == wanted[name]
            saved, own = (
                o.state[dict(m.named_parameters())[name]] for o, m in ((optimizer, model), (second, other))
            )
            assert own["step"].item() == 2
            assert own["exp_avg"].cpu().tolist() == saved["exp_avg"].cpu().tolist()
            if mesh is not None:
                assert own["exp_avg"].placements == p.placements
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert {n: t.tolist() for n, t in full.items()} == wanted and not any(
        isinstance(t, DTensor) for t in full.values()
    )


def test_what_a_checkpoint_refuses(mesh, tmp_path):
    checkpoint.save(
        {"x": placed(mesh, Shard(0), Shard(1)), "b": xtensor.ones(3, dtype=xtensor.bfloat16)},
        checkpoint_id=tmp_path,
    )
    state = {"x": xtensor.zeros(8, 4), "b": xtensor.zeros(3)}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].tolist() == xtensor.arange(32.0).reshape(8, 4).tolist() and state["b"].tolist() == [
        1,
        1,
        1,
    ]
    with pytest.raises(KeyError, match="no tensor other"):
        checkpoint.load({"other": xtensor.zeros(1)}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match=r"x has the shape \[8, 4\] in the checkpoint"):
        checkpoint.load({"x": xtensor.zeros(2)}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_id"):
        checkpoint.save({})


def test_who_is_killed_while_saving_loses_nothing(mesh, tmp_path, monkeypatch):
    calls = {"left": 0}

    def ends(function):
        def run(*args, **options):
            if calls["left"] == 0:
                raise KeyboardInterrupt
            calls["left"] -= 1
            return function(*args, **options)

        return run

    x = placed(mesh, Shard(0), Shard(1))
    checkpoint.save({"x": x, "n": 0}, checkpoint_id=tmp_path)
    monkeypatch.setattr(os, "fsync", ends(os.fsync))
    monkeypatch.setattr(os, "replace", ends(os.replace))
    monkeypatch.setattr(pathlib.Path, "unlink", ends(pathlib.Path.unlink))
    for step in itertools.count(1):
        calls["left"] = step - 1
        try:
            checkpoint.save({"x": x + step, "n": step}, checkpoint_id=tmp_path)
        except KeyboardInterrupt:
            calls["left"] = 1000
            state = {"x": xtensor.zeros(8, 4), "n": -1}
            checkpoint.load(state, checkpoint_id=tmp_path)
            assert state["n"] in (step, step - 1) and state["x"][0, 0].item() == state["n"], step
            if state["n"] != step:
                checkpoint.save({"x": x + step, "n": step}, checkpoint_id=tmp_path)
        else:
            break
    assert step > 5 and len(list(tmp_path.iterdir())) == 3


def test_saving_beside_the_program(mesh, tmp_path):
    x = placed(mesh, Shard(0), Replicate())
    done = checkpoint.async_save({"x": x}, checkpoint_id=tmp_path)
    x.zero_()
    done.result()
    state = {"x": placed(mesh, Replicate(), Shard(1))}
    checkpoint.load(state, checkpoint_id=tmp_path)
    assert state["x"].full_tensor()[7].tolist() == [28, 29, 30, 31] and state["x"].placements == (
        Replicate(),
        Shard(1),
    )


# ---- context parallel, pictures, programs made ahead


@pytest.mark.parametrize("causal", [pytest.param(False, marks=pytest.mark.full), True])
def test_attention_in_a_ring(mesh, causal):
    xtensor.manual_seed(0)
    given = [xtensor.randn(2, 3, 8, 4, dtype=xtensor.float64, requires_grad=True) for _ in range(3)]
    made = ring_attention(*given, mesh["data"], is_causal=causal)
    assert made.placements == (Shard(2), Replicate())
    expected = F.scaled_dot_product_attention(*given, is_causal=causal)
    weights = xtensor.randn(2, 3, 8, 4, dtype=xtensor.float64)
    np.testing.assert_allclose(made.full_tensor().detach().numpy(), expected.detach().numpy(), rtol=1e-10)
    ours = xtensor.autograd.grad((made.full_tensor() * weights).sum(), given)
    theirs = xtensor.autograd.grad((expected * weights).sum(), given)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)
    x = xtensor.randn(2, 3, 8, 4)
    before = x.tolist()
    with context_parallel(mesh["data"], buffers=[x], buffer_seq_dims=[2]):
        assert x.placements == (Shard(2), Replicate())
        inside = F.scaled_dot_product_attention(x, x, x, is_causal=causal)
        assert inside.placements == (Shard(2), Replicate())
    assert x.device == xtensor.device("cpu") and x.tolist() == before
    with pytest.raises(ValueError, match="length that 4 divides"):
        ring_attention(*[xtensor.zeros(1, 1, 6, 2)] * 3, mesh["data"])


def test_pictures(mesh):
    text = str(visualize(placed(mesh, Shard(0), Replicate()))).splitlines()
    assert text[0] == "[8, 4] on cpu mesh(data=4, model=2): Shard(dim=0), Replicate()"
    assert text[1] == "  0: [0:2, 0:4]  1: [0:2, 0:4]" and text[4] == "  6: [6:8, 0:4]  7: [6:8, 0:4]"
    model = fully_shard(nn.Linear(8, 8, bias=False), mesh=mesh["data"])
    picture = visualize(model)
    assert str(picture).splitlines() == [
        "FSDPLinear: a device holds 64 of 256 bytes",
        "  weight  [8, 8]  Shard(dim=0), Replicate()  64 of 256 bytes",
    ]
    shown = picture._repr_html_()
    assert "<td>weight</td>" in shown
    assert "rgba(" in shown and ";color:" not in shown  # the text has the page's own colour


def test_programs_made_ahead(mesh):
    with xtensor.device("meta"):
        model, x = (
            nn.Sequential(nn.Linear(64, 128, bias=False), nn.Linear(128, 64, bias=False)),
            xtensor.zeros(32, 64),
        )
    plan = {"0.weight": [Replicate(), Shard(0)], "1.weight": [Replicate(), Shard(1)]}
    report = ahead(model, [x], mesh, plan, batch=[Shard(0), Replicate()])
    assert report.arguments == 2 * 64 * 128 * 4 // 2 + 32 * 64 * 4 // 4
    # Rows are added over the model's dimension, gradients over the batch's; nothing is gathered.
    assert set(report.collectives) == {"all-reduce"} and "8 devices" in str(report)
    split = ahead(model, [x], mesh, {"*": [Shard(0), Replicate()]}, batch=[Shard(0), Replicate()])
    assert "all-gather" in split.collectives


# ---- what a compiled step sends, against what theory says


def sent(prepare, over, placements):
    """The bytes of each kind of collective in a compiled training step, and those of the parameters and of a batch's results."""
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 8))
    prepare(model)
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)
    x = distribute_tensor(xtensor.randn(32, 16), over, placements)
    y = distribute_tensor(xtensor.randint(0, 8, (32,)), over, placements)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    compiled = xtensor.compile(step, fullgraph=True)
    for _ in range(2):
        compiled()
    return {kind: size for kind, (_, size) in collectives(compiled).items()}, model


SCALARS = 64
"""Bytes of all that a step joins besides: the loss and its count."""
WAYS = {
    # The gradients once, in sum.
    "data": (lambda m, mesh: distribute_module(m, mesh), [Shard(0), Shard(0)]),
    # Both layers' parts compute by themselves; the results of the second are added up, and nothing else.
    "tensor": (
        lambda m, mesh: parallelize_module(
            m, mesh["model"], {"0": ColwiseParallel(), "2": RowwiseParallel()}
        ),
        [Replicate(), Replicate()],
    ),
    # The parameters once, for forward and backward; the gradients once.
    "sharded": (lambda m, mesh: fully_shard(m, mesh=mesh._flatten("all")), [Shard(0), Shard(0)]),
}


@pytest.mark.parametrize(
    "way", [w if w == "sharded" else pytest.param(w, marks=pytest.mark.full) for w in WAYS]
)
def test_collectives_of_a_compiled_step_are_those_of_theory(mesh, way):
    prepare, placements = WAYS[way]
    found, model = sent(lambda m: prepare(m, mesh), mesh, placements)
    parameters = sum(p.nbytes for p in model.parameters())
    wanted = {
        "data": {"all-reduce": parameters},
        "tensor": {"all-reduce": 32 * 8 * 4},
        "sharded": {"all-gather": parameters, "all-reduce": parameters},
    }[way]
    assert found.keys() == wanted.keys(), found
    for kind, size in wanted.items():
        assert size <= found[kind] <= size + SCALARS, (kind, found)


def test_a_plain_tensor_in_a_compiled_step_is_told_where_to_go(mesh):
    x = xtensor.ones(8, 16)
    model = fully_shard(nn.Linear(16, 8), mesh=mesh["data"])
    compiled = xtensor.compile(lambda: model(x).sum(), fullgraph=True)
    with pytest.raises(RuntimeError, match=r"come together; place all on the mesh: distribute_tensor"):
        for _ in range(2):
            compiled()


def test_collectives_are_those_of_a_program():
    with pytest.raises(ValueError, match="call it twice"):
        collectives(xtensor.compile(lambda x: x))
