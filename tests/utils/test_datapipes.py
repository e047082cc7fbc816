"""Data pipes against PyTorch's: the items of each kind, their lengths, and what is refused."""

import importlib

import pytest

import xtensor
from xtensor.utils import data

# PyTorch's own, on lambdas.
pytestmark = pytest.mark.filterwarnings("ignore:(Local function|Lambda function|Some child):UserWarning")


def even(n):
    return n % 2 == 0


CHAINS = {
    "map": lambda p: p(range(5)).map(lambda n: n * n),
    "map column": lambda p: p([(1, 2), (3, 4)]).map(lambda n: -n, input_col=1),
    "map into": lambda p: p([(1, 2), (3, 4)]).map(lambda a, b: a + b, input_col=[0, 1], output_col=-1),
    "map dict": lambda p: p([{"a": 1, "b": 2}]).map(lambda n: n + 1, input_col="a", output_col="c"),
    "filter": lambda p: p(range(6)).filter(even),
    "filter column": lambda p: p([(1, 2), (2, 3)]).filter(even, input_col=0),
    "batch": lambda p: p(range(7)).batch(3),
    "batch drop": lambda p: p(range(7)).batch(3, drop_last=True),
    "unbatch": lambda p: p([[1, 2], [3]]).unbatch(),
    "unbatch all": lambda p: p([[[1], [2]], [[3]]]).unbatch(unbatch_level=-1),
    "concat": lambda p: p([1, 2]).concat(p([3])),
    "zip": lambda p: p([1, 2, 3]).zip(p([4, 5])),
    "mux": lambda p: p([1, 2, 3]).mux(p([4, 5])),
    "groupby": lambda p: p(range(7)).groupby(even, group_size=2),
    "groupby key": lambda p: p(range(4)).groupby(even, keep_key=True),
    "sharding": lambda p: p(range(5)).sharding_filter(),
    "fork": lambda p: p(range(3)).fork(2)[1],
    "demux": lambda p: p(range(6)).demux(2, lambda n: n % 2)[1],
}


@pytest.mark.parametrize("name", CHAINS)
def test_items_are_pytorch_s(torch, name):
    def found(package):
        pipe = CHAINS[name](importlib.import_module(f"{package}.utils.data.datapipes.iter").IterableWrapper)
        items = [list(pipe), list(pipe)]
        try:
            return items, len(pipe)
        except TypeError:
            return items, None

    assert found("xtensor") == found("torch")


def test_shuffling_keeps_the_items():
    pipes = [
        data.datapipes.iter.IterableWrapper(range(50)).shuffle(buffer_size=10),
        data.datapipes.map.SequenceWrapper(range(50)).shuffle(),
    ]
    for pipe in pipes:
        one, two = list(pipe.set_seed(1)), list(pipe.set_seed(1))
        assert one == two != list(range(50)) and sorted(one) == list(range(50)) and len(pipe) == 50
        assert list(pipe.set_shuffle(False)) == list(range(50))


def test_a_program_s_own_pipe_is_a_method():
    @data.functional_datapipe("doubled_here")
    class Doubled(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for item in self.source:
                yield from (item, item)

    pipe = data.datapipes.iter.IterableWrapper([1, 2]).doubled_here()
    assert list(pipe) == [1, 1, 2, 2] and isinstance(pipe, Doubled)
    with pytest.raises(AttributeError, match="no attribute 'tripled'"):
        pipe.tripled()
    with pytest.raises(Exception, match="already taken"):
        data.functional_datapipe("doubled_here")(Doubled)
    with pytest.raises(TypeError, match="valid length"):
        len(pipe)


def test_a_loader_reads_pipes():
    pipe = data.datapipes.iter.IterableWrapper(range(4)).map(float)
    assert [b.tolist() for b in data.DataLoader(pipe, batch_size=2)] == [[0.0, 1.0], [2.0, 3.0]]
    mapped = data.datapipes.map.SequenceWrapper([1, 2, 3]).map(lambda n: n + 1)
    assert [b.tolist() for b in data.DataLoader(mapped, batch_size=2)] == [[2, 3], [4]]
    assert list(mapped.zip(mapped)) == [(2, 2), (3, 3), (4, 4)] and list(mapped.batch(2)) == [[2, 3], [4]]
    batch = next(iter(data.datapipes.iter.IterableWrapper([1, 2]).batch(2).collate()))
    assert isinstance(batch, xtensor.Tensor) and batch.tolist() == [1, 2]
