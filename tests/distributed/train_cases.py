"""Training in four processes: each way gives what one process gives for the whole batch; `test_distributed.py` runs this."""

from __future__ import annotations

import datetime
import itertools
import os
import pathlib
import shutil
import tempfile

import numpy as np
import pytest

import xtensor
import xtensor.distributed as dist
from xtensor import nn
from xtensor.distributed import checkpoint
from xtensor.distributed.algorithms.checkpoint_wrapper import (
    CheckpointWrapper,
    apply_activation_checkpointing,
)
from xtensor.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from xtensor.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from xtensor.distributed.algorithms.join import Join
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from xtensor.distributed.fsdp.wrap import ModuleWrapPolicy
from xtensor.distributed.optim import ZeroRedundancyOptimizer
from xtensor.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
    SplitPoint,
    pipeline,
)
from xtensor.distributed.tensor import Replicate, Shard, distribute_tensor
from xtensor.nn.parallel import DistributedDataParallel
from xtensor.utils.data import DataLoader, DistributedSampler, TensorDataset

WORLD = 4
ONLY = os.environ.get("XTENSOR_ONLY_CASE")
CASES = []


def case(function):
    CASES.append(function)
    return function


class Network(nn.Module):
    def __init__(self, norm=None, unused=False):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 4)
        self.norm = norm
        if unused:
            self.apart = nn.Linear(3, 3)
            self.odd = nn.Linear(4, 4)

    def forward(self, x, odd=False):
        h = self.up(x)
        h = self.down(nn.functional.gelu(h if self.norm is None else self.norm(h)))
        return self.odd(h) if odd else h


def data():
    xtensor.manual_seed(5)
    return xtensor.randn(16, 8), xtensor.randint(0, 4, (16,))


def mine(x):
    return x.chunk(WORLD)[dist.get_rank()]


def network(seed=0, **options):
    xtensor.manual_seed(seed)
    return Network(**options)


def optimizer_of(model):
    return xtensor.optim.AdamW(model.parameters(), lr=1e-2)


def train(model, optimizer, x, y, steps=4, **options):
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x, **options), y)
        loss.backward()
        optimizer.step()
        found.append(loss.detach().full_tensor() if hasattr(loss, "placements") else loss.detach())
    return xtensor.stack(found)


def mean(values):
    values = values.clone()
    dist.all_reduce(values, dist.ReduceOp.AVG)
    return values.tolist()


def expected(**options):
    model = network(**options)
    losses = train(model, optimizer_of(model), *data()).tolist()
    return model, losses


def same_parameters(model, other, rtol=1e-4):
    for (name, p), q in zip(model.named_parameters(), other.parameters()):
        np.testing.assert_allclose(
            p.detach().tolist(), q.detach().tolist(), rtol=rtol, atol=1e-6, err_msg=name
        )


@case
def data_parallel():
    alone, losses = expected()
    model = DistributedDataParallel(network(seed=dist.get_rank()), bucket_cap_mb=0.0001)
    with xtensor.no_grad():
        assert len(model._buckets) > 1 and next(iter(model.state_dict())) == "module.up.weight"
    model.module.load_state_dict(network().state_dict())
    found = train(model, optimizer_of(model), *map(mine, data()))
    np.testing.assert_allclose(mean(found), losses, rtol=1e-4)
    same_parameters(model.module, alone)


@case
def parameters_are_those_of_the_first_rank():
    model = DistributedDataParallel(network(seed=dist.get_rank() + 1, norm=nn.BatchNorm1d(16)))
    same_parameters(model.module, network(seed=1, norm=nn.BatchNorm1d(16)), rtol=0)
    model.module.norm.running_mean.fill_(float(dist.get_rank()))
    model.eval()(xtensor.ones(2, 8))
    assert model.module.norm.running_mean.tolist() == [0] * 16
    other = nn.Linear(3, 3 if dist.get_rank() else 4)
    with pytest.raises(RuntimeError, match="DDP expects same model across all ranks"):
        DistributedDataParallel(other)
    with pytest.raises(RuntimeError, match="doesn't have any parameter that requires a gradient"):
        DistributedDataParallel(nn.ReLU())


