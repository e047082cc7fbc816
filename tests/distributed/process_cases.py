"""What every process of a group of four does: `test_distributed.py` runs this by the launcher; each rank asserts its own part."""

from __future__ import annotations

import datetime
import os
import sys

import ml_dtypes
import numpy as np
import pytest

import xtensor
import xtensor.distributed as dist
from xtensor.distributed import _functional_collectives as functions
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.nn import functional
from xtensor.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

DTYPES = ("float32", "bfloat16", "int64", "bool", "complex64")
if os.environ.get("XTENSOR_EVERY_DTYPE"):
    DTYPES += ("float64", "float16", "int32", "uint8")
FOLDS = {
    "SUM": np.add,
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}
CASES = []


def case(function):
    CASES.append(function)
    return function


def values(rank: int, name: str, shape=(2, 3)) -> np.ndarray:
    """The values of a rank: small integers, which all dtypes hold and add without rounding."""
    kind = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    found = np.random.default_rng(rank).integers(0, 5, shape)
    return found.astype(kind) if kind.kind != "c" else (found + 1j * found[::-1]).astype(kind)


def tensor(rank: int, name: str, shape=(2, 3)) -> xtensor.Tensor:
    made = xtensor.tensor(values(rank, name, shape).astype("complex64" if name == "complex64" else "float64"))
    return made.to(getattr(xtensor, name))


def same(found: xtensor.Tensor, expected: np.ndarray) -> None:
    kind = "complex128" if found.is_complex() else "float64"
    got = found.to(getattr(xtensor, kind)).numpy()
    np.testing.assert_array_equal(got, expected.astype(kind))


def groups():
    """The world, and a group that has this process."""
    rank = dist.get_rank()
    own = [dist.new_group([0, 3]), dist.new_group([1, 2])]
    return [(None, range(4)), (own[rank in (1, 2)], (1, 2) if rank in (1, 2) else (0, 3))]


@case
def reductions(rank, group, ranks):
    for name in DTYPES:
        parts = [values(r, name) for r in ranks]
        for op, fold in FOLDS.items():
            kind = parts[0].dtype
            if (op.startswith("B") and kind.kind not in "iub") or (kind.kind == "c" and op in ("MIN", "MAX")):
                continue
            x = tensor(rank, name)
            dist.all_reduce(x, getattr(dist.ReduceOp, op), group)
            expected = parts[0]
            for part in parts[1:]:
                expected = fold(expected, part)
            same(x, expected.astype(kind))
    x = tensor(rank, "float64")
    dist.all_reduce(x, dist.ReduceOp.AVG, group)
    same(x, np.mean([values(r, "float64") for r in ranks], 0))
    x = tensor(rank, "int32")
    dist.reduce(x, ranks[-1], group=group)
    same(x, np.sum([values(r, "int32") for r in ranks], 0) if rank == ranks[-1] else values(rank, "int32"))
    x = tensor(rank, "int32").t()
    work = dist.all_reduce(x, group=group, async_op=True)
    assert work.wait() is True and work.is_completed() and work.result()[0] is x
    same(x, np.sum([values(r, "int32") for r in ranks], 0).T)


@case
def copies(rank, group, ranks):
    for name in DTYPES:
        x = tensor(rank, name)
        dist.broadcast(x, ranks[1], group)
        same(x, values(ranks[1], name))
        targets = [xtensor.zeros_like(x) for _ in ranks]
        dist.all_gather(targets, tensor(rank, name), group)
        for r, target in zip(ranks, targets):
            same(target, values(r, name))
    joined = xtensor.zeros(2 * len(ranks), 3)
    dist.all_gather_into_tensor(joined, tensor(rank, "float32"), group)
    same(joined, np.concatenate([values(r, "float32") for r in ranks]))
    uneven = [xtensor.zeros(r + 1) for r in ranks]
    dist.all_gather(uneven, xtensor.full((rank + 1,), float(rank)), group)
    assert [u.tolist() for u in uneven] == [[r] * (r + 1) for r in ranks]
    targets = [xtensor.zeros(2, 3) for _ in ranks] if rank == ranks[0] else None
    dist.gather(tensor(rank, "float32"), targets, ranks[0], group)
    for r, target in zip(ranks, targets or []):
        same(target, values(r, "float32"))
    own = xtensor.zeros(2, 3)
    dist.scatter(
        own, [tensor(r + 7, "float32") for r in ranks] if rank == ranks[1] else None, ranks[1], group
    )
    same(own, values(rank + 7, "float32"))


