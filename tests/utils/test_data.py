"""Datasets, samplers, collation and loaders, in this process and from worker processes."""

import collections
import itertools

import numpy as np
import pytest

import xtensor
from xtensor.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        if i >= 20:
            raise KeyError(i)
        return np.full(2, i), i * i


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from range(first, 10, step)


def test_tensors_in_batches():
    x, y = xtensor.arange(10.0).view(10, 1), xtensor.arange(10)
    data = TensorDataset(x, y)
    batches = list(DataLoader(data, batch_size=4))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[0][0].shape == (4, 1)
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    assert next(iter(DataLoader(Subset(data, [7, 2]), batch_size=2)))[1].tolist() == [7, 2]
    shuffled = [i for b in DataLoader(data, batch_size=3, shuffle=True) for i in b[1].tolist()]
    assert sorted(shuffled) == list(range(10))


def test_the_same_seed_gives_the_same_order():
    data = TensorDataset(xtensor.arange(30))
    orders = []
    for _ in range(2):
        xtensor.manual_seed(3)
        orders.append([b[0].tolist() for b in DataLoader(data, batch_size=7, shuffle=True)])
    assert orders[0] == orders[1]


def test_collation_as_pytorchs(torch):
    Point = collections.namedtuple("Point", "a b")
    for samples in (
        [1, 2],
        [1.5, 2.5],
        ["a", "b"],
        [{"x": 1, "y": [1, 2.0]}, {"x": 2, "y": [3, 4.0]}],
        [Point(1, 2.0), Point(3, 4.0)],
        [(np.ones(2), 1), (np.zeros(2), 2)],
        [np.float32(1), np.float32(2)],
    ):
        ours, theirs = default_collate(samples), torch.utils.data.default_collate(samples)
        assert repr(ours).replace("xtensor.", "torch.") == repr(theirs)
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])


def test_datasets_combine():
    both = ConcatDataset([Squares(), Subset(Squares(), [3])])
    assert (len(both), both[20][1], both[-1][1]) == (21, 9, 9)
    assert StackDataset(a=Squares(), b=Squares())[2]["b"][1] == 4
    parts = random_split(Squares(), [0.5, 0.25, 0.25])
    assert [len(p) for p in parts] == [10, 5, 5]
    assert sorted(i for p in parts for i in p.indices) == list(range(20))
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(Squares(), [3, 4])


def test_samplers():
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert sorted(RandomSampler(range(6))) == list(range(6))
    assert len(list(RandomSampler(range(3), replacement=True, num_samples=50))) == 50
    drawn = list(WeightedRandomSampler([0.0, 1.0, 0.0], 8))
    assert drawn == [1] * 8


def test_loader_refuses_what_excludes_each_other():
    for options, message in (
        (dict(num_workers=-1), "num_workers option should be non-negative"),
        (dict(sampler=[0], shuffle=True), "sampler option is mutually exclusive with shuffle"),
        (dict(batch_sampler=[[0]], batch_size=2), "batch_sampler option is mutually exclusive"),
        (dict(batch_size=None, drop_last=True), "batch_size=None option disables auto-batching"),
        (dict(persistent_workers=True), "persistent_workers option needs num_workers > 0"),
    ):
        with pytest.raises(ValueError, match=message):
            DataLoader(Squares(), **options)
    loader = DataLoader(Squares())
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_worker_processes():
    loader = DataLoader(Squares(), batch_size=6, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert [b[1].tolist() for b in loader] == [
            [i * i for i in range(k, min(k + 6, 20))] for k in range(0, 20, 6)
        ]
    loader._iterator.pool.close()


def test_errors_of_workers_reach_the_program():
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 0"):
        list(DataLoader(Squares(), batch_size=2, num_workers=1, sampler=[25, 1]))


def test_batches_are_placed_ahead():
    """`prefetch_device`: the next batch is made while the one before is in use; errors come in their turn."""
    made = []

    class Numbers(xtensor.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 3:
                raise ValueError("number 3")
            made.append(index)
            return {"x": xtensor.tensor(index), "name": str(index), "pair": (xtensor.ones(2), index)}

    loader = xtensor.utils.data.DataLoader(Numbers(), prefetch_device="meta")
    batches = iter(loader)
    first = next(batches)
    assert first["x"].is_meta and first["pair"][0].is_meta and first["name"] == ["0"]
    assert made == [0, 1, 2]
    assert len(batches) == 4 and [next(batches)["name"] for _ in range(2)] == [["1"], ["2"]]
    with pytest.raises(ValueError, match="number 3"):
        next(batches)
    small = xtensor.utils.data.DataLoader([1, 2, 3], batch_size=2, prefetch_device="cpu")
    assert [b.tolist() for b in small] == [[1, 2], [3]] == [b.tolist() for b in small]


def test_a_sampler_may_be_endless():
    sampler = xtensor.utils.data.RandomSampler(range(7), replacement=True, num_samples=int(1e10))
    drawn = list(itertools.islice(sampler, 600))
    assert len(sampler) == 10**10 and set(drawn) == set(range(7))
    exact = list(xtensor.utils.data.RandomSampler(range(7), replacement=True, num_samples=300))
    assert len(exact) == 300 and set(exact) <= set(range(7))