@case
def gradients_add_up_without_sync():
    x, y = data()
    alone = network()
    for part in range(2):
        nn.functional.cross_entropy(alone(x[part::2]), y[part::2]).backward()
    model = DistributedDataParallel(network())
    own_x, own_y = (
        xtensor.stack([t[part::2].chunk(WORLD)[dist.get_rank()] for part in range(2)]) for t in (x, y)
    )
    with model.no_sync():
        nn.functional.cross_entropy(model(own_x[0]), own_y[0]).backward()
    nn.functional.cross_entropy(model(own_x[1]), own_y[1]).backward()
    for p, q in zip(model.module.parameters(), alone.parameters()):
        np.testing.assert_allclose(p.grad.tolist(), q.grad.tolist(), rtol=1e-4, atol=1e-6)


@case
def unused_parameters():
    rank = dist.get_rank()
    model = DistributedDataParallel(network(unused=True), find_unused_parameters=True)
    for _ in range(2):
        model(xtensor.ones(2, 8), odd=rank == 1).sum().backward()
    assert model.module.apart.weight.grad is None  # used by nobody
    grads = [None] * WORLD
    dist.all_gather_object(grads, model.module.odd.bias.grad.tolist())
    assert grads.count(grads[0]) == WORLD and any(grads[0])
    strict = DistributedDataParallel(network(unused=True))
    strict(xtensor.ones(2, 8)).sum().backward()
    with pytest.raises(
        RuntimeError, match=r"Expected to have finished reduction in the prior iteration.*apart\.weight"
    ):
        strict(xtensor.ones(2, 8))


@case
def hooks_reduce_buckets():
    alone, _ = expected()
    for hook, tolerance in ((default_hooks.allreduce_hook, 1e-4), (default_hooks.bf16_compress_hook, 0.2)):
        model = DistributedDataParallel(network())
        model.register_comm_hook(None, hook)
        train(model, optimizer_of(model), *map(mine, data()))
        same_parameters(model.module, alone, tolerance if tolerance < 0.1 else 1)
    seen = []

    def custom(state, bucket):
        seen.append((bucket.index(), bucket.is_last(), len(bucket.gradients()), bucket.buffer().numel()))
        return bucket.buffer() * 0

    model = DistributedDataParallel(network())
    model.register_comm_hook(None, custom)
    model(xtensor.ones(2, 8)).sum().backward()
    assert seen == [(0, True, 4, 16 * 8 + 16 + 16 * 4 + 4)] and not any(
        model.module.up.weight.grad.reshape(-1).tolist()
    )


@case
def unequal_numbers_of_batches():
    rank = dist.get_rank()
    model = DistributedDataParallel(network())
    optimizer = xtensor.optim.SGD(model.parameters(), lr=0.1)
    with model.join(divide_by_initial_world_size=False):
        for _ in range(1 + rank):
            optimizer.zero_grad()
            model(xtensor.ones(2, 8)).sum().backward()
            optimizer.step()
    alone = network()
    optimizer = xtensor.optim.SGD(alone.parameters(), lr=0.1)
    for _ in range(WORLD):
        optimizer.zero_grad()
        alone(xtensor.ones(2, 8)).sum().backward()
        optimizer.step()
    same_parameters(model.module, alone)


@case
def unequal_numbers_of_batches_with_sharded_states():
    rank = dist.get_rank()
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), xtensor.optim.SGD, lr=0.1)
    with Join([model, optimizer], divide_by_initial_world_size=False):
        for _ in range(1 + rank):
            optimizer.zero_grad()
            model(xtensor.ones(2, 8)).sum().backward()
            optimizer.step()
    alone = network()
    single = xtensor.optim.SGD(alone.parameters(), lr=0.1)
    for _ in range(WORLD):
        single.zero_grad()
        alone(xtensor.ones(2, 8)).sum().backward()
        single.step()
    same_parameters(model.module, alone)
    text = "exhausted all inputs" if rank == 0 else "at least one rank that exhausted"
    with pytest.raises(RuntimeError, match=text), Join([model], throw_on_early_termination=True):
        for _ in range(1 + min(rank, 1)):
            model(xtensor.ones(2, 8)).sum().backward()