@case
def parts(rank, group, ranks):
    here, count = list(ranks).index(rank), len(ranks)
    shape = (2 * count, 3)
    total = np.sum([values(r, "float32", shape) for r in ranks], 0)
    out = xtensor.zeros(2, 3)
    dist.reduce_scatter_tensor(out, tensor(rank, "float32", shape), group=group)
    same(out, total[2 * here : 2 * here + 2])
    dist.reduce_scatter(out, list(tensor(rank, "float32", shape).chunk(count)), dist.ReduceOp.MAX, group)
    most = np.max([values(r, "float32", shape) for r in ranks], 0)
    same(out, most[2 * here : 2 * here + 2])
    out = xtensor.zeros(shape)
    dist.all_to_all_single(out, tensor(rank, "float32", shape), group=group)
    same(out, np.concatenate([values(r, "float32", shape)[2 * here : 2 * here + 2] for r in ranks]))
    given = [i + 1 + here for i in range(count)]
    taken = [here + 1 + i for i in range(count)]
    x = xtensor.arange(float(sum(given))) + 100 * rank
    out = xtensor.zeros(sum(taken))
    dist.all_to_all_single(out, x, taken, given, group)
    expected = []
    for i, r in enumerate(ranks):
        sizes = [j + 1 + i for j in range(count)]
        start = sum(sizes[:here])
        expected += [100 * r + start + k for k in range(sizes[here])]
    assert out.tolist() == expected
    outs = [xtensor.zeros(n) for n in taken]
    dist.all_to_all(outs, list(x.split(given)), group)
    assert xtensor.cat(outs).tolist() == expected


@case
def objects(rank, group, ranks):
    found = [None] * len(ranks)
    dist.all_gather_object(found, {"rank": rank}, group)
    assert found == [{"rank": r} for r in ranks]
    given = [rank, "text"]
    dist.broadcast_object_list(given, ranks[1], group)
    assert given == [ranks[1], "text"]
    collected = [None] * len(ranks) if rank == ranks[0] else None
    dist.gather_object(rank * 2, collected, ranks[0], group)
    assert collected is None or collected == [r * 2 for r in ranks]
    own = [None]
    dist.scatter_object_list(own, [r * 3 for r in ranks] if rank == ranks[0] else None, ranks[0], group)
    assert own == [rank * 3]


@case
def messages(rank, group, ranks):
    ring = list(ranks)
    at = ring.index(rank)
    after, before = ring[(at + 1) % len(ring)], ring[at - 1]
    x, y = xtensor.full((3,), float(rank)), xtensor.zeros(3)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, after, group), dist.P2POp(dist.irecv, y, before, group)]
    )
    for work in works:
        work.wait()
    assert y.tolist() == [before] * 3
    if rank == ring[0]:
        for tag in (1, 2):
            dist.send(xtensor.tensor([tag]), ring[1], group, tag)
        dist.send_object_list(["one", 2], ring[1], group)
    if rank == ring[1]:
        second, first = xtensor.tensor([0]), xtensor.tensor([0])
        assert dist.recv(second, ring[0], group, 2) == ring[0] and dist.recv(first, None, group, 1) == ring[0]
        assert (first.item(), second.item()) == (1, 2)
        got = [None, None]
        assert dist.recv_object_list(got, ring[0], group) == ring[0] and got == ["one", 2]
    with pytest.raises(ValueError, match="should not be the same as the rank of the current process"):
        dist.send(x, rank, group)