@case
def batches_normalised_together():
    # A bias before the normalisation has no gradient but rounding, of which Adam would make steps.
    alone = network(norm=nn.BatchNorm1d(16))
    losses = train(alone, xtensor.optim.SGD(alone.parameters(), 0.1), *data()).tolist()
    model = nn.SyncBatchNorm.convert_sync_batchnorm(network(norm=nn.BatchNorm1d(16)))
    model = DistributedDataParallel(model)
    found = train(model, xtensor.optim.SGD(model.parameters(), 0.1), *map(mine, data()))
    np.testing.assert_allclose(mean(found), losses, rtol=1e-4)
    same_parameters(model.module, alone, 1e-3)
    for name in ("running_mean", "running_var"):
        ours, theirs = getattr(model.module.norm, name), getattr(alone.norm, name)
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-4, atol=1e-6)


@case
def optimizers_in_shares():
    alone, losses = expected()
    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), xtensor.optim.AdamW, lr=1e-2)
    found = train(model, optimizer, *map(mine, data()))
    np.testing.assert_allclose(mean(found), losses, rtol=1e-4)
    same_parameters(model.module, alone)
    held = sum(s["exp_avg"].numel() for s in optimizer.optim.state.values())
    total = sum(p.numel() for p in model.parameters())
    assert 0 < held < total
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        assert sorted(optimizer.state_dict()["state"]) == [0, 1, 2, 3]
    else:
        with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
            optimizer.state_dict()


@case
def fully_sharded():
    alone, losses = expected()
    model = network()
    fully_shard(model.up)
    fully_shard(model)
    found = train(model, optimizer_of(model), *map(mine, data()))
    np.testing.assert_allclose(mean(found), losses, rtol=1e-4)
    for p, q in zip(model.parameters(), alone.parameters()):
        np.testing.assert_allclose(p.full_tensor().tolist(), q.tolist(), rtol=1e-3, atol=1e-5)
        assert p.to_local().numel() * WORLD == p.numel()


@case
def the_older_interface_of_fully_sharded():
    fsdp, rank = FullyShardedDataParallel, dist.get_rank()
    alone, losses = expected()
    for strategy in (None, ShardingStrategy.HYBRID_SHARD, ShardingStrategy.NO_SHARD):
        model = fsdp(
            network(seed=rank), sharding_strategy=strategy, auto_wrap_policy=ModuleWrapPolicy({nn.Linear})
        )
        assert [type(m).__name__ for m in fsdp.fsdp_modules(model)] == [
            "FSDPNetwork",
            "FSDPLinear",
            "FSDPLinear",
        ]
        model.load_state_dict(network().state_dict())
        optimizer = optimizer_of(model)
        found = train(model, optimizer, *map(mine, data()))
        np.testing.assert_allclose(mean(found), losses, rtol=1e-4)
        state = model.state_dict()
        for name, p in alone.named_parameters():
            np.testing.assert_allclose(state[name].tolist(), p.tolist(), rtol=1e-3, atol=1e-5)
        share = 1 if strategy is ShardingStrategy.NO_SHARD else WORLD
        assert model.up.weight.to_local().numel() * share == model.up.weight.numel()

    with fsdp.state_dict_type(
        model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    ):
        assert list(model.state_dict()) == ([] if rank else list(state))
    with fsdp.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        assert model.state_dict()["up.weight"].placements == model.up.weight.placements
    with pytest.raises(NotImplementedError, match="SHARDED_STATE_DICT"):
        fsdp.set_state_dict_type(model, StateDictType.LOCAL_STATE_DICT)
    moments = fsdp.full_optim_state_dict(model, optimizer)
    assert bool(moments) == (rank == 0)
    own = fsdp.scatter_full_optim_state_dict(moments, model, optim=optimizer)
    again = optimizer_of(model)
    again.load_state_dict(own)
    one, other = (o.state[model.up.weight]["exp_avg"] for o in (optimizer, again))
    assert one.full_tensor().tolist() == other.full_tensor().tolist() and one.placements == other.placements
    with fsdp.summon_full_params(model), xtensor.no_grad():
        assert not hasattr(model.up.weight, "placements")
        model.up.weight.fill_(2)
    assert set(model.up.weight.full_tensor().flatten().tolist()) == {2.0} and model.module is model

    low = fsdp(
        network(seed=rank, norm=nn.LayerNorm(16)),
        mixed_precision=MixedPrecision(xtensor.bfloat16, xtensor.bfloat16),
        sync_module_states=True,
        process_group=dist.group.WORLD,
    )
    apply_activation_checkpointing(low, check_fn=lambda m: isinstance(m, nn.Linear))
    assert isinstance(low.up, CheckpointWrapper) and list(low.state_dict())[:1] == ["up.weight"]
    made = low(mine(data()[0]))
    made.float().sum().backward()
    assert made.dtype is xtensor.bfloat16 and low.up.weight.grad.dtype is xtensor.float32
    first = network(seed=0, norm=nn.LayerNorm(16)).up.weight
    assert low.state_dict()["up.weight"].tolist() == first.tolist()


class Stages(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [8, 16, 16, 16, 4]
        self.parts = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))

    def forward(self, x):
        for part in self.parts:
            x = nn.functional.gelu(part(x))
        return x


@case
def pipelines():
    rank = dist.get_rank()
    x, y = data()
    xtensor.manual_seed(0)
    alone = Stages()
    optimizer = xtensor.optim.AdamW(alone.parameters(), lr=1e-2)
    expected_losses, outputs = [], []
    for _ in range(3):
        optimizer.zero_grad()
        made = alone(x)
        loss = nn.functional.cross_entropy(made, y)
        loss.backward()
        optimizer.step()
        expected_losses.append(loss.item())
        outputs.append(made.detach())
    for schedule in (ScheduleGPipe, Schedule1F1B):
        xtensor.manual_seed(0)
        part = Stages().parts[rank]
        own = nn.Sequential(part, nn.GELU())
        stepper = schedule(PipelineStage(own, rank, WORLD), 8, nn.functional.cross_entropy)
        optimizer = xtensor.optim.AdamW(own.parameters(), lr=1e-2)
        for step in range(3):
            optimizer.zero_grad()
            losses = []
            given = {"target": y, "losses": losses} if rank == WORLD - 1 else {}
            made = stepper.step(*([x] if rank == 0 else []), **given)
            optimizer.step()
            if rank == WORLD - 1:
                np.testing.assert_allclose(
                    xtensor.stack(losses).mean().item(), expected_losses[step], rtol=1e-4
                )
                np.testing.assert_allclose(
                    made.detach().tolist(), outputs[step].tolist(), rtol=1e-3, atol=1e-5
                )
        same_parameters(part, alone.parts[rank], 1e-3)
    with pytest.raises(ValueError, match="a stage is a process"):
        PipelineStage(own, (rank + 1) % WORLD, WORLD)