@case
def gradients(rank, group, ranks):
    here, count = list(ranks).index(rank), len(ranks)
    x = xtensor.full((count,), rank + 1.0, requires_grad=True)
    weights = xtensor.arange(1.0, count + 1)

    def grad(made):
        (found,) = xtensor.autograd.grad(made, x)
        return found.tolist()

    total = functional.all_reduce(x, group=group)
    assert total.tolist() == [sum(r + 1.0 for r in ranks)] * count
    assert grad((total * weights).sum() * (rank + 1)) == [
        sum(r + 1 for r in ranks) * w for w in weights.tolist()
    ]
    gathered = xtensor.stack(functional.all_gather(x, group))
    assert grad((gathered[:, 0] * weights).sum())[0] == count * (here + 1)
    sent = functional.broadcast(x, ranks[0], group)
    assert grad(sent.sum()) == ([count] * count if rank == ranks[0] else [0] * count)
    part = functions.reduce_scatter_tensor(x, "sum", 0, group)
    assert part.tolist() == [sum(r + 1.0 for r in ranks)]
    assert grad(part.sum() * (rank + 1)) == [r + 1 for r in ranks]
    turned = functions.all_to_all_single(x, None, None, group)
    assert turned.tolist() == [r + 1.0 for r in ranks] and grad((turned * (rank + 1)).sum()) == [
        r + 1 for r in ranks
    ]
    assert functions.all_gather_tensor(x[:1], 0, group).tolist() == [r + 1.0 for r in ranks]


@case
def refusals(rank, group, ranks):
    with pytest.raises(TypeError, match="Expected parameter `tensor` of type"):
        dist.all_reduce([1], group=group)
    with pytest.raises(RuntimeError, match="non-integral"):
        dist.all_reduce(xtensor.ones(2), dist.ReduceOp.BXOR, group)
    with pytest.raises(ValueError, match="initialize the default process group twice"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="Unknown c10d backend"):
        dist.new_group(backend="smoke")
    with pytest.raises(ValueError, match="should be unique"):
        dist.new_group([0, 0])
    dist.barrier(group)
    dist.monitored_barrier(group, datetime.timedelta(seconds=60))


def global_tensors(rank):
    """Tensors that lie on the devices of all processes."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    assert mesh.get_rank() == rank and mesh.get_coordinate() == [rank // 2, rank % 2]
    assert mesh["model"].mesh.tolist() == [2 * (rank // 2), 2 * (rank // 2) + 1]
    group = mesh.get_group("data")
    assert dist.get_process_group_ranks(group) == [rank % 2, rank % 2 + 2]
    whole = xtensor.arange(16.0).reshape(4, 4)
    x = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    part = x.to_local()
    assert part.tolist() == whole.chunk(2, 0)[rank // 2].chunk(2, 1)[rank % 2].tolist()
    assert (x * 2).full_tensor().tolist() == (whole * 2).tolist() and x.sum().item() == 120
    with pytest.raises(RuntimeError, match=r"Use full_tensor\(\)"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"use full_tensor\(\)"):
        x.cpu()
    own = xtensor.full((2, 4), float(rank), requires_grad=True)
    made = DTensor.from_local(own, mesh, [Shard(0), Replicate()])
    joined = DTensor.from_local(own, mesh, [Shard(0), Partial()])
    assert joined.full_tensor()[:, 0].tolist() == [1, 1, 5, 5]
    (made * xtensor.tensor(3.0)).sum().backward()
    assert own.grad.tolist() == [[3] * 4] * 2
    assert repr(x) == "tensor(..., device='cpu mesh(data=2, model=2)', size=(4, 4))"


def main() -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    rank = dist.get_rank()
    assert (
        dist.get_world_size() == 4
        and dist.is_torchelastic_launched()
        and os.environ["LOCAL_RANK"] == str(rank)
    )
    wanted = sys.argv[1:]
    for group, ranks in groups():
        for function in CASES:
            if not wanted or function.__name__ in wanted:
                function(rank, group, tuple(ranks))
    if not wanted or "global_tensors" in wanted:
        global_tensors(rank)
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    print(f"rank {rank} is done", flush=True)


if __name__ == "__main__":
    main()