@case
def pipelines_of_several_stages():
    rank = dist.get_rank()
    x, y = data()
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), *[nn.Linear(4, 4) for _ in range(7)])
    made = model(x)
    loss = nn.functional.cross_entropy(made, y)
    loss.backward()
    expected_grads = [p.grad.tolist() for p in model.parameters()]
    cuts = dict.fromkeys("234567", SplitPoint.BEGINNING) | {"0": SplitPoint.END}
    for schedule in (ScheduleInterleaved1F1B, ScheduleLoopedBFS):
        model.zero_grad()
        pipe = pipeline(model, (x,), split_spec=cuts)
        assert pipe.num_stages == 2 * WORLD
        stages = [pipe.build_stage(index) for index in (rank, rank + WORLD)]
        stepper = schedule(stages, 8, nn.functional.cross_entropy)
        losses = []
        given = {"target": y, "losses": losses} if rank == WORLD - 1 else {}
        for run in (stepper.eval, stepper.step):
            found = run(*([x] if rank == 0 else []), **given)
            if rank == WORLD - 1:
                np.testing.assert_allclose(found.tolist(), made.tolist(), rtol=1e-4, atol=1e-6)
                np.testing.assert_allclose(xtensor.stack(losses).mean().item(), loss.item(), rtol=1e-5)
            else:
                assert found is None
        own = {id(p) for stage in stages for p in stage.submod.parameters()}
        for p, expected_grad in zip(model.parameters(), expected_grads):
            assert (p.grad is not None) == (id(p) in own)
            if p.grad is not None:
                np.testing.assert_allclose(p.grad.tolist(), expected_grad, rtol=1e-3, atol=1e-6)
    with pytest.raises(ValueError, match="multiple of the number of rounds"):
        ScheduleInterleaved1F1B(stages, 9)


@case
def matrices_sent_as_thin_ones():
    x, _ = data()
    # The gradients of one row are of rank one; the whole bucket, as a square of 15 by 15, may be of rank 15.
    hooks = powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook, noop_hook
    for hook, rank, rate in zip(hooks, (1, 15, 1), (2, 0, 2)):
        model = DistributedDataParallel(network())
        state = powerSGD_hook.PowerSGDState(None, rank, start_powerSGD_iter=2, min_compression_rate=rate)
        model.register_comm_hook(state, hook)
        steps, told = 12, []
        for _ in range(steps):  # what a step does not tell, a later one does
            model.zero_grad()
            (model(x[:1]) * (dist.get_rank() + 1)).sum().backward()
            told.append([p.grad for p in model.parameters()])
        alone = network()
        share = sum(range(1, WORLD + 1)) / WORLD if hook is not noop_hook else dist.get_rank() + 1
        (alone(x[:1]) * share * steps).sum().backward()
        for grads, q in zip(zip(*told), alone.parameters()):
            assert (xtensor.stack(grads).sum(0) - q.grad).norm() < 1e-3 * q.grad.norm()
        if hook is powerSGD_hook.powerSGD_hook:
            rate, before, after = state.compression_stats()
            assert rate == before / after > 1.2


@case
def checkpoints():
    folder = pathlib.Path(tempfile.gettempdir(), f"xtensor-{os.environ['TORCHELASTIC_RUN_ID']}")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    whole = xtensor.arange(32.0).reshape(8, 4)
    x = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    done = checkpoint.async_save({"x": x, "same": whole, "n": [1, 2]}, checkpoint_id=folder / "later")
    checkpoint.save({"x": x, "same": whole, "n": [1, 2]}, checkpoint_id=folder / "now")
    done.result(60)
    dist.barrier()
    for name in ("now", "later"):
        state = {
            "x": distribute_tensor(whole * 0, mesh, [Shard(1), Replicate()]),
            "same": whole * 0,
            "n": None,
        }
        checkpoint.load(state, checkpoint_id=folder / name)
        assert state["x"].full_tensor().tolist() == whole.tolist() == state["same"].tolist() and state[
            "n"
        ] == [1, 2]
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder)


@case
def samples_are_shared_out():
    numbers = TensorDataset(xtensor.arange(10))
    sampler = DistributedSampler(numbers, shuffle=True)
    sampler.set_epoch(3)
    own = [int(i) for (batch,) in DataLoader(numbers, batch_size=2, sampler=sampler) for i in batch]
    found = [None] * WORLD
    dist.all_gather_object(found, own)
    assert sorted({i for part in found for i in part}) == list(range(10)) and {len(p) for p in found} == {3}


def main() -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    assert dist.get_world_size() == WORLD == int(os.environ["WORLD_SIZE"])
    for function in CASES:
        if ONLY and function.__name__ not in ONLY.split(","):
            continue
        function()
        dist.barrier()
    dist.destroy_process_group()
    print(f"rank {os.environ['RANK']} is done", flush=True)


if __name__ == "__main__":
    main()
